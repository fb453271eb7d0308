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
    assert np.abs((jax.lax.erf(margins - 1) - 1) / 2 / expected - 1).max() > 0.1
    assert losses.smoothed_hinge().value(jnp.array(100.0)) >= 0


def captured(monkeypatch, series, center):
    """Logarithms of coefficients, and the majorant, that a loss gives to `power_series`."""
    found = {}

    def power_series(coefficients, order, **options):
        found.update(coefficients=coefficients, majorant=options["majorant"])

    monkeypatch.setattr("noisy_jax.losses.analytic.power_series", power_series)
    series(1, center)
    with np.errstate(divide="ignore"):
        return np.log(np.abs(found["coefficients"](60))), found["majorant"]


@pytest.mark.parametrize(
    "loss",
    [
        losses.squared(),
        losses.logistic(),
        losses.exponential(),
        losses.smoothed_absolute(sharpness=1.3),
        losses.smoothed_hinge(sharpness=0.7),
        losses.smoothed_hinge(sharpness=2.0),
    ],
    ids=str,
)
@pytest.mark.parametrize("center", [-0.6, 0.4, 1.0])
def test_series_are_of_the_derivatives_and_majorants_bound_them(monkeypatch, x64, loss, center):
    """|γ_n| ≤ b q^(n − m) for n ≥ m. Cramér's bound of the erf series is nearly attained."""
    a = center + np.linspace(-0.5, 0.5, 11)
    np.testing.assert_allclose(loss.series(60, center)(a), loss.derivative(a), rtol=1e-10)
    if "squared" in str(loss):  # a polynomial needs no majorant
        return
    logs, majorant = captured(monkeypatch, loss.series, center)
    ratios = []
    for m in range(1, 40):
        log_first, log_ratio = majorant(m)
        assert np.all(logs[m:] <= log_first + np.arange(61 - m) * log_ratio + 1e-9)
        ratios.append(logs[m] - log_first)
    if "hinge" in str(loss) and center == 1:
        assert max(ratios) == pytest.approx(-math.log(1.0865), abs=1e-9)
