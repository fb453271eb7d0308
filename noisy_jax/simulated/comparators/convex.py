"""The best function in a ball for any convex loss, by the multiplier of the constraint.

    min_{‖g‖ ≤ B} Σ_t ℓ(g(x_t), y_t)

The minimizer g_μ of Σ_t ℓ(g(x_t), y_t) + μ‖g‖², which `regularized` finds up to a gap ε_μ, has a
norm that decreases with μ. The slopes s_t of the loss that belong to g_μ = −Σ_t s_t k(x_t, ·)/(2μ)
bound Σ_t ℓ(g(x_t), y_t) from below by Σ_t ℓ(g_μ(x_t), y_t) + Σ_t s_t(g − g_μ)(x_t) − ε_μ. Hence,
for every g with ‖g‖ ≤ B,

    Σ_t ℓ(g(x_t), y_t) ≥ Σ_t ℓ(g_μ(x_t), y_t) − 2μ‖g_μ‖(B − ‖g_μ‖) − ε_μ,

Scale g_μ into the ball. Its loss minus the right side bounds its suboptimality: ε_μ where
‖g_μ‖ = B, and 2μ‖g_μ‖(B − ‖g_μ‖) + ε_μ inside the ball.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.kernels import Kernel
from noisy_jax.kernels.kernel import check_kernel
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_clean_targets, check_loss
from noisy_jax.simulated.comparators.comparator import comparator
from noisy_jax.simulated.comparators.regularized_risk import Regularized, solve
from noisy_jax.validation.numbers import positive
from noisy_jax.validation.values import Array, ArrayLike, check_concrete

_STEP = 8.0  # by which μ is divided until the function leaves the ball, or it is small enough
_MAX_MULTIPLIERS = 60
_MAX_ITERATIONS = 500
_ROUNDING = 1e-13  # of ‖k(x, ·)‖², what Cholesky factors may lack
_FIRST_RANK = 256


class ConvexBall(NamedTuple):
    """The best function in a ball for a convex loss on clean data, up to a duality gap.

    g = Σ_t a_t k(x_t, ·) over T rounds.

    Attributes:
        coefficients: `[T]`, a. Where μ is small they are large and cancel: use them in float64.
        predictions: `[T]`, g(x_t).
        loss: `[]`, Σ_t ℓ(g(x_t), y_t).
        norm: `[]`, ‖g‖ ≤ B.
        multiplier: `[]`, μ ≥ 0: g minimizes Σ_t ℓ(g(x_t), y_t) + μ‖g‖², up to the gap. Inside the
            ball it is not zero, but so small that it costs less than the gap.
        gap: `[]`, at least the loss of g less the least loss in the ball.
        converged: `[]`, true if the gap is within `tolerance`.
        weights: `[d]`, Σ_t a_t x_t, if no kernel was given; `None` if one was, also the linear one.
    """

    coefficients: Array
    predictions: Array
    loss: ArrayLike
    norm: ArrayLike
    multiplier: ArrayLike
    gap: ArrayLike
    converged: ArrayLike
    weights: Array | None = None


@comparator
def convex_ball(
    stream: Stream,
    loss: Loss,
    radius: ArrayLike,
    *,
    kernel: Kernel | None = None,
    tolerance: float = 1e-6,
) -> ConvexBall:
    """Computes the best function in a ball for any convex loss, on a whole clean stream.

        min_{‖g‖ ≤ B} Σ_t ℓ(g(x_t), y_t)

    g is in the Hilbert space of a kernel; for the linear kernel it is g(x) = ⟨w, x⟩, with
    ‖g‖ = ‖w‖. This is the best fixed predictor in hindsight, which regret is measured against. For
    the squared loss `linear_ball` and `world_ball` are exact, and faster.

    The loss may have kinks. The computation is in float64 on the host, and the result is rounded to
    JAX's default precision. It solves about ten problems of `regularized`; a step of these takes
    O(mr²) time for m different rounds, with r = d for the linear kernel. For other kernels r is the
    rank of the Gram matrix up to rounding, and memory is O(mr).

    Args:
        stream: T clean rounds, `[T, d]` and `[T]`, not traced; y = ±1 for a loss of the margin.
            Without it, `convex_ball(loss=loss, radius=B)` returns a function of a stream, which
            `study` takes as its comparator; give `study` the same loss.
        loss: any loss of `losses` that is nowhere negative, but not a `flipped` one, which need
            not be convex; of an adaptive one, `loss.at(scale)`.
        radius: B > 0, in the norm of the kernel's space.
        kernel: one of `kernels`; the linear kernel by default.
        tolerance: gap > 0 that stops it, as a fraction of the loss of g = 0; 1e-6 by default.
            Rounding limits it to about 1e-7 where the minimizer lies far inside the ball.

    Returns:
        A named tuple: `coefficients` a `[T]` of g = Σ_t a_t k(x_t, ·); `predictions` `[T]`, g(x_t);
        `loss` `[]`, Σ_t ℓ(g(x_t), y_t); `norm` `[]`, ‖g‖; `multiplier` `[]`, μ ≥ 0 such that g
        minimizes Σ_t ℓ(g(x_t), y_t) + μ‖g‖²; `gap` `[]`, a bound on the loss of g above the least
        one; `converged` `[]`, true if the gap is within the tolerance; and `weights` w `[d]`, or
        `None` if the kernel is given.

    Raises:
        ValueError: an argument is out of its range, or traced.

    Source: Lagrangian duality, as in Boyd and Vandenberghe, Convex Optimization (2004), Sec. 5.5.1.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0])
        >>> found = nj.comparators.convex_ball(stream, nj.losses.hinge(), radius=0.5**0.5)
        >>> print(found.predictions.round(3), bool(found.converged))
        [ 0.5 -0.5] True
    """
    check_loss(loss, flips=False)
    if kernel is not None:
        check_kernel(kernel)
    read = {"stream.x": stream.x, "stream.y": stream.y, "radius": radius, "tolerance": tolerance}
    for name, value in read.items():
        check_concrete(name, value, "the minimizer is found on the host")
    parsed = float(positive("radius", radius)), float(positive("tolerance", tolerance))
    x, y = (np.asarray(leaf, np.float64) for leaf in stream)
    check_clean_targets(loss, y)
    default = jnp.result_type(float)
    # Rounds that are repeated count several times, and are solved for once.
    rows, where, counts = np.unique(
        np.column_stack([x, y]), axis=0, return_inverse=True, return_counts=True
    )
    x, y, where = rows[:, :-1], rows[:, -1], where.ravel()  # NumPy 2.0.0 returns [T, 1]
    counts = counts.astype(y.dtype)
    with jax.enable_x64(True):
        features = x if kernel is None else low_rank_factor(kernel, x)
        ball = _solve(features, y, counts, loss, *parsed)
        weights = ball.coefficients @ x if kernel is None else None
        ball = ball._replace(
            coefficients=(ball.coefficients / counts)[where],
            predictions=np.asarray(ball.predictions)[where],
            weights=weights,
        )
        rounded = jax.tree.map(lambda field: jnp.asarray(field, default), ball)
        return rounded._replace(converged=jnp.asarray(ball.converged))


def low_rank_factor(kernel: Kernel, x: np.ndarray) -> np.ndarray:
    """Returns features `[m, r]` with the Gram matrix of points up to rounding: pivoted Cholesky."""
    points = jnp.asarray(x)
    column = jax.jit(lambda point: kernel(points, point[None])[:, 0])
    left = np.array(kernel.diagonal(points))
    least = _ROUNDING * left.max()
    features = np.empty((len(x), min(len(x), _FIRST_RANK)))
    for rank in range(len(x)):
        pivot = left.argmax()
        if left[pivot] <= least:
            return features[:, :rank]
        if rank == features.shape[1]:
            features = np.hstack([features, np.empty((len(x), min(rank, len(x) - rank)))])
        before = features[:, :rank]
        features[:, rank] = (column(points[pivot]) - before @ before[pivot]) / left[pivot] ** 0.5
        left = np.maximum(left - features[:, rank] ** 2, 0)
        left[pivot] = 0
    return features


def _solve(features, y, counts, loss, radius, tolerance) -> ConvexBall:
    zero = np.zeros_like(y)
    idle = float(np.sum(counts * loss(zero, y)))
    slopes = counts * np.asarray(loss.gradient(zero, y))
    # ‖g_μ‖ ≤ ‖Σ_t s_t k(x_t, ·)‖/(2μ) with the slopes s_t at g = 0.
    mu = np.linalg.norm(slopes @ features) / (2 * radius)
    if not mu or not idle:
        return ConvexBall(zero, zero, idle, 0.0, 0.0, 0.0, np.True_)
    least = tolerance * idle / (2 * radius**2)  # costs half the tolerance
    inside, outside, tried, start = None, None, [], zero
    for _ in range(_MAX_MULTIPLIERS):
        lam = 2 * mu / y.size
        optimum = solve(features, y, loss, lam, tolerance / 4, _MAX_ITERATIONS, start, counts)
        start = -2 * mu * optimum.coefficients
        tried.append(_in_ball(optimum, y, counts, loss, radius, mu, tolerance * idle))
        excess = np.log(max(float(optimum.norm) / radius, 1e-300))
        if tried[-1].converged or not optimum.converged or (excess <= 0 and mu == least):
            break  # solved, or as far as rounding allows
        # Regula falsi in log μ, with the Illinois rule: an end that stays counts half.
        if excess > 0:
            inside = inside and (inside[0], inside[1] / 2)
            outside = np.log(mu), excess
        else:
            outside = outside and (outside[0], outside[1] / 2)
            inside = np.log(mu), excess
        if inside is None:
            mu *= _STEP
        elif outside is None:
            mu = max(mu / _STEP, least)
        else:
            (a, f), (b, g) = inside, outside
            mu = np.exp((a * g - b * f) / (g - f))
    return min(tried, key=lambda ball: ball.gap)


def _in_ball(optimum: Regularized, y, counts, loss, radius, mu, small) -> ConvexBall:
    """Returns g_μ, scaled into the ball, with the duality gap."""
    scale = min(1.0, radius / optimum.norm) if optimum.norm else 1.0
    predictions = scale * optimum.predictions
    value = float(np.sum(counts * loss(predictions, y)))
    norm, size = float(optimum.norm), scale * optimum.norm
    lower = y.size * (float(optimum.risk) - float(optimum.gap)) + mu * norm * (norm - 2 * radius)
    gap = max(value - lower, 0)
    return ConvexBall(scale * optimum.coefficients, predictions, value, size, mu, gap, gap <= small)
