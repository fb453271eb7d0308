"""A function at several points, which are merged with the rows of a batch.

`jax.vmap(f)` at P points inside a `jax.vmap` over n rows computes with arrays [n, P, …]. The
gradient of a matrix product of such arrays takes several times as long on CPUs as that of nP rows.
So the points are a primitive, which `vmap` turns into nP rows; all other transformations replace it
by `jax.vmap(f)`. A function with effects, which exchanges numbers between rows, or checks or prints
them, is not merged: its rows stay what they are.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Primitive, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir

from noisy_jax.varying import exchange


def at_points(f: ClosedJaxpr, points: jax.Array) -> list[jax.Array]:
    """f at each of the points `[P, *x.shape]`: its results with a leading axis of P."""
    if f.effects:
        return jax.vmap(jaxpr_as_fun(f))(points)
    axes = (None,) * len(f.consts)
    return _POINTS.bind(points, *f.consts, jaxpr=f.jaxpr, axes=axes)


def exchanges(f: ClosedJaxpr) -> list[Any]:
    """Returns the names of the axes over which f exchanges numbers, as by `jax.lax.psum`."""
    names = [each.name for each in f.effects if type(each).__name__ == "NamedAxisEffect"]
    return [name for name in sorted(names, key=str) if exchange(f.jaxpr, (name,))]


def dependent(f: ClosedJaxpr, points: jax.Array) -> list[bool]:
    """Returns which results of f depend on the point."""
    found: list[bool] = []

    @jax.custom_batching.custom_vmap
    def seen(*results):
        return results

    @seen.def_vmap
    def _(size, batched, *results):
        del size
        found[:] = batched
        return results, tuple(batched)

    jax.eval_shape(jax.vmap(lambda x: seen(*jaxpr_as_fun(f)(x))), points)
    return found


def _mapped(points, *consts, jaxpr, axes):
    """f at each point; `axes` says which constants of f have a leading axis of points."""

    def one(x, *consts):
        return jaxpr_as_fun(ClosedJaxpr(jaxpr, consts))(x)

    return jax.vmap(one, (0, *axes))(points, *consts)


def _shapes(*args, jaxpr, axes):
    return jax.make_jaxpr(lambda *args: _mapped(*args, jaxpr=jaxpr, axes=axes))(*args).out_avals


def _derivative(primals, tangents, *, jaxpr, axes):
    moving = [i for i, each in enumerate(tangents) if not isinstance(each, ad.Zero)]

    def of_moving(*values):
        args = list(primals)
        for i, value in zip(moving, values, strict=True):
            args[i] = value
        return _mapped(*args, jaxpr=jaxpr, axes=axes)

    return jax.jvp(of_moving, tuple(primals[i] for i in moving), tuple(tangents[i] for i in moving))


def _batch(args, dims, *, jaxpr, axes):
    size = next(arg.shape[dim] for arg, dim in zip(args, dims, strict=True) if dim is not None)
    count = args[0].shape[0 if dims[0] is None else int(dims[0] == 0)]

    def merged(arg, dim, axis):
        """`[n P, …]`, from an argument that may lack either axis."""
        arg = arg[None] if dim is None else jnp.moveaxis(arg, dim, 0)
        arg = arg[:, None] if axis is None else arg
        arg = jnp.broadcast_to(arg, (size, count, *arg.shape[2:]))
        return arg.reshape(size * count, *arg.shape[2:])

    given, of_points = [], []
    for arg, dim, axis in zip(args, dims, (0, *axes), strict=True):
        alone = dim is None and axis is None
        given.append(arg if alone else merged(arg, dim, axis))
        of_points.append(None if alone else 0)
    results = _POINTS.bind(*given, jaxpr=jaxpr, axes=tuple(of_points[1:]))
    return [each.reshape(size, count, *each.shape[1:]) for each in results], [0] * len(results)


_POINTS = Primitive("at_points")
_POINTS.multiple_results = True
_POINTS.def_impl(lambda *args, **params: jax.jit(lambda *args: _mapped(*args, **params))(*args))
_POINTS.def_abstract_eval(_shapes)
ad.primitive_jvps[_POINTS] = _derivative
batching.primitive_batchers[_POINTS] = _batch
mlir.register_lowering(_POINTS, mlir.lower_fun(_mapped, multiple_results=True))
