"""Messages of the parsers: what was wanted, and what was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from noisy_jax.validation.values import unmasked


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


def message(name, what, value, hint, places=()) -> str:
    """Returns the text of an error: what an argument must be, and what it or its first place is."""
    found = f"got {given(value)}"
    if np.size(places):
        first = places[0].tolist()
        wrong = np.asarray(unmasked(value))[tuple(first)]
        found = f"but {name}{first} is {wrong} ({len(places)} in all)"
    return f"{name} must be {what}, {found}{hint and f': {hint}'}"
