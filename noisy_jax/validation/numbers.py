"""Numbers in a range, one or an array of them, whole numbers and labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from noisy_jax.validation.arrays import real_array, real_numbers, shape_of, widened
from noisy_jax.validation.keys import is_typed_key
from noisy_jax.validation.messages import given, message
from noisy_jax.validation.values import collected, concrete, lists_traced


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


def _parsed(name, value, what, allowed, hint, shape) -> Any:
    """Returns a concrete value or raises ValueError; a traced one becomes NaN where not allowed.

    Lists become arrays; Python numbers keep their type, and columns of data frames the labels of
    rows. Types that overflow early become wider ones (see `widened`).
    """
    value, array = _checked(name, value, what, allowed, hint, shape)
    if array is None:
        value = widened(value)
        return jnp.where(allowed(value) & jnp.isfinite(value), value, jnp.nan)
    return widened(array if isinstance(value, list | tuple | np.ma.MaskedArray) else value)


def _checked(name, value, what, allowed, hint, shape) -> tuple[Any, np.ndarray | None]:
    """Returns the value, not an iterator, and its concrete array or `None`; raises ValueError."""
    value = collected(value)
    if dims := shape_of(name, value):
        value = real_array(name, value) if lists_traced(value) else value
    if shape is not None and dims:
        found = f"got shape {list(dims)}; use jax.vmap for several values"
        raise ValueError(f"{name} must be one number, {found}")
    array = real_numbers(name, value)
    if array is not None and not np.all(fine := allowed(array) & np.isfinite(array)):
        raise ValueError(message(name, what, value, hint, np.argwhere(~fine)))
    return value, array


def positive_float(name: str, value):
    """Returns one positive number as a Python float, in float64; a traced one as it is."""
    value = positive(name, value)
    return value if concrete(value) is None else float(value)


def whole(name: str, value, least: int = 1, hint: str = "") -> int:
    """Returns the value as an `int` if it is a whole number of at least `least`.

    Scalars of NumPy and JAX, which are arrays without axes, may be; traced values are not.
    """
    unlike = isinstance(value, list | tuple) or is_typed_key(value)
    array = None if unlike else concrete(value)
    if array is None or array.ndim or array.dtype.kind not in "iu" or array < least:
        raise ValueError(message(name, f"a whole number of at least {least}", value, hint))
    return int(array)


def check_finite(name: str, value, hint: str = "") -> None:
    """Raises ValueError if there is NaN or infinity, and names the first place.

    Traced values, which are not read, must be real.
    """
    _checked(name, value, "finite", lambda v: True, hint, None)


def not_below(name: str, value, least_name: str, least) -> Any:
    """Returns the value if it is not below the value of another argument."""
    array, bound = real_numbers(name, value), real_numbers(least_name, least)
    if array is None or bound is None:
        return jnp.where(value >= least, value, jnp.nan)
    if not np.all(array >= bound):
        raise ValueError(f"{name} must be at least {least_name} = {least}, got {value}")
    return value


def check_horizons(name: str, horizons: Sequence[int]) -> list[int]:
    """Returns the numbers of rounds as a list if there is at least one and they increase."""
    horizons = collected(horizons)
    if len(shape_of(name, horizons)) != 1:
        raise ValueError(f"{name} must be a list of numbers of rounds, got {given(horizons)}")
    horizons = [whole(f"each of {name}", horizon, 1, "a number of rounds") for horizon in horizons]
    if not horizons or any(b <= a for a, b in itertools.pairwise(horizons)):
        raise ValueError(f"{name} must be at least one and increasing, got {horizons}")
    return horizons


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
