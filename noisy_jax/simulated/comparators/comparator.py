"""Comparators are called with a stream and options, or with options first and the stream later.

Either way the stream is checked here, once for all of them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from noisy_jax.base import Stream, sound_stream


def comparator(solve: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates `solve(stream, …)`: checks its stream; without one it returns a function of one."""
    signature = inspect.signature(solve)

    @functools.wraps(solve)
    def of_stream(stream: Stream | None = None, *arguments, **options):
        if stream is not None:
            return solve(sound_stream(stream), *arguments, **options)
        bound = signature.bind(None, *arguments, **options)  # a missing option is an error at once
        _, *rest = bound.arguments.items()
        return functools.partial(of_stream, **dict(rest))

    return of_stream
