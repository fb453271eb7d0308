"""Squared errors on held-out clean rows, though all rows are noisy."""

import jax
import numpy as np
import pytest
from scipy.stats import t as student

import noisy_jax as nj
from noisy_jax.observed.cross_fitting import Folds
from noisy_jax.observed.fits.black_boxes import affine_of
from noisy_jax.observed.fits.clean_errors import fourier_errors
from noisy_jax.observed.fits.judged import of_folds, of_rows
from tests.errors import raises
from tests.keys import SHIFT, key
from tests.observed.rows import gaussians, waves

KNOWN = nj.moments.known_covariance()
FITS = {"corrected": nj.fit, "uncorrected": lambda rows: nj.fit(rows).uncorrected}


def table(rows=560, copies=1, noise=None):
    """Clean rows, clean targets, and observations; the noise has variance .5 in each column."""
    rng = np.random.default_rng((0, SHIFT))
    x = rng.normal(size=(rows, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    y = 5 + x @ [2.0, -1.0]
    noisy = x[:, None] + rng.normal(size=(rows, copies, 2)) * 0.5**0.5
    observed = y + 0.3 * rng.normal(size=rows)
    return x, y, nj.observations.from_arrays(noisy, observed, noise=noise)


def in_folds(rows, folds=5):
    """Held-out rows of each fold of a table."""
    return [Folds.of(rows, None, folds).units % folds == fold for fold in range(folds)]


def statistics(errors):
    """Mean, its standard error, and the half-width of its interval."""
    count = len(errors)
    error = errors.std(ddof=1) / count**0.5
    return errors.mean(), error, student.ppf(0.975, count - 1) * error


def check_row(found, name, errors):
    k = found.names.index(name)
    mean, error, half = statistics(errors)
    np.testing.assert_allclose([found.risk[k], found.std_error[k]], [mean, error], rtol=2e-4)
    ends = np.array(found.interval())[:, k]
    np.testing.assert_allclose(ends, [mean - half, mean + half], rtol=2e-3)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["one variance", "one covariance a row", "replicates"])
def test_risks_of_a_fit_are_those_of_numpy(kind):
    covs = np.linspace(0.2, 0.8, 560)
    noise = {"one variance": 0.5, "one covariance a row": gaussians(covs), "replicates": None}[kind]
    _, _, rows = table(copies=3 if kind == "replicates" else 1, noise=noise)
    found = nj.select(FITS, rows, key(0))
    errors, naive = {name: np.empty(560) for name in FITS}, dict.fromkeys(FITS, 0.0)
    for name, fit in FITS.items():
        for held_out in in_folds(rows):
            made = fit(rows.rows(~held_out))
            residuals = rows.x @ made.coefficients + made.intercept - rows.y[:, None]
            if kind == "replicates":  # the mean over pairs of different copies
                own = (residuals.sum(axis=1) ** 2 - (residuals**2).sum(axis=1)) / 6
            else:
                square = made.coefficients @ made.coefficients
                own = residuals[:, 0] ** 2 - (0.5 if kind == "one variance" else covs) * square
            errors[name][held_out] = own[held_out]
            naive[name] += (residuals[held_out, 0] ** 2).sum()
        check_row(found, name, errors[name])
    mean, error, half = statistics(errors["uncorrected"] - errors["corrected"])
    np.testing.assert_allclose(found.difference, [0, mean], rtol=1e-6)
    np.testing.assert_allclose(found.difference_std_error, [0, error], rtol=1e-6)
    np.testing.assert_allclose(found.difference_interval()[1][1], mean + half, rtol=1e-6)
    if kind != "replicates":  # their fit sees means of copies, whose noise is smaller
        assert naive["uncorrected"] < naive["corrected"]
        assert found.tied == ("corrected",)


def descended(x, y, noise):
    """Centre, slopes and y's centre after gradient descent in units of these rows."""
    center, scale, y_center, y_scale = x.mean(axis=0), x.std(axis=0), y.mean(), y.std()
    w, cov = np.zeros(2), np.diag(noise / scale**2)
    for row, target in zip((x - center) / scale, (y - y_center) / y_scale, strict=True):
        w = w - 0.02 * ((w @ row - target) * row - cov @ w)
    return center, w * y_scale / scale, y_center


DESCENT = nj.learners.known_covariance(radius=100.0, learning_rate=0.01)


def test_risks_of_a_learner_are_those_of_numpy():
    """Gradient descent in units of the rows it sees, judged with the weights after the last row."""
    _, _, rows = table(noise=0.5)
    found = nj.select({"descent": DESCENT}, rows, jax.random.key(0))
    errors = np.empty(560)
    for held_out in in_folds(rows):
        center, slopes, y_center = descended(rows.x[~held_out, 0], rows.y[~held_out], 0.5)
        residuals = (rows.x[held_out, 0] - center) @ slopes + y_center - rows.y[held_out]
        errors[held_out] = residuals**2 - 0.5 * slopes @ slopes
    check_row(found, "descent", errors)
    learned = nj.learn(DESCENT, rows, jax.random.key(0))
    np.testing.assert_allclose(found.refit().predict(np.eye(2)), learned.predict(np.eye(2)))


def test_risks_do_not_depend_on_the_order_of_the_rows():
    """Each row is in the same fold, wherever it stands."""
    _, _, rows = table(noise=0.5)
    found = [nj.select(FITS, rows.rows(np.argsort(y)), key(0)) for y in (rows.y, rows.y * 0)]
    for name in ("risk", "std_error", "difference_std_error"):
        np.testing.assert_allclose(*(getattr(one, name) for one in found), rtol=1e-6)


def test_readings_of_a_wave_have_the_mean_of_the_clean_row():
    """By quadrature over Gaussian noise, for fixed weights, at two rows."""
    omega, weights = np.array([[1.0], [2.0]]), np.array([0.3, -0.7, 0.9, 0.2])
    predictor = waves(omega, weights)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    x = np.array([0.7, -0.4])[:, None] + 0.2**0.5 * nodes
    noise = nj.noise.Gaussian(0.2)
    rows = nj.observations.from_arrays(x.reshape(-1, 1), np.full(120, 0.8), noise=noise)
    many = nj.observations.from_arrays(np.zeros((10**7, 1)), np.zeros(10**7), noise=noise)
    errors, _ = fourier_errors(predictor, rows, many)
    expected = (predictor.predict([[0.7], [-0.4]]) - 0.8) ** 2
    np.testing.assert_allclose(errors.reshape(2, 60) @ weights / weights.sum(), expected, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.statistical
def test_an_uncertain_covariance_widens_all_risks_alike():
    """A learner and a fit of nearly the same weights depend on the covariance alike."""
    _, _, rows = table(rows=1280, noise=0.5, copies=2)
    leader = nj.learners.corrected_ftrl(KNOWN, regularization=1e-6)
    candidates = {"fit": nj.fit, "leader": leader, "uncorrected": FITS["uncorrected"]}
    sure = nj.select(candidates, rows, key(0))
    estimate = nj.noise.CovarianceEstimate(0.5 * np.eye(2), np.diag([0.1, 0.0]))
    unsure = nj.observations.from_arrays(rows.x, rows.y, noise=estimate)
    added = np.sqrt(nj.select(candidates, unsure, key(0)).std_error ** 2 - sure.std_error**2)
    fit = nj.fit(rows)
    first, plain = (one.coefficients[0] for one in (fit, fit.uncorrected))
    expected = 0.1 * np.array([first**2 / 2, first**2, plain**2 / 2])
    apart = np.abs(added / expected - 1)
    assert apart[0] < 0.01 > apart[2]
    assert apart[1] < 0.25  # weights of a learner change from round to round
    hides = nj.wrappers.cloned(nj.learners.two_copies(radius=1.0), nj.noise.Gaussian(estimate.cov))
    raises("hides how uncertain it is", nj.select, {"a": hides}, unsure, key(0), standardize=False)


def test_clusters_stay_together():
    """Of different sizes; errors of rows are summed over them for the standard error."""
    _, _, rows = table(noise=0.5)
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(40), np.arange(40) % 2 + 14))
    labels, seen, errors = labels[:560], [], np.empty(560)

    def fit(some):
        learned = np.isin(rows.y, some.y)
        seen.append({*labels[learned]})
        made, held_out = nj.fit(some), rows.rows(~learned)
        residuals = held_out.x[:, 0] @ made.coefficients + made.intercept - held_out.y
        errors[~learned] = residuals**2 - 0.5 * made.coefficients @ made.coefficients
        return made

    found = nj.select({"fit": fit}, rows, jax.random.key(0), folds=4, clusters=labels)
    assert [len(some) for some in seen] == [30, 30, 30, 30]
    assert found.degrees_of_freedom == 39
    np.testing.assert_allclose(found.risk, errors.mean(), rtol=1e-8)
    apart = np.bincount(labels, errors - errors.mean())
    np.testing.assert_allclose(found.std_error, np.sqrt(np.sum(apart**2) * 40 / 39) / 560)


def test_slopes_and_biases_of_folds_are_weighted_by_their_rows(rng):
    slopes, hidden = rng.normal(size=(2, 2, 2)), rng.normal(size=(2, 2, 5))
    folds = [np.arange(3), np.arange(3, 10)]
    known = zip(folds, slopes, hidden, strict=True)
    parts = [of_rows(np.ones(len(rows)), *one) for rows, *one in known]
    found = of_folds(parts, folds, np.arange(10))
    np.testing.assert_allclose(found.slope, 0.3 * slopes[0] + 0.7 * slopes[1])
    square, value = np.abs(0.3 * hidden[0] + 0.7 * hidden[1]).max(axis=1)
    np.testing.assert_allclose(found.bias, square + 2 * value)


def test_a_function_with_a_large_mean_is_not_taken_for_affine(rng):
    x = rng.normal(size=(100, 1))
    for far in (0.0, 1e6):
        assert affine_of(lambda z, far=far: far + np.sin(2 * z[:, 0]), x) is None
        line = affine_of(lambda z, far=far: far + 2 * z[:, 0], x)
        np.testing.assert_allclose(line, [far, 2.0], rtol=1e-8)
    raises("one number a row", affine_of, lambda z: np.ones((len(z), 2)), x)
