"""Arrays that are divided over devices: inside `jax.shard_map`, and by a mesh of explicit axes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr

Tree = TypeVar("Tree")

_ALONE = ("axis_index", "pcast", "pvary")
"""Primitives with an axis of the mesh by which devices exchange nothing."""


def of_this_device(tree: Tree) -> Tree:
    """Returns the same arrays, marked as different on each device.

    Inside `jax.shard_map` JAX tracks which arrays are the same on all devices. It sums the gradient
    at such an array over the devices, and a loop needs a state that is marked alike before and
    after each step. The marks are of all axes of the mesh, since arrays that a user's function
    closes over may differ along any of them. Outside of `shard_map` the tree itself is returned.
    """
    for axis in _axes():
        tree = jax.tree.map(functools.partial(_tied, other=jax.lax.axis_index(axis)), tree)
    return tree


def by_compiler(function: Callable[..., Any], *args: Any) -> Any:
    """Calls `function(*args)` and lets the compiler divide its arrays over the devices.

    It makes a difference under `jax.set_mesh` with explicit axes, where JAX asks each operation how
    its result is divided, and does not accept loops over a state that is not divided at first. The
    results are whole; `jax.vmap` over arguments that are divided divides them alike.

    Raises:
        ValueError: the function closes over arrays that are divided; they must be arguments.
    """
    if not jax.sharding.get_abstract_mesh().explicit_axes:
        return function(*args)
    leaves, structure = jax.tree.flatten(args)
    there = [
        isinstance(leaf, jax.Array) and not jax.typeof(leaf).sharding.mesh.empty for leaf in leaves
    ]

    def run(moved):
        moved = iter(moved)
        arrays = [next(moved) if is_there else a for a, is_there in zip(leaves, there, strict=True)]
        return function(*jax.tree.unflatten(structure, arrays))

    whole = jax.sharding.auto_axes(run, out_sharding=jax.sharding.PartitionSpec())
    try:
        return whole([leaf for leaf, is_there in zip(leaves, there, strict=True) if is_there])
    except ValueError as error:
        if "should match the aval mesh" not in str(error):
            raise
        raise ValueError(
            "the learner was built from arrays on a mesh of explicit axes: build and run it in one "
            "function of them, jax.sharding.auto_axes(function, out_sharding=PartitionSpec()), or "
            "make the mesh with jax.sharding.AxisType.Auto"
        ) from error


def zeros_like(shapes: Any) -> Any:
    """Returns zeros in the shapes and types of a pytree, marked as different on each device."""
    return of_this_device(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes))


def check_no_exchange(name: str, function: Any, *args: Any) -> None:
    """Raises ValueError if devices exchange numbers in a function that is to be differentiated.

    JAX would differentiate the sum of the values of all devices.
    """
    if not _axes():
        return
    primitive = exchange(jax.make_jaxpr(function)(*args).jaxpr, _axes())
    if primitive is not None:
        raise ValueError(
            f"{name} must compute on one device, but call {primitive}: leave the axes of the mesh "
            "over which the model is divided out of shard_map, as in axis_names={'seeds'}"
        )


def _axes() -> tuple[Any, ...]:
    return tuple(jax.sharding.get_abstract_mesh().manual_axes)


def exchange(jaxpr: Jaxpr, axes: tuple[Any, ...]) -> str | None:
    """Returns the first primitive that exchanges numbers along these axes of devices or rows."""
    for eqn in jaxpr.eqns:
        along = eqn.params.get("axes", eqn.params.get("axis_name"))
        along = along if isinstance(along, tuple | frozenset) else (along,)
        if eqn.primitive.name not in _ALONE and not set(axes).isdisjoint(along):
            return eqn.primitive.name
        for inner in jax.tree.leaves(list(eqn.params.values())):
            inner = inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner
            primitive = exchange(inner, axes) if isinstance(inner, Jaxpr) else None
            if primitive is not None:
                return primitive
    return None


def _tied(array: Any, other: jax.Array) -> jax.Array:
    """Returns the array, as if it depended on `other`."""
    if hasattr(array, "dtype") and jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        numbers = _tied(jax.random.key_data(array), other)
        return jax.random.wrap_key_data(numbers, impl=jax.random.key_impl(array))
    numbers = jnp.asarray(array)
    return jnp.where(True, numbers, other.astype(numbers.dtype))
