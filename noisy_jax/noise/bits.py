"""The random bits of `jax.random.bits`, in less time on CPUs."""

import functools
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import in_vectors

_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)
_MANY = 256
"""From so many numbers on, they are computed in a loop, because XLA keeps the results of a loop. It
computes others again for each of their uses. A loop takes longer to compile."""


def random_bits(key: chex.PRNGKey, size: int) -> jax.Array:
    """`[size]` numbers of 32 random bits, those of `jax.random.bits(key, (size,))`.

    On CPUs JAX computes the 20 rounds of its default generator in a loop, which writes all numbers
    to memory in each pass. Here each half of many numbers is one operation, and few numbers are
    computed where they are used. Keys of other kinds are left to JAX.

    Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3 (2011), for
    Threefry-2x32-20.

    Example:
        >>> key = jax.random.key(0)
        >>> print((random_bits(key, 3) == jax.random.bits(key, (3,))).all())
        True
    """
    count = in_vectors(size)
    config: Any = jax.config
    if str(jax.random.key_impl(key)) != "threefry2x32" or not config.jax_threefry_partitionable:
        return jax.random.bits(key, (count,), jnp.uint32)[:size]
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

    if count < _MANY:
        return numbers(np.uint32(0), count)[:size]
    half = -(-count // 2)

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
