"""Where fits start: zero, and untrimmed fits to the targets.

One start is not enough. Zero is lost where outliers are nearer to it than the other rows, Huber's
where Huber's fails (one-sided outliers, 30% and more).
"""

import chex
import jax.numpy as jnp

from noisy_jax.robust.regressors import modified_residuals
from noisy_jax.robust.subquantile.gram import solver
from noisy_jax.robust.subquantile.problem import Problem

STARTS = ("zero", "median", "ridge", "huber")
"""Starts by name: zero, and ridge on the median target, on the targets, and by Huber's loss."""

_REFITS = 30


def coefficients(problem: Problem, names: tuple[str, ...]) -> chex.Array:
    """Coefficients of the named starts, `[len(names), n]`.

    They are no more than starts: their C is at least √eps of ‖K‖, eps the precision, so that K + C
    can be factorized, and all but zero are smoothed by one more ridge.
    """
    y, gram = problem.y, problem.gram
    if names == ("zero",):
        return jnp.zeros_like(y)[None]
    least = jnp.sqrt(jnp.finfo(y.dtype).eps) * gram.norm
    C = jnp.maximum(problem.regularization, least)
    solve = solver(gram, C)

    def huber():
        return modified_residuals(gram.product, solve, y, regularization=C, iterations=_REFITS)

    def smooth(a):
        # Residuals/C are coefficients of ridge; what of them K maps to zero does nothing to f, but
        # drowns gradients in rounding. Ridge of the values has next to nothing of it.
        return solve(gram.product(a))

    makers = {
        "zero": lambda: jnp.zeros_like(y),
        "median": lambda: smooth(solve(jnp.full_like(y, jnp.median(y)))),
        "ridge": lambda: smooth(solve(y)),
        "huber": lambda: smooth(huber()),
    }
    return jnp.stack([makers[name]() for name in names])
