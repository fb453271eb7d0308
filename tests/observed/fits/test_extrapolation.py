"""Curves of SIMEX against closed forms and SciPy; what a fit says of them."""

import numpy as np
from scipy.optimize import curve_fit
from sklearn.linear_model import LinearRegression

import noisy_jax as nj
from noisy_jax.observed.fits.extrapolation import rational

LEVELS = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
BACK = np.array([-1.0])


def test_rational_recovers_rational_curves_and_lines():
    poles = np.array([1.15, 1.5, 3.0, 40.0, -4.0])
    values = 2 - 3 / (poles + LEVELS[:, None])
    values = np.column_stack([values, 1 - 2 * LEVELS, np.full(5, 7.0)])
    expected = [*(2 - 3 / (poles - 1)), 3, 7]
    np.testing.assert_allclose(rational(LEVELS, values, BACK)[0], expected, rtol=1e-7)


def test_rational_is_least_squares_as_by_scipy(rng):
    values = 1 / (1.6 + LEVELS) + 0.002 * rng.normal(size=5)

    def curve(level, a, b, c):
        return a + b / (c + level)

    found, _ = curve_fit(curve, LEVELS, values, [0, 1, 1.6], xtol=1e-14, ftol=1e-14)
    at = np.array([-1.0, 0.3])
    made = rational(LEVELS, values[:, None], at)[:, 0]
    np.testing.assert_allclose(made, curve(at, *found), rtol=1e-5)


def test_a_fit_has_its_curve(rng):
    kind, x = "rational", rng.normal(size=(100, 2))
    table = nj.observations.from_arrays(x, x @ [1.0, -1], noise=[0.1, 0.0], names=["a", "b"])
    fit = nj.fit(table, nj.methods.SIMEX(LinearRegression(), extrapolation=kind, draws=2))
    np.testing.assert_allclose(fit.curve([-1])[0], [fit.intercept, *fit.coefficients])
    np.testing.assert_allclose(fit.estimates[0, 1:], fit.uncorrected.coefficients)
    words = "SIMEX of LinearRegression", f"{kind} curve", "Approximate."
    assert all(word in str(fit) for word in words)
