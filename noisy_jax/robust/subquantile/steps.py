"""One iteration of a trimmed fit: select rows, then improve f on them.

With S the rows kept at f, G the coefficients of ∇F_S and L its smoothness (`problem`):

- accelerated:  f⁺ = P(z − ∇F_S(z)/L) at z = f + β_t(f − f_previous), Nesterov's weights β_t, and P
  the projection on the ball, f·min(1, R/‖f‖); a step that would raise F is not taken, and the next
  one is made without momentum;
- alternation:  f⁺ = argmin F_S, a_S = (K_SS + C)⁻¹ y_S with C = mλ/2 and zero elsewhere, by
  conjugate gradients.

F never rises, because F(f⁺) ≤ F_S(f⁺) ≤ F_S(f): a step from z lowers F_S by at least
δ = ⟨g, z − f⁺⟩ − ½L‖f⁺ − z‖² with g = ∇F_S(z), which is ‖g‖²/(2L) where the ball does not cut it.

The excess of F_S(f⁺) over its least value is bounded, because F_S is λ-strongly convex:

    F_S(f⁺) − min F_S ≤ min(‖g‖²/(2λ),  ⟨g, z⟩ + R‖g‖) − δ,

and for alternation by the duality gap ‖y_S − (K_SS + C)a_S‖²/m. This is a bound for the rows S
alone: F is not convex, and no method is known to find its least value.

Source: Subquantile Minimization for Kernel Learning, Algorithms 1 and 2. The printed step size is
m/‖K‖. For squared losses with λ > 0 it exceeds 2/L and diverges if nothing is trimmed; for logistic
losses it is a quarter of 1/L. Steps without momentum (`state._replace(momentum=1.0)` before each)
are the paper's algorithm, which takes more of them; refits are not in the paper.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg

from noisy_jax.robust.subquantile.problem import Problem
from noisy_jax.validation.values import ArrayLike

Solver = Literal["accelerated", "alternation"]
SOLVERS = get_args(Solver)
_REFIT_PRODUCTS = 500  # at most, in one refit; the next refit continues from there
_ROUNDINGS = 16  # an increase of F by this many rounding errors does not count


class State(NamedTuple):
    """A function f = Σ_i a_i k(x_i, ·) and the last step that led to it.

    Attributes:
        coefficients: `[n]`, a.
        values: `[n]`, f(x_i) = (Ka)_i.
        kept: `[n]`, bool, the m rows of smallest loss.
        threshold: `[]`, the largest of their losses.
        objective: `[]`, F(f).
        previous: `[2, n]`, coefficients and values before the last step.
        momentum: `[]`, Nesterov's t; 1 for a step without momentum.
        gap: `[]`, upper bound on F − min F_S, with S the rows of the last step.
        bound: `[]`, bool, whether the radius cut the last step.
        converged: `[]`, bool, whether `gap` is within the tolerance and S are the rows now kept.
    """

    coefficients: jax.Array
    values: jax.Array
    kept: jax.Array
    threshold: jax.Array
    objective: jax.Array
    previous: jax.Array
    momentum: jax.Array
    gap: jax.Array
    bound: jax.Array
    converged: jax.Array


def init(problem: Problem, coefficients: jax.Array) -> State:
    """The state at given coefficients `[n]`, projected on the ball."""
    a, values, scale = _projected(problem, coefficients, problem.gram.product(coefficients))
    zero = jnp.zeros_like(problem.y, shape=())
    return State(
        a,
        values,
        *_judged(problem, a, values),
        previous=jnp.stack([a, values]),
        momentum=zero + 1,
        gap=zero + jnp.inf,
        bound=scale < 1,
        converged=jnp.zeros((), bool),
    )


def step(problem: Problem, state: State, *, solver: Solver, tolerance: ArrayLike) -> State:
    """One iteration, after which F is not larger: two products with K, or a refit of many.

    In float32 the targets should be of size 1e-10 to 1e+15, because their squares are compared.
    """
    plain, accelerated = state.momentum == 1, solver == "accelerated"
    following = (1 + jnp.sqrt(1 + 4 * state.momentum**2)) / 2
    if accelerated:
        a, values, gap, bound = _descend(problem, state, (state.momentum - 1) / following)
    else:
        a, values, gap, bound = _refit(problem, state, tolerance)
    kept, threshold, objective = _judged(problem, a, values)
    # A step without momentum lowers F, even if rounding hides it. One with momentum may not, nor
    # may an inexact refit.
    slack = _ROUNDINGS * jnp.finfo(objective.dtype).eps * state.objective
    taken = (plain & accelerated) | ~(objective > state.objective + slack)
    reference = jnp.minimum(objective, state.objective)
    small = (gap <= tolerance * reference) & jnp.isfinite(reference)
    proposed = a, values, kept, threshold, objective
    return State(
        *(jnp.where(taken, after, before) for after, before in zip(proposed, state, strict=False)),
        previous=jnp.stack([state.coefficients, state.values]),
        # Momentum may carry f past the minimum, so only a step without it decides on convergence.
        momentum=jnp.where(taken & ~small & accelerated, following, 1),
        gap=gap,
        bound=bound,
        converged=plain & small & (~taken | jnp.all(kept == state.kept)),
    )


def _judged(problem, coefficients, values):
    kept, threshold = problem.selected(values)
    objective = problem.objective_on(kept, coefficients, values)
    return kept, threshold, jnp.where(jnp.isnan(threshold), jnp.nan, objective)


def _projected(problem, coefficients, values):
    """Coefficients and values of the projection on the ball, and its factor, 1 inside."""
    norm = jnp.sqrt(jnp.maximum(coefficients @ values, 0))
    inside = norm <= problem.radius
    scale = jnp.where(inside, 1, problem.radius / jnp.where(inside, 1, norm))
    return scale * coefficients, scale * values, scale


def _descend(problem, state, weight):
    """Coefficients and values after a step, the bound on the gap, and whether the ball cut."""
    current = jnp.stack([state.coefficients, state.values])
    a, values = current + weight * (current - state.previous)
    smooth, convex = problem.smoothness, problem.regularization
    rate = jnp.where(smooth > 0, 1 / smooth, 0)
    gradient = problem.gradient_on(state.kept, a, values)
    # Ka is computed again, beside KG: values that are only updated would drift away from the
    # coefficients, and their differences would lose the small gradients that certify convergence.
    values_anew, gradient_values = jax.vmap(problem.gram.product)(jnp.stack([a, gradient]))
    after, values_after, scale = _projected(
        problem, a - rate * gradient, values_anew - rate * gradient_values
    )

    # f⁺ − z = −(p z + q g), g = ∇F_S(z), with p = 0 where the ball does not cut.
    p, q = 1 - scale, scale * rate
    along, squared = gradient @ values, jnp.maximum(gradient @ gradient_values, 0)
    squared_move = p**2 * (a @ values) + 2 * p * q * along + q**2 * squared
    fall = p * along + q * squared - smooth * squared_move / 2
    by_convexity = jnp.where(convex > 0, squared / (2 * convex), jnp.inf)
    by_ball = jnp.where(squared > 0, along + problem.radius * jnp.sqrt(squared), 0)
    gap = jnp.maximum(jnp.minimum(by_convexity, by_ball) - fall, 0)
    return after, values_after, gap, scale < 1


def _refit(problem, state, tolerance):
    """Solves ridge regression on the rows kept; returns the same as `_descend`."""
    rows, product, C = state.kept, problem.gram.product, problem.diagonal

    def regularized(a):
        return jnp.where(rows, product(a) + C * a, 0)

    # Half the tolerance, because the residual of conjugate gradients drifts from the true one.
    least = jnp.finfo(problem.y.dtype).eps
    allowed = jnp.maximum(tolerance, least) * problem.count * state.objective / 2
    options: Any = {"tol": 0.0, "atol": jnp.sqrt(allowed), "maxiter": _REFIT_PRODUCTS}
    start = jnp.where(rows, state.coefficients, 0)
    a, _ = cg(regularized, jnp.where(rows, problem.y, 0), x0=start, **options)
    values = product(a)
    residuals = jnp.where(rows, problem.y - values - C * a, 0)
    gap = jnp.sum(residuals**2) / problem.count
    return a, values, gap, jnp.zeros((), bool)
