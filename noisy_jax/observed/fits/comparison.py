"""Estimated errors on clean data of a corrected and an uncorrected fit, side by side."""

import dataclasses
import math

from noisy_jax.intervals import half_width


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Mean squared errors on clean data, estimated from noisy rows that the fit did not see.

    Each contains the variance of the noise in y, and has a standard error. Standard errors contain
    the uncertainty of the noise's covariance, if it is an estimate, with the coefficients as given.

    Attributes:
        corrected: of the corrected coefficients.
        corrected_std_error: its standard error; others have theirs behind them as well.
        uncorrected: of the uncorrected coefficients.
        uncorrected_std_error: see above.
        difference: corrected − uncorrected, paired by row.
        difference_std_error: see above.
        variance: of y, for R² = 1 − error/variance.
        degrees_of_freedom: of Student's t in the interval of the difference.
        doubted: whether the rows contradict an assumption of the correction; then it is not said
            to help.
    """

    corrected: float
    corrected_std_error: float
    uncorrected: float
    uncorrected_std_error: float
    difference: float
    difference_std_error: float
    variance: float
    degrees_of_freedom: float = math.inf
    doubted: bool = False

    def interval(self) -> tuple[float, float]:
        """Lower and upper end of the 95% interval of the difference."""
        half = float(half_width(self.difference_std_error, self.degrees_of_freedom))
        return self.difference - half, self.difference + half

    def __str__(self) -> str:
        """Two lines: both errors with R², and the interval of their difference."""
        low, high = self.interval()
        corrected, uncorrected = (
            f"{name} {risk:.4g} (R² {1 - risk / self.variance:.3f})"
            for name, risk in (("corrected", self.corrected), ("uncorrected", self.uncorrected))
        )
        return (
            "Mean squared error on clean data, estimated from noisy data by cross-fitting:\n"
            f"{corrected}, {uncorrected}; difference {self.difference:.2g} "
            f"[{low:.2g}, {high:.2g}]: {self.verdict()}."
        )

    def verdict(self) -> str:
        """Whether the correction helped, from the 95% interval of the difference.

        There is no verdict where an estimate of an error, which cannot be so, is below 0.
        """
        low, high = self.interval()
        if min(self.corrected, self.uncorrected) < 0:
            return "no verdict, since an estimated error is below 0"
        if high < 0:
            return "no verdict (see the note)" if self.doubted else "the correction helps"
        if low > 0:
            return "the correction hurts"
        return "no clear difference"
