"""Forms of plain functions that XLA's CPU compiler turns into fast code, with the same numbers.

| form | plain form | times as fast | until XLA's CPU compiler |
|---|---|---|---|
| `total` | `jnp.sum` | 14 | makes one operation of a product and its sum |
| `random_bits` | `jax.random.bits` | 2.2 | keeps the rounds of Threefry in registers |

Measured with jaxlib 0.10.1 on two cores: `total` for the steps of `learners.two_copies` on 64
features, `random_bits` for a rollout of it on 10 features with Gaussian noise. On other processors,
such as GPUs, both are the plain form.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def on_cpu() -> bool:
    """Returns whether programs that are traced now are for CPUs."""
    return jax.default_backend() == "cpu"


def total(a: jax.Array) -> jax.Array:
    """Σ_i a_i of a vector `[d]`, added up in columns: `[]`.

    On CPUs XLA dispatches the operations of a loop's body one by one, and much slower if they are
    more than 8. It splits `jnp.sum` over more than 32 numbers into three, of which none contains
    the product that is summed. Sums of slices are elementwise: up to d = 480 the product and the
    sum are one operation, which makes a round of `learners.two_copies` 5 to 10 times as fast. And
    `jnp.sum` adds one number after another: a vector of 8 to 32 is first added up in four columns,
    or three for 9.

    Example:
        >>> import jax.numpy as jnp
        >>> print(total(jnp.arange(100.0)))
        4950.0
    """
    if not on_cpu():
        return jnp.sum(a)
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


_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_MANY = 256
"""Least size from which numbers are computed in a loop, whose results XLA keeps.

It computes other numbers again for each of their uses. A loop takes longer to compile."""


def random_bits(key: jax.Array, size: int) -> jax.Array:
    """Returns `[size]` numbers of 32 random bits, equal to `jax.random.bits(key, (size,))`.

    On CPUs JAX computes the 20 rounds of its default generator in a loop, which writes all numbers
    to memory in each pass. Here each half of many numbers is one operation, and few numbers are
    computed where they are used. Keys of other kinds are left to JAX.

    Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011), for
    Threefry-2x32-20.

    Example:
        >>> import jax
        >>> key = jax.random.key(0)
        >>> print((random_bits(key, 3) == jax.random.bits(key, (3,))).all())
        True
    """
    config: Any = jax.config
    default = str(jax.random.key_impl(key)) == "threefry2x32" and config.jax_threefry_partitionable
    if not (default and on_cpu()):
        return jax.random.bits(key, (size,), jnp.uint32)
    first, second = jax.random.key_data(key)
    keys = first, second, first ^ second ^ np.uint32(0x1BD11BDA)

    def numbers(start, count):
        high = jnp.broadcast_to(first, count)
        low = jax.lax.iota(jnp.uint32, count) + (start + second)
        for i in range(5):
            high, low = _mixed(high, low, i % 2)
            high = high + keys[(i + 1) % 3]
            low = low + keys[(i + 2) % 3] + np.uint32(i + 1)
        return high ^ low

    if size < _MANY:
        return numbers(np.uint32(0), size)
    half = -(-size // 2)

    def next_half(i, halves):
        # A new array: XLA does not divide a loop that writes to one array among threads.
        return halves[1], numbers(jnp.asarray(i, jnp.uint32) * half, half)

    room = jnp.broadcast_to(first, half)  # replaced; in shard_map it varies as the key does
    return jnp.concatenate(jax.lax.fori_loop(0, 2, next_half, (room, room)))[:size]


@functools.partial(jax.jit, static_argnums=2, inline=True)
def _mixed(high, low, group):
    """Four rounds, traced once for each of the two groups of rotations."""
    for rotation in _ROTATIONS[group]:
        high = high + low
        low = high ^ (low << np.uint32(rotation) | low >> np.uint32(32 - rotation))
    return high, low
