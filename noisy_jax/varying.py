"""States inside `jax.shard_map`, whose arrays may differ between devices."""

import functools
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")


def of_this_device(tree: Tree) -> Tree:
    """The same values, marked as different on each device.

    Inside `jax.shard_map` JAX tracks which arrays are the same on all devices. It sums the gradient
    at such an array over the devices, and a loop needs a state that is marked alike before and
    after each step. Outside of `shard_map` the tree itself is returned.
    """
    for axis in jax.sharding.get_abstract_mesh().manual_axes:
        tree = jax.tree.map(functools.partial(_tied, other=jax.lax.axis_index(axis)), tree)
    return tree


def _tied(own: Any, other: jax.Array) -> jax.Array:
    """The array `own`, as if it depended on `other`."""
    if hasattr(own, "dtype") and jnp.issubdtype(own.dtype, jax.dtypes.prng_key):
        numbers = _tied(jax.random.key_data(own), other)
        return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(own))
    numbers = jnp.asarray(own)
    return jnp.where(True, numbers, other.astype(numbers.dtype))
