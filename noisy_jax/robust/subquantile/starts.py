"""Starts of trimmed fits: zero, and fits to the targets without trimming.

One start is not enough: zero fails if the outliers are nearer to zero than the other rows, and
Huber's fit fails if 30% or more of the rows are outliers on one side.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisy_jax.robust.regressors import modified_residuals
from noisy_jax.robust.subquantile.gram import solver
from noisy_jax.robust.subquantile.problem import Problem

STARTS = ("zero", "median", "ridge", "huber")
"""Names of the starts: zero, ridge fits to the median target and to the targets, Huber's fit."""

_REFITS = 30


def coefficients(problem: Problem, names: tuple[str, ...]) -> jax.Array:
    """Coefficients of the named starts, `[len(names), n]`.

    They need not be exact: their C = mλ/2 is raised to √eps ‖K‖, with eps the machine precision,
    so that K + C can be factorized, and all but zero are smoothed by one more ridge fit.
    """
    y, gram = problem.y, problem.gram
    if names == ("zero",):
        return jnp.zeros_like(y)[None]
    least = jnp.sqrt(jnp.finfo(y.dtype).eps) * gram.norm
    C = jnp.maximum(problem.diagonal, least)
    solve = solver(gram, C)

    def smooth(a):
        # The coefficients of ridge are residuals/C. The part of them that K maps to zero has no
        # effect on f, but hides gradients in rounding errors. Ridge on the values removes it.
        return solve(gram.product(a))

    makers = {
        "zero": lambda: jnp.zeros_like(y),
        "median": lambda: smooth(solve(jnp.full_like(y, jnp.median(y)))),
        "ridge": lambda: smooth(solve(y)),
        "huber": lambda: smooth(modified_residuals(gram.product, solve, y, C, iterations=_REFITS)),
    }
    return jnp.stack([makers[name]() for name in names])
