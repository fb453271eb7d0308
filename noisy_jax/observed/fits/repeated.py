"""Noisy columns in which one measurement stands in several rows, to the last digit.

Such rows share an error, so that they are not independent. Values are also equal by chance where
they were rounded, or computed from rounded ones; three properties tell these apart:

- Distinct values of rounded measurements are whole steps apart, also (nearly) after a function of
  them. Where many of them are equal, steps between neighbours are hardly longer than the shortest
  ones. Of n independent values without rounding, about 0.1 of the steps are below 0.15 of their
  median nearby.
- Equal by chance are values where there are many, and hardly ever the largest and smallest ones.
- A value at which measurements are cut off is one of the ends, or the most frequent one.
"""

import numpy as np

_ROWS = 16_384  # of more than twice as many rows a part is looked at first
_HASH = np.uint64(0x9E3779B97F4A7C15)
_LEAST = 16  # different values
_SHARE = 0.3  # of the rows, with a value that another one has
_SHORT, _OFTEN = 0.15, 0.02  # steps, in medians of those nearby, and their share
_NEAR = 5  # steps on each side
_ENDS, _EQUAL = (
    0.05,
    0.5,
)  # share of the values at each end, and of these values that are in several rows


def repeats(values: np.ndarray) -> bool:
    """Returns True if values `[n]` are equal more often than by rounding."""
    if len(values) > 2 * _ROWS:  # first all rows with some of the values, drawn by a hash
        bits = np.ascontiguousarray(values).view(np.uint64) * _HASH
        counts = np.unique(values[bits < 2**64 // (len(values) // _ROWS)], return_counts=True)[1]
        if counts[counts > 1].sum() < _SHARE * counts.sum():
            return False
    different, counts = np.unique(values, return_counts=True)
    kept = np.ones(len(different), bool)
    kept[[0, -1, counts.argmax()]] = False
    different, counts = different[kept], counts[kept]
    if len(different) < _LEAST or counts[counts > 1].sum() < _SHARE * counts.sum():
        return False
    end = max(_NEAR, int(_ENDS * len(counts)))
    low, high = (np.mean(part > 1) for part in (counts[:end], counts[-end:]))
    if min(low, high) < 0.6 * _EQUAL or low + high < 2 * _EQUAL:
        return False
    steps = np.diff(different)
    medians = np.median(np.lib.stride_tricks.sliding_window_view(steps, _NEAR), axis=1)
    nearby = np.minimum(medians[: -_NEAR - 1], medians[_NEAR + 1 :])  # on both sides of a step
    short = np.sum(steps[_NEAR:-_NEAR] < _SHORT * nearby)
    return bool(short >= max(2, _OFTEN * len(nearby)))
