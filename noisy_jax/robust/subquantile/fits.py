"""Fits that trim the worst rows: kernel ridge regression and kernel logistic classification.

A fit returns what is guaranteed: refitting the rows kept would lower its objective by at most
`gap`. It is not guaranteed that the trimmed rows are the corrupted ones. If the corruption is small
or hides just below the noise, trimming removes honest rows and does harm; if `contamination` is too
small, gross outliers stay.

There is no bound on the error, and `bounds` has none. Theorems 5 and 6 of the paper cannot be
computed: they contain constants that are not given, and eigenvalues and norms of the unknown
function. They are also partly wrong. They imply consistency at a fixed share ε of corrupted labels,
which is impossible: with ε = 0.2 and labels shifted by two standard deviations, the measured error
is the same from n = 200 to 51,200.

Source: Subquantile Minimization for Kernel Learning in the Huber ε-Contamination Model, Algorithms
1 and 2, corrected (see `problem` and `steps`).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import plain_signature
from noisy_jax.linalg.ball import largest_size, root
from noisy_jax.linalg.matrices import cholesky, solve_cholesky
from noisy_jax.losses import logistic as logistic_loss
from noisy_jax.losses import squared
from noisy_jax.robust.subquantile import starts
from noisy_jax.robust.subquantile.gram import Gram, dense_gram
from noisy_jax.robust.subquantile.problem import Problem, trimmed
from noisy_jax.robust.subquantile.steps import SOLVERS, Solver, init, step
from noisy_jax.validation.arrays import check_shape, real_array
from noisy_jax.validation.numbers import check_finite, non_negative, whole
from noisy_jax.validation.objects import choice
from noisy_jax.validation.values import Array, ArrayLike, concrete


@plain_signature
class Fit(NamedTuple):
    """A trimmed fit f = Σ_i a_i k(x_i, ·), the result of `subquantile.ridge` and `logistic`.

    It is fitted to the m = ⌈n(1 − ε)⌉ of n rows that it fits best, with the loss ℓ_i of row i, the
    regularization λ and the norm ‖f‖ of the kernel's space. `objective`, `threshold` and `gap` have
    the units of the loss (y² for ridge) and may overflow or underflow where y² does; the fit does
    not.

    Attributes:
        coefficients: `[n]`, a.
        kept: `[n]`, bool, the m rows of smallest loss.
        objective: `[]`, F(f) = (1/m) Σ_kept ℓ_i + ½λ‖f‖²; NaN if a loss is NaN.
        threshold: `[]`, the largest loss kept, which is the (1 − ε)-quantile of all losses.
        iterations: `[]`, number of iterations made.
        converged: `[]`, bool, whether `gap` is at most `tolerance` times F.
        gap: `[]`, upper bound on F(f) minus the least value that refitting could reach on the rows
            of the last iteration (the rows kept, if `converged`).
        norm: `[]`, ‖f‖ = √(aᵀKa), K the Gram matrix.
        bound_fraction: `[]`, share of the iterations in which the radius, ‖f‖ ≤ R, shortened the
            step. If it is 1, R determines the fit rather than the data.
        contamination: `[]`, 1 − m/n, the share of rows trimmed; ε up to rounding.
        start: `[]`, index of the start of this fit in ("zero", "median", "ridge", "huber"); −1 if
            coefficients were given.

    Example:
        >>> import jax.numpy as jnp
        >>> from noisy_jax.robust import subquantile
        >>> y = jnp.array([1.0, 1.0, 1.0, 1.0, 99.0])
        >>> fit = subquantile.ridge(jnp.ones((5, 5)), y, contamination=0.2, regularization=5e-4)
        >>> print(fit.kept, fit.converged)
        [ True  True  True  True False] True
    """

    coefficients: jax.Array
    kept: jax.Array
    objective: jax.Array
    threshold: jax.Array
    iterations: jax.Array
    converged: jax.Array
    gap: jax.Array
    norm: jax.Array
    bound_fraction: jax.Array
    contamination: jax.Array
    start: jax.Array

    @jax.default_matmul_precision("highest")
    def predict(self, gram: Array) -> Array:
        """Returns predictions f(z), `[q]`, at q new points z.

        `gram` is `kernel(z, x)`, `[q, n]`, with the rows x of the fit. For several fits that were
        made by `jax.vmap`, use `jax.vmap(Fit.predict, (0, None))`.
        """
        if np.shape(gram)[-1:] != self.coefficients.shape:
            raise ValueError(
                f"gram must be [q, n], kernel(z, x), got {list(np.shape(gram))} for coefficients "
                f"{list(self.coefficients.shape)}; batch with jax.vmap"
            )
        return gram @ self.coefficients


def ridge(
    gram: Array | Gram,
    y: Array,
    *,
    contamination: ArrayLike,
    regularization: ArrayLike,
    radius: ArrayLike = jnp.inf,
    start: str | Array = "best",
    solver: Solver = "accelerated",
    iterations: int = 1000,
    tolerance: ArrayLike = 1e-6,
) -> Fit:
    """Fits kernel ridge regression to the rows that it fits best, and trims the rest.

    It looks for f = Σ_i a_i k(x_i, ·) in the space of the kernel k, with ‖f‖ ≤ R, that minimizes

        F(f) = min_{|S| = m} (1/m) Σ_{i∈S} (f(x_i) − y_i)² + ½λ‖f‖²,   m = ⌈n(1 − ε)⌉,

    where S are sets of m of the n rows. F has many local minima; it is not guaranteed that the
    lowest is found, or that the trimmed rows are the corrupted ones. The result does not depend on
    the units of y.

    Call it under `jax.jit`, otherwise each call compiles again. Use `jax.vmap` for several targets,
    shares ε, λ and radii; with one Gram matrix, all fits share its products.

    Args:
        gram: `[n, n]`, K_ij = k(x_i, x_j), or a `chunked_gram` if n² numbers do not fit in memory.
        y: `[n]` targets.
        contamination: ε in [0, ½), the share of rows that may be corrupted. Too large a value does
            little harm, too small a value may do a lot. The range is not checked if it is traced.
        regularization: λ ≥ 0, the weight of ½λ‖f‖² beside the mean loss of the m rows kept. With
            ε = 0, F has its minimum at a = (K + (nλ/2) I)⁻¹ y, as in `kernel_ridge`.
        radius: R > 0, the largest norm ‖f‖ = √(aᵀKa); infinity (no limit) by default.
        start: the first f: "zero", "median", "ridge" or "huber" (fits to the median of y and to y
            without trimming), coefficients `[n]`, or "best", the default, which runs all four and
            returns the fit of lowest F. This fit mostly, but not always, has the smallest error: if
            30% of the rows are moved to one place and get one label (`contaminations.covariate`), a
            fit through them has the lowest F, and about 40 times the error of the fit from zero.
        solver: "accelerated" gradient steps (the default), or "alternation", which refits the rows
            kept exactly and selects again, and needs λ > 0 and no radius.
        iterations: the largest number of iterations, at least 1. A fit also stops if rounding
            keeps it from moving.
        tolerance: ≥ 0; stops if refitting the rows kept would lower F by no more than this share
            of F. Use 0 for a fixed number of iterations. With λ = 0 and no radius there is no bound
            on the gap, and only `iterations` stops the fit.

    Returns:
        A `subquantile.Fit`. `fit.predict(kernel(z, x))` gives predictions at new points z, and
        `fit.kept` says which rows were kept.

    Raises:
        ValueError: shapes do not match, K is not symmetric or positive semi-definite, an argument
            is out of its range, or "alternation" has a radius, or λ = 0.

    **Derivatives**: if `gram` is a matrix, λ > 0 and there is no radius, `coefficients`,
    `objective`, `threshold` and `norm` can be differentiated in `gram`, `y` and `regularization`,
    in both modes. Their derivatives are of ridge regression on the rows kept, as those rows stay
    the same under small changes. With a radius or a `chunked_gram` only forward mode works
    (`jax.jvp`, `jax.jacfwd`), through the iterations.

    Source: Subquantile Minimization for Kernel Learning, Algorithm 1, corrected (the
        modules `problem` and `steps` of noisy_jax.robust.subquantile say how).

    Example:
        >>> import jax.numpy as jnp
        >>> from noisy_jax.robust import subquantile
        >>> y = jnp.array([1.0, 1.0, 1.0, 1.0, 99.0])
        >>> fit = subquantile.ridge(jnp.ones((5, 5)), y, contamination=0.2, regularization=5e-4)
        >>> print(fit.kept, fit.predict(jnp.ones((1, 5))).round(2))
        [ True  True  True  True False] [1.]
    """
    problem = trimmed(
        squared(), gram, y, contamination=contamination, regularization=regularization,
        radius=radius,
    )  # fmt: skip
    matrix = problem.gram.matrix
    if matrix is None or _no_formula(problem):
        return _fit(problem, start, solver, iterations, tolerance)
    held = jax.lax.stop_gradient((matrix, problem.y, problem.regularization))
    fixed = problem._replace(gram=dense_gram(held[0]), y=held[1], regularization=held[2])
    return _differentiable(problem, matrix, _fit(fixed, start, solver, iterations, tolerance))


@jax.default_matmul_precision("highest")
def _differentiable(problem: Problem, matrix: jax.Array, fit: Fit) -> Fit:
    """The fit, with the derivatives of ridge regression on the rows kept, a_S = (K_SS + C)⁻¹y_S."""
    y, rows = problem.y, fit.kept
    unit = _power_of_two(jax.lax.stop_gradient(y))
    held = jax.lax.stop_gradient(fit.coefficients) / unit
    residual = jnp.where(rows, y / unit - matrix @ held - problem.diagonal * held, 0)
    a = held + _solved(jax.lax.stop_gradient(matrix), rows, problem.diagonal, residual)
    scaled = problem._replace(y=y / unit)
    objective = scaled.objective_on(rows, a, matrix @ a)
    losses = jnp.where(rows, scaled.loss(matrix @ a, scaled.y), -jnp.inf)

    def with_slope(value, slope_of):
        """The value of the first, the derivatives of the second."""
        return value + (slope_of - jax.lax.stop_gradient(slope_of))

    return fit._replace(
        coefficients=fit.coefficients + unit * (a - held),
        objective=with_slope(fit.objective, unit * (unit * objective)),
        threshold=with_slope(fit.threshold, unit * (unit * jnp.max(losses))),
        norm=with_slope(fit.norm, unit * root(a @ (matrix @ a))),
    )


@jax.custom_jvp
def _solved(matrix, rows, diagonal, residual):
    """Zero, with the derivative (K_SS + C)⁻¹ of the residual on the rows S."""
    del matrix, rows, diagonal
    return jnp.zeros_like(residual)


@_solved.defjvp
def _solved_jvp(primals, tangents):
    matrix, rows, diagonal, residual = primals
    masked = jnp.where(rows[:, None] & rows[None], matrix, 0)
    shift = jnp.where(rows, diagonal, 1)  # 1 on the other rows, where the solution is zero
    step = solve_cholesky(cholesky(masked + jnp.diag(shift)), tangents[3])
    return jnp.zeros_like(residual), jnp.where(rows, step, 0)


def logistic(
    gram: Array | Gram,
    y: Array,
    *,
    contamination: ArrayLike,
    regularization: ArrayLike = 0.0,
    radius: ArrayLike = jnp.inf,
    start: str | Array = "best",
    solver: Solver = "accelerated",
    iterations: int = 1000,
    tolerance: ArrayLike = 1e-6,
) -> Fit:
    """Fits kernel logistic classification to the rows that it fits best, and trims the rest.

    It looks for f = Σ_i a_i k(x_i, ·) in the space of the kernel k, with ‖f‖ ≤ R, that minimizes

        F(f) = min_{|S| = m} (1/m) Σ_{i∈S} log(1 + e^(−y_i f(x_i))) + ½λ‖f‖²,   m = ⌈n(1 − ε)⌉,

    where S are sets of m of the n rows. F has many local minima; it is not guaranteed that the
    lowest is found, or that the trimmed rows are the corrupted ones.

    Args:
        gram: `[n, n]`, K_ij = k(x_i, x_j), or a `chunked_gram` if n² numbers do not fit in memory.
        y: `[n]` labels −1 and +1. If traced, other labels give NaN.
        contamination: ε in [0, ½), the share of rows that may be corrupted. The range is not
            checked if it is traced.
        regularization: λ ≥ 0; 0 by default, and then R must be finite.
        radius: R > 0, the largest norm ‖f‖ = √(aᵀKa); infinity (no limit) by default.
        start: the first f: "zero" (where all losses are equal, so that the first rows are kept at
            first), "median", "ridge" or "huber" (fits to the labels without trimming), coefficients
            `[n]`, or "best", the default, which runs all four and returns the fit of lowest F.
        solver: "accelerated", gradient steps; "alternation" is for `ridge` alone.
        iterations: the largest number of iterations, at least 1. A fit also stops if rounding
            keeps it from moving.
        tolerance: ≥ 0; stops if refitting the rows kept would lower F by no more than this share
            of F.

    Returns:
        A `subquantile.Fit`. The sign of `fit.predict(kernel(z, x))` is the class of new points z.
        It can be differentiated in forward mode (`jax.jvp`, `jax.jacfwd`), through the iterations.

    Raises:
        ValueError: λ = 0 without a radius, labels are not −1 and +1, or another argument is out of
            its range.

    Source: Subquantile Minimization for Kernel Learning, Algorithm 2, with labels 0 and 1 and
        λ = 0. Its step size m/‖K‖ is replaced by 1/L, which is four times as large, where
        L = ‖K‖/(4m) + λ bounds the second derivative of F.

    Example:
        >>> import jax.numpy as jnp
        >>> from noisy_jax.robust import subquantile
        >>> y = jnp.array([1.0, 1.0, 1.0, 1.0, -1.0])
        >>> fit = subquantile.logistic(jnp.ones((5, 5)), y, contamination=0.2, radius=2.0)
        >>> print(fit.kept, fit.predict(jnp.ones((1, 5))).round(2))
        [ True  True  True  True False] [2.]
    """
    problem = trimmed(
        logistic_loss(), gram, y, contamination=contamination, regularization=regularization,
        radius=radius,
    )  # fmt: skip
    if concrete(problem.regularization) == 0 and concrete(problem.radius) == np.inf:
        raise ValueError(
            "regularization must be > 0 or radius finite, got 0 and inf: ‖f‖ grows without limit "
            "if the rows kept are separable"
        )
    return _fit(problem, start, solver, iterations, tolerance)


def _no_formula(problem) -> str:
    """The reason why ridge on the rows kept has no formula; "" if it has one."""
    if problem.loss.kind != "residual":
        return f"works for squared losses only, got {problem.loss}"
    if concrete(problem.radius) != jnp.inf:  # or traced
        return f"needs radius = inf, got {problem.radius}"
    return "needs regularization > 0, got 0" if concrete(problem.regularization) == 0 else ""


@jax.default_matmul_precision("highest")
def _fit(problem: Problem, start, solver, iterations, tolerance) -> Fit:
    choice("solver", solver, SOLVERS)
    if solver == "alternation" and (why_not := _no_formula(problem)):
        raise ValueError(f'alternation {why_not}; use solver="accelerated"')
    iterations = whole("iterations", iterations)
    tolerance = non_negative("tolerance", tolerance)
    y = problem.y
    # Squares of y decide which rows are kept and when to stop: they must not over- or underflow.
    unit = _power_of_two(y) if problem.loss.kind == "residual" else jnp.ones_like(y, shape=())
    radius = problem.radius if solver == "alternation" else problem.radius / unit
    problem = problem._replace(y=y / unit, radius=radius)
    indices, coefficients = _started(problem, start, unit)

    def from_one(coefficients):
        def unfinished(carry):
            state, stuck, count, _ = carry
            return (count < iterations) & ~(state.converged | stuck | jnp.isnan(state.objective))

        def iterate(carry):
            before, _, count, bound = carry
            state = step(problem, before, solver=solver, tolerance=tolerance)
            # If rounding hides a step without momentum, all later steps would be the same.
            stuck = (before.momentum == 1) & jnp.all(state.coefficients == before.coefficients)
            return state, stuck, count + 1, bound + state.bound.astype(bound.dtype)

        none = jnp.zeros((), int)
        first = init(problem, coefficients), jnp.zeros((), bool), none, none
        last, _, count, bound = jax.lax.while_loop(unfinished, iterate, first)
        return last, count, bound / count

    ends = jax.vmap(from_one)(coefficients)
    objectives = ends[0].objective
    best = jnp.argmin(jnp.where(jnp.isnan(objectives), jnp.inf, objectives))
    last, count, bound_fraction = jax.tree.map(lambda leaf: leaf[best], ends)
    return Fit(
        coefficients=unit * last.coefficients,
        kept=last.kept,
        objective=unit * (unit * last.objective),
        threshold=unit * (unit * last.threshold),
        iterations=count,
        converged=last.converged,
        gap=unit * (unit * last.gap),
        norm=unit * jnp.sqrt(jnp.maximum(last.coefficients @ last.values, 0)),
        bound_fraction=bound_fraction,
        contamination=1 - problem.count / problem.y.size,
        start=indices[best],
    )


def _power_of_two(y):
    """The largest power of two up to max|y|, by which floats are divided without rounding."""
    largest = largest_size(y)
    exponent = jnp.frexp(largest)[1] - 1
    return jnp.where(jnp.isfinite(largest), jnp.ldexp(jnp.ones_like(largest), exponent), 1)


def _started(problem, start, unit) -> tuple[jax.Array, jax.Array]:
    """Indices `[k]` in `STARTS` and coefficients `[k, n]`, divided by the unit."""
    if isinstance(start, str):
        choice("start", start, ("best", *starts.STARTS))
        names = starts.STARTS if start == "best" else (start,)
        indices = [starts.STARTS.index(name) for name in names]
        return jnp.array(indices), starts.coefficients(problem, names)
    check_finite("start", start)
    coefficients = jnp.asarray(real_array("start", start), problem.y.dtype)
    check_shape("start", coefficients, problem.y.shape, "as y")
    return jnp.array([-1]), (coefficients / unit)[None]
