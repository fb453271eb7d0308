"""Sums over features that XLA's CPU compiler turns into few operations of a loop's body."""

import jax
import jax.numpy as jnp
import numpy as np


def total(a: jax.Array) -> jax.Array:
    """Σ_i a_i of a vector `[d]`, added up in columns: `[]`.

    On CPUs XLA dispatches the operations of a loop's body one by one, and much slower if they are
    more than 8. It splits `jnp.sum` over more than 32 numbers into three, of which none contains
    the product that is summed. Sums of slices are elementwise: up to d = 480 the product and the
    sum are one operation, which makes a round of `learners.two_copies` 5 to 10 times as fast. And
    `jnp.sum` adds one number after another: a vector of 8 to 32 is first added up in four columns,
    or three for 9.

    Example:
        >>> print(total(jnp.arange(100.0)))
        4950.0
    """
    short = a.shape[0] <= 15 * 32  # XLA fuses no operand that more than 15 slices need
    if 8 <= a.shape[0] <= 32:
        a = _columns_added(a, -(-a.shape[0] // 4))
    while (d := a.shape[0]) > 32:
        a = _columns_added(a, 16 * -(-d // (15 * 16)))
    return jnp.sum(a) if short else _in_pairs(list(a))


def _columns_added(a: jax.Array, width: int) -> jax.Array:
    """`[width]`, the sum of a's slices of that width."""
    d = len(a)
    columns = [a[start : start + width] for start in range(0, d - width + 1, width)]
    if rest := d % width:  # the last columns, without what is counted already
        columns.append(jnp.where(np.arange(width) < width - rest, 0, a[d - width :]))
    return _in_pairs(columns)


def _in_pairs(terms: list[jax.Array]) -> jax.Array:
    """Their sum, as a balanced tree, which has the smallest rounding errors."""
    while len(terms) > 1:
        odd = terms[len(terms) // 2 * 2 :]
        terms = [a + b for a, b in zip(terms[::2], terms[1::2], strict=False)] + odd
    return terms[0]
