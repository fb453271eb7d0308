"""Arrays of real numbers, and their axes."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from noisy_jax.validation.keys import is_typed_key
from noisy_jax.validation.messages import given, message
from noisy_jax.validation.values import (
    as_jax_takes,
    at_least_float32,
    collected,
    concrete,
    lists_traced,
    unmasked,
)


def real_array(name: str, value) -> jax.Array | np.ndarray:
    """Returns real numbers as an array; an array, which may be traced, as it is.

    Lists, iterators and data frames may be, and lists with traced numbers. Anything else, such as
    texts, complex numbers, keys and lists of unequal lengths, raises ValueError.
    """
    array = value
    if not isinstance(value, jax.Array | np.ndarray) or isinstance(value, np.ma.MaskedArray):
        value = collected(value)
        value = jnp.asarray(value) if lists_traced(value) else value
        shape_of(name, value)
        try:
            array = value if isinstance(value, Tracer) else np.asarray(unmasked(value))
            if array.dtype == object and not any(
                isinstance(v, str | None) for v in array.ravel().tolist()
            ):
                array = array.astype(float)
        except (TypeError, ValueError):
            raise ValueError(message(name, "an array of numbers", value, "")) from None
    real = jnp.issubdtype(array.dtype, jnp.number) or array.dtype == bool
    if not real or array.dtype.kind in "cm":  # m: durations
        raise ValueError(message(name, "an array of real numbers", value, ""))
    return as_jax_takes(array)


def real(name: str, value) -> Any:
    """Returns real numbers in floating point: a Python number as it is, anything else as an array.

    A Python number does not change the type of what it is multiplied with.
    """
    if isinstance(value, int | float):
        return as_jax_takes(value)
    array = real_array(name, value)
    exact = array.dtype.kind in "iub"
    return jnp.asarray(array, jnp.result_type(array, float)) if exact else array


def real_numbers(name: str, value) -> np.ndarray | None:
    """Returns the value as a NumPy array of real numbers or NaN; `None` if it is traced."""
    if is_typed_key(value):
        raise ValueError(f"{name} must be numbers, got a key")
    array = concrete(value)
    dtype = value.dtype if array is None else array.dtype
    if dtype.kind in "mM" or dtype.names is not None:
        raise ValueError(f"{name} must be numbers, got {given(value)}")
    kind = np.result_type(dtype, np.float32)
    if not np.issubdtype(kind, np.floating) or (dtype.kind == "b" and not np.ndim(value)):
        wanted = "real" if np.issubdtype(kind, np.complexfloating) else "numbers"
        raise ValueError(f"{name} must be {wanted}, got {given(value)}")
    return array


def widened(value) -> Any:
    """Returns the value; an array of a type in which its square may overflow in a wider type.

    Integers of JAX become its default floats, short integers of NumPy int64, its truth values
    float64, and floats of 16 bits float32; numbers that JAX does not take become float64. Columns
    of pandas keep their labels. Other values stay as they are.
    """
    value = as_jax_takes(value)
    if not isinstance(getattr(value, "dtype", None), np.dtype):
        return value
    if jnp.issubdtype(value.dtype, jnp.inexact):
        wide = at_least_float32(value.dtype)
    elif isinstance(value, jax.Array):
        wide = jax.dtypes.canonicalize_dtype(float)
    else:
        whole = np.can_cast(value.dtype, np.int64) and value.dtype.kind != "b"
        wide = np.dtype(np.int64 if whole else np.float64)
    if value.dtype == wide:
        return value
    if isinstance(value, Tracer):
        return value.astype(wide)
    with jax.ensure_compile_time_eval():  # inside `jax.jit` as well it stays concrete
        return value.astype(wide)


def shape_of(name: str, value) -> tuple[int, ...]:
    """Returns the shape of an array or a list; raises ValueError for lists of unequal lengths."""
    try:
        return np.shape(jnp.asarray(value) if lists_traced(value) else value)
    except ValueError:
        what = "one array, but has parts of unequal shapes"
        raise ValueError(message(name, what, value, "")) from None


def check_axes(name: str, value, axes: str, hint: str = "") -> None:
    """Raises ValueError unless the array has the axes named, such as "[n, d]", or "[]"."""
    shape = shape_of(name, value)
    if len(shape) != len(axes[1:-1].split(",")) - (axes == "[]"):
        raise ValueError(f"{name} must be {axes}, got {list(shape)}{hint}")


def check_shape(name: str, value, shape: tuple[int, ...], reason: str) -> None:
    """Raises ValueError unless the array has this shape; `reason` says where it comes from."""
    if (found := shape_of(name, value)) != shape:
        raise ValueError(f"{name} must be {list(shape)}, {reason}, got {list(found)}")


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
