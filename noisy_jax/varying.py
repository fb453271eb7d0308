"""Arrays inside `jax.shard_map`, which may differ between devices."""

import functools
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

Tree = TypeVar("Tree")

_ALONE = ("axis_index", "pcast", "pvary")
"""Primitives with an axis of the mesh by which devices exchange nothing."""


def of_this_device(tree: Tree) -> Tree:
    """The same arrays, marked as different on each device.

    Inside `jax.shard_map` JAX tracks which arrays are the same on all devices. It sums the gradient
    at such an array over the devices, and a loop needs a state that is marked alike before and
    after each step. The marks are of all axes of the mesh, since what a user's function closes over
    may differ along any of them. Outside of `shard_map` the tree itself is returned.
    """
    for axis in _axes():
        tree = jax.tree.map(functools.partial(_tied, other=jax.lax.axis_index(axis)), tree)
    return tree


def zeros_like(shapes: Any) -> Any:
    """Zeros in the shapes and types of a pytree, marked as different on each device."""
    return of_this_device(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))


def check_no_exchange(name: str, function: Any, *args: Any) -> None:
    """Raises ValueError if devices exchange numbers in a function of which a gradient is taken.

    JAX would differentiate the sum of the values of all devices.
    """
    if not _axes():
        return
    found = _exchange(jax.make_jaxpr(function)(*args).jaxpr, _axes())
    if found is not None:
        raise ValueError(
            f"{name} must compute on one device, but call {found}: leave the axes of the mesh "
            "over which the model is divided out of shard_map, as in axis_names={'seeds'}"
        )


def _axes() -> tuple[Any, ...]:
    return tuple(jax.sharding.get_abstract_mesh().manual_axes)


def _exchange(jaxpr: Jaxpr, axes: tuple[Any, ...]) -> str | None:
    """The first primitive by which devices along these axes exchange numbers."""
    for eqn in jaxpr.eqns:
        along = eqn.params.get("axes", eqn.params.get("axis_name"))
        along = along if isinstance(along, tuple | frozenset) else (along,)
        if eqn.primitive.name not in _ALONE and not set(axes).isdisjoint(along):
            return eqn.primitive.name
        for inner in jax.tree.leaves(list(eqn.params.values())):
            inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
            found = _exchange(inner, axes) if isinstance(inner, Jaxpr) else None
            if found is not None:
                return found
    return None


def _tied(own: Any, other: jax.Array) -> jax.Array:
    """The array `own`, as if it depended on `other`."""
    if hasattr(own, "dtype") and jnp.issubdtype(own.dtype, jax.dtypes.prng_key):
        numbers = _tied(jax.random.key_data(own), other)
        return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(own))
    numbers = jnp.asarray(own)
    return jnp.where(True, numbers, other.astype(numbers.dtype))
