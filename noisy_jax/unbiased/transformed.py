"""Functions of noisy copies in place of one clean input: the base of all transformations."""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from noisy_jax.noise import Noise
from noisy_jax.unbiased.continuation import Continued
from noisy_jax.unbiased.entire import continued_program
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.values import at_least_float32
from noisy_jax.varying import exchange


class Points(NamedTuple):
    """Points at which f is evaluated: the estimate is Σ_j w_j Re f(p_j + iq_j).

    Attributes:
        real: `[P, *x.shape]`, p.
        weights: `[P]`, w, with Σ_j w_j = 1.
        imaginary: `[P, *x.shape]`, q; `None` for real points.
    """

    real: jax.Array
    weights: jax.Array
    imaginary: jax.Array | None = None


# Without a `__dict__`: `functools.wraps`, which also flax's `nnx.value_and_grad` uses, would copy
# it into the wrapper, and overwrite the wrapper's attributes, such as f.
@dataclasses.dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
class Transformed:
    """A function g(…, copies, …) that estimates f(…, x, …) at the clean x from noisy copies of x.

    `pair`, `gaussian`, `replicates` and `multilevel` of `nj.unbiased` make it. g takes V noisy
    copies `[V, *x.shape]` in place of x, and all other arguments of f. It evaluates f at some
    points made of the copies, real or complex, and returns a weighted sum of the results, in the
    shapes and types of f's results. It is a pure function of its arguments: use it under `jit`,
    `vmap`, `grad`, `scan` like f.

    x is an array or a pytree of arrays, such as a dict or a tuple: its copies are the same pytree,
    with a leading axis of V in each leaf. A list of numbers is read as one array, and a list of
    arrays is an error. f may return any pytree, such as a loss and a new state: g estimates all
    numbers of floating point in it, and returns all other leaves, such as counters, as they are.

    f may exchange numbers between rows, as `jax.lax.pmean` does under `jax.vmap(g, axis_name=…)`.
    Then g estimates the function of all rows.

    Attributes:
        f: the function of one clean input x.
        argnum: which positional argument of f is x.
        name: the name of the transformation, for messages.
        copies: V, the least number of copies that g takes.
        rule: `(copies, key) -> Points`: p, q and w such that g is Σ_j w_j Re f(p_j + iq_j).
        noise: the distribution of the noise that g is built for, or its class; `None` for any.
        draws: whether g needs a key, `g(…, key=key)`. If it needs none, it passes `key` on to an f
            that has an argument `key`.
        next_order: for `replicates` of order k ≥ 1 the estimate of order k + 1 from the same
            copies; `None` otherwise.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> loss = lambda w, x, y: (x @ w - y) ** 2
        >>> g = nj.unbiased.replicates(loss, argnum=1)  # a Transformed
        >>> copies = jnp.array([[1.0, 0.0], [3.0, 2.0]])  # V = 2 copies of x, [2]
        >>> print(g.copies, g(jnp.ones(2), copies, 1.0), jax.grad(g)(jnp.ones(2), copies, 1.0))
        2 0.0 [4. 0.]
    """

    f: Callable[..., Any]
    argnum: int
    name: str
    copies: int
    rule: Callable[[jax.Array, Any], Points]
    noise: Any = None
    draws: bool = False
    next_order: Transformed | None = None

    def __post_init__(self):
        if not callable(self.f):
            raise ValueError(f"f must be a function, got {given(self.f)}")
        try:
            if isinstance(self.argnum, bool):
                raise TypeError
            place = operator.index(self.argnum)
        except TypeError:
            raise ValueError(
                f"argnum must be the place of x, one whole number, got {given(self.argnum)}"
            ) from None
        if isinstance(self.f, Transformed) and self.f.argnum == place:
            raise ValueError(
                f"f is an estimate already, by {self.f.name}, of the same argument {place}: give "
                "the function of the clean input itself"
            )

    def __getattr__(self, name: str) -> Any:
        """Returns f as `__wrapped__`, so that g has its signature; the class has one of its own."""
        if name == "__wrapped__":
            return self.f
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def __name__(self) -> str:
        """The name of f."""
        return getattr(self.f, "__name__", self.name)

    def __call__(self, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        """Returns the estimate, in the shapes and types of f's results."""
        i = self.place(len(args))
        copies, x_of = _parsed(args[i], i, self.copies)
        of_f = None if key is None else _key_of(self.f, args)
        if of_f is not None and not self.draws:
            kwargs["key"] = key
        elif of_f is not None and of_f.default is of_f.empty:
            raise ValueError(
                "key is reserved by the estimator, which draws from it: rename f's own argument "
                "key, as by lambda *args, own_key: f(*args, key=own_key)"
            )

        def at(point):
            x = x_of(point)
            try:
                result = self.f(*args[:i], x, *args[i + 1 :], **kwargs)
                if any(isinstance(leaf, str) for leaf in jax.tree.leaves(result)):
                    raise ValueError("f must return numbers of floating point, got a text")
                return result
            except Exception as error:
                if note := _note(error, x, args[i]):
                    error.add_note(note)
                raise

        points = self.points(copies, key)
        traced = _Traced.of(at, points.real[0])
        if traced.axes and isinstance(self.noise, Noise):
            # Rows of one f have draws of their own, also with the same key.
            for axis in traced.axes:
                key = jax.random.fold_in(parsed_key(key), jax.lax.axis_index(axis))
            points = self.points(copies, key)
        return traced.weighted(points, self.name)

    def points(self, copies: jax.Array, key: Any = None) -> Points:
        """Returns the points where g evaluates f, for copies `[V, *x.shape]`, and their weights.

        The result has `real` and `imaginary` `[P, *x.shape]` (the latter `None` for real points),
        and `weights` `[P]`, which add up to 1. The leaves of a pytree are one array `[V, D]` here.
        """
        if self.draws and key is None:
            raise ValueError(f"{self.name} draws at random: pass a key, g(..., key=key)")
        return self.rule(copies, parsed_key(key) if self.draws else None)

    def place(self, count: int) -> int:
        """Returns the place of the copies among `count` positional arguments, from 0."""
        if not -count <= self.argnum < count:
            raise ValueError(
                f"argnum is {self.argnum}, but there are {count} positional arguments: the copies "
                "must be one of them"
            )
        return self.argnum % count

    def mean_of_used(self, copies: jax.Array, key: Any) -> jax.Array:
        """Returns the mean `[*x.shape]` of the copies `[V, *x.shape]` that g uses with this key."""
        del key
        return mean(copies)


def _parsed(copies: Any, place: int, least: int) -> tuple[jax.Array, Callable[[jax.Array], Any]]:
    """Returns the copies as one array `[V, …]`, and a function from a point of it to an x of f.

    The leaves of a pytree are flattened, and stand in the array one after another.
    """
    message = (
        f"argument {place} must be noisy copies [V, *x.shape] of numbers of floating point, "
        f"with V of at least {least}, got "
    )

    def array(value, where=""):
        try:
            value = jnp.asarray(value)
        except TypeError:
            raise ValueError(f"{message}{given(value)}{where}: argnum is the place of x") from None
        shape = jnp.shape(value)
        if not shape or shape[0] < least or not jnp.issubdtype(value.dtype, jnp.floating):
            raise ValueError(f"{message}{list(shape)} of {jnp.result_type(value)}{where}")
        return value

    paths, tree = jax.tree.flatten_with_path(copies)
    arrays = any(np.ndim(leaf) for _, leaf in paths)
    if isinstance(copies, list) and arrays:
        raise ValueError(
            f"{message}a list of arrays: jnp.stack makes one array of copies, and a tuple is an x "
            "of several arrays"
        )
    if isinstance(copies, list) or not arrays or jax.tree_util.treedef_is_leaf(tree):
        return array(copies), lambda point: point
    leaves = [array(leaf, f" at {jax.tree_util.keystr(path)}") for path, leaf in paths]
    if len({len(leaf) for leaf in leaves}) > 1:
        shapes = [list(leaf.shape) for leaf in leaves]
        raise ValueError(f"{message}leaves of different numbers of copies, {shapes}")
    wide = jnp.result_type(*leaves)
    flat = [leaf.reshape(len(leaf), -1).astype(wide) for leaf in leaves]
    ends = np.cumsum([leaf.shape[1] for leaf in flat])[:-1]

    def x_of(point):
        parts = zip(jnp.split(point, ends), leaves, strict=True)
        return tree.unflatten(
            part.reshape(leaf.shape[1:]).astype(leaf.dtype) for part, leaf in parts
        )

    return jnp.concatenate(flat, axis=1), x_of


def _note(error: Exception, x: Any, copies: Any) -> str | None:
    """Returns what an error inside f needs that its message does not say."""
    if type(error).__name__ == "TraceContextError":
        return (
            "f changes a module of flax that was made outside of f: begin f with "
            "net = nnx.clone(net), and if its new state is needed, return "
            "nnx.state(net, nnx.Not(nnx.Param)) as a second result"
        )
    if isinstance(error, NameError) and "axis name" in str(error):
        return "f exchanges numbers between rows: batch them with jax.vmap(…, axis_name=…)"
    if isinstance(error, jax.errors.TracerArrayConversionError):
        return "f runs on traced arrays: write it in jax.numpy, not in NumPy"
    if isinstance(error, TypeError | ValueError | IndexError):
        shape, stacked = (
            jax.tree.map(lambda leaf: list(jnp.shape(leaf)), tree) for tree in (x, copies)
        )
        return (
            f"f got an x of shape {shape}, one of the copies {stacked}, which are [V, *x.shape] of "
            "one input: batch rows with jax.vmap, or, if f takes the whole batch, give [V, n, d]"
        )
    return None


def _key_of(f: Callable[..., Any], args: Any) -> inspect.Parameter | None:
    """The parameter `key` of f, if it has one that these arguments do not give."""
    try:
        signature = inspect.signature(f)
        signature.bind_partial(*args, key=None)
    except (TypeError, ValueError):
        return None
    return signature.parameters.get("key")


def trained(params: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Splits params into trainable float arrays and a function that recombines them.

    Returns:
        The parameters with `None` for all leaves but arrays of floating point, as
        `equinox.partition` gives them, and a function from these to the whole parameters.
    """

    def counts(leaf):
        array = isinstance(leaf, jax.Array | np.ndarray)
        return array and jnp.issubdtype(leaf.dtype, jnp.floating)

    arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf) if counts(leaf) else None, params)
    others = jax.tree.map(lambda leaf: None if counts(leaf) else leaf, params)

    def whole(arrays):
        return jax.tree.map(
            lambda array, other: other if array is None else array,
            arrays,
            others,
            is_leaf=lambda leaf: leaf is None,
        )

    return arrays, whole


def mean(copies: jax.Array, axis: int = 0) -> jax.Array:
    """The mean, summed in at least float32, in the type of the copies."""
    wide = at_least_float32(copies.dtype)
    return jnp.mean(copies.astype(wide), axis=axis).astype(copies.dtype)


class _Traced(NamedTuple):
    """A function of one array, traced once for all points.

    Attributes:
        program: its jaxpr.
        structure: of its results, a pytree.
        axes: names of the axes over which it exchanges numbers, as by `jax.lax.psum`.
    """

    program: ClosedJaxpr
    structure: Any
    axes: list[Any]

    @classmethod
    def of(cls, f: Callable[..., Any], point: jax.Array) -> Self:
        """f, traced at a point."""
        program, shape = jax.make_jaxpr(f, return_shape=True)(point)
        named = [
            effect.name for effect in program.effects if type(effect).__name__ == "NamedAxisEffect"
        ]
        axes = [name for name in sorted(named, key=str) if exchange(program.jaxpr, (name,))]
        return cls(program, jax.tree.structure(shape), axes)

    def weighted(self, points: Points, name: str) -> Any:
        """Σ_j w_j Re f(p_j + iq_j), summed in at least float32.

        A result that is no number of floating point, such as a counter, is returned as it is, if it
        does not depend on x. If f uses collectives over the rows (`jax.lax.psum`), this estimates
        the function of all rows, for which they need the same weights; it is NaN if they have
        others.
        """
        weights = points.weights
        for axis in self.axes:
            alike = jax.lax.pmin(weights, axis) == jax.lax.pmax(weights, axis)
            weights = jnp.where(alike, weights, jnp.nan)

        def at(real, imaginary):
            if imaginary is None:
                return jaxpr_as_fun(self.program)(real)
            results = continued_program(self.program, Continued(real, imaginary), name)
            return [value.re if isinstance(value, Continued) else value for value in results]

        def total(values, depends):
            if not jnp.issubdtype(values.dtype, jnp.inexact):
                if depends:
                    raise ValueError(
                        f"f must return numbers of floating point, but a result of type "
                        f"{values.dtype} depends on x, which has no unbiased estimate: leave it out"
                    )
                return values[0]
            wide = at_least_float32(values.dtype)
            sums = jnp.tensordot(weights.astype(wide), values.astype(wide), axes=1)
            return sums.astype(values.dtype)

        several = jax.vmap(at) if len(weights) > 1 else _one_row(at)
        values = several(points.real, points.imaginary)
        depends = [False] * len(values)
        plain = all(jnp.issubdtype(value.dtype, jnp.inexact) for value in values)
        if points.imaginary is None and not plain:  # complex ones do not depend, or are an error
            depends = _dependent(at, points)
        return jax.tree.unflatten(self.structure, map(total, values, depends))


def _one_row(f: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.vmap(f)` of one row, also of a primitive without a batching rule."""
    return lambda *args: [value[None] for value in f(*jax.tree.map(lambda leaf: leaf[0], args))]


def _dependent(f: Callable[..., Any], points: Points) -> list[bool]:
    """Returns which results of f depend on the point."""
    depends: list[bool] = []

    @jax.custom_batching.custom_vmap
    def recorded(*results):
        return results

    @recorded.def_vmap
    def _(size, batched, *results):
        del size
        depends[:] = batched
        return results, tuple(batched)

    jax.eval_shape(jax.vmap(lambda *point: recorded(*f(*point))), points.real, points.imaginary)
    return depends
