"""SIMEX against closed forms, plain loops and other estimators; its intervals."""

import types

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import noisy_jax as nj
from noisy_jax.observed.fits.groups import labels_of
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.fits.test_simex_added_noise import least_squares as with_errors
from tests.observed.rows import agree, check_coverage, regression

SIMEX, CALIBRATION = nj.methods.SIMEX, nj.methods.RegressionCalibration
VARIANCES = np.array([0.25, 0.0])
BETA = np.array([1.0, -0.5])
WEIGHTS = np.array([3, -0.4, -1.8, -1.2, 1.4])  # of the quadratic curve, at the levels 0, ½, … 2


def drawn(rng, n=400, model="linear", variances=VARIANCES):
    return regression(rng, n, model, BETA, variances)


def least_squares(x, y):
    return with_errors(x, y)[0]


def with_covariance(x, y):
    theta, cov = with_errors(x, y)
    return dict(zip(("a", "b1", "b2"), theta, strict=True)), cov


def slopes(x, y):
    """As `least_squares`, from moments."""
    x, y = x - x.mean(axis=0), y - y.mean()
    return np.linalg.solve(x.T @ x, x.T @ y)


def maximum_likelihood(x, y):
    """Of logistic regression, by Newton's method, with the inverse of the information."""
    design, theta = np.column_stack([np.ones(len(y)), x]), np.zeros(3)
    for _ in range(8):
        p = expit(design @ theta)
        information = (design * (p * (1 - p))[:, None]).T @ design
        theta = theta + np.linalg.solve(information, design.T @ (y - p))
    return theta, np.linalg.inv(information)


@pytest.mark.slow
def test_many_draws_have_the_limit_in_closed_form(rng):
    """(S + λC)⁻¹ s at λ, up to O(1/n), and the weights of the quadratic curve on them."""
    x, y = drawn(rng, 40_000)
    fit = nj.fit(from_arrays(x, y, noise=VARIANCES), SIMEX(slopes, draws=200, errors="none"))
    cov = np.cov(np.column_stack([x, y]), rowvar=False)
    levels = np.array([0, 0.5, 1, 1.5, 2])
    expected = [np.linalg.solve(cov[:2, :2] + v * np.diag(VARIANCES), cov[:2, 2]) for v in levels]
    np.testing.assert_allclose(fit.estimates, expected, atol=2e-3)
    np.testing.assert_allclose(fit.coefficients, WEIGHTS @ expected, atol=3e-3)
    np.testing.assert_array_equal(fit.levels, levels)


@pytest.mark.slow
def test_the_rational_curve_is_exact_for_one_noisy_column(rng):
    x, y = drawn(rng, 40_000)
    table = from_arrays(x, y, noise=VARIANCES)
    exact = nj.fit(table)
    kinds = "quadratic", "rational"
    options = {"draws": 200, "errors": "none"}
    methods = [SIMEX(slopes, extrapolation=one, **options) for one in kinds]
    quadratic, rational = (nj.fit(table, method) for method in methods)
    agree(rational, exact, "coefficients", atol=8e-3)
    far = np.abs(quadratic.coefficients - exact.coefficients)[0]
    assert 0.01 < far < 0.25 * np.abs(exact.uncorrected.coefficients - exact.coefficients)[0]
    agree(rational.uncorrected, exact.uncorrected, "coefficients", rtol=1e-10)


def test_the_same_draws_give_the_same_numbers_in_any_estimator(rng):
    x, y = drawn(rng)
    table = from_arrays(x, y, noise=nj.sd(rng.uniform(0.2, 0.5, size=(len(y), 2)) * [1, 0]))
    options = {"draws": 3, "seed": 4, "levels": [1, 2]}
    estimators = least_squares, with_covariance, LinearRegression(), LinearRegression()
    plain, named, learned, again = (nj.fit(table, SIMEX(one, **options)) for one in estimators)
    np.testing.assert_allclose(named.coefficients, plain.coefficients, rtol=1e-8)
    np.testing.assert_allclose(learned.values, plain.coefficients, rtol=1e-8)
    np.testing.assert_array_equal(again.coefficients, learned.coefficients)
    labels = [one.labels for one in (plain, named, learned)]
    three = "intercept", "x1", "x2"
    assert labels == [("theta0", "theta1", "theta2"), ("a", "b1", "b2"), three]
    assert [one.errors for one in (plain, named)] == ["jackknife", "extrapolated"]
    np.testing.assert_allclose(learned.std_error, plain.std_error, rtol=1e-7)
    other = nj.fit(table, SIMEX(least_squares, **options | {"seed": 5}))
    assert np.abs(other.coefficients - plain.coefficients).max() > 1e-4


def weighted(x, y, weights):
    """Least squares with weights."""
    root = np.sqrt(weights)
    design = np.column_stack([np.ones(len(y)), x])
    return np.linalg.lstsq(root[:, None] * design, root * y)[0]


@pytest.mark.parametrize("clustered", [False, True])
def test_jackknife_is_simex_without_groups_of_rows_or_clusters(rng, clustered):
    x, y = drawn(rng, 320)
    cov = rng.uniform(0.1, 0.2, (320, 1, 1)) * np.diag([1.0, 0.0])
    table = from_arrays(x, y, noise=nj.sd(np.sqrt(np.diagonal(cov, axis1=1, axis2=2))))
    weights, clusters = rng.uniform(0.5, 2, 320), np.arange(320) % 40
    options = {"weights": weights, "clusters": clusters if clustered else None}
    fit = nj.fit(table, SIMEX(weighted, draws=4, **options))
    normal = [np.random.default_rng((0, b)).standard_normal((320, 1)) for b in range(4)]
    found, groups = [], labels_of(x, y, options["clusters"])
    for group in range(32):
        kept = groups != group
        means = [weighted(x[kept], y[kept], weights[kept])]
        for level in (0.5, 1, 1.5, 2):
            moved = [x + [1, 0] * np.sqrt(level * cov[:, :1, 0]) * one for one in normal]
            means.append(
                np.mean([weighted(one[kept], y[kept], weights[kept]) for one in moved], axis=0)
            )
        found.append(WEIGHTS @ means)
    np.testing.assert_allclose(fit.std_error, np.sqrt(31 * np.var(found, axis=0)), rtol=1e-8)
    assert fit.degrees_of_freedom == 31


def test_weights_are_given_to_functions_and_to_scikit_learn(rng):
    x, y = drawn(rng)
    weights = np.where(rng.random(400) < 0.2, 0.0, rng.uniform(0.5, 2, 400))
    table, rest = from_arrays(x, y, noise=VARIANCES), weights > 0
    options = {"draws": 3, "levels": [1, 2], "errors": "none", "weights": weights}

    def by_keyword(x, y, degree=1, *, sample_weight):
        return weighted(x, y, sample_weight)

    fit = nj.fit(table, SIMEX(weighted, **options))
    for other in (LinearRegression(), by_keyword):
        agree(nj.fit(table, SIMEX(other, **options)), fit, "values", rtol=1e-8)
    assert fit.num_rows == rest.sum()
    plain = weighted(x[rest], y[rest], weights[rest])
    np.testing.assert_allclose(fit.uncorrected.values, plain, rtol=1e-10)
    pipeline = make_pipeline(LinearRegression())
    message = "fit of Pipeline takes no weights of the rows: give a function"
    raises(message, nj.fit, table, SIMEX(pipeline, **options))
    for other in (least_squares, lambda x, y, degree=1: least_squares(x, y)):
        message = "takes no weights of the rows: give a function of x, y and weights"
        raises(message, nj.fit, table, SIMEX(other, **options))


@pytest.mark.parametrize("kind", ["known", "replicates"])
def test_equal_weights_change_nothing(rng, kind):
    """Nor do clusters of one row, beside the groups that are left out."""
    clean, y = drawn(rng, variances=np.zeros(2))
    x = clean[:, None] + 0.4 * rng.normal(size=(400, 1 if kind == "known" else 2, 2))
    table = from_arrays(x, y, noise=0.16 if kind == "known" else None)
    options = {"draws": 2, "levels": [1, 2], "errors": "jackknife"}
    one, other = (
        nj.fit(table, SIMEX(weighted, **options, weights=np.full(400, size))) for size in (1.0, 3.0)
    )
    agree(one, other, "values", "std_error", rtol=1e-8)
    plain = nj.fit(table, SIMEX(least_squares, **options))
    agree(plain, one, "values", "std_error", rtol=1e-8)


def test_numbers_of_functions_have_names_and_no_intercept(rng):
    x, y = drawn(rng)
    table = from_arrays(x, y, noise=VARIANCES)

    def of_statsmodels(x, y):
        values, cov = with_errors(x, y)
        model = types.SimpleNamespace(exog_names=["const", "x1", "x2"])
        return types.SimpleNamespace(params=values, cov_params=lambda: cov, model=model)

    fit = nj.fit(table, SIMEX(of_statsmodels, draws=20))
    assert fit.labels == ("const", "x1", "x2")
    assert not hasattr(fit, "intercept")
    assert "intercept" not in str(fit)
    assert "SIMEX of of_statsmodels" in str(fit)
    assert list(fit.to_frame().index) == ["const", "x1", "x2"]
    low, high = fit.interval()
    assert np.all((low < fit.coefficients) & (fit.coefficients < high))
    raises("has the numbers of an estimator, not its predictions", fit.predict, x)

    def of_pandas(x, y):
        return pd.Series(least_squares(x, y)[1:], index=["slope 1", "slope 2"])

    assert nj.fit(table, SIMEX(of_pandas, draws=2)).labels == ("slope 1", "slope 2")
    one_a_column = nj.fit(table, SIMEX(lambda x, y: least_squares(x, y)[1:], draws=2))
    assert one_a_column.labels == ("x1", "x2")
    np.testing.assert_allclose(one_a_column.reliability[1], 1)


def test_a_classifier_of_scikit_learn(rng):
    x, y = drawn(rng, 400, "logistic")
    table = from_arrays(x, y, noise=VARIANCES)
    model = LogisticRegression(C=1e8, tol=1e-8, solver="newton-cholesky")
    options = {"draws": 2, "levels": [1, 2]}
    fit = nj.fit(table, SIMEX(model, **options))
    ours = nj.fit(table, SIMEX(maximum_likelihood, **options, errors="jackknife"))
    np.testing.assert_allclose(fit.values, ours.coefficients, rtol=1e-3)
    np.testing.assert_allclose(fit.std_error, ours.std_error, rtol=1e-2)
    assert not hasattr(model, "coef_")  # a clone is fitted


@pytest.mark.parametrize("model", ["linear", "logistic", "poisson"])
@pytest.mark.parametrize("kind", ["replicates", "unequal"])
def test_replicates_are_pooled(rng, model, kind):
    """Also in regression calibration; the jackknife counts their estimate."""
    clean, y = drawn(rng, 640, model, variances=np.zeros(2))
    copies = clean[:, :1] + 0.5 * rng.normal(size=(640, 3))
    frame = {f"a{v}": copies[:, v] for v in range(3)} | {"b": clean[:, 1], "y": y}
    if kind == "unequal":
        frame["a2"] = np.where(rng.random(640) < 0.5, np.nan, copies[:, 2])
    options = {"replicates": {"a": ["a0", "a1", "a2"]}, "features": ["a", "b"]}
    table = nj.table(frame, target="y", **options)
    mean, cov = table.means()[:3:2]
    pooled, other = from_arrays(mean, y, noise=cov.mean(axis=0)), CALIBRATION(model)
    agree(nj.fit(table, other), nj.fit(pooled, other), "coefficients", rtol=1e-10)
    method = SIMEX(with_covariance, draws=2, levels=[1, 2])
    fit, known = nj.fit(table, method), nj.fit(pooled, method)
    agree(fit, known, "coefficients", rtol=1e-8)
    assert (fit.errors, known.errors) == ("jackknife", "extrapolated")
    method = SIMEX(with_covariance, errors="extrapolated")
    raises("estimated from the rows: use errors='jackknife'", nj.fit, table, method)


def test_without_noise_nothing_is_corrected(rng):
    x, y = drawn(rng, 200)
    for errors in ("extrapolated", "jackknife"):
        method = SIMEX(with_covariance, draws=3, errors=errors)
        fit = nj.fit(from_arrays(x, y, noise=0.0), method)
        np.testing.assert_allclose(fit.coefficients, fit.uncorrected.coefficients, rtol=1e-8)
        np.testing.assert_allclose(fit.std_error, fit.uncorrected.std_error, rtol=1e-6)


def test_a_fit_says_where_the_curve_decides_and_where_a_variance_is_lost(rng):
    x, y = drawn(rng, 4000, variances=np.array([1.5, 0.0]))
    method = SIMEX(lambda x, y: with_errors(x, y), draws=20)
    fit = nj.fit(from_arrays(x, y, noise=[1.5, 0.0]), method)
    assert "quadratic and the rational curve differ" in fit.remarks[0]
    assert "'theta1'" in str(fit)

    def overconfident(x, y):
        return least_squares(x, y)[1:], np.diag([x[:, 0].var() - 1.5, 1.0])

    fit = nj.fit(from_arrays(x, y, noise=[1.5, 0.0]), SIMEX(overconfident, draws=5))
    np.testing.assert_array_equal(np.isnan(fit.std_error), [True, False])
    assert any("the variance of 'x1' is extended below zero" in one for one in fit.remarks)


def test_progress(rng):
    x, y = drawn(rng, 200)
    calls = []
    method = SIMEX(with_covariance, draws=3, progress=lambda *one: calls.append(one))
    nj.fit(from_arrays(x, y, noise=VARIANCES), method)
    assert [calls[0], calls[-1]] == [(1, 13), (13, 13)]


def test_what_cannot_be_fitted_raises(rng):
    x, y = drawn(rng)
    table = from_arrays(x, y, noise=VARIANCES)

    def wrong(match, method=None, table=table, **options):
        raises(match, lambda: nj.fit(table, method or SIMEX(**{"estimator": slopes} | options)))

    for name, call in {
        "linear": r"SIMEX\(LinearRegression\(\)\), got 'linear'",
        "logistic": r"SIMEX\(LogisticRegression\(C=1e9\)\), got",
        "poisson": r"SIMEX\(PoissonRegressor\(alpha=0\)\), got",
        "probit": r"SIMEX\(LinearRegression\(\)\), got 'probit'",
    }.items():
        wrong(f"estimator must be a linear estimator .* nj.methods.{call}", estimator=name)
    wrong("or a function of x", estimator=3)
    wrong("or a function of x", estimator=LinearRegression)
    wrong("two or more different numbers, got 1.0", levels=[1.0, 1.0])
    wrong("levels must be positive", levels=[0.0, 1.0])
    wrong("draws must be a whole number of at least 2", draws=1)
    wrong("extrapolation must be", extrapolation="cubic")
    wrong("errors must be", errors="bootstrap")
    wrong("linear in x", estimator=make_pipeline(PolynomialFeatures(), LinearRegression()))
    wrong("needs covariances", estimator=least_squares, errors="extrapolated", draws=2)
    wrong("must return 3 finite numbers", SIMEX(lambda x, y: np.full(3, np.nan), draws=2))
    wrong("must return a vector", SIMEX(lambda x, y: x, draws=2))
    wrong(r"must be \[2, 2\]", SIMEX(lambda x, y: (np.ones(2), np.eye(3)), draws=2))
    wrong("SIMEX takes one table", table=[table])
    few = SIMEX(slopes, clusters=np.arange(400) % 7, draws=2)
    wrong("at least 8 clusters, got 7", few)
    extrapolated = SIMEX(with_covariance, clusters=np.arange(400) // 4, errors="extrapolated")
    wrong("which know of no clusters: use errors='jackknife'", extrapolated)
    wrong("varies no more than its error", table=from_arrays(x, y, noise=9.0))
    wrong("at least 8 rows", table=from_arrays(x[:7], y[:7], noise=VARIANCES))
    correlated = from_arrays(x, y, noise=VARIANCES, cross_cov=[0.1, 0.0])
    wrong("errors in y that are independent", table=correlated)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("model", "n", "count", "options", "bias"),
    [
        ("linear", 200, 1500, {"errors": "extrapolated", "extrapolation": "quadratic"}, 0.02),
        ("linear", 200, 1500, {"errors": "extrapolated", "extrapolation": "rational"}, 0.01),
        ("linear", 200, 300, {"errors": "jackknife", "draws": 20}, 0.02),
        ("logistic", 480, 600, {"draws": 20, "extrapolation": "quadratic"}, 0.02),
    ],
)
def test_intervals_cover_the_truth_and_the_bias_is_small(rng, model, n, count, options, bias):
    """At a reliability of 0.85; a line's bias without a correction is 0.18."""
    whole = with_errors if model == "linear" else maximum_likelihood

    def estimator(x, y):
        theta, cov = whole(x, y)
        return theta[1:], cov[1:, 1:]

    variances, method = np.array([0.176, 0.0]), SIMEX(estimator, **options)
    rows = (drawn(rng, n, model, variances) for _ in range(count))
    tables = (from_arrays(*one, noise=variances) for one in rows)
    check_coverage(tables, BETA, method, bias=bias)
