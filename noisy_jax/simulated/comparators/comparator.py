"""Comparators are called with a stream and options, or with options first and the stream later."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from noisy_jax.base import Stream
from noisy_jax.validation.objects import instance


def comparator(solve: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates `solve(stream, …)`, so that without a stream it returns a function of a stream."""
    signature = inspect.signature(solve)

    @functools.wraps(solve)
    def of_stream(stream: Stream | None = None, *arguments, **options):
        if stream is not None:
            instance("stream", stream, Stream, "streams.from_arrays(x, y) makes one")
            return solve(stream, *arguments, **options)
        bound = signature.bind(None, *arguments, **options)  # a missing option is an error at once
        _, *rest = bound.arguments.items()
        return functools.partial(solve, **dict(rest))

    return of_stream
