"""One iteration: select rows, improve f on them.

With S the rows kept at f, G the coefficients of ∇F_S and L its smoothness (`problem`):

- descent:      f⁺ = P(f − ∇F_S(f)/L), P the projection on the ball, f·min(1, R/‖f‖);
- accelerated:  f⁺ = P(z − ∇F_S(z)/L) at z = f + β_t(f − f_previous), Nesterov's weights β_t; a step
  that would raise F is not taken, and the next one starts anew without momentum;
- alternation:  f⁺ = argmin F_S, a_S = (K_SS + C)⁻¹ y_S and zero elsewhere, by conjugate gradients.

F never rises, F(f⁺) ≤ F_S(f⁺), and falls at least by what F_S is known to fall:

- F_S(f) − F_S(z) + δ with δ = ⟨g, z − f⁺⟩ − ½L‖f⁺ − z‖² and g = ∇F_S(z), which is ‖g‖²/(2L)
  where z = f and the ball does not cut the step;
- for alternation, (Σ_S (f − f⁺)²(x_i) + C‖f − f⁺‖²)/m, less what the refit is not exact by.

What F_S(f⁺) exceeds its least value by is bounded as well, with μ = 2C/m:

    F_S(f⁺) − min F_S ≤ min(‖g‖²/(2μ),  ⟨g, z⟩ + R‖g‖) − δ,

and for alternation by the duality gap ‖y_S − (K_SS + C)a_S‖²/m. This says nothing on other rows: F
is not convex, and no method is known to find its least value.

Source: Subquantile Minimization for Kernel Learning, Algorithms 1 and 2. As printed the steps are
m/‖K‖: beyond 2/L for squared losses with C > 0, where they diverge if nothing is trimmed, and a
quarter of 1/L for logistic ones. The other two solvers are not in the paper.
"""

from typing import Literal, NamedTuple, get_args

import chex
import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg

from noisy_jax.robust.subquantile.problem import Problem
from noisy_jax.validation import (
    check_choice,
    check_non_negative,
    check_one_number,
    check_shape,
    concrete,
)

Solver = Literal["descent", "accelerated", "alternation"]
SOLVERS = get_args(Solver)
_REFIT_PRODUCTS = 500  # at most, of one refit; the next goes on from there
_ROUNDINGS = 16  # of F, which are no rise


class State(NamedTuple):
    """A function f, and how it was found.

    Attributes:
        coefficients: `[n]`, a of f = Σ_i a_i k(x_i, ·).
        values: `[n]`, f(x_i), Ka.
        kept: `[n]`, bool, the m rows of smallest loss.
        threshold: `[]`, the largest of their losses.
        objective: `[]`, F(f).
        previous: `[2, n]`, coefficients and values before the last step.
        momentum: `[]`, Nesterov's t; 1 for a step without momentum.
        certified: `[]`, what F was sure to fall by in the last step.
        gap: `[]`, bound on F − min F_S, S the rows that the last step was made on.
        bound: `[]`, bool, whether the ball cut the last step.
        converged: `[]`, bool, whether `gap` is within the tolerance, for the rows now kept.
    """

    coefficients: chex.Array
    values: chex.Array
    kept: chex.Array
    threshold: chex.Array
    objective: chex.Array
    previous: chex.Array
    momentum: chex.Array
    certified: chex.Array
    gap: chex.Array
    bound: chex.Array
    converged: chex.Array


class _Move(NamedTuple):
    coefficients: chex.Array
    values: chex.Array
    certified: chex.Array
    gap: chex.Array
    bound: chex.Array


@jax.default_matmul_precision("highest")
def init(problem: Problem, coefficients: chex.Array) -> State:
    """The state at given coefficients `[n]`, projected on the ball.

    Raises:
        ValueError: another number of coefficients than rows.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> problem = nj.robust.subquantile.ridge_problem(
        ...     jnp.eye(4), jnp.array([1.0, 2.0, 1.0, 9.0]), contamination=0.25, regularization=1.0
        ... )
        >>> state = init(problem, jnp.zeros(4))
        >>> print(state.kept, state.objective, state.threshold)
        [ True  True  True False] 2.0 4.0
    """
    coefficients = jnp.asarray(coefficients, problem.y.dtype)
    check_shape("coefficients", coefficients, problem.y.shape, "as y")
    coefficients, values, scale = _projected(
        problem, coefficients, problem.gram.product(coefficients)
    )
    zero = jnp.zeros_like(problem.y, shape=())
    return State(
        coefficients,
        values,
        *_judged(problem, coefficients, values),
        previous=jnp.stack([coefficients, values]),
        momentum=zero + 1,
        certified=zero,
        gap=zero + jnp.inf,
        bound=scale < 1,
        converged=jnp.zeros((), bool),
    )


@jax.default_matmul_precision("highest")
def step(
    problem: Problem,
    state: State,
    *,
    solver: Solver = "accelerated",
    tolerance: chex.Numeric = 1e-6,
) -> State:
    """One iteration: with one product by K, or one refit by many. F does not rise.

    Args:
        problem: of `ridge_problem` or `logistic_problem`.
        state: of `init`, or the last one.
        solver: as in `ridge`.
        tolerance: ≥ 0, of F − min F_S, as a share of F.

    Raises:
        ValueError: no such solver, one that does not serve the problem, or a negative tolerance.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> problem = nj.robust.subquantile.ridge_problem(
        ...     jnp.eye(4), jnp.array([1.0, 2.0, 1.0, 9.0]), contamination=0.25, regularization=1.0
        ... )
        >>> print(step(problem, init(problem, jnp.zeros(4)), solver="descent").coefficients)
        [0.5 1.  0.5 0. ]
    """
    check_solver(problem, solver)
    check_one_number("tolerance", tolerance)
    check_non_negative("tolerance", tolerance, "it is a share of the objective")
    plain = state.momentum == 1
    following = (1 + jnp.sqrt(1 + 4 * state.momentum**2)) / 2
    if solver == "alternation":
        move = _refit(problem, state, tolerance)
    else:
        move = _descend(problem, state, (state.momentum - 1) / following)
    kept, threshold, objective = _judged(problem, move.coefficients, move.values)
    # A plain step lowers F, whatever rounding says; one with momentum, or a rough refit, may not.
    slack = _ROUNDINGS * jnp.finfo(objective.dtype).eps * state.objective
    sure = plain & (solver != "alternation")
    taken = sure | ~(objective > state.objective + slack)
    small = move.gap <= tolerance * jnp.minimum(objective, state.objective)

    def chosen(after, before):
        return jnp.where(taken, after, before)

    # Momentum may carry f past where it converges: that is for a plain step to say.
    following = jnp.where(taken & ~small & (solver == "accelerated"), following, 1)
    return State(
        chosen(move.coefficients, state.coefficients),
        chosen(move.values, state.values),
        chosen(kept, state.kept),
        chosen(threshold, state.threshold),
        chosen(objective, state.objective),
        previous=jnp.stack([state.coefficients, state.values]),
        momentum=following,
        certified=chosen(jnp.maximum(move.certified, 0), 0),
        gap=move.gap,
        bound=move.bound,
        converged=plain & small & (~taken | jnp.all(kept == state.kept)),
    )


def check_solver(problem: Problem, solver: Solver) -> None:
    """Refuses unknown solvers, and alternation where a refit has no closed form."""
    check_choice("solver", solver, SOLVERS)
    if solver != "alternation":
        return
    advice = "; accelerated descent would do"
    if problem.loss.kind != "residual":
        raise ValueError(f"alternation refits squared losses only, got {problem.loss}{advice}")
    if concrete(problem.radius) is None or concrete(problem.radius) != jnp.inf:
        raise ValueError(
            f"alternation has no ball, radius must be inf, got {problem.radius}{advice}"
        )
    if concrete(problem.regularization) is not None and concrete(problem.regularization) == 0:
        raise ValueError(f"alternation needs regularization > 0 for its refits, got 0{advice}")


def _judged(problem, coefficients, values):
    kept, threshold = problem.selected(values)
    objective = problem.objective_on(kept, coefficients, values)
    return kept, threshold, jnp.where(jnp.isnan(threshold), jnp.nan, objective)


def _projected(problem, coefficients, values):
    """Coefficients and values of the projection on the ball, and its factor, 1 inside."""
    norm = jnp.sqrt(jnp.maximum(coefficients @ values, 0))
    outside = norm > problem.radius
    scale = jnp.where(outside, problem.radius / jnp.where(outside, norm, 1), 1)
    return scale * coefficients, scale * values, scale


def _descend(problem, state, weight) -> _Move:
    here = jnp.stack([state.coefficients, state.values])
    a, values = here + weight * (here - state.previous)
    smooth, convex = problem.smoothness, problem.convexity
    rate = jnp.where(smooth > 0, 1 / smooth, 0)
    gradient = problem.gradient_on(state.kept, a, values)
    # K a anew, beside K G: values that are only updated would drift from the coefficients, and
    # differences of values lose the small gradients that certify convergence.
    values_anew, gradient_values = jax.vmap(problem.gram.product)(jnp.stack([a, gradient]))
    after, values_after, scale = _projected(
        problem, a - rate * gradient, values_anew - rate * gradient_values
    )

    # f⁺ − z = −(p z + q g), g = ∇F_S(z), with p = 0 where the ball does not cut.
    p, q = 1 - scale, scale * rate
    along, squared = gradient @ values, jnp.maximum(gradient @ gradient_values, 0)
    squared_move = p**2 * (a @ values) + 2 * p * q * along + q**2 * squared
    fall = p * along + q * squared - smooth * squared_move / 2
    certified = state.objective - problem.objective_on(state.kept, a, values) + fall
    by_convexity = jnp.where(convex > 0, squared / (2 * convex), jnp.inf)
    by_ball = jnp.where(squared > 0, along + problem.radius * jnp.sqrt(squared), 0)
    gap = jnp.maximum(jnp.minimum(by_convexity, by_ball) - fall, 0)
    return _Move(after, values_after, certified, gap, scale < 1)


def _refit(problem, state, tolerance) -> _Move:
    rows, product, C = state.kept, problem.gram.product, problem.regularization

    def regularized(a):
        return jnp.where(rows, product(a) + C * a, 0)

    # Half the tolerance, as the residual of conjugate gradients drifts from the true one.
    least = jnp.finfo(problem.y.dtype).eps
    allowed = jnp.maximum(tolerance, least) * problem.kept * state.objective / 2
    a, _ = cg(
        regularized,
        jnp.where(rows, problem.y, 0),
        x0=jnp.where(rows, state.coefficients, 0),
        tol=0.0,
        atol=jnp.sqrt(allowed),
        maxiter=_REFIT_PRODUCTS,
    )
    values = product(a)
    residuals = jnp.where(rows, problem.y - values - C * a, 0)
    gap = jnp.sum(residuals**2) / problem.kept

    moved = jnp.where(rows, state.values - values, 0)
    squared_move = jnp.maximum((state.coefficients - a) @ (state.values - values), 0)
    change = jnp.sqrt((jnp.sum(moved**2) + C * squared_move) / problem.kept)
    certified = jnp.maximum(change - jnp.sqrt(gap), 0) ** 2 - gap
    return _Move(a, values, certified, gap, jnp.zeros((), bool))
