"""Rows, and units that give their columns and y mean 0 and standard deviation 1."""

from __future__ import annotations

import dataclasses

import numpy as np

from noisy_jax.observed.fits.linear_moments import ROWS
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.categories import recording
from noisy_jax.observed.observations.rows import Rows
from noisy_jax.tabular.columns import ROUNDING


class UndeterminedError(ValueError):
    """ValueError of `nj.fit`: the rows would not determine the coefficients without noise either.

    Causes are a constant column, columns that depend on each other linearly, too few rows, and in
    logistic and Poisson regression columns that predict the targets perfectly.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> table = nj.observations.from_arrays(np.ones((20, 1)), np.arange(20.0), noise=0.1)
        >>> try:
        ...     nj.fit(table)
        ... except nj.fits.UndeterminedError:
        ...     print("the column is constant")
        the column is constant
    """


@dataclasses.dataclass(frozen=True)
class Units:
    """Centres and scales that make the columns and y free of units."""

    center: np.ndarray
    scale: np.ndarray
    y_center: float
    y_scale: float

    @classmethod
    def of(
        cls,
        x: np.ndarray,
        y: np.ndarray,
        table: Observations | None = None,
        weights: np.ndarray | None = None,
    ) -> Units:
        """Means and standard deviations of x `[n, d]` and y `[n]`, with weights `[n]`.

        Columns that are constant in the rows of positive weight have the scale 1; with `table`, the
        table of these columns, they raise ValueError.
        """
        if table is None:
            counts = slice(None) if weights is None else weights > 0
            constant, y_constant = _constant(x[counts]), _constant(y[counts])
        else:
            check_varies(x, y, table)
            constant = y_constant = False
        if weights is None:
            center, y_center = reduced(np.add, x) / len(x), float(y.mean())
            parts = (x[start : start + ROWS] - center for start in range(0, len(x), ROWS))
            square = sum(np.ones(len(part)) @ part**2 for part in parts) / len(x)
            y_square = float(y.var())
        else:
            center, y_center = (np.average(z, axis=0, weights=weights) for z in (x, y))
            square = np.average((x - center) ** 2, axis=0, weights=weights)
            y_square = np.average((y - y_center) ** 2, weights=weights)
        scale = np.where(constant, 1.0, np.sqrt(square))
        return cls(center, scale, float(y_center), 1.0 if y_constant else float(y_square**0.5))

    @classmethod
    def of_copies(
        cls, table: Observations, standardize: bool, weights: np.ndarray | None = None
    ) -> Units:
        """Returns units from all copies of the rows; without `standardize` the scales are 1."""
        x, copies = table.x, table.x.shape[1]
        if weights is None:
            units = cls.of(x.reshape(-1, x.shape[2]), table.y)
        else:
            y, weights = (np.repeat(a, copies) for a in (table.y, weights))
            units = cls.of(x.reshape(-1, x.shape[2]), y, weights=weights)
        ones = {"scale": np.ones(len(units.scale)), "y_scale": 1.0}
        return units if standardize else dataclasses.replace(units, **ones)

    @property
    def products(self) -> np.ndarray:
        """`[d, d]`, the units of a covariance of the columns."""
        return np.outer(self.scale, self.scale)

    def standardized(self, rows: Rows, order: np.ndarray | None = None) -> Rows:
        """The rows in these units, and in an order; many rows are copied once."""
        moved = rows.some(np.arange(len(rows.y)) if order is None else order)
        cov = moved.cov / self.products if moved.cov.ndim == 2 else moved.cov
        for start in range(0, len(moved.y), ROWS):
            part = slice(start, start + ROWS)
            moved.x[part] -= self.center
            moved.x[part] /= self.scale
            if cov.ndim == 3:
                cov[part] /= self.products
        cross = None if moved.cross is None else moved.cross / (self.scale * self.y_scale)
        return moved._replace(y=(moved.y - self.y_center) / self.y_scale, cov=cov, cross=cross)

    def jacobian(self, at) -> np.ndarray:
        """`[1 + d, 1 + d]`, of intercept and coefficients in the prediction at `at` and slopes."""
        ratio = self.y_scale / self.scale
        jacobian = np.diag(np.append(self.y_scale, ratio))
        jacobian[0, 1:] = -(self.center + self.scale * at) * ratio
        return jacobian

    def recorded(self, observations: Observations) -> tuple[np.ndarray, np.ndarray]:
        """G `[d, d]` and g `[d]`: a predictor a + ⟨β, x̃⟩ is a + ⟨β, g⟩ + ⟨Gᵀβ, r⟩ in these units.

        r has indicators of recorded categories in place of their recodings in x̃.
        """
        matrix, offset = recording(observations.categories, len(self.scale))
        offset = (matrix @ self.center + offset - self.center) / self.scale
        return matrix * self.scale / self.scale[:, None], offset


def reduced(ufunc: np.ufunc, values: np.ndarray) -> np.ndarray:
    """`ufunc.reduce` over rows, faster for many rows of few columns: 64 rows at once."""
    whole = len(values) // 64 * 64
    if values.ndim == 1 or not whole or not values.flags.c_contiguous:
        return ufunc.reduce(values)
    first = ufunc.reduce(values[:whole].reshape(-1, 64 * values.shape[1]))
    return ufunc.reduce(np.concatenate([first.reshape(64, -1), values[whole:]]))


def _constant(values: np.ndarray) -> np.ndarray:
    low, high = reduced(np.minimum, values), reduced(np.maximum, values)
    return high - low <= 2 * ROUNDING * np.maximum(-low, high)


def check_varies(x: np.ndarray, y: np.ndarray, observations: Observations) -> None:
    """Raises ValueError if a column of x `[n, d]`, or y `[n]`, is constant."""
    for j in np.flatnonzero(_constant(x)):
        raise UndeterminedError(f"column {observations.names[j]!r} is constant: drop it")
    if _constant(y):
        raise ValueError(f"{observations.target!r} takes one value only, {y[0]:g}")
