"""Linear fits: coefficients, estimated errors, strength of the identification, scatter."""

import dataclasses
from typing import ClassVar

import numpy as np

from noisy_jax.intervals import LEVEL, half_width
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.identification import WEAK
from noisy_jax.observed.fits.result import Fit, percent


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class LinearFit(Fit):
    """A corrected linear regression; print it for the table.

    It has the attributes of `Estimates` and of `Fit` as well.

    Attributes:
        risk: estimated errors of both fits on clean data.
        gram: `[d, d]`, corrected centred moments of the columns, per row.
        cross: `[d]`, centred moments with y, per row.
        noise: `[d, d]`, mean covariance of the error that was taken away.
        strength: of the identification: how clearly the noisiest combination of columns stands out
            from its own error, in squared standard errors. Below 6 do not trust intervals. With the
            ratio λ of its variance to the noise's, and the variance v that λ would have if there
            were nothing but noise, it is (λ − 1)²/v; 0 if the clean variance is estimated below 0,
            infinite without noise.
        scatter: `[3]`, s², its standard error and degrees of freedom: the variance of y at given
            clean features without the known errors of measurement in y; `None` unless these, or
            errors by row, are known.
        effective_rows: (Σ w)²/Σ w², if the rows are weighted by their errors of measurement. In
            `uncorrected` they have equal weights.
    """

    kind: ClassVar[str] = "linear"

    risk: Comparison = dataclasses.field()
    gram: np.ndarray
    cross: np.ndarray
    noise: np.ndarray
    strength: float
    scatter: np.ndarray | None = None
    effective_rows: float | None = None

    def scatter_interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Both ends of the interval of s (see `scatter`), in units of y; ValueError without it."""
        if self.scatter is None:
            raise ValueError("the scatter is known where errors in y, or by row, are given")
        variance, error, freedom = self.scatter
        half = half_width(error, freedom, level=level)
        low, high = np.sqrt(np.maximum([variance - half, variance + half], 0)).tolist()
        return low, high

    def _scattered(self) -> list[str]:
        if self.scatter is None:
            return []
        low, high = self.scatter_interval()
        lines = [
            f"Intrinsic scatter {max(self.scatter[0], 0.0) ** 0.5:.4g} [{low:.4g}, {high:.4g}]: "
            f"standard deviation of {self.target} at given clean features, without stated errors."
        ]
        if self.effective_rows is not None:
            count = f"{self.effective_rows:,.0f} effective rows"
            lines.append(f"Rows are weighted by their errors of measurement: {count}.")
        return lines

    def _known(self) -> list[str]:
        return [*self._identified(), *self._scattered()]

    def _identified(self) -> list[str]:
        if np.isinf(self.strength):  # no noise
            return []
        if self.strength >= WEAK:
            return [f"Identification strength {self.strength:.4g} (below {WEAK:g} is weak)."]
        lines = [
            f"Weak identification (strength {self.strength:.2g}, below {WEAK:g}): do not trust "
            "intervals and p values,",
            "as the columns hardly vary by more than their errors.",
        ]
        if self.share < 1:
            lines.append(
                f"Only {percent(self.share)} of the stated error is taken away, to keep estimates "
                "stable: they are still biased."
            )
        return lines
