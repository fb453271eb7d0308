import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import noisy_jax as nj
from noisy_jax.unbiased import truncation
from tests.errors import raises
from tests.keys import key


def test_geometric_distribution_is_the_conditional_one_of_the_paper():
    distribution = truncation.geometric([1.0, 0.0, 2.0, -3.0], p=4.0)
    paper = 3 / 4.0 ** np.arange(1, 5)
    paper[1] = 0
    np.testing.assert_allclose(distribution.probabilities, paper / paper.sum())
    np.testing.assert_allclose(distribution.mean, distribution.probabilities @ np.arange(4))


@pytest.mark.claim("NK-Lemma1")
def test_long_geometric_distribution_has_the_mean_of_the_paper():
    assert truncation.geometric(np.ones(60), p=3.0).mean == pytest.approx(1 / 2, rel=1e-12)


@pytest.mark.statistical
def test_draws_follow_the_distribution():
    distribution = truncation.optimal([0.5, 0.0, 1.0, 0.25], second_moment=2.0)
    draws = jax.vmap(distribution.draw)(jax.random.split(key(0), 20_000))
    frequencies = np.bincount(draws, minlength=4) / len(draws)
    assert frequencies[1] == 0
    errors = np.sqrt(distribution.probabilities * (1 - distribution.probabilities) / len(draws))
    assert np.all(np.abs(frequencies - distribution.probabilities) <= 5 * errors)
    assert np.abs(frequencies - truncation.geometric([1, 0, 1, 1], p=2.0).probabilities).max() > 0.1


@pytest.mark.slow
@pytest.mark.claim("EXT-OptimalN")
@given(
    st.lists(st.floats(-3, 3), min_size=1, max_size=8).filter(any),
    st.floats(0.05, 9.0),
    st.floats(1.05, 6.0),
)
def test_optimal_distribution_is_better_than_others(coefficients, second_moment, p):
    order = len(coefficients) - 1
    series = nj.series.power_series(lambda n: np.array(coefficients), order, degree=0)

    def moment(distribution):
        return truncation.MeanEstimator(series, distribution).second_moment(second_moment)

    best = moment(truncation.optimal(coefficients, second_moment=second_moment))
    powers = second_moment ** (np.arange(len(coefficients)) / 2)
    assert best == pytest.approx((np.abs(coefficients) @ powers) ** 2, rel=1e-9)
    assert best <= moment(truncation.geometric(coefficients, p=p)) * (1 + 1e-12)
    assert best <= moment(truncation.optimal(coefficients, second_moment=1.0)) * (1 + 1e-12)


def test_traced_parameters_give_the_same_distribution():
    coefficients = np.array([1.0, 0.0, -0.3])
    for make, name in ((truncation.geometric, "p"), (truncation.optimal, "second_moment")):
        traced = jax.jit(lambda v, make=make, name=name: make(coefficients, **{name: v}))(1.7)
        expected = make(coefficients, **{name: 1.7}).probabilities
        np.testing.assert_allclose(jnp.exp(traced.log_probabilities), expected, rtol=1e-6)


def test_wrong_arguments_raise():
    geometric, optimal = truncation.geometric, truncation.optimal
    for p in (1.0, 0.5, np.nan):
        raises(r"p must be (above 1|finite)", geometric, [1.0], p=p)
    raises("coefficients must not all be zero", geometric, [0.0, 0.0], p=2.0)
    raises("coefficients must be finite", geometric, [1.0, np.nan], p=2.0)
    raises("second_moment must be positive", optimal, [1.0], second_moment=0.0)
    kernel, loss = nj.kernels.polynomial(degree=2), nj.losses.squared()
    estimator = nj.unbiased.kernel_gradient(kernel, loss, radius=1.0, x_second_moment=1.0)
    draws = estimator.draw_orders, estimator.maps.draw_orders, geometric([1.0], p=2.0).draw
    for draw in draws:
        raises(r"key must be a key .* got 0", draw, 0)
