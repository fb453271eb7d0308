"""What all transformations share: a function of noisy copies in place of one clean input."""

import functools
import inspect
import operator
from collections.abc import Callable
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.unbiased.points import at_points
from noisy_jax.validation import at_least_float32, given


class Transformed:
    """A function g(..., copies, ...) that estimates f(..., x, ...) at the clean x.

    It is a pure function of its arguments: use it under `jit`, `vmap`, `grad`, `scan` as f.

    Attributes:
        copies: V, the number of copies that g needs.
        points: `(copies, key) -> (points[P, *x.shape], weights[P])` with g = Σ_j w_j f(p_j); `None`
            if g is no such sum.
        next_order: an estimate of one order more from the same copies, of `replicates` only.
        noise: the distribution that g is built for, or its class; `None` for any noise.
        draws: whether g needs a key. Else it passes the keyword `key` on to an f that takes one.
    """

    points: Callable[..., tuple[jax.Array, jax.Array]] | None = None
    noise: Any = None
    next_order: "Transformed | None" = None
    draws: bool = False

    def __init__(
        self, f: Callable[..., Any], estimate: Callable[..., Any], argnum: int, copies: int
    ):
        """`estimate(copies, at, key) -> f̂`, where `at(x)` is f with its other arguments."""
        if not callable(f):
            raise ValueError(f"f must be a function, got {given(f)}")
        functools.update_wrapper(self, f, updated=())
        try:
            self._argnum = operator.index(argnum)
        except TypeError:
            raise ValueError(
                f"argnum must be the place of x, one whole number, got {given(argnum)}"
            ) from None
        self._f, self._estimate, self.copies = f, estimate, copies

    def __call__(self, *args: Any, key: Any = None, **kwargs: Any) -> Any:
        """The estimate, in the shapes and types of f's results."""
        i = self.place(len(args))
        message = (
            f"argument {i} must be noisy copies [V, *x.shape] of numbers of floating point, "
            f"with V of at least {self.copies}, got "
        )
        try:
            copies = jnp.asarray(args[i])
        except TypeError:
            raise ValueError(f"{message}{given(args[i])}: argnum is the place of x") from None
        shape = jnp.shape(copies)
        if not shape or shape[0] < self.copies or not jnp.issubdtype(copies.dtype, jnp.floating):
            raise ValueError(f"{message}{list(shape)} of {jnp.result_type(copies)}")

        of_f = None if key is None else _key_of(self._f, args)
        if of_f is not None and not self.draws:
            kwargs["key"] = key
        elif of_f is not None and of_f.default is of_f.empty:
            raise ValueError("g takes the keyword key for itself: give that of f another name")

        def at(x):
            try:
                return self._f(*args[:i], x, *args[i + 1 :], **kwargs)
            except Exception as error:
                error.add_note(
                    f"f got an x of shape {list(jnp.shape(x))}, one of the copies {list(shape)}, "
                    "which are [V, *x.shape] of one input: batch rows with jax.vmap"
                )
                raise

        return self._estimate(copies, at, key)

    @classmethod
    def at_points(
        cls, f: Callable[..., Any], points: Callable[..., Any], argnum: int, copies: int
    ) -> Self:
        """The transformation with Σ_j w_j f(p_j), where `points(copies, key)` are p and w."""

        def estimate(copies, at, key):
            return weighted(at, *points(copies, key))

        g = cls(f, estimate, argnum, copies)
        g.points = points
        return g

    def place(self, count: int) -> int:
        """The place of the copies among `count` positional arguments."""
        if not -count <= self._argnum < count:
            raise ValueError(
                f"argnum is {self._argnum}, but there are {count} positional arguments: the copies "
                "must be one of them"
            )
        return self._argnum % count

    def mean_of_used(self, copies: jax.Array, key: Any) -> jax.Array:
        """The mean `[*x.shape]` of the copies `[V, *x.shape]` that g uses with this key."""
        del key
        return mean(copies)


def _key_of(f: Callable[..., Any], args: Any) -> inspect.Parameter | None:
    """The parameter `key` of f, if it has one that these arguments do not give."""
    try:
        signature = inspect.signature(f)
        signature.bind_partial(*args, key=None)
    except (TypeError, ValueError):
        return None
    return signature.parameters.get("key")


def needs_covariance(estimate: Callable[..., Any]) -> bool:
    """Whether a transformation, such as `gaussian`, has an argument `noise` that is not given."""
    noise = inspect.signature(estimate).parameters.get("noise")
    return noise is not None and noise.default is noise.empty


def trained(params: Any) -> tuple[Any, Callable[[Any], Any]]:
    """What of a model's parameters is trained, and the model again from it.

    Returns:
        The parameters with `None` for all leaves but arrays of floating point, and a function that
        puts those leaves back.
    """

    def counts(leaf):
        array = isinstance(leaf, jax.Array | np.ndarray)
        return array and jnp.issubdtype(leaf.dtype, jnp.floating)

    arrays = jax.tree.map(lambda leaf: jnp.asarray(leaf) if counts(leaf) else None, params)
    others = jax.tree.map(lambda leaf: None if counts(leaf) else leaf, params)

    def whole(arrays):
        return jax.tree.map(
            lambda one, other: other if one is None else one,
            arrays,
            others,
            is_leaf=lambda leaf: leaf is None,
        )

    return arrays, whole


def mean(copies: jax.Array, axis: int = 0) -> jax.Array:
    """The mean, summed in at least float32, in the type of the copies."""
    wide = at_least_float32(copies.dtype)
    return jnp.mean(copies.astype(wide), axis=axis).astype(copies.dtype)


def weighted(at: Callable[..., Any], points: jax.Array, weights: jax.Array) -> Any:
    """Σ_j w_j f(p_j) for points `[P, *x.shape]`, summed in at least float32.

    f is traced and compiled once, for all points together.
    """

    def total(values):
        if not jnp.issubdtype(values.dtype, jnp.inexact):
            raise ValueError(
                f"f must return numbers of floating point, but a result is of type {values.dtype}, "
                "which has no unbiased estimate: leave it out"
            )
        wide = at_least_float32(values.dtype)
        return jnp.tensordot(weights.astype(wide), values.astype(wide), axes=1).astype(values.dtype)

    return jax.tree.map(total, at_points(at, points))
