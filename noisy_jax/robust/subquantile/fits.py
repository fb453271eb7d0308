"""Fits that trim the worst rows: kernel ridge regression and kernel logistic classification.

What is certain of a fit is what it returns: the objective fell by `decrease`, at least `certified`,
and refitting the rows kept would lower it by no more than `gap`. That the rows trimmed are the
corrupted ones is not certain. Where the corruption is small or hides just below the noise, trimming
takes honest rows and does harm; with too small a contamination, gross outliers stay.

There is no bound on the error: Theorems 5 and 6 of the paper cannot be computed (they hold
constants that are not given, and eigenvalues and norms of what is to be found), and are partly
contradicted. Consistency at a fixed share ε of corrupted labels, which they imply, is impossible;
with ε = 0.2 and labels shifted by two standard deviations the error stays where it is from n = 200
to 51,200. `bounds` offers none of them.

Source: Subquantile Minimization for Kernel Learning in the Huber ε-Contamination Model, Algorithms
1 and 2, corrected (`problem`, `steps`).
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.robust.subquantile import starts
from noisy_jax.robust.subquantile.gram import Gram
from noisy_jax.robust.subquantile.problem import Problem, logistic_problem, ridge_problem
from noisy_jax.robust.subquantile.steps import Solver, check_solver, init, step
from noisy_jax.validation import (
    check_at_least,
    check_finite,
    check_non_negative,
    check_one_number,
    check_shape,
)


class Fit(NamedTuple):
    """A trimmed fit f = Σ_i a_i k(x_i, ·).

    Attributes:
        coefficients: `[n]`, a.
        kept: `[n]`, bool, the m rows of smallest loss.
        objective: `[]`, F(f) = (Σ_kept ℓ_i + C‖f‖²)/m; NaN where a loss is.
        threshold: `[]`, the largest loss kept, the (1 − ε)-quantile of all.
        iterations: `[]`, how many were made.
        converged: `[]`, bool, whether `gap` is within the tolerance.
        gap: `[]`, bound on what F exceeds its least value by, on the rows of the last iteration
            (the rows kept, where `converged`).
        decrease: `[]`, what F fell by since the start.
        certified: `[]`, what it was sure to fall by, the sum over the iterations.
        norm: `[]`, ‖f‖.
        bound_fraction: `[]`, share of the iterations that the ball cut; 1 where the radius, rather
            than the data, decides on the fit.
        contamination: `[]`, 1 − m/n, the share of rows trimmed; ε but for rounding.
        start: `[]`, index in `STARTS` of the start that led here, −1 where coefficients were given.
    """

    coefficients: chex.Array
    kept: chex.Array
    objective: chex.Array
    threshold: chex.Array
    iterations: chex.Array
    converged: chex.Array
    gap: chex.Array
    decrease: chex.Array
    certified: chex.Array
    norm: chex.Array
    bound_fraction: chex.Array
    contamination: chex.Array
    start: chex.Array

    @jax.default_matmul_precision("highest")
    def predict(self, gram: chex.Array) -> chex.Array:
        """f(z), `[q]`, from K(z, x) `[q, n]` of new points z and the rows x of the fit.

        Raises:
            ValueError: K(z, x) of other rows; of many fits, use `jax.vmap(Fit.predict, (0, None))`.
        """
        if np.shape(gram)[-1:] != self.coefficients.shape:
            raise ValueError(
                f"gram must be [q, n], kernel(z, x), got {list(np.shape(gram))} for coefficients "
                f"{list(self.coefficients.shape)}; batch with jax.vmap"
            )
        return gram @ self.coefficients


def ridge(
    gram: chex.Array | Gram,
    y: chex.Array,
    *,
    contamination: chex.Numeric,
    regularization: chex.Numeric,
    radius: chex.Numeric = jnp.inf,
    start: str | chex.Array = "best",
    solver: Solver = "accelerated",
    iterations: int = 1000,
    tolerance: chex.Numeric = 1e-6,
) -> Fit:
    """Kernel ridge regression on the rows that it fits best.

        F(f) = min_{|S| = m} (Σ_{i∈S} (f(x_i) − y_i)² + C‖f‖²)/m,   ‖f‖ ≤ R,   m = ⌈n(1 − ε)⌉

    Call it under `jax.jit`, which compiles it once (bare, every call compiles anew), and under
    `jax.vmap` over targets, shares, C and radii. Under `vmap` with one Gram matrix, all fits share
    its products.

    Args:
        gram: `[n, n]`, K_ij = k(x_i, x_j), or a `chunked_gram` where n² does not fit in memory.
        y: `[n]` targets.
        contamination: ε in [0, ½), the share of rows that may be corrupted. Too much does little
            harm, too little may do a lot. Traced, it is not checked.
        regularization: C ≥ 0, in the scale of `regressors.kernel_ridge`: with ε = 0, F is least at
            a = (K + C)⁻¹y. In `comparators.regularized` and `learners.norma`, whose losses are a
            mean beside ½λ‖f‖², it is λ = 2C/m.
        radius: R > 0, in the norm of the kernel's space; no ball by default.
        start: "zero", "median", "ridge", "huber" (`STARTS`), coefficients `[n]`, or "best": all
            four together, and the lowest F of them. That is mostly, but not always, the least
            error: of 30% of rows moved to one place under one label (`contaminations.covariate`),
            the lowest F belongs to a fit through them, some 40 times as wrong as that from zero.
        solver: "descent" as in the paper, "accelerated", or "alternation", which refits the rows
            kept exactly and selects anew; it needs C > 0 and no ball.
        iterations: at most so many, at least 1. A fit that rounding keeps from moving stops before.
        tolerance: ≥ 0; stops where refitting the rows kept would lower F by no more than this
            share; 0 for a fixed number of iterations. Without C and ball nothing tells, and only
            the number stops.

    Returns:
        A `Fit`; `fit.predict(kernel(z, x))` are predictions at new points.

    Raises:
        ValueError: a Gram matrix that is not square, symmetric and positive semi-definite, another
            number of rows than y, NaN or infinity, or an argument out of range.

    Source: Subquantile Minimization for Kernel Learning, Algorithm 1, corrected (`problem`,
        `steps`).

    Example:
        >>> import jax.numpy as jnp
        >>> y = jnp.array([1.0, 1.0, 1.0, 1.0, 99.0])
        >>> fit = ridge(jnp.ones((5, 5)), y, contamination=0.2, regularization=1e-3)
        >>> print(fit.kept, f"{fit.coefficients.sum():.3f}", fit.converged)
        [ True  True  True  True False] 1.000 True
    """
    problem = ridge_problem(
        gram, y, contamination=contamination, regularization=regularization, radius=radius
    )
    return _fit(problem, start, solver, iterations, tolerance)


def logistic(
    gram: chex.Array | Gram,
    y: chex.Array,
    *,
    contamination: chex.Numeric,
    regularization: chex.Numeric = 0.0,
    radius: chex.Numeric = jnp.inf,
    start: str | chex.Array = "best",
    solver: Solver = "accelerated",
    iterations: int = 1000,
    tolerance: chex.Numeric = 1e-6,
) -> Fit:
    """Kernel logistic classification on the rows that it fits best.

        F(f) = min_{|S| = m} (Σ_{i∈S} log(1 + e^(−y_i f(x_i))) + C‖f‖²)/m,   ‖f‖ ≤ R

    The paper has labels 0 and 1, and no C: there the ball alone bounds f.

    Args:
        gram: as in `ridge`.
        y: `[n]` labels, −1 or +1. Traced ones that are not end in NaN.
        contamination: as in `ridge`.
        regularization: C ≥ 0.
        radius: R > 0. One of C and R must bound f.
        start: as in `ridge`; ridge and Huber's are fitted to the labels. At zero all losses are
            equal, and the first selection is by index.
        solver: "descent" or "accelerated"; refits have no closed form.
        iterations: as in `ridge`.
        tolerance: as in `ridge`.

    Returns:
        A `Fit`; the sign of `fit.predict(kernel(z, x))` classifies.

    Raises:
        ValueError: as `ridge`; labels other than ±1; neither C nor ball; alternation.

    Source: Subquantile Minimization for Kernel Learning, Algorithm 2, its step of m/‖K‖ replaced by
        the four times longer 1/L.

    Example:
        >>> import jax.numpy as jnp
        >>> y = jnp.array([1.0, 1.0, 1.0, 1.0, -1.0])
        >>> fit = logistic(jnp.ones((5, 5)), y, contamination=0.2, radius=2.0)
        >>> print(fit.kept, fit.predict(jnp.ones((1, 5))))
        [ True  True  True  True False] [2.]
    """
    problem = logistic_problem(
        gram, y, contamination=contamination, regularization=regularization, radius=radius
    )
    return _fit(problem, start, solver, iterations, tolerance)


@jax.default_matmul_precision("highest")
def _fit(problem: Problem, start, solver, iterations, tolerance) -> Fit:
    check_solver(problem, solver)
    check_at_least("iterations", iterations, 1, "the largest number of iterations")
    check_one_number("tolerance", tolerance)
    check_non_negative("tolerance", tolerance, "it is a share of the objective")
    indices, coefficients = _started(problem, start)

    def from_one(index, coefficients):
        first = init(problem, coefficients)

        def unfinished(carry):
            state, stuck, made, *_ = carry
            return (made < iterations) & ~(state.converged | stuck | jnp.isnan(state.objective))

        def iterate(carry):
            before, _, made, certified, bound = carry
            state = step(problem, before, solver=solver, tolerance=tolerance)
            # A step without momentum that rounding leaves where it was would be made for ever.
            stuck = (before.momentum == 1) & jnp.all(state.coefficients == before.coefficients)
            return state, stuck, made + 1, certified + state.certified, bound + state.bound

        none = jnp.zeros((), int)
        carry = first, jnp.zeros((), bool), none, jnp.zeros_like(first.objective), none
        last, _, made, certified, bound = jax.lax.while_loop(unfinished, iterate, carry)
        return Fit(
            last.coefficients,
            last.kept,
            last.objective,
            last.threshold,
            made,
            last.converged,
            last.gap,
            first.objective - last.objective,
            certified,
            jnp.sqrt(jnp.maximum(last.coefficients @ last.values, 0)),
            bound / made,
            1 - problem.kept / problem.y.size,
            index,
        )

    fits = jax.vmap(from_one)(indices, coefficients)
    best = jnp.argmin(jnp.where(jnp.isnan(fits.objective), jnp.inf, fits.objective))
    return jax.tree.map(lambda leaf: leaf[best], fits)


def _started(problem, start) -> tuple[chex.Array, chex.Array]:
    """Indices `[k]` in `STARTS` and coefficients `[k, n]`."""
    if isinstance(start, str):
        names = starts.STARTS if start == "best" else (start,)
        if not set(names) <= set(starts.STARTS):
            raise ValueError(
                f"start must be best, {', '.join(starts.STARTS)}, or coefficients, got {start!r}"
            )
        indices = [starts.STARTS.index(name) for name in names]
        return jnp.array(indices), starts.coefficients(problem, names)
    check_finite("start", start)
    coefficients = jnp.asarray(start, problem.y.dtype)
    check_shape("start", coefficients, problem.y.shape, "as y")
    return jnp.array([-1]), coefficients[None]
