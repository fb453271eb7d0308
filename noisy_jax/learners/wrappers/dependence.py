"""Dependence of the results of a function on its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.interpreters import partial_eval


def depends(function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns True for each leaf of `function(*arguments)` that is computed from an argument.

    The arguments are arrays or their shapes and types; what the function closes over does not
    count. Errors of the function are raised as they are.
    """
    closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
    leaves, structure = jax.tree.flatten(shapes)

    def used(index: int) -> bool:
        kept = [index == other for other in range(len(leaves))]
        _, inputs = partial_eval.dce_jaxpr(closed.jaxpr, kept)
        return any(inputs)

    return jax.tree.unflatten(structure, [used(index) for index in range(len(leaves))])
