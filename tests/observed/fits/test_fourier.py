"""Kernel fits on noisy features: they recover the function, and say what they cannot know."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.fits.characteristics import by_each_row, frequencies_of
from noisy_jax.observed.fits.clean_errors import fourier_errors
from noisy_jax.observed.fits.trials import _sums_of_copies, without_negative
from tests.errors import raises
from tests.keys import SHIFT
from tests.observed.rows import gaussians, waves

LAPLACE: Any = nj.noise.Laplace(np.sqrt(0.15))  # variance .3
ONE: Any = nj.methods.Fourier(length_scale=1.0)


def generator(number=0):
    return np.random.default_rng(number + 1000 * SHIFT)


def sine(n, rng, *, copies=1, gaussian=None):
    """Noisy copies of uniform x, and y = sin 2x + noise."""
    x = rng.uniform(-2, 2, (n, 1, 1))
    shape = (n, copies, 1)
    error = rng.laplace(scale=0.15**0.5, size=shape)
    if gaussian is not None:
        error = gaussian**0.5 * rng.normal(size=shape)
    return x + error, np.sin(2 * x[:, 0, 0]) + 0.1 * rng.normal(size=n)


def error_of(predictor):
    """Mean squared error against sin 2x."""
    x = np.linspace(-2, 2, 401)[:, None]
    return np.mean((predictor.predict(x) - np.sin(2 * x[:, 0])) ** 2)


def features(*length_scales, num_features=64) -> Any:
    made = [nj.methods.Fourier(length_scale=v, num_features=num_features) for v in length_scales]
    return made[0] if len(made) == 1 else made


def table(x, y, noise):
    return nj.observations.from_arrays(x, y, noise=noise)


def fitted(observations, features) -> nj.fits.FourierFit:
    fit = nj.fit(observations, features)
    assert isinstance(fit, nj.fits.FourierFit)
    return fit


@pytest.mark.slow
@pytest.mark.statistical
def test_the_corrected_fit_recovers_a_sine_under_laplace_noise():
    fit = nj.fit(table(*sine(6000, generator()), LAPLACE), features(0.4, num_features=32))
    assert error_of(fit) < 0.14**2  # M2: .05, against .24 without correction
    assert error_of(fit.uncorrected) > 0.2**2
    assert fit.risk.interval()[1] < 0  # the correction helps
    clean = error_of(fit) + 0.01  # y has noise of variance .01
    assert abs(fit.risk.corrected - clean) < 5 * fit.risk.corrected_std_error
    plain = error_of(fit.uncorrected) + 0.01
    assert abs(fit.risk.uncorrected - plain) < 5 * fit.risk.uncorrected_std_error
    # The shapes of predictions, and one line each for wrong ones.
    assert fit.predict(np.zeros((5, 1))).shape == (5,)
    assert fit.predict(np.zeros((2, 5, 1))).shape == (2, 5)
    assert fit.uncorrected.predict([0.0]).shape == ()
    raises(r"x must be \[\.\.\., 1\], got \[5, 2\]", fit.predict, np.zeros((5, 2)))
    assert "R²" in str(fit)
    assert len(str(fit).splitlines()) < 20


@pytest.mark.statistical
@pytest.mark.slow
def test_candidates_are_ordered_and_one_that_overflows_is_left_out():
    observations = table(*sine(2000, generator(3), gaussian=0.2), nj.noise.Gaussian(0.2))
    fit = fitted(observations, features(0.7, 0.1, 1e-42, num_features=16))
    assert [c.length_scale for c in fit.candidates] == [0.7, 0.1]
    assert np.isfinite([c.risk for c in fit.candidates]).all()
    assert error_of(fit) < error_of(fit.uncorrected)
    message = "no finite kernel fit for the length scales 1e-42"
    raises(message, nj.fit, observations, features(1e-42))


def test_wrong_input_is_one_clear_line():
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(200, 2)), rng.normal(size=200)

    def wrong(message, x=x, y=y, noise=LAPLACE, features=ONE):
        raises(message, lambda: nj.fit(table(x, y, noise), features))

    wrong("column 'x2' is constant", x=np.column_stack([x[:, 0], np.full(200, 0.1)]))
    wrong("'y' takes one value only", y=np.full(200, 0.1))
    wrong(r"needs the distribution .* Gaussian, nj.sd\(0.4, gaussian=True\)", noise=0.1)
    wrong("one distribution of the noise for all", noise=gaussians(np.linspace(0.1, 0.3, 200)))
    wrong("without zeros", noise=nj.noise.Uniform(0.1))
    features: Any = ([], "rbf", 1.0, [1.0])
    for one in features:
        wrong(r"nj.methods.Fourier\(length_scale=…\), ", features=one)


def table_of_copies(kind, rng, n=4000, copies=4):
    """Skewed clean rows, and noise of variance .05 and .5; 'by value' more of it where x > 0."""
    x = np.minimum(rng.exponential(size=n), 3) - 1
    large = x > 0 if kind == "by value" else rng.random(n) < 0.4
    shape, skewed = (n, copies), kind == "skewed"
    noise = rng.exponential(size=shape) - 1 if skewed else rng.normal(size=shape)
    copies = x[:, None] + np.where(large, 0.5, 0.05)[:, None] ** 0.5 * noise
    return x, copies[:, :, None], np.sin(2 * x) + 0.1 * rng.normal(size=n)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "copies"), [("by value", 2), ("by value", 4), ("mixed", 2), ("skewed", 4)]
)
def test_only_noise_that_depends_on_the_row_is_corrected_row_by_row(kind, copies):
    """Rows of different variances, or of skewed noise, are corrected by φ of all rows."""
    drawn = [table_of_copies(kind, generator(20 + k), copies=copies)[1:] for k in range(4)]
    found = [by_each_row(table(*rows, None)) for rows in drawn]
    noisy, y = drawn[-1]
    assert all(found) if kind == "by value" else sum(found) <= 1
    assert not by_each_row(table(noisy, y, nj.noise.Gaussian(0.1)))
    assert not by_each_row(table(noisy[:, 0], y, 0.1))


@pytest.mark.slow
@pytest.mark.statistical
def test_noise_that_depends_on_the_row_is_corrected_by_its_own_copies():
    x, noisy, y = table_of_copies("by value", generator(30), n=8000)
    with pytest.warns(nj.fits.AssumptionWarning, match="replicates differ more"):
        fit = fitted(table(noisy, y, None), features(0.7, num_features=32))
    assert fit.risk.hidden_share == 0
    both = fit, fit.uncorrected
    clean, plain = (np.mean((one.predict(x[:, None]) - np.sin(2 * x)) ** 2) for one in both)
    assert abs(fit.risk.corrected - clean - 0.01) < 5 * fit.risk.corrected_std_error
    assert clean < plain


def test_errors_by_the_copies_of_each_row_are_weighted_sums():
    """Of two copies 2(f(x̄) − y)² − ½(f(x̃_1) − y)² − ½(f(x̃_2) − y)²."""
    _, noisy, y = table_of_copies("by value", generator(31), copies=2)
    rows = table(noisy, y, None)
    predictor = waves(np.array([[1.0], [2.0]]), generator(32).normal(size=4))
    errors, left_out = fourier_errors(predictor, rows, rows)
    points = noisy[:, 0], noisy[:, 1], noisy.mean(axis=1)
    first, second, mean = ((predictor.predict(x) - y) ** 2 for x in points)
    np.testing.assert_allclose(errors, 2 * mean - first / 2 - second / 2, atol=1e-4)
    assert not left_out.any()


def incomplete(copies, y, missing=()):
    """A table from copies `[n, V, 1]`, with NaN in each V-th copy of the rows `missing`."""
    copies = copies.copy()
    copies[missing, -1] = np.nan
    columns = {f"x_{v}": copies[:, v, 0] for v in range(copies.shape[1])}
    return nj.table({**columns, "y": y}, target="y", replicates={"x": list(columns)})


def test_rows_with_one_copy_are_left_out_and_others_are_as_they_were():
    noisy, y = sine(400, np.random.default_rng(40), copies=2, gaussian=0.1)
    missing = np.arange(400) % 8 == 3
    rows, complete = incomplete(noisy, y, missing), table(noisy[~missing], y[~missing], None)
    few = {"length_scale": 1.0, "num_features": 8}
    weights, labels = 1.0 + np.arange(400) % 3, np.arange(400) // 4 % 20
    for options in ({}, {"weights": weights, "clusters": labels}):
        with pytest.warns(nj.fits.AssumptionWarning, match="50 of 400 rows have too few copies"):
            fit = fitted(rows, nj.methods.Fourier(**few, **options))
        assert "are left out" in " ".join(fit.remarks)
        assert fit.num_rows == 350
        kept = {name: values[~missing] for name, values in options.items()}
        whole = fitted(complete, nj.methods.Fourier(**few, **kept))
        np.testing.assert_allclose(fit.weights, whole.weights, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(fit.risk.corrected, whole.risk.corrected, rtol=1e-4)
    raises("fit must have coefficients, got a curve", nj.plots.coefficients, fit)
    message = "estimated error of a kernel fit needs each row's error variance"
    raises(message, fourier_errors, fit, rows, rows)


def test_moments_of_incomplete_replicates_are_sums_over_rows_of_each_number_of_copies(rng):
    """By hand: rows of two and of four copies, each with the points and weights of its own."""
    copies, y, weights = rng.normal(size=(90, 4, 1)), rng.normal(size=90), rng.random(90)
    counts = np.where(rng.random(90) < 0.5, 2, 4)
    copies[np.arange(4) >= counts[:, None]] = np.nan
    omega = np.array([[0.7], [1.6]])
    exact = table(rng.normal(size=(9, 1)), np.arange(9.0), 0.0)
    made, _ = frequencies_of(omega, 1.0, exact, np.ones(1))
    gram, cross = _sums_of_copies(made, copies.astype(np.float32), y, weights)

    def waves(x):
        angles = x @ omega.T
        return np.concatenate([np.cos(angles), np.sin(angles)])

    expected = [np.zeros((4, 4)), np.zeros(4)]
    for row, count in enumerate(counts):
        own = copies[row, :count]
        estimate: Any = nj.unbiased.replicates(waves, order=1 if count == 2 else 2)
        points, shares, _ = map(np.asarray, estimate.points(jnp.asarray(own)))
        z = np.array([waves(point) for point in points])
        expected[0] += weights[row] * (shares * z.T) @ z
        expected[1] += weights[row] * y[row] * shares @ z
    np.testing.assert_allclose(gram, expected[0], atol=1e-3)
    np.testing.assert_allclose(cross, expected[1], atol=1e-3)


def test_judges_have_no_negative_eigenvalue(rng):
    parts = [(a + a.T, np.ones(4)) for a in rng.normal(size=(3, 4, 4))]
    judge = without_negative(parts, np.array([5, 3, 2]))
    total, plain = sum(a for a, _ in judge), sum(a for a, _ in parts)
    values = np.linalg.eigvalsh(plain)
    assert values[0] < -0.1
    np.testing.assert_allclose(np.linalg.eigvalsh(total), np.maximum(values, 0), atol=1e-12)
    np.testing.assert_allclose((judge[0][0] - parts[0][0]) / 5, (judge[2][0] - parts[2][0]) / 2)
