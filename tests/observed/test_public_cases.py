"""Questions and reports of people who fit noisy tables with other packages, and what happens here.

Each test names where it was asked. Data are small copies of theirs, with a known truth.
"""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import curve_fit

import noisy_jax as nj
from tests.errors import raises


def fit(columns, **known):
    return nj.fit(nj.table(pd.DataFrame(columns), target="y", **known))


def agrees(fit, *truth):
    """Within five of the standard errors that the fit states."""
    np.testing.assert_array_less(np.abs(fit.values - truth), 5 * fit.std_error)


def test_standard_errors_are_roots_of_the_covariance():
    """SciPy issues 6842, 9857 and 16661: `sd_beta` of ODR is not the root of `cov_beta`."""
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, 200)
    table = nj.observations.from_arrays(
        (x + 0.1 * rng.normal(size=200))[:, None], 1 + x**3 + rng.normal(size=200), noise=0.01
    )
    method = nj.methods.Model(lambda p, x: p[0] + p[1] * x[0] ** 3, np.zeros(2))
    found = nj.fit(table, method)
    np.testing.assert_allclose(found.std_error, np.diag(found.covariance) ** 0.5)
    agrees(found, 1, 1)


def test_an_intercept_near_zero_has_a_standard_error():
    """SciPy issue 6048: a quadratic with intercept 1e-14 has the error 0, and wrong others."""
    x, y = np.arange(1, 6.0), np.array([-0.13, -0.16, -0.24, -0.22, -0.15])
    found = fit({"x": x, "y": y}, noise={"x": 0.0}, products=[("x", "x")])
    np.testing.assert_allclose(found.values, np.polyfit(x, y, 2)[::-1], atol=1e-12)
    assert np.all(found.std_error > 1e-3)


def test_three_points_with_large_errors_are_weak():
    """SciPy issue 12105: a fit to three points turns around when errors are given."""
    x, y = [30.1, 36.2, 52.9], [83.5, 129.1, 85.6]
    errors = {"x": nj.sd([9.1, 13.1, 25.5]), "y": nj.sd([4.5, 6.1, 23.0])}
    found = fit({"x": x, "y": y}, noise=errors)
    assert found.strength < 1
    assert "Weak identification" in str(found)


def test_an_exact_column_is_corrected_with_the_noisy_one(rng):
    """simex issue 4: the error in one column biases the coefficient of an exact one."""
    a = rng.normal(size=4000)
    b, y = 0.8 * a + 0.6 * rng.normal(size=4000), a + 0.3 * rng.normal(size=4000)
    found = fit({"a": a + 0.7 * rng.normal(size=4000), "b": b, "y": y}, noise={"a": nj.sd(0.7)})
    agrees(found, 0, 1, 0)
    assert found.uncorrected.values[2] > 0.3


def test_errors_of_rows_may_depend_on_the_clean_value(rng):
    """simex issue 9: reliabilities differ by country, and are related to other variables."""
    a = rng.normal(size=4000)
    sd = 0.2 + 0.8 * (a > 0) * rng.random(4000)
    columns = {"a": a + sd * rng.normal(size=4000), "sd": sd, "y": a + 0.3 * rng.normal(size=4000)}
    agrees(fit(columns, noise={"a": nj.sd(column="sd")}), 0, 1)


def test_a_matrix_without_a_root_is_inverted(rng):
    """simex issue 5: powers below 1 of a misclassification matrix have negative entries."""
    matrix = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    clean = rng.integers(0, 3, 4000)
    recorded = np.argmax(rng.random(4000)[:, None] < matrix.cumsum(axis=1)[clean], axis=1)
    columns = {"c": pd.Categorical(recorded), "y": clean + rng.normal(size=4000)}
    agrees(fit(columns, noise={"c": nj.noise.Misclassified(matrix)}), 0, 1, 2)


def test_a_matrix_with_columns_of_probabilities_is_to_be_transposed():
    """CMAverse issue 39: the package `simex` takes columns that add up to 1."""
    message = "row j must be of the true category j, so transpose it"
    raises(message, nj.noise.Misclassified, [[0.9, 0.2], [0.1, 0.8]])


@pytest.mark.slow
def test_simex_takes_a_nonlinear_least_squares_fit(rng):
    """simex issue 10: the package fails for `nls`, which it names."""
    x = rng.normal(size=500)
    y = np.exp(0.5 * x) + 0.05 * rng.normal(size=500)
    table = nj.observations.from_arrays((x + 0.3 * rng.normal(size=500))[:, None], y, noise=0.09)

    def nls(x, y):
        return curve_fit(lambda x, a, b: a * np.exp(b * x), x[:, 0], y, p0=[1.0, 0.3])[0]

    agrees(nj.fit(table, nj.methods.SIMEX(nls)), 1, 0.5)


@pytest.mark.parametrize(
    ("error", "message"),
    [(np.nan, r"\[3\] is nan .*: drop such rows, as by frame\.dropna"), (-99.0, r"\[3\] is -99")],
)
def test_a_row_without_an_error_is_named(error, message):
    """linmix issue 26: upper limits have no error value; 0 was tried, and other numbers."""
    x = np.arange(50.0)
    columns = {"x": x, "sd": np.where(x == 3, error, 0.1), "y": x}
    with pytest.raises(ValueError, match=f"column 'sd'.*{message}"):
        fit(columns, noise={"x": nj.sd(column="sd")})


def test_errors_of_x_and_y_may_covary_and_there_may_be_two_columns(rng):
    """linmix issues 6, 14, 18, 23: covariant errors gave nonsense, two columns are not possible."""
    clean = rng.normal(size=(5000, 2))
    cov = np.array([[0.3, 0.1, 0.2], [0.1, 0.2, 0.0], [0.2, 0.0, 0.4]])
    errors = rng.multivariate_normal(np.zeros(3), cov, 5000)
    (a, b), y = (clean + errors[:, :2]).T, 1 + clean @ [2, -1] + errors[:, 2]
    found = fit(
        {"a": a, "b": b, "y": y},
        noise=nj.noise.Gaussian(cov[:2, :2]),
        cross_cov=[0.2, 0.0],
    )
    agrees(found, 1, 2, -1)


def test_a_power_law_is_fitted_to_logarithms_and_their_errors(rng):
    """linmix issue 24: relative errors of x are errors of log x, and symmetric there."""
    log_x = rng.normal(size=4000)
    measured = np.exp(log_x + 0.4 * rng.normal(size=4000))  # 40% relative error
    y = 2 * log_x + 0.3 * rng.normal(size=4000)
    agrees(fit({"log x": np.log(measured), "y": y}, noise={"log x": nj.sd(0.4)}), 0, 2)


def test_a_validation_study_widens_the_interval(rng):
    """zEpid issue 134: the error's variance is known from rows where the clean value is, too."""
    clean = rng.normal(size=3000)
    noisy, y = clean + 0.5 * rng.normal(size=3000), clean + 0.3 * rng.normal(size=3000)
    variance = np.var((noisy - clean)[:100], ddof=1)
    known = nj.noise.CovarianceEstimate(variance, variance * (2 / 99) ** 0.5)
    found = fit({"a": noisy, "y": y}, noise={"a": known})
    agrees(found, 0, 1)
    assert found.std_error[1] > 1.5 * fit({"a": noisy, "y": y}, noise={"a": variance}).std_error[1]
