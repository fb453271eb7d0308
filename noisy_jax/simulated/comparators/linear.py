"""The best linear predictor in a ball, and in an l1 ball.

    min_{‖w‖ ≤ B} Σ_t (⟨w, x_t⟩ − y_t)²

The triangular factor R of [X y] contains all that this problem needs, ‖Xw − y‖² = ‖R(w, −1)‖².
With U diag(s) Vᵀ its columns of X and r its column of y, c = Uᵀr and w = Vv give least squares in a
ball, `ball.secular`.

In the l1 ball, ‖w‖₁ ≤ B, the residuals Xw − y are the convex hull of those at its corners ±B e_i.
Wolfe's algorithm finds the point of the hull nearest to zero by an active set of corners: it adds
the corner that decreases the loss most, moves to the nearest point of the plane through all corners
that it holds, and drops those that would get a negative weight. It ends after finitely many steps.
By convexity the loss is at most ⟨∇, w⟩ + B‖∇‖∞ above the least one, with the gradient
∇ = 2Xᵀ(Xw − y).

Source: Wolfe, Finding the nearest point in a polytope (1976).
"""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import matrices
from noisy_jax.ball import RANK_ROUNDINGS, precision, secular
from noisy_jax.base import Stream, check_is_stream
from noisy_jax.simulated.streams import from_arrays
from noisy_jax.validation import array_module, check_concrete, positive


def comparator(solve: Callable[..., Any]) -> Callable[..., Any]:
    """The function `solve(stream, …)`, which without a stream returns a function of a stream."""
    signature = inspect.signature(solve)

    @wraps(solve)
    def of_stream(stream: Stream | None = None, *arguments, **options):
        if stream is not None:
            return solve(stream, *arguments, **options)
        bound = signature.bind(None, *arguments, **options)  # a missing option is an error at once
        _, *rest = bound.arguments.items()
        return partial(solve, **dict(rest))

    return of_stream


class LinearBall(NamedTuple):
    """The best linear predictor in a ball, for the squared loss on clean data.

    Attributes:
        weights: `[d]`, the minimizer (from `linear_ball` of least norm, if there are several).
        predictions: `[T]`, ⟨w, x_t⟩.
        loss: `[]`, Σ_t (⟨w, x_t⟩ − y_t)².
        multiplier: `[]`, μ ≥ 0 of the constraint: (XᵀX + μI)w = Xᵀy, zero inside the ball; of
            `l1_ball` ‖Xᵀ(Xw − y)‖∞.
    """

    weights: chex.Array
    predictions: chex.Array
    loss: chex.Array
    multiplier: chex.Array


@comparator
@jax.default_matmul_precision("highest")
def linear_ball(stream: Stream, radius: chex.Numeric) -> LinearBall:
    """The best weights in the ball {‖w‖ ≤ radius} for a whole clean stream, exactly.

    Streams may be rank-deficient, and the minimizer may lie inside the ball. Singular values below
    8(d + 1)ε of the largest, ε the precision of the dtype, count as zero: if the scales of features
    differ by more than 10⁵, work in float64 (`jax.enable_x64`).

    Without a stream, it returns the comparator for `study`, a function of a stream.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0])
        >>> print(linear_ball(stream, radius=2.5).weights)
        [1.5 2. ]
        >>> best = linear_ball(radius=2.5)
        >>> print(best(stream).weights)
        [1.5 2. ]
    """
    radius = positive("radius", radius)
    stream = from_arrays(*stream)
    xp = array_module(*stream)  # NumPy compiles nothing for each T
    rows = xp.column_stack(stream)
    triangle = partial(np.linalg.qr, mode="r") if xp is np else lambda a: matrices.qr(a)[1]
    least = np.zeros((rows.shape[1], rows.shape[1]), rows.dtype)  # so that there are enough rows
    weights, multiplier = _best_in_ball(triangle(xp.concatenate([least, rows])), radius)
    xp = array_module(rows, weights)
    with np.errstate(over="ignore"):
        predictions = xp.matmul(stream.x, weights)
        loss = xp.sum((predictions - xp.asarray(stream.y)) ** 2)
    return LinearBall(weights, jax.device_put(predictions), jax.device_put(loss), multiplier)


@jax.jit
def _best_in_ball(factor, radius):
    """Weights `[d]` and multiplier `[]` from the triangular factor of [X y]."""
    u, s, vt = matrices.svd(factor[:, :-1])
    s = jnp.where(s > RANK_ROUNDINGS * factor.shape[0] * precision(s) * s[0], s, 0)
    v, multiplier = secular(s, factor[:, -1] @ u, radius)
    return v @ vt, multiplier


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
        corners = size * np.vstack([columns.T, -columns.T]) - target
        shares = _nearest(corners, float(1e-13 * (y @ y)))
        weights = size * np.subtract(*np.split(shares, 2))
    residuals = x @ weights - y
    multiplier = np.abs(residuals @ x).max()
    found = LinearBall(weights, x @ weights, residuals @ residuals, multiplier)
    return LinearBall(*(jnp.asarray(field, float) for field in found))


def _nearest(corners: np.ndarray, small_gap: float) -> np.ndarray:
    """Shares `[K]` of the corners `[K, m]` in the point of their hull that is nearest to zero."""
    active, shares = [int(np.argmin(np.sum(corners**2, axis=1)))], np.ones(1)
    found, least = np.zeros(len(corners)), np.inf
    while True:
        point = shares @ corners[active]
        square, heights = point @ point, corners @ point
        if square >= least:  # by rounding
            return found
        least, found = square, np.zeros(len(corners))
        found[active] = shares
        corner = int(np.argmin(heights))
        if square - heights[corner] <= small_gap / 2 or corner in active:
            return found
        active, shares = [*active, corner], np.append(shares, 0.0)
        while ((aim := _nearest_in_plane(corners[active])) <= 0).any():
            # The part of the way to the aim after which the first share vanishes.
            parts = np.where(aim <= 0, shares / np.maximum(shares - aim, 1e-300), np.inf)
            gone = int(np.argmin(parts))
            shares = np.delete(shares + parts[gone] * (aim - shares), gone)
            del active[gone]
        shares = aim


def _nearest_in_plane(corners: np.ndarray) -> np.ndarray:
    """Shares `[n]` with sum 1, of any sign, of the corners in the nearest point of their plane."""
    q, r = np.linalg.qr((corners[1:] - corners[0]).T)
    others = np.linalg.solve(r, -corners[0] @ q)
    return np.append(1 - others.sum(), others)
