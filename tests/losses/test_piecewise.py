import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import losses
from tests.losses.cases import LOSSES, every_loss


@pytest.mark.parametrize(
    ("name", "derivatives"),
    [
        ("hinge", [-1.0]),
        ("perceptron", [-1.0]),  # the zero function is corrected as well
        ("epsilon_insensitive", [0.0, 0.0]),
        ("absolute", [0.0]),
        ("huber", [-1.0, 1.0]),
    ],
)
def test_derivatives_at_kinks_are_the_documented_ones(name, derivatives, x64):
    loss, _, kinks = LOSSES[name]
    np.testing.assert_array_equal(loss.derivative(jnp.array(kinks)), derivatives)


@pytest.mark.slow
@pytest.mark.claim("NK-Fig1")
@pytest.mark.parametrize("sharpness", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(
    ("make", "piecewise", "kink", "share"),
    [
        (losses.smoothed_absolute, losses.epsilon_insensitive(epsilon=0.0), 0.0, 1.0),
        (losses.smoothed_hinge, losses.hinge(), 1.0, 0.5),
    ],
)
def test_smoothed_losses_lie_above_the_piecewise_ones_by_the_stated_gap(
    make, piecewise, kink, share, sharpness, x64
):
    a = kink + np.linspace(-4, 4, 81)
    gap = make(sharpness=sharpness).value(a) - piecewise.value(a)
    assert gap.min() >= -1e-15
    assert np.argmax(gap) == 40
    assert gap[40] == pytest.approx(share / (sharpness * np.sqrt(np.pi)), rel=1e-12)


@every_loss
def test_a_loss_with_kinks_names_an_analytic_one(name):
    loss, _, kinks = LOSSES[name]
    if kinks:
        assert loss.series is None
        analytic = getattr(losses, loss.analytic)()
        assert analytic.series is not None
        assert analytic.kind == loss.kind
