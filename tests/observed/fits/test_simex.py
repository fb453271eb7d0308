"""SIMEX against closed forms, plain loops and other estimators; its intervals."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import noisy_jax as nj
from noisy_jax.observed.fits.groups import labels_of
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.rows import agree, gaussians, regression

SIMEX, CALIBRATION = nj.methods.SIMEX, nj.methods.RegressionCalibration
VARIANCES = np.array([0.25, 0.0])
BETA = np.array([1.0, -0.5])
WEIGHTS = np.array([3, -0.4, -1.8, -1.2, 1.4])  # of the quadratic curve, at the levels 0, ½, … 2


def drawn(rng, n=200, model="linear", variances=VARIANCES):
    return regression(rng, n, model, BETA, variances)


def with_errors(x, y):
    """Least squares with an intercept, and its covariance."""
    design = np.column_stack([np.ones(len(y)), x])
    theta, squares = np.linalg.lstsq(design, y)[:2]
    return theta, squares[0] / (len(y) - design.shape[1]) * np.linalg.inv(design.T @ design)


def least_squares(x, y):
    return with_errors(x, y)[0]


def with_covariance(x, y):
    theta, cov = with_errors(x, y)
    return dict(zip(("a", "b1", "b2"), theta, strict=True)), cov


def slopes(x, y):
    """As `least_squares`, from moments."""
    x, y = x - x.mean(axis=0), y - y.mean()
    return np.linalg.solve(x.T @ x, x.T @ y)


def test_the_same_draws_give_the_same_numbers_in_any_estimator(rng):
    x, y = drawn(rng)
    table = from_arrays(x, y, noise=nj.sd(rng.uniform(0.2, 0.5, size=(len(y), 2)) * [1, 0]))
    options = {"draws": 2, "seed": 4, "levels": [1, 2]}
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


def symmetric_root(cov):
    values, axes = np.linalg.eigh(cov)
    return (axes * np.sqrt(np.maximum(values, 0))[..., None, :]) @ np.swapaxes(axes, -1, -2)


@pytest.mark.parametrize("by_row", [False, True])
def test_estimates_and_errors_are_those_of_a_loop_over_levels_and_draws(rng, by_row):
    """With one covariance, or one for each row; the second of three columns is exact."""
    n, draws, calls = 200, 6, []
    x, noisy = rng.normal(size=(n, 3)), [0, 2]
    y = 0.3 + x @ [1.0, -0.5, 0.4] + rng.normal(size=n)
    cov = np.array([[0.3, 0.0, 0.1], [0.0, 0.0, 0.0], [0.1, 0.0, 0.2]])
    covs = rng.uniform(0.2, 1, (n, 1, 1)) * cov if by_row else np.broadcast_to(cov, (n, 3, 3))
    table = from_arrays(x, y, noise=gaussians(covs) if by_row else cov)
    method = SIMEX(with_errors, draws=draws, seed=5, progress=lambda *one: calls.append(one))
    fit = nj.fit(table, method)
    scale = symmetric_root(covs[:, noisy][:, :, noisy])
    normal = [np.random.default_rng((5, b)).standard_normal((n, 2)) for b in range(draws)]
    spreads = []
    for level, mean in zip((0, 0.5, 1, 1.5, 2), fit.estimates, strict=True):
        found = []
        for one in normal:
            moved = x.copy()
            moved[:, noisy] += level**0.5 * (scale @ one[:, :, None])[:, :, 0]
            found.append(with_errors(moved, y))
        theta = np.array([values for values, _ in found])
        np.testing.assert_allclose(mean, theta.mean(axis=0), rtol=1e-6)
        spreads.append(np.mean([own for _, own in found], axis=0) - np.cov(theta, rowvar=False))
    assert np.abs(fit.estimates[-1] - fit.estimates[0]).max() > 0.05
    np.testing.assert_allclose(fit.coefficients, WEIGHTS @ fit.estimates, rtol=1e-9)
    expected = np.tensordot(WEIGHTS, spreads, 1)
    np.testing.assert_allclose(fit.covariance, expected, rtol=1e-5, atol=1e-8)
    assert calls == [(1 + 4 * draw, 1 + 4 * draws) for draw in range(draws + 1)]


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
    weights = np.where(rng.random(200) < 0.2, 0.0, rng.uniform(0.5, 2, 200))
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
    x, y = drawn(rng, 200, "logistic")
    model, plain = (
        LogisticRegression(C=1e8, tol=1e-8),
        LogisticRegression(C=1e8, tol=1e-8).fit(x, y),
    )
    method = SIMEX(model, draws=2, levels=[1, 2], errors="none")
    fit = nj.fit(from_arrays(x, y, noise=VARIANCES), method)
    wanted = [*plain.intercept_, *plain.coef_[0]]
    np.testing.assert_allclose(fit.uncorrected.values, wanted, rtol=1e-6)
    assert fit.coefficients[0] > wanted[1]
    assert not hasattr(model, "coef_")  # a clone is fitted


@pytest.mark.parametrize(("model", "kind"), [("linear", "replicates"), ("logistic", "unequal")])
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


def test_what_cannot_be_fitted_raises(rng):
    x, y = drawn(rng)
    table = from_arrays(x, y, noise=VARIANCES)

    def wrong(match, method=None, table=table, **options):
        raises(match, lambda: nj.fit(table, method or SIMEX(**{"estimator": slopes} | options)))

    call = r"nj.methods.SIMEX\(LogisticRegression\(C=1e9\)\), got"
    wrong(f"estimator must be a linear estimator .* {call}", estimator="logistic")
    wrong("or a function of x", estimator=LinearRegression)
    wrong("two or more different numbers, got 1.0", levels=[1.0, 1.0])
    wrong("levels must be positive", levels=[0.0, 1.0])
    wrong("draws must be a whole number of at least 2", draws=1)
    wrong("extrapolation must be", extrapolation="cubic")
    wrong("linear in x", estimator=make_pipeline(PolynomialFeatures(), LinearRegression()))
    wrong("needs covariances", estimator=least_squares, errors="extrapolated", draws=2)
    wrong("must return 3 finite numbers", SIMEX(lambda x, y: np.full(3, np.nan), draws=2))
    wrong("must return a vector", SIMEX(lambda x, y: x, draws=2))
    extrapolated = SIMEX(with_covariance, clusters=np.arange(200) // 4, errors="extrapolated")
    wrong("which know of no clusters: use errors='jackknife'", extrapolated)
    correlated = from_arrays(x, y, noise=VARIANCES, cross_cov=[0.1, 0.0])
    wrong("errors in y that are independent", table=correlated)


def test_numbers_of_any_library_are_options_and_traced_levels_are_not():
    def slope(x, y):
        return np.polyfit(x[:, 0], y, 1)[:1]

    method = nj.methods.SIMEX(slope, draws=np.array(3), seed=jnp.int32(1))
    assert (type(method.draws), type(method.seed)) == (int, int)
    kernel = nj.methods.Fourier(
        length_scale=jnp.float32(1), num_features=jnp.int32(8), seed=np.array(1)
    )
    assert (type(kernel.num_features), type(kernel.seed)) == (int, int)
    assert type(kernel.length_scale) is float
    with pytest.raises(ValueError, match=r"^levels must be concrete, got a traced one"):
        jax.jit(lambda levels: nj.methods.SIMEX(slope, levels=levels).draws)(np.ones(2))
    with pytest.raises(ValueError, match=r"^start .* must be concrete, got a traced one"):
        jax.jit(lambda start: nj.methods.Model(lambda p, x: p, start).seed)(1.0)
    raises("a list of methods must hold", nj.methods.OneOf, jax.random.key(0))
