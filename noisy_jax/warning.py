"""Warnings that point at the line of the user, however many calls of the library lead there."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

import jax

_INSIDE = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (__file__, str(jax.__file__))
)
_BETWEEN = os.path.abspath(contextlib.__file__)
"""Context managers that decorate functions of the library have a frame of their own."""


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the innermost line outside of the library, and of JAX, that led here.

    As `warnings.warn(…, skip_file_prefixes=…)` of Python 3.12.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     warn("few rows")
        >>> print(caught[0].message, caught[0].category.__name__)
        few rows UserWarning
    """
    frame, level = sys._getframe(1), 2
    while frame is not None and _is_inside(frame.f_code.co_filename):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


def _is_inside(file: str) -> bool:
    return file.startswith(_INSIDE) or file == _BETWEEN
