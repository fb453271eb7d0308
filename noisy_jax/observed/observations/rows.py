"""Rows as fits by moments and scores take them: means of copies, with the errors of these."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noisy_jax.validation.arrays import check_axes, check_shape, real_array
from noisy_jax.validation.messages import given
from noisy_jax.validation.values import check_concrete


class Rows(NamedTuple):
    """Means of the copies of rows, in the order of the arguments of `linear_moments`."""

    x: np.ndarray  # [n, d]
    y: np.ndarray  # [n]
    cov: np.ndarray  # [d, d] or [n, d, d], covariance of the error in a row of x
    weights: np.ndarray | None = None  # [n]
    cross: np.ndarray | None = None  # [d] or [n, d], covariance of the errors in x and y

    def mean_cov(self) -> np.ndarray:
        """`[d, d]`, the mean covariance of the errors."""
        return self.cov if self.cov.ndim == 2 else self.cov.mean(axis=0)

    def some(self, which) -> Rows:
        """Some of the rows, in some order."""
        cov = self.cov if self.cov.ndim == 2 else self.cov[which]
        weights = None if self.weights is None else self.weights[which]
        cross = self.cross
        cross = cross if cross is None or cross.ndim == 1 else cross[which]
        # NumPy's `take` of many rows is three times as fast as an array in brackets.
        x = self.x[which] if isinstance(which, slice) else self.x.take(which, axis=0)
        return Rows(x, self.y[which], cov, weights, cross)


def row_numbers(which: Any, rows: int) -> Any:
    """Returns numbers of rows, a mask `[n]` or a slice, as NumPy takes them to choose rows."""
    if isinstance(which, slice):
        return which
    which = real_array("which", which)
    check_concrete("which", which, "rows are chosen outside jit, vmap and grad")
    check_axes("which", which, "[m]", ": numbers of rows, or a mask")
    numbers = np.asarray(which)
    numbers = numbers.astype(int) if not numbers.size else numbers
    if numbers.dtype == bool:
        check_shape("which", numbers, (rows,), "as a mask of the rows")
        return numbers
    if numbers.dtype.kind not in "iu":
        raise ValueError(f"which must be numbers of rows, or a mask [{rows}], got {given(which)}")
    for number in numbers[(numbers < -rows) | (numbers >= rows)][:1]:
        raise ValueError(f"which must be rows of a table of {rows}, got row {number}")
    return numbers
