"""Choosing afterwards: the risks are those on clean data, though all rows are noisy."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import t as student

import noisy_jax as nj
from noisy_jax.observed.cross_fitting import learner_judge
from tests.keys import SHIFT, key

KNOWN = nj.moments.known_covariance()
FITS = {"corrected": nj.fit, "uncorrected": lambda rows: nj.fit(rows).uncorrected}


def table(rows=560, copies=1, noise=None, seed=(0, SHIFT), slope=(2.0, -1.0), y_noise=0.3):
    """Clean rows, clean targets, and observations; the noise has variance .5 in each column."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    y = 5 + x @ slope
    noisy = x[:, None] + rng.normal(size=(rows, copies, 2)) * 0.5**0.5
    observed = y + y_noise * rng.normal(size=rows)
    return x, y, nj.observations.from_arrays(noisy, observed, noise=noise)


def in_folds(rows, folds=5, size=16):
    """Held-out rows of each fold: blocks of `size` rows, in turn."""
    return [np.arange(rows) // size % folds == fold for fold in range(folds)]


def statistics(errors, size=16):
    """Mean, its standard error from sums over blocks, and the half-width of its interval."""
    sums = (errors - errors.mean()).reshape(-1, size).sum(axis=1)
    count = len(sums)
    error = np.sqrt((sums**2).sum() * count / (count - 1)) / len(errors)
    return errors.mean(), error, student.ppf(0.975, count - 1) * error


def check_row(found, name, errors):
    k = found.names.index(name)
    mean, error, half = statistics(errors)
    np.testing.assert_allclose([found.risk[k], found.std_error[k]], [mean, error], rtol=2e-4)
    low, high = found.interval()
    np.testing.assert_allclose([low[k], high[k]], [mean - half, mean + half], rtol=2e-3)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["one variance", "one covariance a row", "replicates"])
def test_risks_of_a_fit_are_those_of_numpy(kind):
    covs = np.linspace(0.2, 0.8, 560)
    noise = {
        "one variance": 0.5,
        "one covariance a row": nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(covs)),
        "replicates": None,
    }[kind]
    copies = 3 if kind == "replicates" else 1
    _, _, rows = table(copies=copies, noise=noise)
    found = nj.select(FITS, rows, key(0))
    errors, naive = {name: np.empty(560) for name in FITS}, dict.fromkeys(FITS, 0.0)
    for name, fit in FITS.items():
        for held_out in in_folds(560):
            made = fit(rows.rows(~held_out))
            residuals = rows.x @ made.coefficients + made.intercept - rows.y[:, None]
            if kind == "replicates":  # the mean over pairs of different copies
                pairs = residuals.sum(axis=1) ** 2 - (residuals**2).sum(axis=1)
                own = pairs / 6
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
    for held_out in in_folds(560):
        center, slopes, y_center = descended(rows.x[~held_out, 0], rows.y[~held_out], 0.5)
        residuals = (rows.x[held_out, 0] - center) @ slopes + y_center - rows.y[held_out]
        errors[held_out] = residuals**2 - 0.5 * slopes @ slopes
    check_row(found, "descent", errors)
    learned = nj.learn(DESCENT, rows, jax.random.key(0))
    np.testing.assert_allclose(found.refit().predict(np.eye(2)), learned.predict(np.eye(2)))


@pytest.mark.usefixtures("x64")
def test_each_error_has_the_mean_of_the_error_on_the_clean_row():
    """Exactly, over all noise of a row of the first fold: +-.7 in the first column, +-.6 in y."""
    x, y, _ = table(rows=20, noise=0)
    held_out, mean = np.arange(20) < 4, 0.0
    for noise, y_noise in itertools.product([-0.7, 0.7], [-0.6, 0.6]):
        noisy, targets = x.copy(), y.copy()
        noisy[2, 0], targets[2] = noisy[2, 0] + noise, targets[2] + y_noise
        rows = nj.observations.from_arrays(noisy, targets, noise=[0.49, 0])
        judge, _ = learner_judge(DESCENT, rows, jax.random.key(0), True)
        errors, *_ = judge(np.flatnonzero(~held_out), np.flatnonzero(held_out), jax.random.key(1))
        mean += errors[2] / 4
    center, slopes, y_center = descended(x[4:], y[4:], np.array([0.49, 0]))
    error = ((x[2] - center) @ slopes + y_center - y[2]) ** 2 + 0.36
    np.testing.assert_allclose(mean, error, rtol=1e-9)


def test_large_tables_have_blocks_of_64_rows():
    _, _, rows = table(rows=64 * 60, noise=0.5)
    seen = []
    nj.select({"fit": lambda some: seen.append(some.y) or nj.fit(some)}, rows, jax.random.key(0))
    for part, held_out in zip(seen, in_folds(64 * 60, size=64), strict=True):
        np.testing.assert_array_equal(part, rows.y[~held_out])


@pytest.mark.slow
@pytest.mark.statistical
def test_the_risk_is_that_on_clean_rows_and_the_noisy_risk_chooses_wrongly():
    """The mean of 40 estimates is the risk of the same fits on the clean rows, plus Var ỹ."""
    excess, naive = [], []
    for seed in range(40):
        x, y, rows = table(noise=0.5, seed=[seed, SHIFT])
        found = nj.select(FITS, rows, jax.random.key(0))
        assert found.tied == ("corrected",)
        clean, noisy = np.zeros((2, 2, 560))
        for held_out in in_folds(560):
            made = nj.fit(rows.rows(~held_out))
            for k, fit in enumerate((made, made.uncorrected)):
                clean[k, held_out] = (fit.predict(x[held_out]) - y[held_out]) ** 2
                noisy[k, held_out] = (fit.predict(rows.x[held_out, 0]) - rows.y[held_out]) ** 2
        excess.append(found.risk - clean.mean(axis=1) - 0.09)
        naive.append(noisy.mean(axis=1))
    error = np.std(excess, axis=0, ddof=1) / 40**0.5
    assert (np.abs(np.mean(excess, axis=0)) < 5 * error).all()
    assert (error < 0.05).all()  # what is taken away from the risk on noisy rows is above 1
    corrected, uncorrected = np.mean(naive, axis=0)
    assert uncorrected < 0.8 * corrected


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.usefixtures("x64")  # the first two differ by less than float32's rounding
def test_what_cannot_be_told_apart_is_said():
    _, _, rows = table(noise=0.5, rows=2560)
    leader = functools.partial(nj.learners.corrected_ftrl, KNOWN)
    candidates = {
        "light": leader(regularization=0.001),
        "lighter": leader(regularization=0.0009),
        "heavy": leader(regularization=1000.0),
        "uncorrected": nj.learners.uncorrected(radius=5.0),
    }
    found = nj.select(candidates, rows, key(0))
    assert found.best in ("light", "lighter")
    assert found.tied == ("light", "lighter")
    assert (found.difference_std_error[:2] < 0.01 * found.std_error[:2]).all()  # paired
    text = str(found)
    assert "cannot tell light, lighter apart (95%): take the simplest, or collect more" in text
    order = [line.split()[0] for line in text.splitlines() if line.startswith((*candidates,))]
    assert {*order[:2]} == {"light", "lighter"}
    alone = nj.select({"fit": nj.fit, "heavy": candidates["heavy"]}, rows, key(0))
    assert alone.verdict() == "fit has the lowest risk (95%)."


@pytest.fixture(scope="module")
def waves():
    rng = np.random.default_rng(3 + 1000 * SHIFT)
    x = rng.uniform(-2, 2, size=(1280, 1))
    y = np.sin(2 * x[:, 0])
    noisy = x[:, None] + 0.1**0.5 * rng.normal(size=(1280, 2, 1))
    return x, y, noisy


@pytest.mark.statistical
@pytest.mark.slow
def test_a_length_scale_that_does_not_fit_loses(waves):
    """In worlds, from two copies: on much too large a scale functions cannot bend."""
    _, y, noisy = waves
    noise = nj.noise.Gaussian(0.1)
    rows = nj.observations.from_arrays(noisy, y, noise=noise)

    def learner(length_scale):
        world = nj.worlds.gaussian(dim=1, length_scale=length_scale, noise=noise)
        return nj.learners.parallel_worlds(world, horizon=1280, radius=5.0)

    candidates = {"1": learner(1.0), "20": learner(20.0)}
    found = nj.select(candidates, rows, key(0), standardize=False)
    assert found.tied == ("1",)
    assert found.risk[0] < 0.6 * found.risk[1]


@pytest.mark.statistical
@pytest.mark.slow
def test_fourier_fits_are_judged_with_their_noise(waves):
    x, y, noisy = waves
    for rows in (
        nj.observations.from_arrays(noisy[:, 0], y, noise=nj.noise.Gaussian(0.1)),
        nj.observations.from_arrays(noisy, y),
    ):
        features = nj.fourier(length_scale=0.7, num_features=32)
        candidates = {
            "waves": lambda some: nj.fit(some, features),  # noqa: B023
            "uncorrected": lambda some: nj.fit(some, features).uncorrected,  # noqa: B023
            "line": nj.fit,
        }
        found = nj.select(candidates, rows, key(0))
        assert found.best == "waves"
        assert "line" not in found.tied
        for name, risk, error in zip(found.names, found.risk, found.std_error, strict=True):
            clean = np.mean((candidates[name](rows).predict(x) - y) ** 2)
            assert abs(risk - clean) < 3 * error + 0.02, name


def test_readings_of_a_wave_have_the_mean_of_the_clean_row():
    """By quadrature over Gaussian noise, for fixed weights, at two rows."""
    predictor = nj.fits.FourierPredictor(
        np.array([[1.0], [2.0]]), np.array([0.5]), np.array([0.3, -0.7, 0.9, 0.2]), 1.5, ("x1",)
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    x = np.array([0.7, -0.4])[:, None] + 0.2**0.5 * nodes
    noise = nj.noise.Gaussian(0.2)
    rows = nj.observations.from_arrays(x.reshape(-1, 1), np.full(120, 0.8), noise=noise)
    many = nj.observations.from_arrays(np.zeros((10**7, 1)), np.zeros(10**7), noise=noise)
    errors, _ = nj.fits.errors.fourier_errors(predictor, rows, many)
    expected = (predictor.predict([[0.7], [-0.4]]) - 0.8) ** 2
    found = errors.reshape(2, 60) @ weights / weights.sum()
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.statistical
def test_an_uncertain_covariance_widens_all_risks_alike():
    """A learner and a fit of nearly the same weights depend on the covariance alike."""
    _, _, rows = table(rows=2560, noise=0.5, copies=2)
    leader = nj.learners.corrected_ftrl(KNOWN, regularization=1e-6)
    candidates = {"fit": nj.fit, "leader": leader, "uncorrected": FITS["uncorrected"]}
    sure = nj.select(candidates, rows, key(0))
    error = np.array([[0.1, 0.0], [0.0, 0.0]])
    estimate = nj.noise.CovarianceEstimate(0.5 * np.eye(2), error)
    unsure = nj.observations.from_arrays(rows.x, rows.y, noise=estimate)
    found = nj.select(candidates, unsure, key(0))
    added = np.sqrt(found.std_error**2 - sure.std_error**2)
    coefficients = nj.fit(rows).coefficients
    plain = nj.fit(rows).uncorrected.coefficients
    expected = 0.1 * np.array([coefficients[0] ** 2 / 2, coefficients[0] ** 2, plain[0] ** 2 / 2])
    np.testing.assert_allclose(added, expected, rtol=0.05)
    two = nj.learners.two_copies(radius=1.0)
    hides = nj.wrappers.cloned(two, nj.noise.Gaussian(estimate.cov))
    with pytest.raises(ValueError, match="hides how uncertain it is"):
        nj.select({"cloned": hides}, unsure, key(0), standardize=False)


def test_a_lower_risk_that_is_uncertain_is_not_the_best():
    """y is 1, and the second predictor adds the column, which is all noise, of variance 1.

    In this table it varies less than expected, .9 up or down through blocks of 16 rows: its risk is
    1 ± 1.8 + .81 − 1 in each block, .76 on average with a standard error of .31.
    """
    x = np.where(np.arange(560) // 16 % 2, 0.9, -0.9)[:, None]
    rows = nj.observations.from_arrays(x, np.ones(560), noise=1.0)

    def fixed(slope):
        return nj.fits.Coefficients(0.0, np.array([slope]), np.eye(2), 100, ("x1",))

    candidates = {"zero": lambda some: fixed(0.0), "noise": lambda some: fixed(-1.0)}
    found = nj.select(candidates, rows, jax.random.key(0))
    np.testing.assert_allclose(found.risk, [1, 0.81 - 1.8 / 35], rtol=1e-9)
    np.testing.assert_allclose(found.std_error, [0, 1.8 / 34**0.5], rtol=1e-2, atol=1e-12)
    assert found.best == "zero"


def test_clusters_stay_together():
    _, _, rows = table(noise=0.5)
    labels = np.random.default_rng(0).integers(40, size=560)
    seen = []

    def fit(some):
        seen.append({*labels[np.isin(rows.y, some.y)]})
        return nj.fit(some)

    found = nj.select({"fit": fit}, rows, jax.random.key(0), folds=4, clusters=labels)
    assert [len(some) for some in seen] == [30, 30, 30, 30]
    assert found.degrees_of_freedom == 39


def test_a_candidate_that_diverged_is_last_and_not_tied():
    _, _, rows = table(noise=0.5)

    def step(weights, sample):
        return jnp.full_like(weights, jnp.nan)

    broken = nj.learners.gradient_descent(step, copies=1, radius=1.0)
    found = nj.select({"broken": broken, "fit": nj.fit}, rows, jax.random.key(0))
    assert np.isnan(found.risk[0])
    assert found.tied == ("fit",)
    assert str(found).splitlines()[4].startswith("broken")
    with pytest.raises(ValueError, match="every candidate diverged"):
        nj.select({"broken": broken}, rows, jax.random.key(0))


KERNEL = nj.learners.uncorrected_kernel(
    nj.kernels.gaussian(length_scale=1.0), horizon=560, radius=1
)
WORLD = nj.worlds.gaussian(dim=3, length_scale=2.0, noise=nj.noise.Gaussian(0.5))
TWO = nj.learners.two_copies(radius=1.0)


@pytest.mark.parametrize(
    ("candidates", "options", "message"),
    [
        ({}, {}, "candidates must map at least one name to a learner"),
        ([nj.fit], {}, "candidates must map .*, got list"),
        ({"a": 3}, {}, "candidate 'a': must be a learner or a function .*, got 3"),
        ({"a": lambda rows: 3}, {}, "candidate 'a': must return a fit .* returned 3"),
        ({"a": KERNEL}, {}, "candidate 'a': the learner has no unbiased readings, so that"),
        ({"a": TWO}, {}, "candidate 'a': the learner needs 2 noisy copies of each row"),
        (
            {"a": nj.learners.parallel_worlds(WORLD, horizon=100, radius=1.0)},
            {"standardize": False},
            "candidate 'a': the learner needs 2 noisy copies",
        ),
        (
            {"a": nj.learners.parallel_worlds(WORLD, horizon=560, radius=1.0)},
            {},
            "'a': the learner is built for one Gaussian .* has its own units: use standardize=Fal",
        ),
        (
            {"a": nj.wrappers.paired(nj.learners.uncorrected(radius=1.0))},
            {},
            "predicts several columns",
        ),
        ({"a": nj.fit}, {"folds": 1}, "folds must be a whole number of at least 2, got 1"),
        ({"a": nj.fit}, {"folds": 641}, "folds must be at most 560, the number of rows, got 641"),
        ({"a": nj.fit}, {"clusters": np.arange(560) // 280}, "at most 2, the number of clusters"),
        ({"a": nj.fit}, {"folds": 560, "clusters": np.zeros(3)}, "clusters must be 560 labels"),
    ],
)
def test_bad_input_is_one_clear_message(candidates, options, message):
    _, _, rows = table(noise=0.5)
    with pytest.raises(ValueError, match=message):
        nj.select(candidates, rows, jax.random.key(0), **options)


def test_learners_for_other_rows_are_named():
    _, _, pairs = table(copies=2, noise=nj.noise.Gaussian(0.5))
    _, _, unknown = table(copies=2)

    def select(learner, rows=pairs):
        return nj.select({"a": learner}, rows, jax.random.key(0), standardize=False)

    short = nj.worlds.gaussian(dim=2, length_scale=2.0, noise=nj.noise.Gaussian(0.5))
    with pytest.raises(
        ValueError, match=r"'a': the table has 560 rows, but .* room for 100: build"
    ):
        select(nj.learners.parallel_worlds(short, horizon=100, radius=1.0))
    with pytest.raises(ValueError, match="'a': made for data of dimension 3, got dimension 2"):
        select(nj.learners.parallel_worlds(WORLD, horizon=560, radius=1.0))
    with pytest.raises(ValueError, match="'a': the learner has no unbiased readings from one copy"):
        select(nj.learners.uncorrected(radius=1.0), unknown)
