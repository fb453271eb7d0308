"""Linear fits against published results, ordinary least squares, and simulated coverage."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import noisy_jax as nj
from noisy_jax.observations import from_arrays

# Fuller, Measurement Error Models (1987), Table 1.2.1: corn yield on soil nitrogen, of which the
# measurement error has variance 57. Sec. 1.2.2 reports the estimates and standard errors.
NITROGEN = np.array([70, 97, 53, 64, 95, 64, 50, 70, 94, 69, 51], float)
YIELD = np.array([86, 115, 90, 86, 110, 91, 99, 96, 99, 104, 96], float)


def test_corn_yield_as_published():
    fit = nj.fit(from_arrays(NITROGEN[:, None], YIELD, noise=57.0, names=["nitrogen"]))
    np.testing.assert_allclose(fit.coefficients, [0.4232], rtol=1e-4)
    np.testing.assert_allclose(fit.intercept, 67.56, rtol=1e-4)
    np.testing.assert_allclose(fit.std_error[1], 0.1745, rtol=0.1)
    np.testing.assert_allclose(fit.reliability, [1 - 57 / 304.85], rtol=1e-4)


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) * [1, 10, 0.1] + [5, -300, 0.2]
    return x, x @ [1.0, -0.2, 3.0] + 7 + rng.normal(size=n) * (1 + (x[:, 0] > 5))


def test_without_noise_it_is_least_squares_with_robust_errors():
    x, y = table()
    fit = nj.fit(from_arrays(x, y, noise=0.0))
    plain = LinearRegression().fit(x, y)
    np.testing.assert_allclose(fit.coefficients, plain.coef_, rtol=1e-8)
    np.testing.assert_allclose(fit.intercept, plain.intercept_, rtol=1e-8)
    z = np.column_stack([np.ones(len(y)), x])
    bread = np.linalg.inv(z.T @ z)
    meat = (z * (y - plain.predict(x))[:, None] ** 2).T @ z * len(y) / (len(y) - 4)
    np.testing.assert_allclose(fit.covariance, bread @ meat @ bread, rtol=1e-6)  # HC1
    np.testing.assert_allclose(fit.uncorrected.covariance, fit.covariance)


def test_weights_and_clusters_are_repeated_rows():
    """A row of weight two, and a row that stands twice in a cluster, give the same fit."""
    x, y = table(60)
    twice = np.concatenate([np.arange(60), np.arange(10)])
    clustered = nj.fit(from_arrays(x[twice], y[twice], noise=0.0), clusters=twice)
    weights = np.where(np.arange(60) < 10, 2.0, 1.0)
    weighted = nj.fit(from_arrays(x, y, noise=0.0), weights=weights, clusters=np.arange(60))
    np.testing.assert_allclose(clustered.coefficients, weighted.coefficients, rtol=1e-9)
    np.testing.assert_allclose(clustered.covariance, weighted.covariance, rtol=1e-7)


def test_units_do_not_matter():
    x, y = table()
    rng = np.random.default_rng(1)
    cov = np.array([[0.2, 0.1, 0], [0.1, 5.0, 0], [0, 0, 0.001]])
    noisy = x + rng.multivariate_normal(np.zeros(3), cov, len(y))
    fit = nj.fit(from_arrays(noisy, y, noise=cov))
    units = np.array([1e6, 1e-3, 1.0])
    other = nj.fit(from_arrays(noisy * units, 1e4 * y, noise=cov * np.outer(units, units)))
    np.testing.assert_allclose(other.coefficients, 1e4 * fit.coefficients / units, rtol=1e-8)
    np.testing.assert_allclose(other.std_error[1:], 1e4 * fit.std_error[1:] / units, rtol=1e-6)
    np.testing.assert_allclose(other.reliability, fit.reliability, rtol=1e-8)


def test_replicates_are_averaged_and_their_own_spread_taken_away():
    x, y = table(2000)
    rng = np.random.default_rng(2)
    copies = x[:, None] + rng.normal(size=(2000, 2, 3)) * [0.7, 6.0, 0.05]
    fit = nj.fit(from_arrays(copies, y))
    known = nj.fit(from_arrays(copies.mean(axis=1), y, noise=np.array([0.7, 6.0, 0.05]) ** 2 / 2))
    error = fit.std_error[1:].max()
    np.testing.assert_allclose(fit.coefficients, known.coefficients, atol=5 * error)
    assert (np.abs(fit.coefficients - [1, -0.2, 3]) < 5 * fit.std_error[1:]).all()
    assert (np.abs(fit.uncorrected.coefficients - [1, -0.2, 3]) > 5 * fit.std_error[1:]).any()


def settings(setting, rng):
    n = 300
    x = rng.normal(size=(n, 2))
    y = x @ [1.0, -0.5] + 0.5 * rng.normal(size=n)
    if setting == "one covariance a row":
        variances = rng.uniform(0.1, 0.6, size=n)
        cov = variances[:, None, None] * np.array([[1, 0.3], [0.3, 1]])
        factor = np.linalg.cholesky(cov)
        noise = np.einsum("nij,nj->ni", factor, rng.normal(size=(n, 2)))
        return from_arrays(x + noise, y, noise=nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(cov)))
    if setting == "replicates":
        return from_arrays(x[:, None] + 0.6 * rng.normal(size=(n, 2, 2)), y)
    noise = nj.noise.Laplace(0.4)
    return from_arrays(x + 0.4 * rng.laplace(size=x.shape), y, noise=noise)


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["one covariance a row", "replicates", "laplace"])
def test_intervals_cover(setting):
    rng = np.random.default_rng(3)
    covered, plain = np.zeros(2), np.zeros(2)
    for _ in range(2000):
        fit = nj.fit(settings(setting, rng))
        low, high = fit.interval()
        covered += (low[1:] < [1, -0.5]) & (high[1:] > [1, -0.5])
        low, high = fit.uncorrected.interval()
        plain += (low[1:] < [1, -0.5]) & (high[1:] > [1, -0.5])
    assert (covered >= 0.93 * 2000).all()
    assert (covered <= 0.97 * 2000).all()
    assert plain[0] < 0.5 * 2000


def test_estimated_errors_on_clean_data_are_right():
    """The estimate, from noisy rows alone, against errors at the clean rows."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(20_000, 2))
    y = x @ [1.0, 1.0] + rng.normal(size=20_000)
    fit = nj.fit(from_arrays(x + rng.normal(size=x.shape), y, noise=1.0))
    for made, value, error in (
        (fit, fit.risk.corrected, fit.risk.corrected_std_error),
        (fit.uncorrected, fit.risk.uncorrected, fit.risk.uncorrected_std_error),
    ):
        assert abs(np.mean((made.predict(x) - y) ** 2) - value) < 5 * error
    assert fit.risk.verdict() == "the correction helps"


def test_what_is_not_identified_is_named():
    x, y = table()
    with pytest.raises(ValueError, match="column 'x3' is not identified: its noise variance"):
        nj.fit(from_arrays(x, y, noise=[0.1, 0.1, 1.0]))
    twin = np.column_stack([x[:, 0], x[:, 0] + 0.01 * x[:, 1]])
    with pytest.raises(ValueError, match=r"combination .*·x1 .*·x2 is not identified"):
        nj.fit(from_arrays(twin, y, noise=0.2))


def test_an_uncertain_covariance_widens_intervals():
    x, y = table()
    noisy = x + np.random.default_rng(5).normal(size=x.shape) * [0.7, 6, 0.05]
    cov = np.diag([0.49, 36.0, 0.0025])
    exact = nj.fit(from_arrays(noisy, y, noise=cov))
    estimate = nj.noise.CovarianceEstimate(cov, 0.2 * cov)
    uncertain = nj.fit(from_arrays(noisy, y, noise=estimate))
    np.testing.assert_allclose(uncertain.coefficients, exact.coefficients)
    assert (uncertain.std_error[1:] > exact.std_error[1:]).all()


def test_sensitivity_starts_at_the_uncorrected_fit_and_passes_through_the_fit():
    fit = nj.fit(from_arrays(NITROGEN[:, None], YIELD, noise=57.0))
    zero, one, much = fit.sensitivity([0.0, 1.0, 6.0])
    np.testing.assert_allclose(zero, fit.uncorrected.coefficients)
    np.testing.assert_allclose(one, fit.coefficients)
    assert np.isnan(much).all()


def test_a_saved_fit_is_the_fit(tmp_path):
    fit = nj.fit(from_arrays(NITROGEN[:, None], YIELD, noise=57.0))
    fit.save(tmp_path / "fit.json")
    assert str(nj.load_fit(tmp_path / "fit.json")) == str(fit)
    (tmp_path / "fit.json").write_text("{}")
    with pytest.raises(ValueError, match="does not hold a fit"):
        nj.load_fit(tmp_path / "fit.json")


X, Y = table(20)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (lambda: (X, Y[:-1], 0.1), r"x has 20 rows, but y has shape \[19\]"),
        (lambda: (np.zeros((2, 20, 3)), Y, None), "np.swapaxes"),
        (lambda: (X, Y, None), "noise is unknown"),
        (lambda: (X, Y, -0.1), "noise must be finite and >= 0, got -0.1: it holds variances"),
        (lambda: (X, Y, [0.1, 0.2]), r"noise of shape \[2\] does not fit data of dimension 3"),
        (lambda: (X, Y, np.array([[1, 2, 0], [2, 1, 0], [0, 0, 1.0]])), "positive semi-definite"),
        (
            lambda: (np.where(X > 5, np.nan, X), Y, 0.1),
            r"x\[\d+, 0\] is nan .* in all\): drop or impute",
        ),
        (lambda: (np.ones((20, 3)), Y, 0.0), "column 'x1' is constant"),
        (lambda: (X, np.ones(20), 0.0), "'y' takes one value only"),
        (lambda: (X[:3], Y[:3], 0.0), r"more than d \+ 1 = 4 rows, got 3"),
        (lambda: ([["a", "b"]], [1.0], 0.0), r"x\[0, 0\] must be a number, got 'a'"),
    ],
)
def test_wrong_input_is_one_clear_line(arguments, message):
    x, y, noise = arguments()
    with pytest.raises(ValueError, match=message) as caught:
        nj.fit(from_arrays(x, y, noise=noise))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("form", ["one distribution", "one a row"])
def test_a_known_mean_of_the_noise_is_subtracted(form):
    x, y = table(500)
    noisy = x + np.random.default_rng(4).normal(size=x.shape)
    mean = np.array([3.0, -1.0, 0.5])
    noise = nj.noise.Gaussian(np.full(3, 0.1), mean=mean)
    if form == "one a row":
        rows = jnp.tile(jnp.full(3, 0.1), (500, 1)), jnp.tile(jnp.asarray(mean), (500, 1))
        noise = nj.noise.PerRound(jax.vmap(lambda cov, mean: nj.noise.Gaussian(cov, mean))(*rows))
    fit = nj.fit(from_arrays(noisy + mean, y, noise=noise))
    expected = nj.fit(from_arrays(noisy, y, noise=0.1))
    np.testing.assert_allclose(fit.coefficients, expected.coefficients, rtol=1e-5)
    np.testing.assert_allclose(fit.intercept, expected.intercept, rtol=1e-5)
