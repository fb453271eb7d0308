"""The majorants of the losses' power series, which bound the terms that are not summed."""

import math

import numpy as np
import pytest

from noisy_jax import losses


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
