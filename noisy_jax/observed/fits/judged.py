"""Mean squared errors on clean data, from estimated errors of rows that a predictor has not seen.

The errors are summed over units, which are independent: rows, clusters or groups of rows. With the
sum s_u over the m_u rows of unit u, n = Σ_u m_u and U units,

    risk = Σ_u s_u/n,    variance = U/(U − 1) Σ_u (s_u − m_u risk)²/n².

If the covariance of the noise is an estimate, each error contains the error of this estimate, and
the delta method adds a second part to the variance. Of kernel fits there is a bound on the bias
(`fits.hidden`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.fits.uncertain_noise import UncertainNoise, combined_freedom
from noisy_jax.reports.intervals import half_width

_NOTHING = np.zeros((2, 1))  # hidden
_MOST_HIDDEN = 0.5  # share of the squared weights that the noise hides, for a verdict
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
            errors = [
                f"{k} {risk:.4g} (R² {1 - risk / self.variance:.3f})" for k, risk in risks.items()
            ]
            return "\n".join([*lines, f"{', '.join(errors)}; {difference}"])
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
        if (self.hidden_share or 0) > _MOST_HIDDEN:
            return "no verdict, since the noise hides most of the fit"
        if high < 0:
            return "no verdict (see the note)" if self.doubted else "the correction helps"
        if low > 0:
            return "the correction hurts"
        return "no clear difference"


class Judged(NamedTuple):
    """Estimated squared errors of one predictor, or of several, on clean data.

    Attributes:
        sums: `[..., U]`, sums of the errors over the rows of each unit.
        count: `[U]`, numbers of these rows, or sums of their weights.
        slope: `[..., d, d]`, derivative of the risk in the covariance of the noise in means of
            copies, if this covariance is an estimate.
        hidden: `[..., 2, m]`, of kernel fits the mean over rows of `fits.hidden.hidden`.
    """

    sums: np.ndarray
    count: np.ndarray
    slope: Any = 0.0
    hidden: np.ndarray = _NOTHING

    @property
    def degrees_of_freedom(self) -> int:
        """U − 1, of Student's t in intervals."""
        return len(self.count) - 1

    def scaled(self, square: float) -> Judged:
        """Returns the same errors in other units, where each is `square` times as large."""
        return Judged(square * self.sums, self.count, square * self.slope, square * self.hidden)

    def minus(self, other: Judged) -> Judged:
        """Differences of errors, paired by unit."""
        return self._replace(
            sums=self.sums - other.sums,
            slope=self.slope - other.slope,
            hidden=self.hidden - other.hidden,
        )

    @property
    def risk(self) -> np.ndarray:
        """`[...]`, the mean squared error."""
        return self.sums.sum(axis=-1) / self.count.sum()

    def std_error(self, noise: UncertainNoise | None = None) -> np.ndarray:
        """`[...]`, of `risk`, with the uncertainty of the noise's covariance."""
        apart = self.sums - self.count * self.risk[..., None]
        units, rows = len(self.count), self.count.sum()
        variance = np.sum(apart**2, axis=-1) * units / (units - 1) / rows**2
        if noise is not None and not noise.exact and np.ndim(self.slope) > 1:
            variance = variance + np.diag(noise.covariance(self.slope))
        return np.sqrt(variance)

    @property
    def bias(self) -> np.ndarray:
        """`[...]`, bound on the bias of `risk`, as in `hidden`."""
        return np.zeros(self.risk.shape) + (
            largest_bias(self.hidden) if np.ndim(self.hidden) else 0
        )


def largest_bias(parts: np.ndarray) -> np.ndarray:
    """The bound `[...]` on the bias, from `[..., 2, m]` of `fits.hidden.hidden`."""
    square, value = np.moveaxis(np.abs(parts).max(axis=-1), -1, 0)
    return square + 2 * value


def of_rows(errors: np.ndarray, slope: Any = 0.0, hidden: np.ndarray = _NOTHING) -> Judged:
    """One predictor, judged by errors `[n]` of single rows; the rest is as in `Judged`."""
    return Judged(errors, np.ones(len(errors)), slope, hidden)


def of_folds(parts: Sequence[Judged], rows: Sequence[np.ndarray], units: np.ndarray) -> Judged:
    """One way of learning, judged by the predictors of all folds.

    Args:
        parts: of each fold, the errors of its rows, by `of_rows`.
        rows: of each fold, the places of its rows among all n.
        units: `[n]`, the unit of each row, a number from 0.
    """
    errors = np.empty(len(units))
    for part, places in zip(parts, rows, strict=True):
        finite = np.isfinite(part.sums)  # they are infinite if it diverged
        errors[places] = np.where(finite, part.sums, np.nan)
    shares = [len(places) / len(units) for places in rows]
    return Judged(
        np.bincount(units, errors),
        np.bincount(units),
        sum(share * part.slope for share, part in zip(shares, parts, strict=True)),
        np.sum([share * part.hidden for share, part in zip(shares, parts, strict=True)], axis=0),
    )


def stacked(judged: Sequence[Judged]) -> Judged:
    """K predictors that were judged by the same units: sums `[K, U]`, and so on."""
    sums, counts, slopes, hidden = zip(*judged, strict=True)
    slopes, hidden = (np.stack(np.broadcast_arrays(*values)) for values in (slopes, hidden))
    return Judged(np.stack(sums), counts[0], slopes, hidden)


def compared(
    corrected: Judged,
    uncorrected: Judged,
    variance: float,
    *,
    noise: UncertainNoise | None = None,
    freedom: float = np.inf,
    hidden_share: float | None = None,
) -> Comparison:
    """Returns the errors of a corrected and an uncorrected fit, and of their difference.

    Args:
        corrected: errors of the corrected fit.
        uncorrected: errors of the uncorrected fit, by the same units.
        variance: of y.
        noise: the uncertainty of the noise's covariance, in the units of the slopes.
        freedom: degrees of freedom of the variance that it adds.
        hidden_share: share of squared weights that the noise hides, as in `Comparison`.
    """
    three = stacked([corrected, uncorrected, corrected.minus(uncorrected)])
    errors, freedom_of_units = three.std_error(noise), float(three.degrees_of_freedom)
    if noise is not None and not noise.exact:
        plain = three.std_error()[2] ** 2
        freedom_of_units = float(
            combined_freedom((plain, errors[2] ** 2 - plain), (freedom_of_units, freedom))
        )
    pairs = np.stack([three.risk, errors], axis=1).ravel().tolist()
    names = "corrected_bias", "uncorrected_bias", "difference_bias"
    biases = dict(zip(names, three.bias.tolist(), strict=True))
    return Comparison(
        *pairs,
        variance=variance,
        degrees_of_freedom=freedom_of_units,
        hidden_share=hidden_share,
        **biases,
    )
