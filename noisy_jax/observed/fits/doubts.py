"""What a table contradicts, by scores of ranks and bounds that hold for any distribution."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from noisy_jax.observed.observations import Observations

ROWS = 16_384
"""Rows, evenly spaced, that are checked."""
LEVEL = 0.01
"""Probability of a doubt about a table that obeys the assumptions."""
NOISY = 1e-6
"""Share of a column's variance, from which on its noise counts."""
UNTRANSFORMED = (
    "corrections assume noise whose distribution does not depend on the clean value: fit on the "
    "untransformed measurements"
)
"""What to do where noise depends on the clean value."""
BELOW = (
    "the error on clean data is estimated below 0 by more than chance: the stated noise may be too "
    "large (a standard deviation in place of a variance?), depend on the target (state cross_cov), "
    "or have heavy tails"
)
"""What contradicts the stated noise in any fit by squared errors."""


class Doubt(NamedTuple):
    """An assumption that a table contradicts."""

    text: str  # what contradicts it and what to do, in one line
    spoils: bool = True  # whether the correction is wrong without the assumption
    references: tuple[str, ...] = ()  # of the table's categories, if it is about these


class NoisyColumns(NamedTuple):
    """Which columns have noise, and how much."""

    variance: np.ndarray  # [d], mean variance of the error in one copy
    share: np.ndarray  # [d], its share of the variance of the copies
    noisy: np.ndarray  # numbers of the columns with noise
    exact: np.ndarray  # numbers of the other columns

    @classmethod
    def of(cls, rows: Observations) -> "NoisyColumns":
        """Those of a table."""
        if rows.cov is None:
            variance = rows.x.var(axis=1, ddof=1).mean(axis=0)
        else:
            variance = np.diagonal(rows.cov, axis1=-2, axis2=-1).reshape(-1, rows.x.shape[2])
            variance = variance.mean(axis=0)
        whole = rows.x.var(axis=(0, 1))
        share = np.divide(variance, whole, out=np.zeros_like(whole), where=whole > 0)
        return cls(variance, share, np.flatnonzero(share > NOISY), np.flatnonzero(share <= NOISY))


def scores(values: np.ndarray) -> np.ndarray:
    """Ranks of each column, the mean rank for ties, in mean 0 and variance 1 (0 if constant)."""
    if values.ndim > 1:
        made = [scores(column) for column in values.T]
        return np.stack(made, axis=1) if made else np.zeros(values.shape)
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    ranks -= ranks.mean()
    spread = ranks.std()
    return ranks / spread if spread > 0 else ranks


def tail(total, variance, largest) -> np.ndarray:
    """2 exp(−t²/2(v + mt/3)), which bounds P(|T| ≥ t) for a sum T of terms up to m."""
    room = 2 * (variance + largest * np.abs(total) / 3)
    return 2 * np.exp(-np.divide(total**2, room, out=np.zeros_like(room), where=room > 0))


def doubt_about(
    before: str, found: Sequence[str], after: str, *, spoils: bool = True
) -> list[Doubt]:
    """A doubt about the first three of what was found, and how many more; none of nothing."""
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    text = f"{before} {', '.join(found[:3])}{more}{after}"
    return [Doubt(text, spoils)] if found else []
