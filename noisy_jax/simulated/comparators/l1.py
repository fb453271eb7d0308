"""The best linear predictor in an l1 ball, by an active set of its corners.

    min_{‖w‖₁ ≤ B} ‖Xw − y‖²

The residuals Xw − y of the ball are the convex hull of those at its corners ±B e_i. Wolfe's
algorithm finds the point of the hull nearest to zero: it adds the corner that decreases the loss
most, moves to the nearest point of the plane through all corners that it holds, and drops those
that would get a negative weight. It ends after finitely many steps. By convexity the loss is at
most ⟨∇, w⟩ + B‖∇‖∞ above the least one, with the gradient ∇ = 2Xᵀ(Xw − y).

Source: Wolfe, Finding the nearest point in a polytope (1976).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.simulated.comparators.comparator import comparator
from noisy_jax.simulated.comparators.linear import LinearBall
from noisy_jax.validation.numbers import positive
from noisy_jax.validation.values import ArrayLike, check_concrete


@comparator
def l1_ball(stream: Stream, radius: ArrayLike) -> LinearBall:
    """Computes the weights in an l1 ball that have the least squared loss on a whole clean stream.

        min_{‖w‖₁ ≤ B} Σ_t (⟨w, x_t⟩ − y_t)²

    This is the best fixed predictor in hindsight for `learners.exponentiated_gradient`. Its loss is
    the least one up to 10⁻¹⁰‖y‖², unless the scales of features differ by more than 10⁶. It is
    computed in float64 on the host, in O(Td² + ds³) time for s features that get a weight, and
    rounded to JAX's default precision.

    Args:
        stream: T clean rounds, `[T, d]` and `[T]`, not traced. Without it, `l1_ball(radius=B)`
            returns a function of a stream, which `study` takes as its comparator.
        radius: B > 0, the largest ‖w‖₁ = Σ_i |w_i|; not traced.

    Returns:
        A named tuple: `weights` `[d]`; `predictions` `[T]`, ⟨w, x_t⟩; `loss` `[]`, Σ_t (⟨w,
        x_t⟩ − y_t)²; and `multiplier` `[]`, ‖Xᵀ(Xw − y)‖∞ for the matrix X `[T, d]` of instances.

    Raises:
        ValueError: an argument is out of its range, or traced.

    Source: Wolfe, Finding the nearest point in a polytope (1976), for the algorithm.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0])
        >>> print(nj.comparators.l1_ball(stream, radius=2.0).weights)
        [2. 0.]
    """
    for name, value in {"stream.x": stream.x, "stream.y": stream.y, "radius": radius}.items():
        check_concrete(name, value, "the minimizer is found on the host")
    size = float(positive("radius", radius))
    x, y = (np.asarray(leaf, np.float64) for leaf in stream)
    factor: Any = np.linalg.qr(np.column_stack([x, y]), mode="r")
    columns, target = factor[:, :-1], factor[:, -1]
    weights = np.linalg.lstsq(columns, target)[0]
    if np.abs(weights).sum() > size:
        corners = size * np.vstack([columns.T, -columns.T]) - target
        shares = _nearest(corners, float(1e-13 * (y @ y)))
        weights = size * np.subtract(*np.split(shares, 2))
    residuals = x @ weights - y
    multiplier = np.abs(residuals @ x).max()
    ball = LinearBall(weights, x @ weights, residuals @ residuals, multiplier)
    return LinearBall(*(jnp.asarray(field, float) for field in ball))


def _nearest(corners: np.ndarray, small_gap: float) -> np.ndarray:
    """Returns shares `[K]` of corners `[K, m]` in the point of their hull nearest to zero."""
    active, shares = [int(np.argmin(np.sum(corners**2, axis=1)))], np.ones(1)
    best, least = np.zeros(len(corners)), np.inf
    while True:
        point = shares @ corners[active]
        square, heights = point @ point, corners @ point
        if square >= least:  # by rounding
            return best
        least, best = square, np.zeros(len(corners))
        best[active] = shares
        corner = int(np.argmin(heights))
        if square - heights[corner] <= small_gap / 2 or corner in active:
            return best
        active, shares = [*active, corner], np.append(shares, 0.0)
        while ((aim := _nearest_in_plane(corners[active])) <= 0).any():
            # The part of the way to the aim after which the first share vanishes.
            parts = np.where(aim <= 0, shares / np.maximum(shares - aim, 1e-300), np.inf)
            gone = int(np.argmin(parts))
            shares = np.delete(shares + parts[gone] * (aim - shares), gone)
            del active[gone]
        shares = aim


def _nearest_in_plane(corners: np.ndarray) -> np.ndarray:
    """Returns shares `[n]` of any sign, sum 1, of corners in the nearest point of their plane."""
    q, r = np.linalg.qr((corners[1:] - corners[0]).T)
    others = np.linalg.solve(r, -corners[0] @ q)
    return np.append(1 - others.sum(), others)
