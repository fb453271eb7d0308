"""Power series of the derivatives of losses; in the complex plane, by NumPy and SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erf, erfi

from noisy_jax import losses
from noisy_jax.series import power_series
from tests.errors import raises

# Each loss with its derivative as a function of a complex argument.
ANALYTIC = {
    "squared": (losses.squared(), lambda a: 2 * a),
    "logistic": (losses.logistic(), lambda a: -1 / (1 + np.exp(a))),
    "exponential": (losses.exponential(), lambda a: -np.exp(-a)),
    "smoothed_absolute": (losses.smoothed_absolute(sharpness=1.3), lambda a: erf(1.3 * a)),
    "smoothed_hinge": (
        losses.smoothed_hinge(sharpness=1.3),
        lambda a: erf(1.3 * (a - 1)) / 2 - 0.5,
    ),
}
every_loss = pytest.mark.parametrize("name", ANALYTIC)
HINGE_ABOUT_ZERO = [erf(-1) / 2 - 0.5, *(np.exp(-1) / np.pi**0.5 * np.array([1, 1, 1 / 3, -1 / 6]))]


@pytest.mark.parametrize("order", [0, 1, 11, 40])
@pytest.mark.parametrize("center", [-2.0, 0.0, 0.3])
@every_loss
def test_remainder_bounds_the_error_within_a_factor(name, center, order):
    loss, slope = ANALYTIC[name]
    series = loss.series(order, center)
    assert series.coefficients.shape == (order + 1,)
    radii = (0.1, 1.0, 2.0) if np.isinf(series.convergence) else (0.1, 1.0, 3.0)
    for radius in radii:
        circle = center + radius * np.exp(1j * np.linspace(0, 2 * np.pi, 97))
        error = np.polyval(series.coefficients[::-1], circle - center) - slope(circle)
        bound = series.remainder(radius)
        assert np.abs(error).max() <= bound * (1 + 1e-9) + 1e-13
        # Terms left out add up in some direction, but for three that differ in phase.
        assert bound <= 3 * np.abs(error).max() + 1e-13


@every_loss
def test_evaluates_the_derivative_on_the_line_in_the_precision_of_the_argument(name, x64):
    (loss, slope), a = ANALYTIC[name], np.linspace(-0.5, 1.1, 9)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        found = loss.series(40, 0.3)(jnp.asarray(a, dtype))
        assert found.dtype == dtype
        np.testing.assert_allclose(found, slope(a), atol=tolerance)
    np.testing.assert_allclose(loss.series(40, 0.3)(0.2), slope(0.2), atol=1e-12)


@pytest.mark.claim("NK-Ex1")
def test_squared_is_linear():
    series = losses.squared().series(3, 0.5)
    np.testing.assert_array_equal(series.coefficients, [1, 2, 0, 0])
    assert series.degree == 1
    assert series.remainder(7.0) == 0
    assert losses.squared().series(0, 0.5).remainder(7.0) == pytest.approx(14)
    assert series.absolute(7.0) == pytest.approx(15)


@pytest.mark.claim("NK-Ex4")
def test_smoothed_hinge_about_zero():
    series = losses.smoothed_hinge().series(4, 0.0)
    np.testing.assert_allclose(series.coefficients, HINGE_ABOUT_ZERO, rtol=1e-14)
    # As printed: the coefficients about 1, taken for those about 0.
    printed, root = losses.smoothed_hinge().series(4, 1.0).coefficients, np.pi**-0.5
    np.testing.assert_allclose(printed, [-0.5, root, 0, -root / 3, 0], rtol=1e-14, atol=1e-15)
    assert np.abs(printed - HINGE_ABOUT_ZERO).max() > 0.3


@pytest.mark.claim("NK-Ex4")
@pytest.mark.parametrize(
    ("sharpness", "radius", "true", "printed"),
    [(0.5, 0.5, 0.885, 0.646), (1, 0.5, 1.089, 0.821), (1, 1, 1.489, 1.469), (1, 3, 638, 1524)],
)
def test_absolute_series_of_the_smoothed_hinge(sharpness, radius, true, printed):
    loss = losses.smoothed_hinge(sharpness=sharpness)
    summed = loss.series(8, 0.0).absolute(radius)
    more = loss.series(90, 0.0).absolute(radius)
    np.testing.assert_allclose([summed, more], true, rtol=5e-3 if radius == 3 else 1e-3)
    assert summed >= more * (1 - 1e-12)
    assert more <= 0.5 + 0.5 * erfi(sharpness * (radius + 1))
    # As printed ½ + ½ erfi(sr), bounded in closed form: below the truth where sr is small, and
    # loose where it is large.
    steepness = sharpness * radius
    expansion = 0.5 + 0.5 * erfi(steepness)
    closed = 0.5 + (np.exp(steepness**2) - 1) / (steepness * np.sqrt(np.pi))
    assert closed == pytest.approx(printed, rel=1e-3)
    assert (expansion < more) == (closed < more) == (radius < 3)


@pytest.mark.claim("NK-Ex3")
@pytest.mark.parametrize("steepness", [0.1, 0.5, 1.0, 2.0])
def test_absolute_series_of_the_smoothed_absolute_is_erfi(steepness):
    sharpness, radius = 2.0, steepness / 2
    exact = losses.smoothed_absolute(sharpness=sharpness).series(80, 0.0).absolute(radius)
    assert exact == pytest.approx(erfi(steepness), rel=1e-13)
    closed = (np.exp(steepness**2) - 1) / (steepness * np.sqrt(np.pi))
    assert exact <= 2 * closed
    if steepness >= 1:  # as printed for this loss, the two closed bounds being swapped
        assert exact > 0.5 + closed


@pytest.mark.claim("NK-Ex2")
def test_absolute_series_of_the_exponential_loss_has_no_signs():
    series = losses.exponential().series(3, -0.4)
    assert series.absolute(1.5) == pytest.approx(np.exp(0.4 + 1.5), rel=1e-14)


def test_bounds_where_the_series_diverges_and_at_an_infinite_radius():
    """They are infinite, unless the coefficients say more, without NaN and without a warning."""
    assert np.isinf(losses.logistic().series(5, 0.0).absolute(3.2))
    assert losses.logistic().series(200, 0.0).absolute(3.1) > 5
    assert losses.squared().series(5, 0.0).absolute(np.inf) == np.inf
    assert losses.squared().series(5, 0.0).remainder(np.inf) == 0
    assert np.isnan(jax.jit(losses.squared().series(5, 0.0).remainder)(-1.0))
    assert losses.smoothed_absolute().series(4, 0.0).absolute(np.inf) == np.inf


@pytest.mark.slow
def test_traced_series_equal_concrete_ones(x64):
    def every(center, sharpness, a, radius):
        smoothed = losses.smoothed_absolute, losses.smoothed_hinge
        made = [losses.squared(), losses.logistic(), losses.exponential()]
        made += [loss(sharpness=sharpness) for loss in smoothed]
        series = [loss.series(6, center) for loss in made]
        # All remainders share their code, and that of the logistic loss is slow to compile.
        bounds = [s.remainder(radius) for s in (series[0], *series[2:])]
        return [(s.coefficients, s(a)) for s in series] + [bounds]

    traced = jax.jit(every)
    for numbers in ((0.3, 1.3, 0.7, 0.9), (-2.0, 0.4, -1.5, 0.5)):
        for ours, expected in zip(traced(*numbers), every(*numbers), strict=True):
            for value, wanted in zip(ours, expected, strict=True):
                np.testing.assert_allclose(value, wanted, rtol=1e-12, atol=1e-16)


def test_traced_remainders_count_what_float32_flushes():
    def left_out(center, radius):
        return losses.exponential().series(33, center).remainder(radius)

    exact = left_out(0.0, 10.0)
    assert exact == pytest.approx(4.722e-5, rel=1e-3)
    assert float(np.float32(np.exp(-np.sum(np.log(np.arange(1, 41)))))) < np.finfo(np.float32).tiny
    np.testing.assert_allclose(jax.jit(lambda r: left_out(0.0, r))(10.0), exact, rtol=1e-4)
    np.testing.assert_allclose(jax.jit(left_out)(0.0, 10.0), exact, rtol=1e-4)


def test_traced_series_of_a_sharp_hinge_survives_float32():
    def coefficients(sharpness):
        return losses.smoothed_hinge(sharpness=sharpness).series(40, 0.0).coefficients[-8:]

    assert np.float32(np.exp(-100.0)) < np.finfo(np.float32).tiny  # e^(−s²), a factor of each
    np.testing.assert_allclose(jax.jit(coefficients)(10.0), coefficients(10.0), rtol=2e-3)


def test_logistic_series_about_a_large_negative_center(x64):
    # There 1/(1 + e^c) rounds to 1, which is a solution of s' = s² − s as well.
    center = -50.0
    assert 1 / (1 + np.exp(center)) == 1
    series = losses.logistic().series(400, center)
    slope = ANALYTIC["logistic"][1]
    assert abs(series(-15.0) - slope(-15.0)) < 1e-12
    assert abs(-1 - slope(-15.0)) > 1e-7  # the error of the constant −1
    right = losses.logistic().series(400, 50.0).coefficients  # s(−a) = 1 − s(a)
    expected = -((-1.0) ** np.arange(1, 401)) * right[1:]
    np.testing.assert_allclose(series.coefficients[1:], expected, rtol=1e-14)


def test_rejects_points_where_the_series_diverges(x64):
    series = losses.logistic().series(5, 1.0)
    assert series.convergence == pytest.approx(np.hypot(1, np.pi))
    raises(r"about 1.0 converges for \|a − c\| < 3.29.*= 3.5: use", series, np.array([0.0, 4.5]))
    assert np.isinf(series.remainder(3.3))
    traced = jax.jit(lambda a: series(a))(jnp.array([0.0, 4.5]))
    assert np.isfinite(traced[0])
    assert np.isnan(traced[1])


def made(coefficients=lambda order: np.ones(order + 1), order=2, degree=2, **options):
    return power_series(coefficients, order, degree=degree, **options)


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda: losses.exponential().series(-1), "order must be a whole number of at least 0"),
        (lambda: losses.logistic().series(2, np.nan), "center must be finite"),
        (lambda: losses.smoothed_hinge().series(2, np.inf), "center must be finite"),
        (lambda: losses.exponential().series(2).remainder(-1.0), "radius must be at least 0, got"),
        (lambda: made(order=1.5), "order must be a whole number"),
        (lambda: made(np.ones(3)), "coefficients must be a function"),
        (lambda: made(np.ones), r"coefficients\(order\) must be \[3\]"),
        (lambda: made(degree="2"), "degree must be a whole number"),
        (lambda: made(degree=-1), "degree must be a whole number"),
        (lambda: made(convergence=-1.0), "convergence must be positive"),
        (lambda: made(convergence=[1.0, 2.0]), "convergence must be one number"),
        (lambda: made(convergence=jax.random.key(0)), "convergence must be numbers, got a key"),
        (lambda: made(majorant=1.0), "majorant must be a function"),
    ],
)
def test_rejects_bad_input(use, message):
    raises(message, use)
    assert made()([0.0, 1.0]).tolist() == [1, 3]
