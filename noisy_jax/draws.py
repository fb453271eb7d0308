"""The draws of `jax.random`, the same ones with and without `jax_enable_x64`.

`jax.random` takes twice as many random bits for a number in float64, so that the same key gives
another number. Here all numbers are drawn in float32, or as whole numbers of 32 bits, and then
converted: under x64 a simulation is the same, with less rounding. All rooms draw by these functions
(`tests/test_draws.py` looks for others).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation.values import Array, ArrayLike

Shape = tuple[int, ...]


def normal(key: jax.Array, shape: Shape, dtype: Any = float) -> jax.Array:
    """N(0, 1), drawn flat: arrays of few columns compile up to four times as fast.

    The numbers are those of `jax.random.normal`.
    """
    size = int(np.prod(shape))
    return jax.random.normal(key, (size,), jnp.float32).reshape(shape).astype(dtype)


def uniform(
    key: jax.Array,
    shape: Shape = (),
    dtype: Any = float,
    minval: ArrayLike = 0,
    maxval: ArrayLike = 1,
) -> jax.Array:
    """Uniform on [minval, maxval).

    Example:
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     print(f"{uniform(jax.random.key(0)):.4f}")
        0.9477
        >>> print(f"{uniform(jax.random.key(0)):.4f}")
        0.9477
    """
    return jax.random.uniform(key, shape, jnp.float32, minval, maxval).astype(dtype)


def laplace(key: jax.Array, shape: Shape, dtype: Any = float) -> jax.Array:
    """Density exp(−|n|)/2."""
    return jax.random.laplace(key, shape, jnp.float32).astype(dtype)


def exponential(key: jax.Array, shape: Shape, dtype: Any = float) -> jax.Array:
    """Density exp(−n) for n ≥ 0."""
    return jax.random.exponential(key, shape, jnp.float32).astype(dtype)


def gamma(key: jax.Array, a: ArrayLike, shape: Shape, dtype: Any = float) -> jax.Array:
    """Density n^(a − 1) exp(−n)/Γ(a)."""
    return jax.random.gamma(key, _float32(a), shape, jnp.float32).astype(dtype)


def student_t(key: jax.Array, df: ArrayLike, shape: Shape, dtype: Any = float) -> jax.Array:
    """Student's t with `df` degrees of freedom."""
    return jax.random.t(key, _float32(df), shape, jnp.float32).astype(dtype)


def bernoulli(key: jax.Array, p: ArrayLike, shape: Shape) -> jax.Array:
    """True with probability p."""
    return jax.random.bernoulli(key, _float32(p), shape)


def rademacher(key: jax.Array, shape: Shape, dtype: Any = float) -> jax.Array:
    """±1, each with probability ½."""
    return 2 * bernoulli(key, 0.5, shape).astype(dtype) - 1


def poisson(key: jax.Array, mean: jax.Array, dtype: Any = float) -> jax.Array:
    """Counts with these means."""
    return jax.random.poisson(key, _float32(mean), dtype=jnp.int32).astype(dtype)


def categorical(key: jax.Array, logits: Array, shape: Shape | None = None) -> jax.Array:
    """i with probability ∝ exp(logits_i), over the last axis."""
    return jax.random.categorical(key, _float32(logits), shape=shape)


def integers(key: jax.Array, shape: Shape, minval: int, maxval: int) -> jax.Array:
    """Uniform on the whole numbers from `minval` to `maxval` − 1."""
    return jax.random.randint(key, shape, minval, maxval, jnp.int32)


def _float32(values: ArrayLike) -> jax.Array:
    return jnp.asarray(values, jnp.float32)
