"""The minimizer of the regularized risk over the Hilbert space of a kernel, for any convex loss.

    min_g R_reg[g] = (1/m) Σ_i ℓ(g(x_i), y_i) + ½λ‖g‖²,   g = Σ_i a_i k(x_i, ·),   a = −s/(λm)

with a slope s_i ∈ ∂ℓ(g(x_i), y_i) for each point. For slopes at other predictions p_i,
s_i ∈ ∂ℓ(p_i, y_i), the conjugate is ℓ*(s_i) = s_i p_i − ℓ(p_i, y_i), so that the duality gap

    (1/m) Σ_i [ℓ(g(x_i), y_i) − ℓ(p_i, y_i) − s_i (g(x_i) − p_i)] ≥ R_reg[g] − min R_reg

needs no formula for ℓ*. Such pairs come from proximal points: around slopes s°,

    p = argmin_p ℓ(p, y) + (p − v − μs°)²/(2μ),   s = s° + (v − p)/μ,

by bisection, which needs no derivative at kinks. Newton's method finds the function v = Kc with
s = −λmc; then s° ← s and μ is reduced (the method of multipliers with semi-smooth Newton steps).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.linalg.ball import RANK_ROUNDINGS, precision
from noisy_jax.linalg.matrices import check_gram, check_matrix, check_semidefinite
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_clean_targets, check_loss
from noisy_jax.validation.arrays import real_array
from noisy_jax.validation.numbers import positive, whole
from noisy_jax.validation.rows import check_targets
from noisy_jax.validation.values import Array, ArrayLike, check_concrete

_INEXACT = 0.1  # Newton's method stops at this residual, relative to the change of slopes
_REDUCTION = 4.0  # of μ between proximal points; with more, Newton's method starts far off
_LEAST = 1e-6  # smallest μ as a fraction of the first; below, rounding is amplified
_BISECTIONS = 80  # 53, and more for losses that are steep at the start
_HALVINGS = 40
_STEEPEST = 1e6  # slopes at the start relative to those given, that bisections still resolve


class Regularized(NamedTuple):
    """The minimizer ĝ of the regularized risk, up to a duality gap.

    g = Σ_i a_i k(x_i, ·) over m points.

    Attributes:
        coefficients: `[m]`, a; exactly zero at points where the loss is flat.
        predictions: `[m]`, g(x_i).
        risk: `[]`, R_reg[g], with its term ½λ‖g‖².
        norm: `[]`, ‖g‖ = √(aᵀKa).
        gap: `[]`, at least R_reg[g] − R_reg[ĝ], and at least ½λ‖g − ĝ‖².
        iterations: `[]`, number of steps.
        converged: `[]`, true if the gap is within `tolerance`.
    """

    coefficients: Array
    predictions: Array
    risk: ArrayLike
    norm: ArrayLike
    gap: ArrayLike
    iterations: ArrayLike
    converged: ArrayLike


def regularized(
    gram: Array,
    y: Array,
    loss: Loss,
    regularization: ArrayLike,
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 500,
) -> Regularized:
    """Computes the function in a kernel's space that has the least regularized risk.

        min_g R_reg[g] = (1/m) Σ_i ℓ(g(x_i), y_i) + ½λ‖g‖²,   g = Σ_i a_i k(x_i, ·)

    ℓ is any convex loss. `learners.norma` is measured against g: summed over m rounds, Σ_t
    (ℓ(g(x_t), y_t) + ½λ‖g‖²) is m R_reg[g] (`bounds.regularized_risk`).

    Losses may have kinks, points may be repeated, and the Gram matrix K may be singular; negative
    eigenvalues within rounding count as zero. The computation is in float64 on the host, and the
    result is rounded to JAX's default precision. A step takes O(mr + n³) time for rank r and n
    points where the loss is not flat, or O(mr²) if r < n; before the first step the eigenvalues of
    K are found, in O(m³). Small λ and losses with kinks need more steps.

    Args:
        gram: `[m, m]`, K_ij = k(x_i, x_j) of m points, symmetric and positive semi-definite, or
            ValueError; not traced.
        y: `[m]` targets; ±1 for a loss of the margin.
        loss: any loss of `losses` but a `flipped` one, which need not be convex; of an adaptive
            one, `loss.at(scale)`.
        regularization: λ > 0, the weight of ½‖g‖² beside the mean loss.
        tolerance: duality gap > 0 that stops it, as a fraction of the risk of g = 0; 1e-9 by
            default. Rounding limits it to about 1e-11 if λ is small.
        max_iterations: largest number of steps, 500 by default; the result is then the best g so
            far.

    Returns:
        A named tuple: `coefficients` a `[m]`; `predictions` `[m]`, g(x_i); `risk` `[]`, R_reg[g];
        `norm` `[]`, ‖g‖ = √(aᵀKa); `gap` `[]`, a bound on R_reg[g] above its minimum; `iterations`
        `[]`, number of steps; and `converged` `[]`, true if the gap is within the tolerance.

    Raises:
        ValueError: an argument is out of its range, or traced.

    Source: Online Learning with Kernels, Eqs. 4 and 5 (the risk).

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> found = nj.comparators.regularized(
        ...     jnp.eye(2), jnp.array([1.0, -1.0]), nj.losses.hinge(), 1.0)
        >>> print(found.predictions, bool(found.converged))
        [ 0.5 -0.5] True
    """
    check_loss(loss, flips=False)
    check_matrix("gram", gram)
    read = {"gram": gram, "y": y, "regularization": regularization, "tolerance": tolerance}
    for name, value in read.items():
        check_concrete(name, value, "the minimizer is found on the host")
    parsed = (
        np.float64(positive("regularization", regularization)),
        positive("tolerance", tolerance),
        whole("max_iterations", max_iterations),
    )
    y = np.asarray(real_array("y", y), np.float64)
    check_targets(y)
    gram = np.asarray(real_array("gram", gram), np.float64)
    check_gram("gram", gram, y.size)
    check_clean_targets(loss, y)
    default = jnp.result_type(float)
    with jax.enable_x64(True):
        solution = solve(factor(gram), y, loss, *parsed)
        rounded = [jnp.asarray(field, default) for field in solution[:-2]]
        return Regularized(*rounded, *map(jnp.asarray, solution[-2:]))


def factor(gram: np.ndarray) -> np.ndarray:
    """Returns features `[m, r]` with this Gram matrix, without eigenvalues that are rounding."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    check_semidefinite("gram", eigenvalues)
    kept = eigenvalues > RANK_ROUNDINGS * len(gram) ** 0.5 * precision(gram) * eigenvalues[-1]
    return vectors[:, kept] * np.sqrt(eigenvalues[kept])


def solve(
    features, y, loss: Loss, lam, tolerance, max_iterations, start=None, counts=1.0
) -> Regularized:
    """Solves `regularized` for the Gram matrix of features `[m, r]`, in float64.

    JAX must have float64 enabled. `start` are first slopes `[m]`, such as the minimizer's slopes
    for another λ; none by default. The loss at each point, and with it the slope, is multiplied by
    `counts`.
    """
    m = y.size

    def certified(p, s, losses, _) -> Regularized:
        """Returns the g of some slopes, and its duality gap."""
        a = -s / (lam * m)
        weights = a @ features
        g = features @ weights
        of_g, square = counts * np.asarray(loss(g, y)), weights @ weights
        gap = np.mean(of_g - losses - s * (g - p))
        # Infinite or negative where bisection could not resolve the derivative s at p.
        sound = np.isfinite(gap) and gap >= -1e-9 * np.mean(of_g + losses)
        gap = max(gap, 0) if sound else np.inf
        risk = np.mean(of_g) + lam * square / 2
        return Regularized(a, g, risk, np.sqrt(square), gap, iterations, gap <= small)

    def penalized(c, v):
        """Returns the risk of v = Kc with Moreau's envelope of the loss; results of `_proximal`."""
        proximal = [np.asarray(part) for part in _proximal(loss, y, counts, v + mu * center, mu)]
        _, s, losses, _ = proximal
        return np.mean(losses + mu / 2 * s**2) + lam / 2 * c @ v, proximal

    mu = largest = np.sum(features**2) / (lam * m**2) or 1.0
    center = np.zeros(m) if start is None else start
    c = -center / (lam * m)
    v = features @ (c @ features)
    steepest = np.abs(counts * loss.gradient(v + mu * center, y)).max()
    if start is not None and not steepest <= _STEEPEST * np.abs(start).max():
        center, c, v = np.zeros((3, m))
    small = tolerance * np.mean(counts * loss(np.zeros(m), y))
    iterations = 0
    value, proximal = penalized(c, v)
    best = certified(*proximal)
    while not best.converged and iterations < max_iterations:
        iterations += 1
        _, s, _, curvature = proximal
        residual = s + lam * m * c
        moved = False
        change = lam * m * mu * np.sum((s - center) ** 2)
        if np.sum((residual @ features) ** 2) > _INEXACT**2 * change:
            dc, dv = _newton(features, curvature, residual, lam * m)
            slope, rounding = residual @ dv / m, 1e-13 * abs(value)
            for step in 0.5 ** np.arange(_HALVINGS):
                lower, proximal = penalized(c + step * dc, v + step * dv)
                moved = lower <= value + 1e-4 * step * slope + rounding
                if moved:
                    c, v, value = c + step * dc, v + step * dv, lower
                    break
        if not moved:  # solved for this center, as far as rounding allows
            center, mu = s, max(mu / _REDUCTION, _LEAST * largest)
            c = -s / (lam * m)
            v = features @ (c @ features)
            value, proximal = penalized(c, v)
        best = min(best, certified(*proximal), key=lambda candidate: candidate.gap)
    return best._replace(iterations=iterations)


def _newton(features, curvature, residual, scale):
    """Returns the step dc, and dv = K dc, with (DK + λmI)dc = −(s + λmc), by a symmetric system."""
    curved = np.flatnonzero(curvature > 0)
    root = np.sqrt(curvature[curved])
    rows = root[:, None] * features[curved]
    moved = residual @ features / scale
    # (RRᵀ + λmI)⁻¹R = R(RᵀR + λmI)⁻¹: the smaller system.
    small = len(moved) < len(curved)
    system = rows.T @ rows if small else rows @ rows.T
    system[np.diag_indices_from(system)] += scale
    solved = np.linalg.solve(system, moved if small else rows @ moved)
    dc = -residual / scale
    dc[curved] += root * (rows @ solved if small else solved)
    return dc, features @ (dc @ features)


@functools.partial(jax.jit, static_argnums=0)
def _proximal(loss, y, counts, w, mu):
    """Returns p with p + μs = w, its slope s of the loss, the loss at p, and ds/dw, each `[m]`."""

    def slope(p):
        return counts * loss.gradient(p, y)

    steepest = slope(w)  # s lies between zero and this, as slopes increase with p

    def halved(_, bracket):
        inner, outer = bracket
        s = (inner + outer) / 2
        inside = (slope(w - mu * s) - s) * jnp.sign(steepest) >= 0
        return jnp.where(inside, s, inner), jnp.where(inside, outer, s)

    s, _ = jax.lax.fori_loop(0, _BISECTIONS, halved, (jnp.zeros_like(w), steepest))
    p = w - mu * s
    kink = jnp.abs(slope(p) - s) > 1e-8 * jnp.abs(steepest)
    curvature = jax.jvp(slope, (p,), (jnp.ones_like(p),))[1]
    return p, s, counts * loss(p, y), jnp.where(kink, 1 / mu, curvature / (1 + mu * curvature))
