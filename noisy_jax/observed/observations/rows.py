"""Rows as fits by moments and scores take them: means of copies, with the errors of these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


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
