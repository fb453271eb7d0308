"""Values as they are given: arrays, which may be traced, masked arrays, and iterators."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from types import ModuleType
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

Array = jax.Array | np.ndarray
"""An array of JAX or of NumPy."""


ArrayLike = Array | np.bool_ | np.number | bool | int | float
"""An array, or a real number. It may be traced."""


_T = TypeVar("_T")


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


def as_jax_takes(value: Any) -> Any:
    """Returns the value; a number that JAX refuses or cuts off becomes float64.

    Without 64-bit types JAX refuses a Python integer that needs more than 32 bits, and cuts one
    of NumPy off without a word. It always refuses floats of another byte order, or of more than 64
    bits.
    """
    if isinstance(value, int):
        return value if -(2**31) <= value < 2**31 else float(value)
    dtype = getattr(value, "dtype", None)
    if isinstance(value, jax.Array) or not isinstance(dtype, np.dtype) or dtype.kind not in "iuf":
        return value
    long = dtype.itemsize > 8
    if dtype.kind != "f" and dtype.itemsize == 8 and np.size(value):
        long = value.max() >= 2**31 or value.min() < -(2**31)
    kind = np.dtype(np.float64) if long else dtype.newbyteorder("=")
    return value if dtype == kind else value.astype(kind)


def at_least_float32(dtype):
    """Returns the data type; float32 in place of a shorter one or of integers, not promoted."""
    wide = jnp.issubdtype(dtype, jnp.inexact) and jnp.dtype(dtype).itemsize >= 4
    return dtype if wide else jnp.dtype(jnp.float32)


def array_module(*values) -> ModuleType:
    """Returns NumPy (which computes in float64) if every value is concrete, else jax.numpy."""
    return jnp if any(concrete(value) is None for value in values) else np


def lists_traced(value) -> bool:
    """Returns True for a list or tuple with a traced number, in a list inside it as well."""
    return isinstance(value, list | tuple) and any(
        isinstance(item, Tracer) or lists_traced(item) for item in value
    )


def check_concrete(name: str, value, reason: str) -> None:
    """Raises ValueError if the value is traced, or a number in a list; `reason` says why."""
    if isinstance(value, Tracer) or lists_traced(value):
        raise ValueError(f"{name} must be concrete, got a traced one: {reason}")
