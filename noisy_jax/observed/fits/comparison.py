"""Estimated errors on clean data of a corrected and an uncorrected fit, side by side."""

import dataclasses
import math

import numpy as np

from noisy_jax.intervals import half_width

_HIDDEN = 0.5
"""Share of the squared weights that the noise hides above which there is no verdict."""
_MENTIONED = 0.05


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Mean squared errors on clean data, estimated from noisy rows that the fit did not see.

    Each contains the variance of the noise in y, and has a standard error. Standard errors contain
    the uncertainty of the noise's covariance, if it is an estimate, with the coefficients as given.

    In kernel fits the noise hides frequencies whose characteristic function φ is about n^(−1/2) or
    less: n noisy rows say nothing about them. Their largest effect on an estimate, whatever the
    distribution of the clean rows is, is added to the half width of its interval.

    Attributes:
        corrected: mean squared error of the corrected fit.
        corrected_std_error: its standard error.
        uncorrected: mean squared error of the uncorrected fit.
        uncorrected_std_error: its standard error.
        difference: corrected − uncorrected, paired by row.
        difference_std_error: its standard error.
        variance: of y, for R² = 1 − error/variance.
        degrees_of_freedom: of Student's t in intervals.
        doubted: true if the rows contradict an assumption of the correction, which is then not
            said to help.
        corrected_bias: largest bias of `corrected`; 0 for linear fits.
        uncorrected_bias: largest bias of `uncorrected`; 0 for linear fits.
        difference_bias: largest bias of `difference`; 0 for linear fits.
        hidden_share: share of the squared weights of a corrected kernel fit at frequencies ω for
            which the noise hides cos²⟨ω, x⟩; `None` for linear fits.
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
    corrected_bias: float = 0.0
    uncorrected_bias: float = 0.0
    difference_bias: float = 0.0
    hidden_share: float | None = None

    def half_widths(self) -> tuple[float, float, float]:
        """Half the widths of the 95% intervals of `corrected`, `uncorrected` and `difference`."""
        errors = self.corrected_std_error, self.uncorrected_std_error, self.difference_std_error
        biases = self.corrected_bias, self.uncorrected_bias, self.difference_bias
        halves = half_width(np.array(errors), self.degrees_of_freedom) + biases
        return halves[0], halves[1], halves[2]

    def interval(self) -> tuple[float, float]:
        """Lower and upper end of the 95% interval of the difference."""
        half = self.half_widths()[2]
        return self.difference - half, self.difference + half

    def __str__(self) -> str:
        """Both errors with R², the interval of their difference, and the share that is hidden."""
        low, high = self.interval()
        difference = f"difference {self.difference:.2g} [{low:.2g}, {high:.2g}]: {self.verdict()}."
        lines = ["Mean squared error on clean data, estimated from noisy data by cross-fitting:"]
        risks = {"corrected": self.corrected, "uncorrected": self.uncorrected}
        if self.hidden_share is None:
            shown = [
                f"{k} {risk:.4g} (R² {1 - risk / self.variance:.3f})" for k, risk in risks.items()
            ]
            return "\n".join([*lines, f"{', '.join(shown)}; {difference}"])
        for (name, risk), half in zip(risks.items(), self.half_widths()[:2], strict=True):
            share = f"R² {1 - risk / self.variance:.3f}" if risk >= 0 else "an error is not below 0"
            lines.append(f"{name} {risk:.4g} ± {half:.2g} ({share})")
        lines.append(difference)
        if self.hidden_share > _MENTIONED:
            lines += [
                f"{self.hidden_share:.0%} of this curve's detail is finer than the errors of "
                "measurement can show. Use a larger",
                "length_scale, more rows, or more copies of each row.",
            ]
        return "\n".join(lines)

    def verdict(self) -> str:
        """Says if the correction helped, by the 95% interval of the difference.

        There is no verdict where an estimate of an error, which cannot be so, is below 0, or where
        the noise hides most of the fit.
        """
        low, high = self.interval()
        if min(self.corrected, self.uncorrected) < 0:
            return "no verdict, since an estimated error is below 0"
        if (self.hidden_share or 0) > _HIDDEN:
            return "no verdict, since the noise hides most of the fit"
        if high < 0:
            return "no verdict (see the note)" if self.doubted else "the correction helps"
        if low > 0:
            return "the correction hurts"
        return "no clear difference"
