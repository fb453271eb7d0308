"""Wrong arguments of losses, and losses where they cannot be corrected."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.base import Sample
from noisy_jax.learners.known_covariance import corrected_gradient
from tests.errors import raises, told

SQUARED, HINGE, HALF = losses.squared(), losses.hinge(), {"nu": 0.5}
OF_NO_KIND = losses.Loss("mine", "margins", np.abs, np.sign)
OF_LAPLACE = partial(losses.corrected, noise="laplace")
STEEP = losses.corrected(losses.smoothed_hinge(sharpness=2.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: losses.smoothed_absolute(sharpness=0.0), "sharpness must be positive.*got 0.0"),
        (lambda: losses.hinge(margin=-1.0), "margin must be finite and >= 0, got -1.0"),
        (lambda: losses.huber(width=np.ones(2)), r"one number, got shape \[2\]; use jax.vmap for"),
        (lambda: losses.huber(width=np.inf), "width must be positive and finite, got inf"),
        (lambda: losses.nu_huber(tracker="joint", **HALF), "nu must be above 0 and below 0.5, got"),
        (lambda: losses.nu_huber(tracker="both", **HALF), "tracker must be 'quantile' or 'joint'"),
        (lambda: losses.nu_huber(smallest=0.0, **HALF), "smallest must be positive"),
        (lambda: losses.nu_huber(initial=0.1, smallest=0.2, **HALF), "least smallest = 0.2, got"),
        (lambda: losses.novelty(initial=np.nan, **HALF), "initial must be finite"),
        (lambda: losses.novelty(initial=-1, smallest=0.0, **HALF), "must be at least smallest"),
        (lambda: OF_NO_KIND(1.0, 1.0), r"Loss\.kind must be 'margin', 'residual' or 'count', got"),
        (
            lambda: SQUARED(np.ones(3), np.zeros((3, 1))),
            r"predictions p, .*, got \[3, 1\] and \[3\]",
        ),
        (lambda: HINGE(np.ones(3), np.ones(2)), r"of their last axes, got \[2\] and \[3\]"),
        (lambda: HINGE.argument(None, 1.0), "^p must be an array"),
        (lambda: losses.flipped(HINGE, 0.5), "Flip.rate must be positive"),
        (lambda: losses.flipped(HINGE, (0.7, 0.4)), "hold no information"),
        (lambda: losses.flipped(HINGE, (0.1, 0.1, 0.1)), "one number or a pair"),
        (lambda: losses.flipped(HINGE, -0.1), r"in \[0, 1\]"),
        (lambda: losses.flipped(SQUARED, 0.1), "a loss of the margin"),
        (lambda: losses.flipped(losses.novelty(nu=0.1), 0.1), "must read labels"),
        (lambda: losses.flipped(losses.flipped(HINGE, 0.1), 0.1), "not be flipped already"),
        (lambda: losses.corrected(losses.logistic()), "smoothed_hinge.*model="),
        (lambda: losses.corrected(HINGE), r"losses.smoothed\(hinge"),
        (lambda: losses.corrected(losses.huber()), "smoothed_absolute.* has one"),
        (lambda: losses.corrected(SQUARED, noise="uniform"), "noise must be"),
        (lambda: OF_LAPLACE(HINGE), "must be smooth"),
        (lambda: OF_LAPLACE(losses.logistic())(0.0, 1.0, jnp.ones(5)), "at most 4 features, got 5"),
        (lambda: losses.smoothed(losses.huber(), width=1.0), "must be piecewise linear"),
        (lambda: STEEP(0.0, 1.0, 0.125), "must be positive.*smaller sharpness"),
        (
            lambda: STEEP(jnp.zeros(2), 1.0, jnp.zeros(3)),
            r"v must be \[\] or \[2\], as p, got \[3\]",
        ),
        (lambda: OF_LAPLACE(losses.logistic())(0.0, 1.0, jnp.ones(0)), "variance for each feature"),
        (lambda: losses.nu_hinge(**HALF).at("wide"), "scale must be numbers, got 'wide'"),
        (lambda: losses.logistic().series(3, "far"), "center must be numbers, got 'far'"),
        (lambda: losses.exponential().series(3, [[0.0], [1, 2]]), "center must be"),
        (lambda: losses.smoothed_hinge().series(3, None), "center must be numbers, got None"),
    ],
)
def test_what_is_wrong_or_impossible_is_an_error(call, message):
    raises(message, call)


@pytest.mark.parametrize(
    "make", [losses.nu_hinge, losses.novelty, losses.nu_epsilon_insensitive, losses.nu_huber]
)
def test_shares_are_between_0_and_1(make):
    for nu in (0.0, 1.0, np.nan):
        raises(f"nu must be above 0 and below 1, got {nu:g}", make, nu=nu)
    raises("nu must be numbers, got None", make, nu=None)
    raises(r"nu must be one number, got shape \[2\]", make, nu=np.full(2, 0.5))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"value": None}, r"^Loss.value must be a function, got None"),
        ({"derivative": 1.0}, r"^Loss.derivative must be a function, got 1.0"),
        ({"series": "none"}, r"^Loss.series must be a function, got 'none'"),
        ({"deconvolved": 0}, r"^Loss.deconvolved must be a function, got 0"),
        ({"flips": 0.1}, r"^Loss.flips must be a tuple, got 0.1: losses.flipped"),
        ({"flips": (0.1,)}, r"^Loss.flips must be \(ρ₊, ρ₋\), got 1 numbers"),
    ],
)
def test_parts_of_a_loss_are_checked_where_it_is_called(parts, message):
    raises(message, SQUARED._replace(**parts), 0.5, 1.0)


def test_a_traced_first_scale_below_the_least_is_nan():
    initial = jax.jit(lambda s: losses.novelty(initial=0.5, smallest=s, **HALF).initial)
    np.testing.assert_array_equal([initial(0.0), initial(1.0)], [0.5, np.nan])


def test_a_variance_below_zero_is_an_error():
    for loss in SQUARED, losses.smoothed_hinge():
        with told("v must be >= 0, got -1.0"):
            losses.corrected(loss)(0.1, 1.0, -1.0)
    assert np.isfinite(losses.corrected(SQUARED)(0.1, 1.0, -1e-9))  # by rounding
    assert np.isnan(jax.jit(partial(losses.corrected(SQUARED), 0.1, 1.0))(-1.0))
    for wrong in ("1", [1j], [[1.0], [1.0, 2.0]]):
        with told("v must be"):
            losses.corrected(SQUARED)(0.1, 1.0, wrong)


FLIPPED = losses.flipped(losses.logistic(), 0.1)
SERIES = partial(nj.unbiased.kernel_gradient, nj.kernels.linear(), radius=1.0, x_second_moment=1.0)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: SERIES(losses.poisson()), "must have a power series"),
        (
            lambda: corrected_gradient(
                jnp.zeros(2),
                Sample(jnp.zeros((1, 2)), jnp.zeros(()), jnp.eye(2)),
                loss=OF_LAPLACE(SQUARED),
            ),
            "independent coordinates",
        ),
        # Only learners take a flipped loss; regret is of clean labels.
        (lambda: SERIES(FLIPPED), "must not be flipped here, got flipped"),
        (lambda: nj.simulated.regret(FLIPPED, *np.ones((3, 4))), "must not be flipped here, got"),
        (lambda: nj.bounds.one_copy_lower_bound(FLIPPED, radius=1.0), "must not be flipped here"),
        (
            lambda: nj.comparators.regularized(np.eye(2), np.array([1.0, -1.0]), FLIPPED, 1.0),
            "must not be flipped here, got flipped",
        ),
    ],
)
def test_users_of_a_loss_say_what_it_lacks(use, message):
    raises(message, use)
