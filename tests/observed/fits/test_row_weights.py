"""Weights by errors of measurement: least variance by quadrature, coverage, the scatter."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.row_weights import differ_by_row, row_weights
from noisy_jax.observed.observations import from_arrays
from tests.keys import key
from tests.observed.rows import agree
from tests.quadrature import gauss_hermite

N = 500


def table(rng, errors_in_y=True):
    """y = 1 + 2x − z + e, with errors in x and y by row, and an exact z that depends on x."""
    x = rng.normal(size=N)
    z = 0.5 * x + rng.normal(size=N)
    sd = np.exp(rng.uniform(*np.log((0.1, 3.0)), size=N))
    sd_y = np.exp(rng.uniform(*np.log((0.1, 3.0)), size=N)) * errors_in_y
    y = 1 + 2 * x - z + 0.5 * rng.normal(size=N) + sd_y * rng.normal(size=N)
    frame = {"x": x + sd * rng.normal(size=N), "z": z, "y": y}
    noise = {"x": nj.sd(sd)} | ({"y": nj.sd(sd_y)} if errors_in_y else {})
    return nj.table(frame, target="y", noise=noise)


def test_no_other_weights_have_less_variance():
    """Of one column: variances of the scores by Gauss-Hermite quadrature over both errors."""
    rng = np.random.default_rng(0)
    sd, points = rng.uniform(0.1, 2, size=40), np.linspace(-2, 2, 41)
    clean, spread = (one.ravel() for one in np.meshgrid(points, sd, indexing="ij"))
    beta, scatter = 1.5, 0.4
    errors, mass = gauss_hermite(20, np.eye(2))
    moved, e = sd[:, None, None] * errors[:, 0], errors[:, 1]
    scores = (points[:, None] + moved) * (scatter * e - beta * moved)
    scores += beta * sd[:, None, None] ** 2
    np.testing.assert_allclose(scores @ mass, 0, atol=1e-12)
    variance = np.mean(scores**2 @ mass, axis=1)
    target = beta * clean + scatter * rng.normal(size=len(clean))
    noisy = clean + spread * rng.normal(size=len(clean))
    found = row_weights(from_arrays(noisy[:, None], target, noise=nj.sd(spread[:, None])))
    found = found.reshape(len(points), len(sd))
    np.testing.assert_allclose(found, np.tile(found[0], (len(points), 1)))  # by errors alone
    best = 1 / variance
    assert np.corrcoef(np.log(found[0]), np.log(best))[0, 1] > 0.999
    np.testing.assert_allclose(found[0] / found[0].max(), best / best.max(), rtol=0.3)

    def loss(w):
        return np.sum(w**2 * variance) / np.sum(w) ** 2

    assert loss(found[0]) < 1.02 * loss(best) < 0.3 * loss(np.ones(len(sd)))


def test_where_they_are_used():
    rng = np.random.default_rng(1)
    by_row = table(rng)
    fit, equal = nj.fit(by_row), nj.fit(by_row, weights=np.ones(N))
    assert equal.effective_rows is None
    assert fit.effective_rows < 0.6 * N
    assert np.all(fit.std_error[1] < 0.6 * equal.std_error[1])
    assert "Rows are weighted by their errors of measurement" in str(fit)
    agree(nj.fit(by_row, weights=row_weights(by_row)), fit, "coefficients", rtol=1e-12)
    x, y, sd = by_row.x, by_row.y, np.full((N, 2), 0.3)
    alike = [
        from_arrays(x, y, noise=nj.sd(sd)),  # the same in all rows
        from_arrays(np.repeat(x, 2, axis=1) + rng.normal(size=(N, 2, 2)), y),  # estimated
        from_arrays(x, y, noise=nj.noise.Multiplicative(0.1)),  # depends on the values
        nj.table({"x": x[:, 0, 0], "y": y}, target="y", noise={"x": nj.reliability(0.5)}),
    ]
    assert not any(map(differ_by_row, alike))
    assert all(nj.fit(one).effective_rows is None for one in alike)


@pytest.mark.parametrize(("share", "rows"), [(0.5, 40), (0.6, 141), (0.75, 390)])
def test_an_exact_column_may_be_constant_in_half_of_the_rows(rows, share):
    """As in tables that are sorted by groups."""
    rng = np.random.default_rng(rows)
    treated = 1.0 * (np.arange(rows) >= share * rows)
    x, sd = rng.normal(size=rows), rng.uniform(0.1, 0.4, size=rows)
    frame = {"x": x + sd * rng.normal(size=rows), "treated": treated, "y": x + treated}
    fit = nj.fit(nj.table(frame, target="y", noise={"x": nj.sd(sd)}))
    np.testing.assert_allclose(fit.coefficients, 1, atol=0.3)


@pytest.mark.statistical
def test_errors_that_follow_the_measured_value_are_told():
    """A share of the reading of y: the weighted fit is wrong, and the other one is taken."""
    rng = np.random.default_rng(int(jax.random.randint(key(3), (), 0, 2**31 - 1)))
    x = rng.normal(size=4000)
    y = (3 + x + 0.1 * rng.normal(size=4000)) * (1 + 0.2 * rng.normal(size=4000))
    frame = {"x": x + 0.3 * rng.normal(size=4000), "y": y, "e": 0.2 * np.abs(y)}
    of_reading = nj.table(frame, target="y", noise={"x": 0.09, "y": nj.sd(column="e")})
    with pytest.warns(UserWarning, match="change the coefficients by more than .*, or are wrong"):
        fit = nj.fit(of_reading)
    assert "all rows have the same weight" in str(fit)
    equal = nj.fit(of_reading, weights=np.ones(4000))
    np.testing.assert_allclose(fit.coefficients, equal.coefficients, rtol=1e-12)
    assert fit.effective_rows is None
    low, high = nj.fit(of_reading, weights=row_weights(of_reading)).interval()
    assert not low[1] < 1 < high[1]
    frame["e"] = 0.2 * np.abs(3 + x)  # by the clean features is as it should be
    fit = nj.fit(nj.table(frame, target="y", noise={"x": 0.09, "y": nj.sd(column="e")}))
    assert fit.effective_rows is not None


def test_the_uncorrected_fit_has_equal_weights():
    """For prediction from rows that are as noisy: it is least squares, and judged as such."""
    by_row = table(np.random.default_rng(5), errors_in_y=False)
    fit, equal = nj.fit(by_row), nj.fit(by_row, weights=np.ones(N))
    agree(fit.uncorrected, equal.uncorrected, "coefficients", "std_error")
    assert fit.risk.uncorrected > fit.risk.corrected
    judged = nj.fit(by_row, weights=row_weights(by_row)).risk
    np.testing.assert_allclose(fit.risk.corrected, judged.corrected)
    assert abs(fit.risk.uncorrected - judged.uncorrected) > 1e-3


def test_the_scatter_is_what_is_left_of_the_residuals():
    """Against NumPy, with a covariance of both errors; of `Comparison` it is without those of y."""
    rng = np.random.default_rng(3)
    n, x = 4000, rng.normal(size=(4000, 1))
    both = rng.multivariate_normal([0, 0], [[0.2, 0.1], [0.1, 0.3]], size=n)
    y = 2 * x[:, 0] + 0.7 * rng.normal(size=n) + both[:, 1]
    frame = {"x": x[:, 0] + both[:, 0], "y": y}
    fit = nj.fit(nj.table(frame, target="y", noise={"x": 0.2, "y": 0.3}, cross_cov=[0.1]))
    a, (b,) = fit.intercept, fit.coefficients
    terms = (y - a - b * frame["x"]) ** 2 - 0.2 * b**2 + 0.2 * b - 0.3
    value = np.array([1, frame["x"].mean()])
    lost = value @ fit.covariance @ value + fit.covariance[1, 1] * fit.gram[0, 0]
    np.testing.assert_allclose(fit.scatter[0], terms.mean() + lost, rtol=1e-10)
    np.testing.assert_allclose(fit.scatter[1], terms.std() / n**0.5, rtol=1e-3)
    low, high = fit.scatter_interval()
    assert low < 0.7 < high
    with pytest.raises(ValueError, match="level must be above 0 and below 1, got 95"):
        fit.scatter_interval(95)
    with pytest.raises(ValueError, match="the scatter is known where errors in y, or by row"):
        nj.fit(from_arrays(x, y, noise=0.1)).scatter_interval()
