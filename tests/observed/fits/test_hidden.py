"""What the noise hides of a kernel fit: the bound on the bias, intervals, verdicts, choices."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
from scipy.special import stdtrit

import noisy_jax as nj
from noisy_jax.observed.fits.choices import choices
from noisy_jax.observed.fits.clean_errors import fourier_errors
from noisy_jax.observed.fits.hidden import hidden_share
from noisy_jax.observed.fits.judged import Comparison, largest_bias
from tests.observed.fits.test_fourier import features, fitted, generator, sine, table
from tests.observed.rows import waves

RISKS: Any = {"corrected": 0.3, "uncorrected": 0.5, "difference": -0.2}
RISKS |= {f"{name}_std_error": 0.01 for name in RISKS}
RISKS |= {"variance": 1.0, "degrees_of_freedom": 15}


def test_the_bound_contains_the_bias_of_readings_from_few_rows():
    """By quadrature over Gaussian noise, for a function with frequencies that 50 rows lose."""
    rng, nodes = np.random.default_rng(0), np.polynomial.hermite_e.hermegauss(80)
    omega, weights = rng.normal(size=(6, 1)) * 2, rng.normal(size=12)
    predictor = waves(omega, weights)
    x, y, noise = rng.uniform(-2, 2, (50, 1)), rng.normal(size=50), nj.noise.Gaussian(0.4)
    noisy = (x + 0.4**0.5 * nodes[0]).reshape(-1, 1)
    rows = nj.observations.from_arrays(noisy, np.repeat(y, 80), noise=noise)
    errors, left_out = fourier_errors(predictor, rows, table(x, y, noise))
    bias = errors.reshape(50, 80) @ nodes[1] / nodes[1].sum() - (predictor.predict(x) - y) ** 2
    target = y - 1.5
    square, value = left_out[0], left_out[1] / np.sqrt(np.mean(target**2))
    np.testing.assert_allclose(bias, 2 * target * value - square, atol=1e-5)
    assert np.abs(bias).max() > 0.3
    assert abs(bias.mean()) < largest_bias(left_out)
    two = np.array([[[1.0, -3.0], [0.5, 0.1]], [[0.0, 1.0], [-2.0, 0.0]]])
    np.testing.assert_allclose(largest_bias(two), [4.0, 5.0])


def test_intervals_contain_the_largest_bias_and_students_t():
    few = Comparison(**RISKS, corrected_bias=0.1, uncorrected_bias=0.02, difference_bias=0.15)
    half = stdtrit(15, 0.975) * 0.01
    np.testing.assert_allclose(few.half_widths(), [0.1 + half, 0.02 + half, 0.15 + half])
    np.testing.assert_allclose(few.interval(), [-0.35 - half, -0.05 + half])
    assert few.verdict() == "the correction helps"
    assert dataclasses.replace(few, difference_bias=0.2).verdict() == "no clear difference"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"corrected": -0.1}, "an estimated error is below 0"),
        ({"hidden_share": 0.6}, "the noise hides most of the fit"),
    ],
)
def test_what_the_noise_hides_gets_no_verdict(change, why):
    comparison = Comparison(**{**RISKS, "hidden_share": 0.0, **change})
    assert comparison.verdict().startswith("no verdict")
    assert why in comparison.verdict()
    text = str(comparison)
    assert comparison.verdict() in text
    assert "R² 1.1" not in text
    more_rows = "length_scale, more rows, or more copies of each row" in " ".join(text.split())
    assert more_rows == ("hidden_share" in change)


def test_the_share_of_the_weights_that_the_noise_hides():
    law = {"length_scale": 1.0, "characteristic": nj.noise.Gaussian(1.0)}
    frequencies = nj.moments.gaussian_frequencies(jax.random.key(0), 40, dim=1, **law)
    omega, weights = np.asarray(frequencies.omega)[:, 0], generator().normal(size=40)
    lost = np.exp(-4 * omega**2) < 1 / 1000  # φ(2ω)² = exp(−4ω²σ²)
    assert 2 < lost.sum() < 18
    expected = np.sum(weights[:20][lost] ** 2 + weights[20:][lost] ** 2) / np.sum(weights**2)
    assert abs(hidden_share(frequencies, weights, 1000) - expected) < 1e-6


def test_a_group_judges_what_the_other_groups_choose():
    """Whatever a group's own risks are, they do not choose what it judges; the others' do."""
    rng = np.random.default_rng(1)
    risks, added = 1 + 0.3 * rng.normal(size=(12, 16)), np.zeros(12)
    order, chosen = choices(risks, added)
    for g in range(16):
        changed = risks.copy()
        changed[:, g] = 5 * rng.normal(size=12)
        assert choices(changed, added)[1][g] == chosen[g]
        assert choices(np.delete(risks, g, axis=1), added)[0][0] == chosen[g]
    assert len(set(chosen)) > 1
    added[order[0]] = 100.0
    later, chosen = choices(risks, added)
    assert later[-1] == order[0]
    assert order[0] not in chosen


@pytest.fixture(scope="module")
def lost():
    """A table whose noise hides most of a sine."""
    return table(*sine(800, np.random.default_rng(3), gaussian=4.0), nj.noise.Gaussian(4.0))


@pytest.mark.slow
def test_printed_candidates_contain_the_bias(lost):
    fit = fitted(lost, features(0.7))
    one = fit.candidates[0]
    half = stdtrit(15, 0.975) * one.std_error + one.bias
    assert one.bias > one.std_error
    row = next(line for line in str(fit).splitlines() if line.split()[:1] == ["0.7"])
    assert row.split()[-1] == f"{half:.2g}"
    assert fit.risk.verdict() == "no verdict, since the noise hides most of the fit"
    negative = dataclasses.replace(fit, candidates=(dataclasses.replace(one, risk=-0.1),))
    assert "An error is not below 0" in str(negative)
    assert "An error is not below 0" not in str(fit)


@pytest.mark.slow
def test_selections_contain_the_bias(lost):
    candidates: Any = {"waves": lambda rows: nj.fit(rows, features(0.7)), "line": nj.fit}
    found = nj.select(candidates, lost, jax.random.key(0), folds=2)
    assert found.bias[1] == 0 < found.bias[0]
    low, high = found.interval()
    half = stdtrit(found.degrees_of_freedom, 0.975) * found.std_error + found.bias
    np.testing.assert_allclose((high - low) / 2, half)
    other = 1 - found.names.index(found.best)
    assert found.difference_bias[other] == pytest.approx(found.bias[0])  # a line has none
    assert found.tied == ("waves", "line")
