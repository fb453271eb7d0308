"""Missing values: shares of pairs from the table, what gaps show, and whether to drop rows."""

import warnings

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.noise import Missing
from noisy_jax.observed.fits.assumptions import AssumptionWarning, doubts
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.keys import SHIFT
from tests.observed.rows import covered, written

TRUTH = np.array([1.0, -0.5, 0.3])
FACTOR = np.linalg.cholesky(np.array([[1, 0.5, 0.2], [0.5, 1, 0.3], [0.2, 0.3, 1]]))


def seen_by(pattern, rng, n):
    """Which values are seen, `[n, 3]`; the first two columns have about 60% and 70%."""
    first, second, third = rng.random((3, n))
    if pattern == "independent":
        seen = first < 0.6, second < 0.7, third < 0.8
    elif pattern == "together":
        seen = first < 0.7, first < 0.7, third < 0.8
    elif pattern == "mostly together":
        seen = np.where(third < 0.8, first, second) < 0.6, first < 0.6, rng.random(n) < 0.8
    else:
        seen = first < 0.6, first > 0.3, third < 0.8
    return np.column_stack(seen)


PATTERNS = ("independent", "together", "mostly together", "apart")


def drawn(pattern, rng, n, noise=0.5):
    x = 5 + rng.normal(size=(n, 3)) @ FACTOR.T
    return x, 2 + x @ TRUTH + noise * rng.normal(size=n), seen_by(pattern, rng, n)


def table(x, y, seen):
    return from_arrays(np.where(seen, x, np.nan), y, noise=Missing(seen.mean(axis=0)))


@pytest.fixture
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        yield


def available_cases(x, y, seen, cov=0.0):
    """Slopes from the covariance of each pair of columns over the rows that have both, less Σ."""
    apart = np.where(seen, x - np.where(seen, x, 0).sum(axis=0) / seen.sum(axis=0), 0)
    counts = seen.T.astype(float) @ seen
    cross = apart.T @ (y - y.mean()) / np.diag(counts)
    return np.linalg.solve(apart.T @ apart / counts - cov, cross)


def by_jackknife(x, y, seen, cov=0.0):
    """The variance of `available_cases`, by leaving out one row at a time."""
    rows = ([np.delete(part, row, axis=0) for part in (x, y, seen)] for row in range(len(y)))
    left_out = [available_cases(*one, cov) for one in rows]
    return np.cov(np.array(left_out).T, bias=True) * len(y)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("errors", ["sandwich", "jackknife"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_moments_are_those_of_available_pairs_and_errors_know_it(pattern, errors, rng):
    """The slopes by NumPy, their variance by leaving out one row at a time.

    The corrected Gram matrix has one divisor for centring, n − 1 of n: a share of 1e-3 here.
    """
    x, y, seen = drawn(pattern, rng, 1000)
    fit = nj.fit(table(x, y, seen), errors=errors)
    np.testing.assert_allclose(fit.coefficients, available_cases(x, y, seen), rtol=0.02)
    variance = by_jackknife(x, y, seen)
    if errors == "sandwich":
        np.testing.assert_allclose(fit.covariance[1:, 1:], variance, rtol=0.05, atol=2e-5)
    else:  # 31 degrees of freedom: five standard errors
        ratio = np.diag(fit.covariance)[1:] / np.diag(variance)
        assert np.all(np.abs(np.log(ratio)) < 5 * (2 / 31) ** 0.5)


ERRORS = np.array([[0.3, 0.1, 0], [0.1, 0.2, 0], [0, 0, 0]])


def measured(x, rng):
    """With errors of the covariance `ERRORS`: the third column is exact."""
    root = np.linalg.cholesky(ERRORS[:2, :2])
    return x + np.column_stack([rng.normal(size=(len(x), 2)) @ root.T, np.zeros(len(x))])


def table_beside_errors(x, y, seen):
    return from_arrays(np.where(seen, x, np.nan), y, noise=ERRORS, gaps="random")


@pytest.mark.usefixtures("quiet")
@pytest.mark.claim("EXT-Gaps")
@pytest.mark.parametrize("pattern", ["independent", "mostly together"])
def test_errors_beside_gaps_are_taken_from_available_pairs(pattern, rng):
    """As the test of exact values above, less the covariance of the errors."""
    x, y, seen = drawn(pattern, rng, 1000)
    x = measured(x, rng)
    fit = nj.fit(table_beside_errors(x, y, seen))
    np.testing.assert_allclose(fit.coefficients, available_cases(x, y, seen, ERRORS), rtol=0.03)
    variance = by_jackknife(x, y, seen, ERRORS)
    np.testing.assert_allclose(fit.covariance[1:, 1:], variance, rtol=0.1, atol=1e-4)


@pytest.mark.usefixtures("quiet")
@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-Gaps")
def test_intervals_cover_beside_errors():
    """Rows without gaps alone have wider intervals; without a correction for errors, none cover."""
    rng, tables = np.random.default_rng(3 + 1000 * SHIFT), 100
    inside, widths = np.zeros((3, 3)), np.zeros(3)
    for _ in range(tables):
        x, y, seen = drawn("independent", rng, 1000, noise=2.0)
        x, rows = measured(x, rng), seen.all(axis=1)
        fit = nj.fit(table_beside_errors(x, y, seen))
        whole = nj.fit(from_arrays(x[rows], y[rows], noise=ERRORS))
        widths += np.log(fit.std_error / whole.std_error)
        for k, one in enumerate((fit, whole, nj.fit(table(x, y, seen)))):
            low, high = one.interval()
            inside[k] += (low < TRUTH) & (high > TRUTH)
    assert np.all(np.abs(inside[:2] / tables - 0.95) < 5 * (0.95 * 0.05 / tables) ** 0.5)
    assert inside[2, 0] < 0.75 * tables
    assert np.all(np.exp(widths / tables) < 0.95)


@pytest.mark.usefixtures("quiet")
@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("pattern", ["independent", "mostly together"])
def test_intervals_cover(pattern):
    rng = np.random.default_rng(1 + 1000 * SHIFT)
    coverage, _ = covered((nj.fit(table(*drawn(pattern, rng, 1000))) for _ in range(400)), TRUTH)
    assert np.all(np.abs(coverage - 0.95) < 5 * (0.95 * 0.05 / 400) ** 0.5)


@pytest.mark.slow
@pytest.mark.usefixtures("quiet")
def test_copies_with_gaps_of_their_own_are_averaged(rng):
    """Slopes of the mean of two copies whose gaps in a row are alike: variance by a jackknife."""
    n = 300
    x, y, _ = drawn("apart", rng, n)
    seen = np.stack([seen_by("mostly together", rng, n) for _ in range(2)], axis=1)

    def fitted(rows):
        own = np.where(seen[rows], x[rows][:, None], np.nan)
        return nj.fit(from_arrays(own, y[rows], noise=Missing(seen[rows].mean(axis=(0, 1)))))

    everyone = np.arange(n)
    fit = fitted(everyone)
    low, high = fit.interval(0.9999)
    assert np.all((low < TRUTH) & (high > TRUTH))
    left_out = [fitted(np.delete(everyone, row)).coefficients for row in everyone]
    variances = n * np.var(left_out, axis=0)
    np.testing.assert_allclose(np.diag(fit.covariance)[1:], variances, rtol=0.1)


def test_columns_that_are_never_seen_together_are_named(rng, tmp_path):
    x, y, _ = drawn("independent", rng, 300)
    first = rng.random(300) < 0.5
    seen = np.column_stack([first, ~first, first | True])
    raises("'x1' and 'x2' never have values in the same row", table, x, y, seen)
    # In a chunk of eight rows that is chance.
    noise = Missing(seen[:8].mean(axis=0))
    (chunk,) = written(tmp_path, np.where(seen, x, np.nan)[:8], y[:8], noise=noise)
    assert np.isfinite(chunk.averaged()[1]).all()


def test_gaps_that_come_together_are_said_and_spoil_nothing(rng):
    with pytest.warns(AssumptionWarning, match=r"gaps depend on each other in 'x1' and 'x2'"):
        fit = nj.fit(table(*drawn("together", rng, 1000)))
    assert fit.risk.verdict() == "the correction helps"
    assert "own shares" in fit.remarks[0]


@pytest.mark.parametrize("depends_on", ["the column", "y", "its spread"])
def test_gaps_that_depend_on_values_are_said(depends_on, rng):
    x, y, _ = drawn("independent", rng, 2000)
    value = {"the column": x[:, 1] - 5, "y": y - y.mean(), "its spread": np.abs(x[:, 1] - 5) - 0.8}
    seen = np.ones(x.shape, bool)
    seen[:, 0] = rng.random(2000) < 1 / (1 + np.exp(-1 - 2 * value[depends_on]))
    name = "'y'" if depends_on == "y" else "'x2'"
    with pytest.warns(AssumptionWarning, match=rf"{name} where 'x1' is missing.*drop the rows"):
        fit = nj.fit(table(x, y, seen))
    assert fit.risk.interval()[1] < 0
    assert fit.risk.verdict() == "no verdict (see the note)"
    assert "drop the rows with gaps" in " ".join(str(fit).split())


@pytest.mark.statistical
@pytest.mark.parametrize("n", [60, 600])
@pytest.mark.parametrize("values", ["lognormal", "rare"])
def test_gaps_by_chance_are_not_doubted(values, n):
    """1% of tables at most; 4 of 150 would be a chance of 7%, 9 of 150 of 2e-5."""
    rng, found = np.random.default_rng(2 + 1000 * SHIFT), 0
    for _ in range(150):
        x = np.exp(rng.normal(size=(n, 4)) + rng.normal(size=(n, 1)))
        if values == "rare":  # few rows have a 1, and few a gap
            x[:, 0], x[:, 1] = rng.random((2, n)) < 0.03
        keep = [0.97, 0.98, 0.9, 0.6] if values == "rare" else [0.5, 0.7, 0.9, 0.6]
        found += bool(doubts(table(x, x.sum(axis=1), rng.random(x.shape) < keep)))
    assert found < 9


def test_fewer_rows_without_gaps_may_say_more(rng):
    """With little noise in y, rows without gaps say more, and with much noise all rows do."""
    x, _, seen = drawn("independent", rng, 2000)
    noise, rows = rng.normal(size=2000), seen.all(axis=1)
    y = x @ TRUTH + 0.1 * noise
    for seen_x, make, known, words in (
        (x, table, 0.0, "least squares on the"),
        (measured(x, rng), table_beside_errors, ERRORS, "corrected least squares on the"),
    ):
        fit = nj.fit(make(seen_x, y, seen))
        whole = nj.fit(from_arrays(seen_x[rows], y[rows], noise=known))
        ratio = np.exp(np.log(whole.std_error / fit.std_error).mean())
        for text in (words, f"{rows.sum():,} rows without gaps", f"{ratio:.0%}"):
            assert text in fit.remarks[0]
        assert nj.fit(make(seen_x, y + 10 * noise, seen)).remarks == ()
