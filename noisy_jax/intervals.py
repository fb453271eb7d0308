"""Half the width of a confidence interval: one convention for the whole library."""

from typing import Any

import numpy as np
import scipy  # comes with JAX; scipy.special is imported when it is used

LEVEL = 0.95
"""The level of the intervals that the library prints."""


def half_width(
    std_error: Any, degrees_of_freedom: Any = np.inf, *, level: float = LEVEL, comparisons: int = 1
) -> Any:
    """Half the width of a two-sided interval around a mean or an estimate.

        t_{ν, 1 − (1 − level)/(2m)} · std_error

    with Student's t for ν degrees of freedom, and Bonferroni's correction for m intervals that
    must hold together.

    Args:
        std_error: any shape.
        degrees_of_freedom: ν > 0, a shape that broadcasts; infinite for a known standard error,
            S − 1 for the mean of S independent draws; below 1, as of one draw, the result is NaN.
        level: between 0 and 1.
        comparisons: m ≥ 1.

    Returns:
        The shape of the arguments together.

    Example:
        >>> print(f"{half_width(1.0):.2f} {half_width(1.0, 7):.2f}")
        1.96 2.36
    """
    freedom = np.asarray(degrees_of_freedom, float)
    share = 1 - (1 - level) / (2 * comparisons)
    known = np.isfinite(freedom) & (freedom >= 1)
    student = scipy.special.stdtrit(np.where(known, freedom, 1.0), share)
    quantile = np.where(
        known, student, np.where(np.isposinf(freedom), scipy.special.ndtri(share), np.nan)
    )
    return quantile * np.asarray(std_error)
