import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.errors import raises

HORIZON, RADIUS = 400, 2.0
THEORY = nj.bounds.parallel_worlds(1.5, horizon=HORIZON, radius=RADIUS, y_second_moment=1.0)


def descent(theory, factor):
    """The bound of gradient descent at a multiple of the rate: W²/(2η) + ηGT/2."""
    rate = factor * float(theory.learning_rate)
    return RADIUS**2 / (2 * rate) + rate * float(theory.second_moment) * HORIZON / 2


@pytest.mark.parametrize("factor", [0.5, 1.0, 8.0])
def test_bound_at_a_rate_factor_is_that_of_gradient_descent_at_the_rate(factor):
    faster = nj.bounds.at_rate_factor(THEORY, factor)
    expected = descent(THEORY, factor)
    np.testing.assert_allclose(faster[:2], (factor * THEORY.learning_rate, expected), rtol=1e-6)
    assert faster.second_moment == THEORY.second_moment
    if factor != 1:  # the bound is not proportional to the rate
        assert abs(factor * float(THEORY.regret) / expected - 1) > 0.4


def test_bound_of_random_truncation_at_a_rate_factor():
    kernel, loss = nj.kernels.polynomial(degree=2), nj.losses.squared()
    estimator = nj.unbiased.gradient(kernel, loss, radius=RADIUS, x_second_moment=1.2)
    theory = nj.bounds.random_truncation(estimator, horizon=HORIZON)
    faster = nj.bounds.at_rate_factor(theory, 8.0)
    np.testing.assert_allclose(faster.regret, descent(theory, 8.0), rtol=1e-6)
    assert faster.copies == theory.copies


@pytest.mark.parametrize("factor", [0.25, 16.0])
@pytest.mark.parametrize("max_bias", [0.01, 0.2])
def test_a_truncation_guarantee_at_a_rate_factor_has_its_own_turn(x64, factor, max_bias):
    """Where W²/(2η) + ηGT/2 + 2bT max|f| is below the regret of predicting zero."""
    kernel, loss = nj.kernels.linear(), nj.losses.smoothed_hinge(sharpness=0.5)
    options = {"x_second_moment": 0.5, "max_bias": max_bias}
    estimator = nj.unbiased.gradient(kernel, loss, radius=0.5, **options)

    def at(horizon):
        theory = nj.bounds.random_truncation(estimator, horizon=horizon)
        return theory, nj.bounds.at_rate_factor(theory, factor)

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
    assert nj.bounds.at_rate_factor(theory, 4.0).regret > descent(theory, 4.0) + bias


def test_the_factor_can_be_swept():
    swept = jax.vmap(lambda m: nj.bounds.at_rate_factor(THEORY, m).regret)(np.array([0.5, 2.0]))
    np.testing.assert_allclose(swept, 1.25 * THEORY.regret, rtol=1e-6)


def test_bad_factors_and_guarantees_of_other_rates_raise():
    raises("rate_factor must be positive and finite, got 0", nj.bounds.at_rate_factor, THEORY, 0)
    still = nj.bounds.Drift(norm=1.0, length=0.0, squared_length=0.0)
    counted = nj.bounds.mistakes(1.0, still, horizon=10, comparator_margin=1.0, comparator_loss=0.0)
    raises(r"must bound the regret .* got MistakeGuarantee", nj.bounds.at_rate_factor, counted, 2.0)
    given = {"horizon": HORIZON, "slope": 1.0, "regularization": 0.1}
    theory = nj.bounds.regularized_risk(1.0, **given)
    halved = nj.bounds.regularized_risk(1.0, **given, learning_rate=theory.learning_rate / 2)
    assert 1.25 * theory.regret < halved.regret  # multiplying would not give a bound
    raises(r"η = W/√\(GT\), .* got RiskGuarantee", nj.bounds.at_rate_factor, theory, 0.5)
