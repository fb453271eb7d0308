"""Functions, switches, choices, and objects of a class."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, TypeVar, overload

import jax
import numpy as np
from jax.core import Tracer

from noisy_jax.validation.keys import is_typed_key
from noisy_jax.validation.messages import listed, message

_T = TypeVar("_T")


def function(name: str, value, hint: str = ""):
    """Returns the value if it can be called."""
    if not callable(value):
        raise ValueError(message(name, "a function", value, hint))
    return value


def switch(name: str, value) -> bool:
    """Returns the value if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(message(name, "True or False", value, ""))
    return bool(value)


def choice(name: str, value: _T, choices: Collection) -> _T:
    """Returns the value if it is one of the choices: texts and numbers, as which no bool counts."""
    item: Any = value
    if isinstance(item, jax.Array | np.ndarray) and not isinstance(item, Tracer):
        single = not is_typed_key(item) and not item.ndim and item.dtype.kind in "iuf"
        item = item.item() if single else None
    like = isinstance(item, str | int | float | np.integer | np.floating)
    if not like or isinstance(item, bool) or item not in choices:
        *others, last = map(repr, choices)
        what = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(message(name, what, value, ""))
    found: Any = item
    return found


@overload
def instance(name: str, value, kind: type[_T], hint: str = "") -> _T: ...


@overload
def instance(name: str, value, kind: str, hint: str = "", *, attribute: str) -> Any: ...


def instance(name, value, kind, hint="", *, attribute=""):
    """Returns the value if it is an instance of the class, such as a `Learner`.

    Where the class cannot be imported, `kind` describes it, as in "a Study", and `attribute` is
    what the function reads of it.
    """
    if isinstance(kind, str):
        right = hasattr(value, attribute) and not isinstance(value, type)
    else:
        right = isinstance(value, kind)
        kind = f"{'an' if kind.__name__[0] in 'AEIOUaeiou' else 'a'} {kind.__name__}"
    if not right:
        raise ValueError(message(name, kind, value, hint))
    return value


def check_unused(reason: str, **options) -> None:
    """Raises ValueError if one of the options is given: `reason` says why it has no effect."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} has no effect {reason}: leave it out")


def check_columns(table, names: tuple[str, ...]) -> None:
    """Raises ValueError unless it is a table with the columns of a fit."""
    hint = "the table that was fitted, or one like it, as nj.table makes of a data frame"
    if instance("table", table, "an Observations", hint, attribute="copies").names != names:
        raise ValueError(
            f"table must have the columns of the fit, {listed(names)}, got {listed(table.names)}"
        )
