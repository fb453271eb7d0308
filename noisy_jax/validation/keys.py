"""Random keys of JAX."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation.messages import given


def parsed_key(key) -> jax.Array:
    """Returns one key, as a threefry key; raises ValueError if `key` is not a JAX key.

    A key of JAX's default kind, threefry, is returned as it is, typed (`jax.random.key`) or raw
    (`jax.random.PRNGKey`). Of other kinds, such as "rbg" and "unsafe_rbg", JAX draws the numbers of
    a whole batch under `vmap` from the first key, so that draws are no function of their own key.
    In their place stands a threefry key that follows from all their words.
    """
    if not is_key(key):
        raise ValueError(f"key must be a key such as jax.random.key(0), got {given(key)}")
    if key.dtype == np.uint32 and np.shape(key)[-1] not in (2, 4):
        raise ValueError(f"a raw key has 2 or 4 numbers, got {given(key)}: write jax.random.key(0)")
    if count := np.shape(key)[: np.ndim(key) - (key.dtype == np.uint32)]:
        raise ValueError(
            f"key must be one key, got keys {list(count)}: use one of them, or jax.vmap"
        )
    config: Any = jax.config
    typed = key.dtype != np.uint32
    kind = str(jax.random.key_impl(key)) if typed else config.jax_default_prng_impl
    if kind == _THREEFRY and (typed or np.shape(key) == (2,)):
        return key
    words = jax.random.key_data(key) if typed else jnp.asarray(key)
    return functools.reduce(
        jax.random.fold_in, words.reshape(-1), jax.random.key(0, impl=_THREEFRY)
    )


_THREEFRY = "threefry2x32"


def is_key(value) -> bool:
    """Returns True if a value is a JAX key."""
    raw = getattr(value, "dtype", None) == np.uint32 and np.ndim(value) > 0
    return (raw and not isinstance(value, np.ma.MaskedArray)) or is_typed_key(value)


def is_typed_key(value) -> bool:
    """Returns True if a value is a typed JAX key, or an array of them."""
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
