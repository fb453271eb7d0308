"""What every loss does, and what it must be given."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import losses
from tests.errors import raises, told
from tests.losses.cases import LOSSES, every_loss

ARGUMENTS = np.concatenate([np.linspace(-3.03, 3.03, 41), [-0.8, -0.4, 0.0, 0.4, 0.6, 0.8]])


@pytest.mark.claim("NK-Ex3", "NORMA-Eq23")
@every_loss
def test_value_is_the_formula_and_derivative_its_gradient(name, x64):
    loss, value, kinks = LOSSES[name]
    targets = np.array([-1.0, 1.0] if loss.kind == "margin" else [-1.0, 0.3, 1.0])
    p, y = (grid.ravel() for grid in np.meshgrid(ARGUMENTS, targets))
    a = y * p if loss.kind == "margin" else p - y

    @jax.jit
    def judged(p, y):
        both = loss.gradient(p, y), jax.vmap(jax.grad(loss))(p, y)
        return loss.argument(p, y), loss(p, y), *both

    argument, found, *slopes = jax.device_get(judged(p, y))
    np.testing.assert_allclose(argument, a)
    np.testing.assert_allclose(found, value(a), atol=1e-14)
    smooth = np.all([np.abs(a - kink) > 1e-6 for kink in kinks], axis=0) | np.zeros(len(a), bool)
    np.testing.assert_allclose(*(slope[smooth] for slope in slopes), atol=1e-13)


@every_loss
def test_derivative_is_a_subgradient_everywhere(name, x64):
    loss, value, _ = LOSSES[name]
    a, b = ARGUMENTS[:, None], ARGUMENTS[None]
    tangents = value(a) + np.asarray(jax.jit(loss.derivative)(ARGUMENTS))[:, None] * (b - a)
    assert np.all(tangents <= value(b) + 1e-13)


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (losses.smoothed_absolute, "sharpness"),
        (losses.smoothed_hinge, "sharpness"),
        (losses.hinge, "margin"),
        (losses.epsilon_insensitive, "epsilon"),
        (losses.huber, "width"),
    ],
)
def test_parameters_can_be_swept_by_vmap(make, parameter):
    parameters, p = jnp.array([0.5, 2.0]), jnp.array([-0.3, 1.4])

    def judged(s):
        loss = make(**{parameter: s})
        return jnp.stack([loss(p, jnp.ones(2)), loss.gradient(p, jnp.ones(2))])

    swept = jax.jit(jax.vmap(judged))(parameters)
    np.testing.assert_allclose(swept, [*map(jax.jit(judged), parameters)], rtol=1e-6)


@pytest.mark.slow
@every_loss
def test_integers_are_accepted_and_floats_keep_their_precision(name, x64):
    loss = LOSSES[name][0]
    real = jax.jit(lambda p, y: (loss(p, y), loss.gradient(p, y)))
    np.testing.assert_allclose((loss(2, 1), loss.gradient(2, 1)), real(2.0, 1.0), rtol=1e-6)
    p = np.array([0.3, -2.0], np.float32)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.eval_shape(real, p, np.sign(p)))


def test_labels_other_than_plus_and_minus_one_raise_or_give_nan():
    loss, bad = losses.hinge(), jnp.array([1.0, 0.0, jnp.nan])
    for judged in (lambda p, y: loss(p, y), loss.gradient):  # jax.jit takes no named tuples
        raises(r"y must be labels −1 and \+1, got 2", judged, 1.0, 2.0)
        found = jax.jit(judged)(jnp.full(3, 5.0), bad)  # where the loss is flat
        np.testing.assert_array_equal(found, [0.0, np.nan, np.nan])


def test_targets_match_the_last_axes_of_predictions():
    p, y = np.array([[0.5, 2.0], [1.0, -1.0]]), np.array([1.0, -1.0])
    for loss in (losses.squared(), losses.hinge()):
        np.testing.assert_array_equal(loss(p, y), loss(p, np.stack([y, y])))


def test_names_contain_the_parameters():
    assert repr(losses.huber(width=2)) == "huber(width=2)"
    assert repr(losses.smoothed_hinge()) == "smoothed_hinge(sharpness=1)"
    names = []
    jax.eval_shape(lambda s: names.append(repr(losses.hinge(margin=s))), 1.0)
    assert names == ["hinge(margin=traced)"]


def test_lists_are_predictions_and_texts_are_not():
    assert losses.squared()([1.0, 2.0], [0.0, 0.0]).tolist() == [1, 4]
    assert losses.hinge().gradient([0.0, 2.0], [1.0, 1.0]).tolist() == [-1, 0]
    assert losses.poisson()([0.0], [2.0]).tolist() == [1]
    for wrong in ("a", [1j], [[1.0], [1.0, 2.0]]):
        with told("p", "array"):
            losses.squared()(wrong, 1.0)


def test_predictions_and_targets_of_other_lengths_and_kinds_raise():
    loss = losses.hinge()
    np.testing.assert_array_equal(loss.argument(iter([1.0, 2.0]), [1.0, -1.0]), [1.0, -2.0])
