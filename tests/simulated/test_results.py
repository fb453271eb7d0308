"""Regret and its growth; `test_studies.py` tests tables of results and their files."""

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.results import growth, regret
from tests.errors import raises
from tests.keys import SHIFT


def test_regret_is_a_sum_over_rounds(rng):
    loss = nj.losses.squared()
    assert regret(loss, [0.0], [1.0], [1.0]).tolist() == [1]
    p, q, y = (jnp.asarray(rng.normal(size=50), jnp.float32) for _ in range(3))
    expected = np.cumsum((np.asarray(p - y)) ** 2 - np.asarray(q - y) ** 2)
    np.testing.assert_allclose(regret(loss, p, q, y), expected, atol=1e-4)
    np.testing.assert_allclose(regret(loss, p, p, y), 0)


def test_forgotten_vmap_fails_at_once():
    message = r"y must be \[T\], got \[2, 5\]; .* jax\.vmap"
    raises(message, regret, nj.losses.squared(), *jnp.zeros((3, 2, 5)))
    chex.assert_shape(regret(nj.losses.squared(), *jnp.zeros((3, 5))), (5,))


def test_growth_uses_the_upper_half():
    horizons = [2**k for k in range(8)]
    regret = [1e6] * 4 + [3.0 * t**0.7 for t in horizons[4:]]  # a wild transient
    for rounds in (horizons, np.array(horizons, float)):
        assert growth(rounds, regret, [0.0] * 8, 6) == pytest.approx((0.7, 0.7, 0.7))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("seeds", [3, 6, 40])
def test_growth_interval_covers_as_often_as_it_says(seeds):
    """Where horizons differ in their noise: Welch's and Satterthwaite's degrees of freedom."""
    horizons, count = [4**k for k in range(2, 8)], 4000
    means, noise = np.sqrt(horizons), np.array([0.05, 0.05, 0.05, 0.03, 0.05, 0.05])
    rng = np.random.default_rng(1000 * SHIFT)
    draws = means * (1 + noise * rng.normal(size=(count, seeds, 6)))
    errors = draws.std(axis=1, ddof=1) / seeds**0.5
    fits = [growth(horizons, *pair, seeds) for pair in zip(draws.mean(axis=1), errors, strict=True)]
    covered = np.mean([fit.low <= 0.5 <= fit.high for fit in fits])
    assert abs(covered - 0.95) < 0.005 + 5 * (0.95 * 0.05 / count) ** 0.5


def test_growth_of_one_seed_has_no_interval():
    fit = growth([10, 40], [1.0, 2.0], [math.nan] * 2, 1)
    assert fit == pytest.approx((0.5, math.nan, math.nan), nan_ok=True)


@pytest.mark.parametrize(("horizons", "regret"), [([10], [1.0]), ([10, 20], [1.0, -1.0])])
def test_growth_that_cannot_be_had_is_nan(horizons, regret):
    assert math.isnan(growth(horizons, regret, [0.1] * len(regret), 6).exponent)


MARGIN, ONE, ONES, FIVE = nj.losses.hinge(), *map(jnp.ones, (1, 3, 5))
SQUARED = nj.losses.squared()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: regret(MARGIN, ONES, ONES, jnp.array([0.0, 1.0, 1.0])), "labels −1 and .* 2y − 1"),
        (lambda: regret(MARGIN, FIVE, ONES, ONES), r"predictions must be \[3\], .* got \[5\]"),
        (lambda: regret(MARGIN, ONES, ONE, ONES), r"comparator must be \[3\], .* got \[1\]"),
        (lambda: regret(nj.losses.nu_hinge(nu=0.5), ONES, ONES, ONES), "got AdaptiveLoss"),
        (lambda: growth([10, 20], [1.0], [0.1] * 2, 6), r"mean_regret must be \[2\], .* got \[1\]"),
        (lambda: growth([10, 20], [1.0, 2.0], [0.1], 6), r"std_error must be \[2\], .* got \[1\]"),
        (lambda: growth([20, 10], [1.0, 2.0], [0.1, 0.1], 6), r"increasing, got \[20\.0, 10\.0\]"),
        (
            lambda: growth([0, 10], [1, 2], [0.1] * 2, 6),
            "horizons must be positive and increasing",
        ),
        (lambda: growth([10, 20], [1, 2], [0.1] * 2, -1), "num_seeds must be"),
        (lambda: growth([10, 20], ["a", "b"], [0.1] * 2, 8), "mean_regret must be an array"),
        (lambda: regret(SQUARED, ["a"], [1.0], [1.0]), "predictions must be an array"),
        (lambda: regret(nj.losses.poisson(), [0.0], [1.0], [-1.0]), "counts"),
        (lambda: nj.Estimate.merge([1.0]), "each of estimates must be an Estimate, got 1.0"),
        (lambda: nj.Estimate.merge(nj.Estimate.of(np.ones(2), 0)), "got one Estimate"),
        (lambda: nj.Study.merge(["a.npz"]), "each of studies must be a Study, got 'a.npz'"),
        (lambda: nj.Study.merge(nj.Study((), {}, {})), "got one Study"),
        (lambda: growth([10, 20], [1, 2], [0.1, -0.1], 6), r"std_error must be >= 0, got -0\.1"),
    ],
)
def test_bad_input_is_an_error(call, message):
    raises(message, call)


def test_traced_labels_other_than_signs_end_in_nan():
    total = jax.jit(lambda y: regret(MARGIN, 0 * y, y, y))(jnp.array([1.0, 0.0, -1.0]))
    np.testing.assert_array_equal(total, [1.0, np.nan, np.nan])
