"""Rows of data: features x with targets y, and the noisy copies of one x."""

from __future__ import annotations

import numpy as np

from noisy_jax.validation.arrays import shape_of
from noisy_jax.validation.numbers import check_finite


def check_table(x, y) -> None:
    """Raises ValueError unless x is `[T, d]` and y is `[T]`, T ≥ 1 and d ≥ 1."""
    x_shape, y_shape = shape_of("x", x), shape_of("y", y)
    if len(x_shape) != 2 or x_shape[:1] != y_shape or 0 in x_shape:
        found = f"got x {list(x_shape)} and y {list(y_shape)}; batch streams with jax.vmap"
        raise ValueError(f"x must be [T, d] and y [T] with the same T >= 1 and d >= 1, {found}")


def check_stream(x, y) -> None:
    """Raises ValueError unless `check_table` holds and all numbers are finite."""
    check_table(x, y)
    check_finite("x", x, "drop or impute such rounds first")
    check_finite("y", y, "drop or impute such rounds first")


def check_targets(y, hint: str = "") -> None:
    """Raises ValueError unless y is `[n]`, n ≥ 1, of finite numbers."""
    if np.ndim(y) != 1 or not np.size(y):
        raise ValueError(f"y must be [n] with n >= 1, got {list(np.shape(y))}: one target a row")
    check_finite("y", y, hint)


def check_copies_given(needed: int, given: int) -> None:
    """Raises ValueError if a sample has fewer noisy copies than the learner reads."""
    if given < needed:
        raise ValueError(
            f"this learner reads {needed} independent noisy copies of x, but the sample has {given}"
        )
