"""Summaries of fits: tests, intervals and ratios, as text, HTML and DataFrames."""

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import noisy_jax as nj
from noisy_jax.observed.fits.result import percent
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.rows import outcome

SCRIPT = "<script>alert(1)</script>"
COV = np.diag([0.3, 0.1])
METHODS = {name.lower(): getattr(nj.methods, name)() for name in ("Linear", "Logistic", "Poisson")}


def table(rng, model, *, noise=COV, n=600, names=("dose", "age"), target="sick"):
    x = rng.normal(size=(n, 2))
    y = outcome(rng, model, 0.4 + x @ [0.6, -0.1])
    x = x + rng.normal(size=x.shape) * np.sqrt(np.diag(noise))
    return from_arrays(x, y, noise=noise, names=names, target=target)


def line(values, covariance, freedom):
    """A line of columns x1, x2, …"""
    names = tuple(f"x{j + 1}" for j in range(len(values) - 1))
    return nj.fits.Estimates(
        labels=("intercept", *names),
        values=np.array(values),
        covariance=covariance,
        degrees_of_freedom=freedom,
        names=names,
    )


def column(summary, name):
    return np.array([row[name] for row in summary.rows])


@pytest.mark.parametrize("model", METHODS)
def test_a_summary_has_the_numbers_of_the_fit(rng, model):
    fit = nj.fit(table(rng, model), METHODS[model])
    for one in (fit, fit.uncorrected):
        summary = one.summary(level=0.9)
        estimate, error = one.values, one.std_error
        np.testing.assert_array_equal(column(summary, "std_error"), error)
        law = stats.t(one.degrees_of_freedom)
        np.testing.assert_array_equal(column(summary, "estimate"), estimate)
        np.testing.assert_allclose(column(summary, "statistic"), estimate / error)
        expected = 2 * law.sf(np.abs(estimate / error))
        np.testing.assert_allclose(column(summary, "p_value"), expected, rtol=1e-8)
        np.testing.assert_allclose(column(summary, "low"), estimate - law.ppf(0.95) * error)
        np.testing.assert_allclose(column(summary, "high"), estimate + law.ppf(0.95) * error)
        excludes = (column(summary, "low") > 0) | (column(summary, "high") < 0)
        np.testing.assert_array_equal(column(summary, "p_value") < 0.1, excludes)
        assert "90% interval" in str(summary)
        ends = [column(summary, "low"), column(summary, "high")]
        np.testing.assert_array_equal(ends, one.interval(0.9))
        assert (*column(summary, "name"),) == one.labels == ("intercept", "dose", "age")
        np.testing.assert_array_equal([one.intercept, *one.coefficients], one.values)
        assert one.params == dict(zip(one.labels, one.values, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("model", METHODS)
def test_intervals_of_predictions_are_by_the_delta_method(rng, model):
    """Of the linear predictor, by hand; both ends are then transformed as the prediction is."""
    fit = nj.fit(table(rng, model), METHODS[model])
    x, mean = rng.normal(size=(5, 2)), {"linear": np.asarray, "logistic": expit, "poisson": np.exp}
    design = np.column_stack([np.ones(5), x])
    for one in (fit, fit.uncorrected):
        found = one.predict(x, interval=True, level=0.9)
        error = np.sqrt(np.einsum("ni,ij,nj->n", design, one.covariance, design))
        half = stats.t.ppf(0.95, np.min(one.degrees_of_freedom)) * error
        expected = [mean[model](design @ one.values + sign * half) for sign in (0, -1, 1)]
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        np.testing.assert_array_equal(found[0], one.predict(x))
    slope = jax.grad(lambda x: fit.predict(x, interval=True)[2])(x[0])
    step = np.array([1e-4, 0])
    apart = fit.predict(x[0] + step, interval=True)[2] - fit.predict(x[0] - step, interval=True)[2]
    np.testing.assert_allclose(slope[0], apart / 2e-4, rtol=1e-3)
    raises("level must be above 0 and below 1", fit.predict, x, interval=True, level=95)
    raises("level is of intervals", fit.predict, x, level=0.5)


def test_wrong_arguments_of_a_fit_are_told(rng):
    fit = nj.fit(from_arrays(rng.normal(size=(30, 2)), rng.normal(size=30), noise=0.01))
    x = np.ones((1, 2))
    raises("x must be one array, but has parts of unequal", fit.predict, [[1.0], [1.0, 2.0]])
    raises("x must be an array of real numbers", jax.jit(fit.predict), 1j * x)
    raises("interval must be True or False, got 'yes'", fit.predict, x, interval="yes")
    raises("ratios must be True or False, got 'no'", fit.summary, ratios="no")
    raises("level must be concrete, got a traced one", jax.jit(fit.interval), 0.5)
    listed = jax.jit(lambda a: fit.predict([a, 2 * a]))(1.0)
    np.testing.assert_allclose(listed, fit.predict([1.0, 2.0]), rtol=1e-5)


@pytest.mark.parametrize("center", [0.0, -30_000.0])
def test_intervals_of_predictions_under_jit_are_those_of_numpy(rng, center):
    """In float32 too: columns that are far from 0 lose only the digits that float32 has of them."""
    rows = from_arrays(center + rng.normal(size=(300, 2)), rng.normal(size=300), noise=0.1)
    fit, x = nj.fit(rows), center + np.array([[0.5, -1.0], [2.0, 0.25]])
    _, below, above = fit.predict(x, interval=True)
    assert np.all(below < above)
    _, low, high = jax.jit(lambda x: fit.predict(x, interval=True))(x)
    size = 1e-5 * (1 + np.abs(np.concatenate([np.ravel(low), np.ravel(high)])).max())
    np.testing.assert_allclose(np.asarray(high - low, float), above - below, rtol=0.02, atol=size)


def test_a_column_may_be_called_intercept(rng):
    fit = nj.fit(table(rng, "linear", names=("intercept", "b")))
    assert fit.labels == ("(intercept)", "intercept", "b") == (*fit.params,)
    assert fit.intercept == fit.params["(intercept)"]


def test_residuals_are_of_the_means_of_copies_by_name(rng):
    copies, y = rng.normal(size=(300, 2, 2)) + rng.normal(size=(300, 1, 2)), rng.normal(size=300)
    rows = from_arrays(copies, y, names=("dose", "age"))
    fit = nj.fit(rows)
    expected = y - fit.intercept - copies.mean(axis=1) @ fit.coefficients
    np.testing.assert_allclose(fit.residuals(rows), expected, atol=1e-12)
    other = from_arrays(copies, y, names=("age", "dose"))
    raises("columns of the fit, 'dose', 'age', got 'age', 'dose'", fit.residuals, other)
    for wrong in copies, fit:
        raises("table must be an Observations", fit.residuals, wrong)
    kernel = nj.fit(rows, nj.methods.Fourier(length_scale=2.0, num_features=8))
    expected = y - kernel.predict(copies.mean(axis=1))
    np.testing.assert_allclose(kernel.residuals(rows), expected, atol=1e-6)


def test_residuals_of_counts_are_of_the_exposure(rng):
    frame = {"x": rng.normal(size=300), "t": rng.uniform(1, 3, size=300)}
    frame["y"] = rng.poisson(frame["t"] * np.exp(0.3 * frame["x"])) * 1.0
    rows = nj.table(frame, target="y", noise={"x": 0.1}, exposure="t")
    fit = nj.fit(rows, nj.methods.Poisson())
    expected = frame["y"] - frame["t"] * np.exp(fit.values[0] + fit.values[1] * frame["x"])
    np.testing.assert_allclose(fit.residuals(rows), expected, rtol=1e-9)
    plain = nj.table({k: frame[k] for k in "xy"}, target="y", noise={"x": 0.1})
    own = nj.fit(plain, nj.methods.Poisson(exposure=frame["t"]))
    raises("the fit has an exposure: make the table with it", own.residuals, plain)
    raises("the fit has no exposure", nj.fit(plain, nj.methods.Poisson()).residuals, rows)


def test_attributes_that_are_gone_say_what_to_write(rng):
    fit = nj.fit(table(rng, "linear"))
    with pytest.raises(
        AttributeError, match=r"LinearFit.band left in version .* fit\.predict\(x, i"
    ):
        fit.band  # noqa: B018
    with pytest.raises(AttributeError, match="'LinearFit' object has no attribute 'slope'"):
        fit.slope  # noqa: B018


@pytest.mark.parametrize(("model", "heading"), [("logistic", "odds"), ("poisson", "rate")])
def test_ratios_are_exponentials_of_coefficients_and_of_both_ends(rng, model, heading):
    fit = nj.fit(table(rng, model), METHODS[model])
    for one in (fit, fit.uncorrected):
        summary = one.summary(ratios=True)
        assert f"{heading} ratio" in str(summary)
        np.testing.assert_allclose(column(summary, "ratio"), np.exp(one.values))
        for name, end in zip(("ratio_low", "ratio_high"), one.interval(), strict=True):
            np.testing.assert_allclose(column(summary, name), np.exp(end))
    assert "ratio" not in fit.summary().rows[0]
    line = nj.fit(table(rng, "linear"))
    raises("ratios are for logistic and Poisson fits", line.summary, ratios=True)


def test_a_summary_says_what_makes_its_tests_doubtful(rng):
    x = rng.normal(size=(60, 1))
    y = x[:, 0] + rng.normal(size=60)
    weak = nj.fit(from_arrays(x, y, noise=0.95 * x.var()))
    assert f"Only {percent(weak.share)} of the stated error" in str(weak.summary())
    with pytest.warns(nj.fits.AssumptionWarning, match="'x1' "):
        doubted = nj.fit(from_arrays((x > 0.5) * 1.0, y, noise=0.02))
    assert "Note: " in str(doubted.summary())


def test_names_are_escaped_in_notebooks(rng):
    fits = [nj.fit(table(rng, "linear", names=(SCRIPT, "b"), target=SCRIPT))]
    x = rng.normal(size=(200, 1))
    y, known = rng.normal(size=200), {"noise": nj.noise.Gaussian(0.1), "target": SCRIPT}
    kernel = from_arrays(x, y, names=(SCRIPT,), **known)
    fits.append(nj.fit(kernel, nj.methods.Fourier(length_scale=2.0, num_features=16)))
    for one in (*fits, *(fit.summary() for fit in fits)):
        page = one._repr_html_()
        assert "<script" not in page
        assert "&lt;script&gt;" in page


def test_a_frame_has_a_row_for_each_name(rng):
    fit = nj.fit(table(rng, "linear"))
    frame = fit.to_frame()
    assert [*frame.index] == ["intercept", "dose", "age"]
    assert frame.loc["dose", "estimate"] == fit.coefficients[0]
    np.testing.assert_array_equal(frame["low"], fit.interval()[0])
    np.testing.assert_array_equal(frame["uncorrected"], fit.uncorrected.values)
    np.testing.assert_array_equal(frame["reliability"].iloc[1:], fit.reliability)


def test_a_share_below_one_is_never_100_percent():
    shown = ["99.9%", "99.6%", "80%", "50%"]
    assert [percent(share) for share in (0.9999, 0.996, 0.8, 0.5)] == shown
