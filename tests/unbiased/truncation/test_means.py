import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.unbiased.truncation import MeanEstimator, geometric, optimal
from tests.keys import key
from tests.quadrature import tensor

LOSSES = {
    "squared": nj.losses.squared(),
    "exponential": nj.losses.exponential(),
    "smoothed_hinge": nj.losses.smoothed_hinge(sharpness=1.2),
}
DISTRIBUTIONS = {
    "geometric": lambda c: geometric(c, p=1.5),
    "optimal": lambda c: optimal(c, second_moment=0.7),
}


def enumerated(estimator, atoms, chances):
    """Mean and second moment over all orders and all values of independent copies."""
    copies, weights = tensor(atoms, chances, estimator.copies)
    every = jax.jit(jax.vmap(jax.vmap(estimator.estimate, (None, 0)), (0, None)))
    estimates = np.asarray(every(np.arange(estimator.copies + 1), copies))
    return [estimator.orders.probabilities @ e @ weights for e in (estimates, estimates**2)]


@pytest.mark.slow
@pytest.mark.claim("NK-Sec3.2", "NK-Lemma1", "NK-Lemma2", "EXT-Centre")
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("center", [0.0, 0.4])
def test_mean_and_second_moment_by_enumeration(x64, name, distribution, center):
    loss, atoms, chances = LOSSES[name], np.array([-0.9, 0.3, 1.6]), np.array([0.2, 0.5, 0.3])
    series = loss.series(5, center)
    estimator = MeanEstimator(series, DISTRIBUTIONS[distribution](series.coefficients))
    mean, second = enumerated(estimator, atoms, chances)
    middle, spread = atoms @ chances, (atoms - center) ** 2 @ chances
    np.testing.assert_allclose(mean, series(middle), rtol=1e-12)
    np.testing.assert_allclose(second, estimator.second_moment(spread), rtol=1e-12)
    bias = abs(mean - loss.derivative(middle))
    assert bias <= estimator.bias(abs(middle - center)) + 1e-15
    assert (bias < 1e-15) == (name == "squared")
    naive = chances @ loss.derivative(atoms)  # one copy in place of the mean
    assert name == "squared" or abs(naive - loss.derivative(middle)) > 3 * bias


@pytest.mark.claim("NK-Sec3.2")
def test_copies_that_are_not_independent_are_biased(x64):
    series = nj.losses.exponential().series(5, 0.0)
    estimator = MeanEstimator(series, geometric(series.coefficients, p=2.0))
    orders = jnp.arange(6)
    same = [jax.vmap(estimator.estimate, (0, None))(orders, jnp.full(5, a)) for a in (0.0, 2.0)]
    mean = np.mean([estimator.orders.probabilities @ s for s in same])
    assert abs(mean - series(1.0)) > 0.1


@pytest.mark.claim("NK-Lemma1", "NK-Ex4", "EXT-OptimalN")
def test_golden_second_moments(x64):
    """NK-Lemma1 for e^a; the printed bound of the smoothed hinge is exceeded."""
    series = nj.kernels.exponential().series(60)
    paper = MeanEstimator(series, geometric(series.coefficients, p=2.0))
    assert paper.second_moment(1.3) == pytest.approx(11.7, abs=0.05)
    assert 2 * series.absolute(np.sqrt(2 * 1.3)) ** 2 == pytest.approx(50.3, abs=0.05)
    best = MeanEstimator(series, optimal(series.coefficients, second_moment=1.3))
    assert best.second_moment(1.3) == pytest.approx(9.78, abs=0.005)
    for sharpness, p, second, exact, printed in (
        (1, 1.2, 0.2, 5.17, 3.96),
        (0.5, 1.5, 0.5, 1.848, 1.773),
    ):
        series = nj.losses.smoothed_hinge(sharpness=sharpness).series(80, 0.0)
        moment = MeanEstimator(series, geometric(series.coefficients, p=p)).second_moment(second)
        assert moment == pytest.approx(exact, rel=2e-3)
        assert moment > printed
        bound = p / (p - 1) * series.absolute(np.sqrt(p * second)) ** 2
        assert moment <= bound <= 8 * moment


@pytest.mark.claim("NK-Ex4", "EXT-Centre")
def test_the_center_one_has_a_large_second_moment_for_the_smoothed_hinge(x64):
    """NK-Ex4, option B; E(X − 1)² at least that of E X = 0."""

    def moment(center, second):
        series = nj.losses.smoothed_hinge(sharpness=2.0).series(150, center)
        return MeanEstimator(series, geometric(series.coefficients, p=2.0)).second_moment(second)

    assert moment(0.0, 0.3) == pytest.approx(2.043, rel=1e-3)
    assert moment(1.0, 1.3) > 1e5 * moment(0.0, 0.3)


@pytest.mark.statistical
def test_draw_counts_copies():
    series = nj.losses.exponential().series(4, 0.0)
    estimator = MeanEstimator(series, geometric(series.coefficients, p=2.0))
    keys = jax.random.split(key(1), 400)
    estimates, used = jax.jit(jax.vmap(estimator.draw, (0, None)))(keys, jnp.arange(1.0, 5.0))
    expected = jax.jit(jax.vmap(estimator.estimate, (0, None)))(used, jnp.arange(1.0, 5.0))
    np.testing.assert_allclose(estimates, expected, rtol=1e-6)
    assert set(np.unique(used)) >= {0, 1, 2}


def test_whole_numbers_are_copies_too():
    series = nj.losses.exponential().series(4, 0.0)
    estimator = MeanEstimator(series, geometric(series.coefficients, p=1.7))
    whole, real = (estimator.estimate(2, jnp.arange(one, 5)) for one in (1, 1.0))
    assert whole == real
    assert real != jnp.trunc(real)


@pytest.mark.statistical
def test_estimates_are_finite_although_some_orders_are_too_rare_to_be_drawn():
    series = nj.kernels.exponential().series(40)
    steep = geometric(series.coefficients, p=1e12)
    for distribution in (steep, optimal(series.coefficients, second_moment=1e-4)):
        estimate, used = MeanEstimator(series, distribution).draw(key(0), jnp.full(40, 1e-2))
        assert used <= 1
        assert np.isfinite(estimate)
    assert MeanEstimator(series, steep).second_moment(1e-4) == np.inf  # rather than a wrong bound


def test_too_few_copies_raise():
    series = nj.losses.exponential().series(4, 0.0)
    estimator = MeanEstimator(series, geometric(series.coefficients, p=2.0))
    with pytest.raises(ValueError, match="needs 4 independent copies, got 3"):
        estimator.draw(jax.random.key(0), jnp.ones(3))
