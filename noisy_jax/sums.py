"""Sums over features, in few operations of a loop's body on CPUs, and running means of parts."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


def total(a: jax.Array) -> jax.Array:
    """Σ_i a_i of a vector `[d]`, added up in columns: `[]`.

    On CPUs XLA dispatches the operations of a loop's body one by one, and much slower if they are
    more than 8. It splits `jnp.sum` over more than 32 numbers into three, of which none contains
    the product that is summed. Sums of slices are elementwise: up to d = 480 the product and the
    sum are one operation, which makes a round of `learners.two_copies` 5 to 10 times as fast.

    Example:
        >>> print(total(jnp.arange(100.0)))
        4950.0
    """
    short = a.shape[0] <= 15 * 32  # XLA fuses no operand that more than 15 slices need
    while (d := a.shape[0]) > 32:
        width = 16 * -(-d // (15 * 16))
        columns = [a[start : start + width] for start in range(0, d - width + 1, width)]
        if rest := d % width:  # the last columns, without what is counted already
            columns.append(jnp.where(np.arange(width) < width - rest, 0, a[d - width :]))
        a = _in_pairs(columns)
    return jnp.sum(a) if short else _in_pairs(list(a))


def _in_pairs(terms: list[jax.Array]) -> jax.Array:
    """Their sum, as a balanced tree, which has the smallest rounding errors."""
    while len(terms) > 1:
        odd = terms[len(terms) // 2 * 2 :]
        terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + odd
    return terms[0]


class Running(NamedTuple):
    """Count, mean and squares of the values seen so far, in float64, which come in parts.

    Attributes:
        count: n, how many values.
        mean: their mean, a pytree.
        squares: the same shapes, Σ (value − mean)².

    Example:
        >>> values = Running.of(np.array([1.0, 3.0])).plus(Running.of(np.array([5.0])))
        >>> print(values.count, values.mean, values.squares)
        3 3.0 8.0
    """

    count: Any
    mean: Any
    squares: Any

    @classmethod
    @np.errstate(invalid="ignore", over="ignore")  # of infinite and huge values
    def of(cls, values: Any) -> "Running":
        """Of a pytree of values `[n, ...]`, n ≥ 0; an infinite mean is NaN."""
        count = len(jax.tree.leaves(values)[0])
        mean = jax.tree.map(lambda leaf: leaf.sum(axis=0) / max(count, 1), values)
        mean = jax.tree.map(lambda m: m + 0 * m, mean)  # infinity times 0 is NaN, in `plus` as well
        squares = jax.tree.map(lambda leaf, m: ((leaf - m) ** 2).sum(axis=0), values, mean)
        return cls(count, mean, squares)

    @np.errstate(invalid="ignore", over="ignore")
    def plus(self, other: "Running") -> "Running":
        """Of both sets of values together (Chan, Golub and LeVeque)."""
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
