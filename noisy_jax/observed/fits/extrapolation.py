"""Curves through estimates at levels of added noise, which SIMEX extends to the level −1.

Both are least squares over the levels λ, for each number by itself:

    quadratic    a + bλ + cλ²;
    rational     a + b/(c + λ).

The slope of a regression on one noisy column is β/(1 + (1 + λ)q), with the ratio q of the variance
of the noise to that of the clean column: a rational curve with a = 0.

Source: Cook and Stefanski, Simulation-Extrapolation Estimation in Parametric Measurement Error
Models (1994).
"""

import dataclasses
from typing import Any, ClassVar

import numpy as np

from noisy_jax.observed.fits.generalized import CorrectedModel
from noisy_jax.tables import Table

_STEEPEST = 0.9  # 1/c: the pole of a rational curve is at −1/0.9 or below
_FIRST, _ZOOMED, _ROUNDS = 257, 33, 9  # places where 1/c is looked for


def quadratic(levels: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The curve a + bλ + cλ² through `values` `[K, p]` at K ≥ 3 levels, read `at` `[m]`: `[m, p]`.

    It is linear in the values, at −1 with weights that add up to 1.
    """
    return np.vander(at, 3) @ (np.linalg.pinv(np.vander(levels, 3)) @ values)


def rational(levels: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """The curve a + b/(c + λ), as `quadratic`.

    It is computed as a' + b'λ/(1 + tλ) with t = 1/c, which contains straight lines. t is searched
    over all values for which the pole −1/t is below −1.1, or above 1.1 times the largest level.
    """
    low, high = np.full(values.shape[1], -_STEEPEST / levels.max()), np.array(_STEEPEST)
    high = np.broadcast_to(high, low.shape)
    centred = values - values.mean(axis=0)
    t = low
    for count in (_FIRST, *(_ROUNDS * [_ZOOMED])):
        places = np.linspace(low, high, count)  # [T, p]
        shape = _shape(places[:, None], levels[None, :, None])
        shape -= shape.mean(axis=1, keepdims=True)
        slope = np.sum(shape * centred[None], axis=1) / np.sum(shape**2, axis=1)
        squares = np.sum((centred[None] - slope[:, None] * shape) ** 2, axis=1)
        best = np.argmin(squares, axis=0)
        column = np.arange(len(best))
        t = places[best, column]
        low = places[np.maximum(best - 1, 0), column]
        high = places[np.minimum(best + 1, count - 1), column]
    shape = _shape(t, levels[:, None])
    mean = shape.mean(axis=0)
    slope = np.sum((shape - mean) * centred, axis=0) / np.sum((shape - mean) ** 2, axis=0)
    return values.mean(axis=0) + slope * (_shape(t, at[:, None]) - mean)


def _shape(t, levels):
    return levels / (1 + t * levels)


CURVES = {"quadratic": quadratic, "rational": rational}
"""The curves by name."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class SimexFit(CorrectedModel):
    """Estimates that SIMEX extends to no noise; print it for the table.

    It has the attributes of a `GeneralizedFit` as well. The numbers of a function are its
    `coefficients`, and it has no intercept, which is NaN.

    Attributes:
        levels: `[K]`, of the added noise, in multiples of the covariance of the noise; the first is
            0.
        estimates: `[K, 1 + d]`, means over the draws of the intercept and the coefficients.
        extrapolation: "quadratic" or "rational".
        draws: at each level.
        errors: "extrapolated", "jackknife" or "none".
    """

    kind: ClassVar[str] = "simex"

    levels: np.ndarray
    estimates: np.ndarray
    extrapolation: str
    draws: int
    errors: str

    @property
    def title(self) -> str:
        """What was fitted: the line above the table."""
        if np.isnan(self.intercept):
            return f"{self.model} of {self.target}, {self.num_rows:,} noisy rows"
        return super().title

    def curve(self, levels: Any) -> np.ndarray:
        """`[m, 1 + d]`, the curves through the estimates at levels `[m]`; −1 is without noise."""
        return CURVES[self.extrapolation](self.levels, self.estimates, np.asarray(levels, float))

    def predict(self, x: Any) -> Any:
        """Raises ValueError: only the estimator knows how its numbers predict."""
        raise ValueError(
            "a fit of SIMEX has the numbers of an estimator, not its predictions: compute them "
            "from fit.intercept and fit.coefficients"
        )

    def _rows(self, level: float) -> list[dict[str, Any]]:
        rows = super()._rows(level)
        return rows[1:] if np.isnan(self.intercept) else rows

    def _shown(self) -> Table:
        """Estimates, intervals, uncorrected estimates, reliability."""
        levels = ", ".join(f"{level:g}" for level in self.levels[1:])
        lines = [
            "",
            f"SIMEX of {self.model}: noise of {levels} times the covariance is added,",
            f"{self.draws} draws each, and the {self.extrapolation} curve is extended to −1.",
            "Approximate.",
        ]
        return self._printed(lines)
