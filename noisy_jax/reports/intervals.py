"""Half widths of confidence intervals, and p values: one convention for the whole library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # scipy.special is imported when it is used

from noisy_jax.validation.numbers import between
from noisy_jax.validation.values import check_concrete

LEVEL = 0.95
"""The level of the intervals that the library prints."""


def parsed_level(level: Any) -> float:
    """Returns the level of intervals as a Python number, if it is between 0 and 1."""
    check_concrete("level", level, "give it as a Python number")
    return float(between("level", level, 0, 1))


def half_width(
    std_error: Any, degrees_of_freedom: Any = np.inf, *, level: float = LEVEL, comparisons: int = 1
) -> Any:
    """Returns half the width of a two-sided interval around a mean or an estimate.

        t_{ν, 1 − (1 − level)/(2m)} · std_error

    with Student's t for ν degrees of freedom, and Bonferroni's correction for m intervals that
    must hold together.

    Args:
        std_error: any shape.
        degrees_of_freedom: ν > 0, a shape that broadcasts; infinite for a known standard error,
            S − 1 for the mean of S independent draws; below 1, as of one draw, the result is NaN.
        level: between 0 and 1.
        comparisons: m ≥ 1.

    Example:
        >>> print(f"{half_width(1.0):.2f} {half_width(1.0, 7):.2f}")
        1.96 2.36
    """
    share = 1 - (1 - level) / (2 * comparisons)
    quantile = _by_freedom(
        lambda freedom: scipy.special.stdtrit(freedom, share),
        scipy.special.ndtri(share),
        degrees_of_freedom,
    )
    return quantile * np.asarray(std_error)


def p_value(statistic: Any, degrees_of_freedom: Any = np.inf) -> Any:
    """Returns the two-sided p value of an estimate in units of its standard error: P(|T_ν| > |t|).

    It is below 1 − level exactly if the interval of that level (`half_width`) excludes 0.

    Args:
        statistic: t, the estimate over its standard error, any shape.
        degrees_of_freedom: ν, as in `half_width`.

    Example:
        >>> print(f"{p_value(1.96):.3f} {p_value(-2.36, 7):.3f}")
        0.050 0.050
    """
    t = -np.abs(statistic)
    return 2 * _by_freedom(
        lambda freedom: scipy.special.stdtr(freedom, t), scipy.special.ndtr(t), degrees_of_freedom
    )


def _by_freedom(student: Callable[[np.ndarray], Any], normal: Any, degrees_of_freedom: Any):
    """Returns `student(ν)` for ν ≥ 1, `normal` for ν = ∞, and NaN otherwise."""
    freedom = np.asarray(degrees_of_freedom, float)
    finite = np.isfinite(freedom) & (freedom >= 1)
    other = np.where(np.isposinf(freedom), normal, np.nan)
    return np.where(finite, student(np.where(finite, freedom, 1.0)), other)
