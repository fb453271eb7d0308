"""Analytic losses, their power series and majorants."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import erfc

from noisy_jax import losses


@pytest.mark.claim("NK-Ex2")
def test_exponential_falls_with_the_margin_and_the_printed_formula_rises():
    loss, printed = losses.exponential(), lambda p, y: np.exp(y * p)
    for y in (-1.0, 1.0):
        assert loss(y, y) < loss(-y, y)
        assert printed(y, y) > printed(-y, y)


def test_smoothed_hinge_keeps_its_digits_at_large_margins():
    margins = np.array([3.0, 5.0, 6.0], np.float32)
    expected = -erfc(margins.astype(float) - 1) / 2
    np.testing.assert_allclose(losses.smoothed_hinge().derivative(margins), expected, rtol=1e-4)
    subtracted = (jax.lax.erf(margins - 1) - 1) / 2
    assert np.abs(subtracted / expected - 1).max() > 0.1
    assert losses.smoothed_hinge().value(jnp.array(100.0)) >= 0


def captured(monkeypatch, series, center):
    """Coefficients and majorant that a loss gives to `power_series`."""
    found = {}

    def power_series(coefficients, order, **options):
        found.update(coefficients=coefficients, majorant=options["majorant"])

    monkeypatch.setattr("noisy_jax.losses.analytic.power_series", power_series)
    series(1, center)
    return found["coefficients"](60), found["majorant"]


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 2.0])
def test_cramers_bound_of_the_erf_series_holds_and_is_nearly_attained(monkeypatch, sharpness):
    """|γ_n| ≤ b q^(n − m) for n ≥ m; at the center 1 the first term is 1/1.0865 of its bound."""
    loss = losses.smoothed_hinge(sharpness=sharpness)
    ratios = []
    for center in (-1.0, 0.0, 0.7, 1.0):
        gamma, majorant = captured(monkeypatch, loss.series, center)
        with np.errstate(divide="ignore"):
            logs = np.log(np.abs(gamma))
        for m in range(1, 40):
            log_first, log_ratio = majorant(m)
            n = np.arange(m, 61)
            bound = log_first + (n - m) * log_ratio
            assert np.all(logs[m:] <= bound + 1e-9)
            ratios.append(logs[m] - log_first)
    assert max(ratios) == pytest.approx(-math.log(1.0865), abs=1e-9)


SERIES = {
    "squared": losses.squared(),
    "logistic": losses.logistic(),
    "exponential": losses.exponential(),
    "smoothed_absolute": losses.smoothed_absolute(sharpness=1.3),
    "smoothed_hinge": losses.smoothed_hinge(sharpness=0.7),
}


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("center", [-0.6, 0.4])
def test_series_are_those_of_the_derivatives_and_majorants_bound_their_terms(
    monkeypatch, x64, name, center
):
    loss = SERIES[name]
    a = center + np.linspace(-0.5, 0.5, 11)
    np.testing.assert_allclose(loss.series(40, center)(a), loss.derivative(a), rtol=1e-10)
    if name == "squared":  # a polynomial needs no majorant
        return
    gamma, majorant = captured(monkeypatch, loss.series, center)
    with np.errstate(divide="ignore"):
        logs = np.log(np.abs(gamma))
    for m in (1, 5, 20):
        log_first, log_ratio = majorant(m)
        assert np.all(logs[m:] <= log_first + np.arange(61 - m) * log_ratio + 1e-9)
