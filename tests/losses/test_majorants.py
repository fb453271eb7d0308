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
