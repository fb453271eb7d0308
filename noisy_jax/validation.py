"""Parsing of arguments, once, where they enter the library.

A parser such as `radius = positive("radius", radius)` returns the value. A concrete value that is
wrong raises ValueError, whose message names the argument, the given value and the allowed ones. A
traced value (under `jit`, `vmap` or `grad`) cannot raise: where it is wrong it becomes NaN, so that
the run ends in NaN and `Rollout.diverged_at` gives the first such round.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Collection, ItemsView, Iterator, KeysView, Sequence, ValuesView
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

_T = TypeVar("_T")

Array = jax.Array | np.ndarray
"""An array of JAX or of NumPy."""

ArrayLike = Array | np.bool_ | np.number | bool | int | float
"""An array, or a real number. It may be traced."""


def concrete(value) -> np.ndarray | None:
    """Returns the value as a NumPy array, or `None` if it is traced."""
    return None if isinstance(value, Tracer) else np.asarray(unmasked(value))


def unmasked(value):
    """Returns the value; for a masked array (`numpy.ma`) its numbers, NaN where masked."""
    if isinstance(value, list | tuple) and any(isinstance(v, np.ma.MaskedArray) for v in value):
        value = np.ma.array(value)
    if not isinstance(value, np.ma.MaskedArray):
        return value
    kind = np.result_type(value, np.float32) if value.dtype.kind in "biufc" else object
    return np.ma.filled(value.astype(kind), np.nan)


def collected(value: _T) -> _T:
    """Returns the value; for an iterator, which gives its items only once, a tuple of them.

    Views of a dict become tuples as well. Parsers call it where arguments enter.

    Example:
        >>> collected(letter for letter in "ab")
        ('a', 'b')
    """
    found: Any = tuple(value) if isinstance(value, _ONCE) else value
    return found


def collected_map(value: _T) -> _T:
    """Returns the value; for an iterator of pairs of names and values, as from `zip`, a dict."""
    found: Any = collected(value)
    if found is value or not found:
        return found
    if all(isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in found):
        found = dict(found)
    return found


_ONCE = Iterator, KeysView, ValuesView, ItemsView


def at_least_float32(dtype):
    """Returns the data type; float32 in place of a shorter one or of integers, not promoted."""
    wide = jnp.issubdtype(dtype, jnp.inexact) and jnp.dtype(dtype).itemsize >= 4
    return dtype if wide else jnp.dtype(jnp.float32)


def array_module(*values) -> ModuleType:
    """Returns NumPy (which computes in float64) if every value is concrete, else jax.numpy."""
    return jnp if any(concrete(value) is None for value in values) else np


def given(value) -> str:
    """Describes a value for a message: a number, the start of a string, or else the type."""
    if value is None or isinstance(value, (int, float, complex, str, np.generic)):
        return repr(value) if len(repr(value)) <= _SHOWN else f"{repr(value)[:_SHOWN]}…"
    if isinstance(value, (np.ndarray, jax.Array)):
        return f"an array {list(value.shape)} of {value.dtype}"
    return type(value).__name__


_SHOWN = 60  # letters of a value that messages repeat


def listed(names: Sequence[Any], most: int = 10) -> str:
    """Lists names for a message, such as `'a', 'b'`: the first ones, and their number."""
    some = ", ".join(given(name) for name in names[:most])
    return some if len(names) <= most else f"{some}, … ({len(names):,} in all)"


def real_numbers(name: str, value) -> np.ndarray | None:
    """Returns the value as a NumPy array of real numbers or NaN; `None` if it is traced."""
    if is_typed_key(value):
        raise ValueError(f"{name} must be numbers, got a key")
    array = concrete(value)
    kind = np.float32 if array is None else np.result_type(array, np.float32)
    if not np.issubdtype(kind, np.floating) or isinstance(value, bool):
        wanted = "real" if np.issubdtype(kind, np.complexfloating) else "numbers"
        raise ValueError(f"{name} must be {wanted}, got {given(value)}")
    return array


def number(name: str, value, hint: str = "", *, shape: tuple[()] | None = ()):
    """Returns the value if it is one finite number; `shape=None` allows arrays of them."""
    return _parsed(name, value, "finite", lambda v: True, hint, shape)


def positive(name: str, value, hint: str = "", *, shape: tuple[()] | None = ()):
    """Returns the value if it is finite and above zero."""
    return _parsed(name, value, "positive and finite", lambda v: v > 0, hint, shape)


def non_negative(name: str, value, hint: str = "", *, shape: tuple[()] | None = ()):
    """Returns the value if it is finite and at least zero."""
    return _parsed(name, value, "finite and >= 0", lambda v: v >= 0, hint, shape)


def between(name: str, value, low, high, hint: str = "", *, shape: tuple[()] | None = ()):
    """Returns the value if it is above `low` and below `high`."""
    what = f"above {low:g} and {'finite' if high == np.inf else f'below {high:g}'}"
    return _parsed(name, value, what, lambda v: (v > low) & (v < high), hint, shape)


def within(name: str, value, low, high, hint: str = "", *, shape: tuple[()] | None = ()):
    """Returns the value if it is at least `low` and at most `high`."""
    what = f"in [{low:g}, {high:g}]"
    return _parsed(name, value, what, lambda v: (v >= low) & (v <= high), hint, shape)


def whole(name: str, value, least: int = 1, hint: str = "") -> int:
    """Returns the value as an `int` if it is a whole number of at least `least`.

    Scalars of NumPy and JAX, which are arrays without axes, may be; traced values are not.
    """
    unlike = isinstance(value, list | tuple) or is_typed_key(value)
    array = None if unlike else concrete(value)
    if array is None or array.ndim or array.dtype.kind not in "iu" or array < least:
        raise ValueError(_message(name, f"a whole number of at least {least}", value, hint))
    return int(array)


def real_array(name: str, value) -> jax.Array | np.ndarray:
    """Returns real numbers as an array; an array, which may be traced, as it is.

    Lists, iterators and data frames may be, and lists with traced numbers. Anything else, such as
    texts, complex numbers, keys and lists of unequal lengths, raises ValueError.
    """
    array = value
    if not isinstance(value, jax.Array | np.ndarray) or isinstance(value, np.ma.MaskedArray):
        value = collected(value)
        value = jnp.asarray(value) if _lists_traced(value) else value
        shape_of(name, value)
        try:
            array = value if isinstance(value, Tracer) else np.asarray(unmasked(value))
            if array.dtype == object and not any(
                isinstance(v, str | None) for v in array.ravel().tolist()
            ):
                array = array.astype(float)
        except (TypeError, ValueError):
            raise ValueError(_message(name, "an array of numbers", value, "")) from None
    real = jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool
    if not real or jnp.issubdtype(array.dtype, jnp.complexfloating):
        raise ValueError(_message(name, "an array of real numbers", value, ""))
    return array


def real(name: str, value) -> Any:
    """Returns real numbers in floating point: a Python number as it is, anything else as an array.

    A Python number does not change the type of what it is multiplied with.
    """
    if isinstance(value, int | float):
        return value
    array = real_array(name, value)
    exact = array.dtype.kind in "iub"
    return jnp.asarray(array, jnp.result_type(array, float)) if exact else array


def _lists_traced(value) -> bool:
    """Returns True for a list or tuple with a traced number."""
    lists = isinstance(value, list | tuple)
    return lists and any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(value))


def shape_of(name: str, value) -> tuple[int, ...]:
    """Returns the shape of an array or a list; raises ValueError for lists of unequal lengths."""
    try:
        return np.shape(jnp.asarray(value) if _lists_traced(value) else value)
    except ValueError:
        what = "one array, but has parts of unequal shapes"
        raise ValueError(_message(name, what, value, "")) from None


def function(name: str, value, hint: str = ""):
    """Returns the value if it can be called."""
    if not callable(value):
        raise ValueError(_message(name, "a function", value, hint))
    return value


def switch(name: str, value) -> bool:
    """Returns the value if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(_message(name, "True or False", value, ""))
    return bool(value)


def choice(name: str, value, choices: Collection):
    """Returns the value if it is one of the choices."""
    if isinstance(value, Tracer) or np.ndim(value) or value not in choices:
        *others, last = map(repr, choices)
        what = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(_message(name, what, value, ""))
    return value


def check_unused(reason: str, **options) -> None:
    """Raises ValueError if one of the options is given: `reason` says why it has no effect."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} has no effect {reason}: leave it out")


def instance(name: str, value, kind: type, hint: str = ""):
    """Returns the value if it is an instance of the class, such as a `Learner`."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOUaeiou" else "a"
        raise ValueError(_message(name, f"{article} {kind.__name__}", value, hint))
    return value


def having(name: str, value, attribute: str, kind: str, hint: str = ""):
    """Returns the value if it has what a function reads of a kind of result, such as "a Study"."""
    if not hasattr(value, attribute):
        raise ValueError(_message(name, kind, value, hint))
    return value


def check_columns(table, names: tuple[str, ...]) -> None:
    """Raises ValueError unless it is a table with the columns of a fit."""
    hint = "the table that was fitted, or one like it, as nj.table makes of a data frame"
    if having("table", table, "names", "an Observations", hint).names != names:
        raise ValueError(
            f"table must have the columns of the fit, {listed(names)}, got {listed(table.names)}"
        )


def _parsed(name, value, what, allowed, hint, shape):
    """Returns a concrete value or raises ValueError; a traced one becomes NaN where not allowed."""
    value = collected(value)
    if dims := shape_of(name, value):
        value = real_array(name, value) if _lists_traced(value) else value
    if shape is not None and dims:
        found = f"got shape {list(dims)}; use jax.vmap for several values"
        raise ValueError(f"{name} must be one number, {found}")
    array = real_numbers(name, value)
    if array is None:
        if not jnp.issubdtype(value.dtype, jnp.inexact):
            value = value.astype(float)
        return jnp.where(allowed(value) & jnp.isfinite(value), value, jnp.nan)
    fine = allowed(array) & np.isfinite(array)
    if not np.all(fine):
        raise ValueError(_message(name, what, value, hint, np.argwhere(~fine)))
    return value


def _message(name, what, value, hint, places=()) -> str:
    found = f"got {given(value)}"
    if np.size(places):
        first = places[0].tolist()
        wrong = np.asarray(unmasked(value))[tuple(first)]
        found = f"but {name}{first} is {wrong} ({len(places)} in all)"
    return f"{name} must be {what}, {found}{hint and f': {hint}'}"


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
    return raw or is_typed_key(value)


def is_typed_key(value) -> bool:
    """Returns True if a value is a typed JAX key, or an array of them."""
    return isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key)


def check_finite(name: str, value, hint: str = "") -> None:
    """Raises ValueError if there is NaN or infinity, and names the first place."""
    if concrete(value) is not None:
        number(name, value, hint, shape=None)


def check_concrete(name: str, value, reason: str) -> None:
    """Raises ValueError if the value is traced; `reason` says why."""
    if concrete(value) is None:
        raise ValueError(f"{name} must be concrete, got a traced one: {reason}")


def check_not_below(name: str, value, least_name: str, least) -> None:
    """Raises ValueError if a value is below the value of another argument."""
    array, bound = real_numbers(name, value), real_numbers(least_name, least)
    if array is not None and bound is not None and not np.all(array >= bound):
        raise ValueError(f"{name} must be at least {least_name} = {least}, got {value}")


def check_horizons(name: str, horizons: Sequence[int]) -> list[int]:
    """Returns the numbers of rounds as a list if there is at least one and they increase."""
    horizons = collected(horizons)
    if np.ndim(horizons) != 1:
        raise ValueError(f"{name} must be a list of numbers of rounds, got {given(horizons)}")
    horizons = [whole(f"each of {name}", horizon, 1, "a number of rounds") for horizon in horizons]
    if not horizons or any(b <= a for a, b in itertools.pairwise(horizons)):
        raise ValueError(f"{name} must be at least one and increasing, got {horizons}")
    return horizons


def check_decay(learning_rate, regularization, *, limit: float = 1.0) -> None:
    """Raises ValueError if η λ ≥ `limit`, for a learning rate η and a regularization λ.

    At the limit 1 the decay of old terms, a factor 1 − ηλ in each round, would not be positive.
    """
    eta, lam = concrete(learning_rate), concrete(regularization)
    if eta is not None and lam is not None and not np.all(eta * lam < limit):
        raise ValueError(
            f"learning_rate must be below 1/regularization = {1 / lam}, got {eta}: the decay "
            "factor 1 − ηλ must be positive, or f is forgotten at once, or changes its sign"
        )


def check_table(x, y) -> None:
    """Raises ValueError unless x is `[T, d]` and y is `[T]`, T ≥ 1 and d ≥ 1."""
    x_shape, y_shape = shape_of("x", x), shape_of("y", y)
    if len(x_shape) != 2 or x_shape[:1] != y_shape or 0 in x_shape:
        found = f"got x {list(x_shape)} and y {list(y_shape)}; batch streams with jax.vmap"
        raise ValueError(f"x must be [T, d] and y [T] with the same T >= 1 and d >= 1, {found}")


def check_stream(x, y) -> None:
    """Raises ValueError unless `check_table` holds and all numbers are finite."""
    check_table(x, y)
    check_finite("x", x, "drop or impute such rounds first")
    check_finite("y", y, "drop or impute such rounds first")


def check_copies_given(needed: int, given: int) -> None:
    """Raises ValueError if a sample has fewer noisy copies than the learner reads."""
    if given < needed:
        raise ValueError(
            f"this learner reads {needed} independent noisy copies of x, but the sample has {given}"
        )


def check_axes(name: str, value, axes: str, hint: str = "") -> None:
    """Raises ValueError unless the array has the axes named, such as "[n, d]", or "[]"."""
    shape = shape_of(name, value)
    if len(shape) != len(axes[1:-1].split(",")) - (axes == "[]"):
        raise ValueError(f"{name} must be {axes}, got {list(shape)}{hint}")


def check_shape(name: str, value, shape: tuple[int, ...], reason: str) -> None:
    """Raises ValueError unless the array has this shape; `reason` says where it comes from."""
    if (found := shape_of(name, value)) != shape:
        raise ValueError(f"{name} must be {list(shape)}, {reason}, got {list(found)}")


def check_targets(y, hint: str = "") -> None:
    """Raises ValueError unless y is `[n]`, n ≥ 1, of finite numbers."""
    if np.ndim(y) != 1 or not np.size(y):
        raise ValueError(f"y must be [n] with n >= 1, got {list(np.shape(y))}: one target a row")
    check_finite("y", y, hint)


def check_labels(name: str, y) -> None:
    """Raises ValueError if a label is neither −1 nor +1."""
    array = real_numbers(name, y)
    if array is not None and not np.all(right := np.abs(array) == 1):
        hint = "; 2y − 1 turns labels 0 and 1 into these" if set(array.flat) <= {0, 1} else ""
        raise ValueError(f"{name} must be labels −1 and +1, got {array[~right].flat[0]:g}{hint}")


def sound_labels(y):
    """Returns labels −1 and +1; any other raises ValueError if concrete, and is NaN if traced."""
    check_labels("y", y)
    return jnp.where(jnp.abs(y) == 1, y, jnp.nan) if concrete(y) is None else y


def check_dimension(name: str, parameter, data_shape: tuple[int, ...]) -> None:
    """Raises ValueError if a parameter `[d]` or `[d, d]` does not fit data `[..., d]` or `[]`."""
    shape = np.shape(parameter)
    if shape and shape[-1:] != data_shape[-1:]:
        given = f"data of dimension {data_shape[-1]}" if data_shape else "a scalar"
        raise ValueError(f"{name} of shape {list(shape)} does not fit {given}")


def check_made_for(dim: int, shape: tuple[int, ...]) -> None:
    """Raises ValueError if data `[..., d]` do not have the dimension `dim`."""
    if shape[-1:] != (dim,):
        given = f"dimension {shape[-1]}" if shape else "a scalar"
        raise ValueError(
            f"made for data of dimension {dim}, got {given}: build the learner, or its world, with "
            f"dim={shape[-1] if shape else 1}"
        )


def writable_folder(folder: str | Path) -> Path:
    """Returns the folder's path, created if needed; raises ValueError if it is not writable."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as trial:
            trial.write(b"trial")
            trial.flush()
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"cannot write to the folder {folder}: {reason}") from error
    return folder
