"""Running means of numbers that come in parts, with their standard errors, in float64."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np


class Running(NamedTuple):
    """Count, mean and squares of the values seen so far.

    Attributes:
        count: n, how many values.
        mean: their mean, a pytree.
        squares: the same shapes, Σ (value − mean)².

    Example:
        >>> import numpy as np
        >>> values = Running.of(np.array([1.0, 3.0])).plus(Running.of(np.array([5.0])))
        >>> print(values.count, values.mean, values.squares)
        3 3.0 8.0
    """

    count: Any
    mean: Any
    squares: Any

    @classmethod
    @np.errstate(invalid="ignore", over="ignore")  # of infinite and huge values
    def of(cls, values: Any, weights: np.ndarray | None = None) -> Running:
        """Returns the sums of a pytree of values `[n, ...]`, n ≥ 0; an infinite mean is NaN.

        With weights `[n]` ≥ 0 value i counts w_i times.
        """
        count = len(jax.tree.leaves(values)[0]) if weights is None else float(np.sum(weights))
        divisor = max(count, 1) if weights is None else count or 1.0

        def total(leaf):
            return leaf.sum(axis=0) if weights is None else np.tensordot(weights, leaf, axes=1)

        mean = jax.tree.map(lambda leaf: total(leaf) / divisor, values)
        mean = jax.tree.map(lambda m: m + 0 * m, mean)  # infinity times 0 is NaN, in `plus` as well
        squares = jax.tree.map(lambda leaf, m: total((leaf - m) ** 2), values, mean)
        return cls(count, mean, squares)

    @np.errstate(invalid="ignore", over="ignore")
    def plus(self, other: Running) -> Running:
        """Returns the sums of both sets of values (Chan, Golub and LeVeque)."""
        if other.count == 0:
            return self
        count = self.count + other.count
        difference = jax.tree.map(lambda x, y: y - x, self.mean, other.mean)
        share, weight = other.count / count, self.count * other.count / count
        return Running(
            count,
            jax.tree.map(lambda x, d: x + d * share, self.mean, difference),
            jax.tree.map(
                lambda x, y, d: x + y + d**2 * weight, self.squares, other.squares, difference
            ),
        )

    @property
    def std_error(self) -> Any:
        """The standard error of the mean, in the shapes of `mean`; NaN for fewer than two."""
        if self.count < 2:
            return jax.tree.map(lambda squares: np.full_like(squares, np.nan), self.squares)
        scale = np.float64(self.count - 1)
        return jax.tree.map(lambda squares: np.sqrt(squares / scale / self.count), self.squares)
