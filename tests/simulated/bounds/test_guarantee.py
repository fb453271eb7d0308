"""The guarantees of horizons, in the mean and, by Azuma's inequality, for one run."""

import itertools
import math

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.bounds import DataMoments, high_probability
from noisy_jax.simulated.bounds.guarantee import at_rate_factor
from tests.errors import raises

HORIZON, RADIUS = 400, 2.0
THEORY = nj.bounds.parallel_worlds(1.5, horizon=HORIZON, radius=RADIUS, y_second_moment=1.0)


def descent(theory, factor):
    """The bound of gradient descent at a multiple of the rate: W²/(2η) + ηGT/2."""
    rate = factor * float(theory.learning_rate)
    return RADIUS**2 / (2 * rate) + rate * float(theory.second_moment) * HORIZON / 2


def test_bound_at_a_rate_factor_is_that_of_gradient_descent_at_the_rate():
    factors = np.array([0.5, 1.0, 8.0])
    faster = jax.vmap(lambda factor: at_rate_factor(THEORY, factor))(factors)
    np.testing.assert_allclose(faster.learning_rate, factors * THEORY.learning_rate, rtol=1e-6)
    np.testing.assert_allclose(faster.regret, [descent(THEORY, f) for f in factors], rtol=1e-6)
    np.testing.assert_allclose(faster.second_moment, THEORY.second_moment)
    assert at_rate_factor(THEORY, 8.0).regret == pytest.approx(descent(THEORY, 8.0))


@pytest.mark.parametrize(("factor", "max_bias"), [(0.25, 0.01), (16.0, 0.2)])
def test_a_truncation_guarantee_at_a_rate_factor_has_its_own_turn(x64, factor, max_bias):
    """Where W²/(2η) + ηGT/2 + 2bT max|f| is below the regret of predicting zero."""
    kernel, loss = nj.kernels.linear(), nj.losses.smoothed_hinge(sharpness=0.5)
    options = {"x_second_moment": 0.5, "max_bias": max_bias}
    estimator = nj.unbiased.kernel_gradient(kernel, loss, radius=0.5, **options)

    def at(horizon):
        theory = nj.bounds.random_truncation(estimator, horizon=horizon)
        return theory, at_rate_factor(theory, factor)

    bias, idle = 2 * estimator.derivative_bias * estimator.largest_value, estimator.loss.value(0.0)
    assert bias > 0
    stake = (factor + 1 / factor) / 2
    own, faster = at(1000)
    root = 0.5 * (float(own.second_moment) * 1000) ** 0.5
    np.testing.assert_allclose(faster.regret, stake * root + 1000 * bias, rtol=1e-9)
    turn = float(faster.informative_from)
    np.testing.assert_allclose(stake * root * (turn / 1000) ** 0.5 + turn * bias, turn * idle)
    for share, vacuous in ((0.999, True), (1.001, False)):
        theory, faster = at(share * turn)
        assert faster.vacuous == vacuous
        assert not theory.vacuous  # another rate has a larger bound


def test_the_result_bounds_the_bias_of_uncorrected_too():
    bounds = nj.bounds.uncorrected, nj.bounds.known_covariance
    moments = nj.bounds.DataMoments(1.5, 3.0, 1.0, 0.25)
    theory, unbiased = (bound(moments, horizon=HORIZON, radius=RADIUS) for bound in bounds)
    bias = float(theory.regret) - float(unbiased.regret)
    assert bias > 0
    assert at_rate_factor(theory, 4.0).regret > descent(theory, 4.0) + bias


def test_a_risk_has_no_bound_at_a_multiple_of_its_rate():
    given = {"horizon": HORIZON, "slope": 1.0, "regularization": 0.1}
    theory = nj.bounds.regularized_risk(1.0, **given)
    halved = nj.bounds.regularized_risk(1.0, **given, learning_rate=theory.learning_rate / 2)
    assert 1.25 * theory.regret < halved.regret  # multiplying would not give a bound
    raises(r"η = W/√\(GT\), .* got RiskGuarantee", at_rate_factor, theory, 0.5)


def deviation(delta, *, horizon, radius, second_moment):
    """What it adds to a guarantee."""
    nothing = nj.bounds.Guarantee(0.1, 0.0, second_moment)
    options = {"horizon": horizon, "radius": radius, "failure_probability": delta}
    return float(high_probability(nothing, **options).regret)


@pytest.mark.claim("EXT-HighProbability")
@pytest.mark.parametrize("delta", [0.05, 0.01, 0.001])
def test_the_deviation_is_enough_for_coins_and_half_of_it_is_not(delta):
    """The martingale of T steps ±2W√G, whose tail is known: 2W√G (2N − T), N binomial."""
    horizon, radius, second_moment = 64, 1.5, 9.0
    most = deviation(delta, horizon=horizon, radius=radius, second_moment=second_moment)

    def tail(value):
        return sum(
            math.comb(horizon, n) / 2**horizon
            for n in range(horizon + 1)
            if 2 * radius * second_moment**0.5 * (2 * n - horizon) > value
        )

    assert tail(most) <= delta < tail(most / 2)


@pytest.mark.claim("EXT-HighProbability")
@pytest.mark.parametrize("copies", [1, 2])
def test_descent_is_the_guarantee_and_a_martingale_in_every_draw(copies, rng):
    """Over all draws of Rademacher noise in one dimension, in float64.

    The regret is at most W√(GT) + Σ⟨E∇̃ − ∇̃, w − u⟩ in each, and the sum has mean zero.
    """
    horizon, radius, size = 4, 0.8, 0.7
    x, y = rng.uniform(-1, 1, horizon), rng.uniform(-1, 1, horizon)
    largest, target = (np.abs(x).max() + size) ** 2, np.max(y**2)
    most = DataMoments(largest, largest**2, target, size**2)
    bound = nj.bounds.two_copies if copies == 2 else nj.bounds.known_covariance
    guarantee = bound(most, horizon=horizon, radius=radius)
    rate, second_moment = float(guarantee.learning_rate), float(guarantee.second_moment)
    u = np.clip(x @ y / (x @ x), -radius, radius)
    draws = np.array(list(itertools.product([-size, size], repeat=copies * horizon)))
    seen = x[:, None] + draws.reshape(-1, horizon, copies)
    w, regret, martingale = np.zeros(len(draws)), 0.0, 0.0
    for t in range(horizon):
        first, second = seen[:, t, 0], seen[:, t, -1]
        gradient = 2 * (w * first - y[t]) * second - (0 if copies == 2 else 2 * size**2 * w)
        assert np.all(gradient**2 <= second_moment * (1 + 1e-6))
        martingale += (2 * (w * x[t] - y[t]) * x[t] - gradient) * (w - u)
        regret += (w * x[t] - y[t]) ** 2 - (u * x[t] - y[t]) ** 2
        w = np.clip(w - rate * gradient, -radius, radius)
    assert abs(martingale.mean()) < 1e-12
    assert np.all(regret <= float(guarantee.regret) + martingale + 1e-6)
    assert np.abs(martingale).max() <= 4 * horizon * radius * second_moment**0.5


def test_gradients_that_are_all_zero_add_no_deviation():
    assert deviation(0.1, horizon=100, radius=1.0, second_moment=0.0) == 0
