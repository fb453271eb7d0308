"""Curves through estimates at levels of added noise, which SIMEX extends to the level −1.

Both are least squares over the levels λ, for each number by itself:

    quadratic    a + bλ + cλ²;
    rational     a + b/(c + λ).

The slope of a regression on one noisy column is β/(1 + (1 + λ)q), with the ratio q of the variance
of the noise to the variance of the clean column: a rational curve with a = 0.

Source: Cook and Stefanski, Simulation-Extrapolation Estimation in Parametric Measurement Error
Models (1994).
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from noisy_jax.observed.fits.result import Fit

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
    over all values whose pole −1/t is below −1.1, or above 1.1 times the largest level.
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
class SimexFit(Fit):
    """The result of `nj.fit` with `nj.methods.SIMEX`; print it for the table.

    SIMEX computes estimates under more and more added noise, and extends the curve through them to
    no noise. It is a `Fit`: `labels`, `values` `[k]`, `std_error`, `interval()` and `summary()` are
    of the k extended estimates. It has no predictions (`predict` raises ValueError), since only the
    estimator knows how to predict. Numbers of a function have no `intercept` (AttributeError).

    Attributes:
        estimator: the name of the estimator, or of the function.
        levels: `[K]`, levels λ of the added noise, in multiples of the covariance of the noise; the
            first is 0, and λ = −1 stands for no noise.
        estimates: `[K, k]`, at each level the mean of the estimates over the draws, in the order of
            `labels`.
        extrapolation: the curve, "quadratic" or "rational".
        draws: number of draws of added noise at each level.
        errors: the kind of standard errors, "extrapolated", "jackknife" or "none".

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(5000, 1))
        >>> noisy = x + 0.5 * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=0.25)
        >>> slope = lambda x, y: {"slope": np.polyfit(x[:, 0], y, 1)[0]}
        >>> fit = nj.fit(table, nj.methods.SIMEX(slope, draws=10, errors="none"))
        >>> print(fit.levels, fit.estimates.shape, fit.values.round(1))
        [0.  0.5 1.  1.5 2. ] (5, 1) [2.]
    """

    kind: ClassVar[str] = "simex"

    estimator: str
    levels: np.ndarray
    estimates: np.ndarray
    extrapolation: str
    draws: int
    errors: str

    @property
    def title(self) -> str:
        """Returns the line above the table: the method and the form of the fit."""
        if self.form == "numbers":
            return f"{self.estimator} of {self.target}, {self.num_rows:,} noisy rows"
        return super().title

    def curve(self, levels: Any) -> np.ndarray:
        """Returns `[m, k]`, the curves through the estimates at m levels λ; −1 is without noise."""
        return CURVES[self.extrapolation](self.levels, self.estimates, np.asarray(levels, float))
