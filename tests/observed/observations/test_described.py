"""What is known of columns, against NumPy: variances, standard deviations, laws, reliability."""

import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises, told
from tests.observed.rows import agree, gaussians

ROWS = np.random.default_rng(1)
X = ROWS.normal(size=(30, 3)) * [1.0, 2.0, 3.0] + 5
Y = ROWS.normal(size=30)
ERRORS = ROWS.uniform(0.1, 0.5, size=30)
NAMES = ["a", "b", "c"]


def described(**noise):
    return from_arrays(X, Y, names=NAMES, noise=noise)


@pytest.mark.parametrize(
    ("known", "variance"),
    [
        (nj.sd(0.5), 0.25),
        (nj.noise.Gaussian(0.25), 0.25),
        (nj.noise.Laplace(0.25), 0.125),
        (nj.sd(ERRORS), ERRORS**2),
        (nj.noise.Multiplicative(0.25), X[:, 1] ** 2 / 5),
        (nj.reliability(0.6), 0.4 * (X[:, 1] - X[:, 1].mean()) ** 2 * 30 / 29),
        (nj.sd(np.zeros(30)), 0.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_covariances(known, variance):
    """One column is noisy, beside one with a variance and an exact one."""
    table = described(b=known, c=0.3)
    assert table.cov.shape == ((3, 3) if np.ndim(variance) == 0 else (30, 3, 3))
    wanted = np.zeros((30, 3, 3))
    wanted[:, 1, 1], wanted[:, 2, 2] = variance, 0.3
    np.testing.assert_allclose(np.broadcast_to(table.cov, (30, 3, 3)), wanted, rtol=1e-12)
    estimated = isinstance(known, nj.noise.Noise) and known.depends_on_x
    reliable = type(known).__name__ == "Reliability" and known.ratio < 1
    assert table.each_row != (estimated or reliable)
    assert table.noise is None  # of c only the variance is known
    np.testing.assert_array_equal(table.x[:, 0], X)


def test_standard_deviations_of_all_columns():
    by_row = ROWS.uniform(0.1, 0.5, size=(30, 3))
    shuffled = pd.DataFrame(by_row, columns=NAMES)[["c", "a", "b"]]
    for x, value in [(X, by_row), (X, by_row.tolist()), (pd.DataFrame(X, columns=NAMES), shuffled)]:
        table = from_arrays(x, Y, noise=nj.sd(value))
        np.testing.assert_allclose(table.cov, by_row[:, :, None] ** 2 * np.eye(3), rtol=1e-15)
    wanted = from_arrays(X, Y, noise=gaussians(by_row**2))
    np.testing.assert_allclose(table.cov, wanted.cov, rtol=1e-6)
    for value, variances in [(0.5, [0.25] * 3), ([0.1, 0.2, 0.3], [0.01, 0.04, 0.09])]:
        table = from_arrays(X, Y, noise=nj.sd(value))
        np.testing.assert_allclose(table.cov, np.diag(variances))
    square = from_arrays(X[:3], Y[:3], noise=nj.sd(by_row[:3]))  # as many rows as columns
    np.testing.assert_allclose(square.cov, by_row[:3, :, None] ** 2 * np.eye(3))


def test_a_law_of_each_column_is_a_law_of_the_row():
    """It has the means, and if all columns are Gaussian it is, as logistic fits need."""
    gaussian = described(a=nj.noise.Gaussian(0.3, mean=1.0), c=nj.noise.Gaussian(0.2))
    assert isinstance(gaussian.noise, nj.noise.Gaussian)
    np.testing.assert_allclose(gaussian.noise.cov, [0.3, 0.0, 0.2])
    np.testing.assert_allclose(gaussian.x[:, 0], X - [1.0, 0.0, 0.0])
    product = described(a=nj.noise.Laplace(0.3), b=nj.noise.Gaussian(0.2))
    phi = np.exp(np.asarray(product.noise.log_characteristic(np.array([0.7, -0.5, 2.0]))))
    np.testing.assert_allclose(phi, np.exp(-0.1 * 0.25) / (1 + 0.09 * 0.49), rtol=1e-6)
    assert described(a=nj.noise.Laplace(0.3), b=0.2).noise is None
    assert described().noise is None
    mixed = described(a=nj.noise.Laplace(0.3), b=0.2)
    laws = [mixed.columns(np.array(kept)).not_gaussian() for kept in ([0, 1], [1, 2])]
    assert laws == ["Laplace", None]
    exact_by_row = described(a=nj.sd(np.zeros(30)), b=nj.noise.Gaussian(0.3))
    assert isinstance(exact_by_row.noise, nj.noise.Gaussian)
    np.testing.assert_allclose(exact_by_row.noise.cov, [0, 0.3, 0])


def test_reliability_divides_the_slope_of_least_squares():
    """So it does its standard error: the residuals are those of least squares (HC0 of clusters)."""
    rng, r = np.random.default_rng(2), 0.6
    x, n = 10 + 3 * rng.normal(size=5000), 5000
    y = 0.4 * x + rng.normal(size=n) * (1 + np.abs(x - 10))
    table = nj.table({"x": x, "y": y}, target="y", noise={"x": nj.reliability(r)})
    fit = nj.fit(table)
    apart = x - x.mean()
    slope = apart @ y / (apart @ apart)
    np.testing.assert_allclose(fit.coefficients, [slope / r], rtol=1e-12)
    residual = y - y.mean() - slope * apart
    error = np.sqrt(np.sum((apart * residual) ** 2)) / (apart @ apart) / r
    np.testing.assert_allclose(fit.std_error[1:], [error], rtol=5e-3)
    alone = nj.fit(table, clusters=np.arange(n)).std_error[1:] * ((n - 1) / n) ** 0.5
    np.testing.assert_allclose(alone, [error], rtol=5e-3)
    np.testing.assert_allclose(fit.reliability, [r], rtol=1e-10)


def test_a_reliability_under_weights():
    """The slope is that of weighted least squares over r; a weight of k is a row k times."""
    rng = np.random.default_rng(4)
    x, count = rng.normal(size=400), rng.integers(0, 4, size=400)
    count[x < 0] *= 3
    y = x**2 + rng.normal(size=400)
    noise = {"x": nj.reliability(0.7)}
    table = nj.table({"x": x, "y": y}, target="y", noise=noise)
    fit = nj.fit(table, weights=count)
    frame = {"x": np.repeat(x, count), "y": np.repeat(y, count)}
    with pytest.warns(nj.fits.AssumptionWarning, match="whole rows are there several times"):
        wanted = nj.fit(nj.table(frame, target="y", noise=noise))
    np.testing.assert_allclose(fit.coefficients, wanted.coefficients, rtol=1e-9)
    np.testing.assert_allclose(fit.coefficients, np.polyfit(x, y, 1, w=count**0.5)[:1] / 0.7)
    some = x < 0
    alone = nj.table({"x": x[some], "y": y[some]}, target="y", noise=noise)
    np.testing.assert_allclose(table.rows(some).cov, alone.cov)
    parts = [table.rows(slice(0, 200)), table.rows(slice(200, 400))]
    raises("a reliability is of the variance in the whole table", nj.fit, iter(parts))


def test_labels_of_standard_deviations_are_those_of_the_rows():
    frame = pd.DataFrame(X, columns=NAMES).assign(y=Y)
    mixed = pd.Series(ERRORS, index=frame.index).iloc[::-1]
    for name in ("b", "y"):
        message = rf"indices of frame and noise\['{name}'\] are not the same"
        raises(message, nj.table, frame, target="y", noise={"b": 0.1, name: nj.sd(mixed)})
    message, noise = r"indices of x and noise\['b'\] are not the same", {"b": nj.sd(mixed)}
    raises(message, from_arrays, frame[NAMES], frame["y"], noise=noise)
    whole = nj.sd(frame[NAMES].abs().iloc[::-1])
    raises("indices of frame and noise are not", nj.table, frame, target="y", noise=whole)


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ({"a": -0.1}, r"noise\['a'\] must be finite and >= 0, got -0\.1"),
        ({"a": "much"}, r"noise\['a'\] must be numbers, got 'much': .* nj.sd\(column='much'\)"),
        ({"z": 0.1}, "noise has 'z', but x has the columns 'a', 'b', 'c'"),
        ({"a": nj.sd(column="e")}, "names a column: nj.table and nj.csv take these"),
        ({"a": nj.sd(ERRORS[:9])}, r"one standard deviation, or 30, one a row, got shape \[9\]"),
        ({"a": nj.noise.Laplace([0.1, 0.2])}, "a distribution of one number, .* got Laplace of"),
        (nj.sd(column="e"), "noise names a column: nj.table takes such noise"),
        (nj.reliability(0.6), r"of one column, as noise={'a': nj\.reliability\(0\.6\)}"),
    ],
)
def test_wrong_knowledge_gives_one_clear_line(noise, message):
    raises(message, from_arrays, X, Y, names=NAMES, noise=noise)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nj.sd(-0.5), r"sd must be finite and >= 0, got -0\.5"),
        (lambda: nj.sd("e"), r"got 'e': .* nj.sd\(column='e'\) takes a column"),
        (lambda: nj.sd(), r"sd takes a value, such as sd\(0\.5\), or a column"),
        (lambda: nj.reliability(1.2), r"reliability must be in \[0, 1\], got 1\.2"),
        (lambda: nj.reliability([0.5, 0.6]), "reliability must be one number"),
    ],
)
def test_wrong_arguments(make, message):
    raises(message, make)


def test_replicates_are_not_described_as_one_copy():
    copies = np.stack([X, X + 0.1], axis=1)
    with pytest.raises(ValueError, match="is for one copy of each row, but there are replicates"):
        from_arrays(copies, Y, names=NAMES, noise={"a": nj.reliability(0.5)})


def estimates_and_covariances():
    """Two noisy columns and an exact one, with a covariance of the errors of the noisy ones."""
    rng = np.random.default_rng(5)
    clean = rng.normal(size=(2000, 3))
    cov = np.array([[0.25, 0.1], [0.1, 0.3]])
    errors = rng.multivariate_normal([0, 0], cov, size=2000)
    frame = dict(zip("abc", clean.T, strict=True))
    frame |= {"a": clean[:, 0] + errors[:, 0], "c": clean[:, 2] + errors[:, 1]}
    return frame | {"y": clean @ [1.0, -1.0, 0.5] + 0.3 * rng.normal(size=2000)}, cov


def test_a_covariance_of_some_columns():
    """As the whole covariance with zeros, in any order of the names; also of an estimate."""
    frame, cov = estimates_and_covariances()
    whole = np.array([[0.25, 0, 0.1], [0, 0, 0], [0.1, 0, 0.3]])
    some = pd.DataFrame(cov, index=["a", "c"], columns=["a", "c"])
    swapped = some.loc[["c", "a"], ["c", "a"]]
    for noise in (some, swapped):
        np.testing.assert_array_equal(nj.table(frame, target="y", noise=noise).cov, whole)
    estimate = nj.noise.CovarianceEstimate
    found = nj.fit(nj.table(frame, target="y", noise=estimate(some, 0.1 * swapped)))
    wanted = nj.fit(nj.table(frame, target="y", noise=estimate(whole, 0.1 * whole)))
    agree(found, wanted, "coefficients", "std_error", rtol=1e-9)
    named = pd.DataFrame(cov, index=["a", "zz"], columns=["a", "zz"])
    with pytest.raises(ValueError, match=r"noise has 'zz', but x has the columns 'a', 'b', 'c'"):
        nj.table(frame, target="y", noise=named)


def test_a_variance_from_a_validation_study():
    """As the estimate of the whole covariance: its standard error widens the intervals."""
    frame, _ = estimates_and_covariances()
    frame["y"], method = (frame["y"] > 0) * 1.0, nj.methods.Logistic()
    noise = {"a": nj.noise.CovarianceEstimate(0.25, 0.1), "c": 0.3}
    found = nj.fit(nj.table(frame, target="y", noise=noise), method)
    cov, error = np.diag([0.25, 0, 0.3]), np.diag([0.1, 0, 0])
    whole = nj.noise.CovarianceEstimate(cov, error)
    wanted = nj.fit(nj.table(frame, target="y", noise=whole), method)
    agree(found, wanted, "coefficients", "std_error", rtol=1e-6)
    known = nj.fit(nj.table(frame, target="y", noise={"a": 0.25, "c": 0.3}), method)
    agree(found, known, "coefficients", rtol=1e-6)
    assert found.std_error[1] > 1.5 * known.std_error[1]


def test_where_an_estimated_variance_would_be_lost():
    frame, _ = estimates_and_covariances()
    one = nj.noise.CovarianceEstimate(0.25, 0.1)
    options = {"target": "y", "noise": {"a": one}}
    with told("products need known variances"):
        nj.table(frame, products=[("a", "b")], **options)
    with told("give the variance of the error in 'y'"):
        nj.table(frame, target="y", noise={"y": one})
    with told("must be the estimate of one variance"):
        nj.table(frame, target="y", noise={"a": nj.noise.CovarianceEstimate(np.eye(2), np.eye(2))})
    label = {"d": (frame["b"] > 0) * 1.0, "a": frame["a"], "y": frame["y"]}
    wrong = nj.noise.Misclassified([[0.9, 0.1], [0.2, 0.8]])
    with told("variances of errors count as known"):
        nj.table(label, target="y", noise={"a": one, "d": wrong})
    copies = {"a": frame["a"], "a2": np.append(np.nan, frame["b"][1:]), "y": frame["y"]}
    with told("replicates of 'a' in unequal numbers, or beside other noisy columns, need a"):
        nj.table(copies, replicates={"a": ["a", "a2"]}, **options)


def test_deviations_of_an_estimate_have_three_axes():
    estimate = nj.noise.CovarianceEstimate(np.eye(3), np.eye(3), 0.1)
    raises(r"^deviations must be \[n, d, d\], got \[\]", from_arrays, X, Y, noise=estimate)
    table = from_arrays(X, Y, noise=iter([0.1, 0.2, 0.3]))
    np.testing.assert_allclose(table.cov, np.diag([0.1, 0.2, 0.3]))
