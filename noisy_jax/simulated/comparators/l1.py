"""The best linear predictor in an l1 ball, by non-negative least squares.

    min_{‖w‖₁ ≤ B} ‖Xw − y‖²

The residuals Xw − y of the ball are the convex hull of those at its corners ±B e_i, the columns of
P. Its point nearest to zero is Ps with shares s = u/Σ_i u_i of the corners, where

    u = argmin_{u ≥ 0} ‖Pu‖² + (Σ_i u_i − 1)²,

since at u = ts the least value over t is q/(1 + q) with q = ‖Ps‖², which increases with q. By
convexity the loss is at most ⟨∇, w⟩ + B‖∇‖∞ above the least one, with the gradient
∇ = 2Xᵀ(Xw − y).

Source: Lawson and Hanson, Solving least squares problems (1974), Chapter 23.
"""

from typing import Any

import chex
import jax.numpy as jnp
import numpy as np
import scipy  # comes with JAX; scipy.optimize is imported when it is used

from noisy_jax.base import Stream, check_is_stream
from noisy_jax.simulated.comparators.comparator import comparator
from noisy_jax.simulated.comparators.linear import LinearBall
from noisy_jax.validation import check_concrete, positive


@comparator
def l1_ball(stream: Stream, radius: chex.Numeric) -> LinearBall:
    """The best weights in the l1 ball {‖w‖₁ ≤ radius} for a whole clean stream.

    Its loss is the least one up to rounding in float64: to 10⁻¹⁰‖y‖², unless the scales of features
    differ by more than 10⁶. The result is rounded to JAX's default precision. It takes
    O(Td² + ds³) time for s features that get a weight.

    `l1_ball(radius=B)`, without a stream, is a comparator for `study`.

    Args:
        stream: T clean rounds, concrete.
        radius: B > 0.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0, 0.0], [0.0, 1.0]], [3.0, 1.0])
        >>> print(l1_ball(stream, radius=2.0).weights)
        [2. 0.]
    """
    check_is_stream(stream)
    for name, value in {"stream.x": stream.x, "stream.y": stream.y, "radius": radius}.items():
        check_concrete(name, value, "the minimizer is found on the host")
    size = float(positive("radius", radius))
    x, y = (np.asarray(leaf, np.float64) for leaf in stream)
    factor: Any = np.linalg.qr(np.column_stack([x, y]), mode="r")
    columns, target = factor[:, :-1], factor[:, -1]
    weights = np.linalg.lstsq(columns, target)[0]
    if np.abs(weights).sum() > size:
        corners = size * np.hstack([columns, -columns]) - target[:, None]
        rows = np.vstack([corners / np.linalg.norm(target), np.ones(corners.shape[1])])
        aim, steps = np.append(np.zeros_like(target), 1.0), 100 * len(rows)
        found = scipy.optimize.nnls(rows, aim, maxiter=steps)[0]
        shares = np.where(found > 1e-13 * found.sum(), found, 0)  # zeros up to rounding are zero
        weights = size * np.subtract(*np.split(shares / shares.sum(), 2))
    residuals = x @ weights - y
    multiplier = np.abs(residuals @ x).max()
    best = LinearBall(weights, x @ weights, residuals @ residuals, multiplier)
    return LinearBall(*(jnp.asarray(field, float) for field in best))
