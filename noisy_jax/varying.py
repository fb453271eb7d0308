"""States inside `jax.shard_map`, whose arrays may differ between devices."""

import functools
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")


def varying_with(tree: Tree, like: Any) -> Tree:
    """The same values, marked as different on each device if any array of `like` is.

    Inside `jax.shard_map` JAX tracks which arrays are the same on all devices. It sums the gradient
    at such an array over the devices, and a scan needs a state that is marked alike before and
    after each step. Outside of `shard_map` the tree itself is returned.
    """
    if not jax.sharding.get_abstract_mesh().manual_axes:
        return tree
    for leaf in filter(jnp.size, map(_numbers, jax.tree.leaves(like))):
        tree = jax.tree.map(functools.partial(_tied, other=jnp.ravel(leaf)[0]), tree)
    return tree


def _tied(own: Any, other: jax.Array) -> jax.Array:
    """The array `own`, as if it depended on `other`."""
    numbers = _numbers(own)
    tied = jnp.where(True, numbers, other.astype(numbers.dtype))
    return jax.random.wrap_key_data(tied, impl=jax.random.key_impl(own)) if _is_key(own) else tied


def _numbers(leaf: Any) -> jax.Array:
    return jax.random.key_data(leaf) if _is_key(leaf) else jnp.asarray(leaf)


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
