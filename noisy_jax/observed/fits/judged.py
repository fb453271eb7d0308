"""Mean squared errors on clean data, from estimated errors of rows that a predictor has not seen.

The errors are summed over units, which are independent: rows, clusters or groups of rows. With the
sum s_u over the m_u rows of unit u, n = Σ_u m_u and U units,

    risk = Σ_u s_u/n,    variance = U/(U − 1) Σ_u (s_u − m_u risk)²/n².

If the covariance of the noise is an estimate, each error contains the error of this estimate, and
the delta method adds a second part to the variance. Of kernel fits there is a bound on the bias
(`fits.hidden`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.hidden import largest_bias
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise, combined_freedom

_NOTHING = np.zeros((2, 1))  # hidden


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

    def scaled(self, square: float) -> "Judged":
        """The same errors in other units, in which each is `square` times as large."""
        return Judged(square * self.sums, self.count, square * self.slope, square * self.hidden)

    def minus(self, other: "Judged") -> "Judged":
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
    for part, own in zip(parts, rows, strict=True):
        errors[own] = np.where(np.isfinite(part.sums), part.sums, np.nan)  # infinite if it diverged
    shares = [len(own) / len(units) for own in rows]
    return Judged(
        np.bincount(units, errors),
        np.bincount(units),
        sum(share * part.slope for share, part in zip(shares, parts, strict=True)),
        np.sum([share * part.hidden for share, part in zip(shares, parts, strict=True)], axis=0),
    )


def stacked(judged: Sequence[Judged]) -> Judged:
    """K predictors that were judged by the same units: sums `[K, U]`, and so on."""
    sums, counts, slopes, hidden = zip(*judged, strict=True)
    slopes, hidden = (np.stack(np.broadcast_arrays(*one)) for one in (slopes, hidden))
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
        hidden_share: as in `Comparison`.
    """
    three = stacked([corrected, uncorrected, corrected.minus(uncorrected)])
    errors, own = three.std_error(noise), float(three.degrees_of_freedom)
    if noise is not None and not noise.exact:
        plain = three.std_error()[2] ** 2
        own = float(combined_freedom((plain, errors[2] ** 2 - plain), (own, freedom)))
    pairs = np.stack([three.risk, errors], axis=1).ravel().tolist()
    names = "corrected_bias", "uncorrected_bias", "difference_bias"
    biases = dict(zip(names, three.bias.tolist(), strict=True))
    return Comparison(
        *pairs, variance=variance, degrees_of_freedom=own, hidden_share=hidden_share, **biases
    )
