"""The best linear predictor in a ball.

    min_{‖w‖ ≤ B} Σ_t (⟨w, x_t⟩ − y_t)²

The triangular factor R of [X y] contains all that this problem needs, ‖Xw − y‖² = ‖R(w, −1)‖².
With U diag(s) Vᵀ its columns of X and r its column of y, c = Uᵀr and w = Vv give least squares in a
ball, `ball.secular`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Stream
from noisy_jax.linalg import matrices
from noisy_jax.linalg.ball import RANK_ROUNDINGS, precision, secular
from noisy_jax.simulated.comparators.comparator import comparator
from noisy_jax.validation.numbers import positive
from noisy_jax.validation.values import Array, ArrayLike, array_module


class LinearBall(NamedTuple):
    """The best linear predictor in a ball, for the squared loss on clean data.

    Attributes:
        weights: `[d]`, the minimizer (from `linear_ball` of least norm, if there are several).
        predictions: `[T]`, ⟨w, x_t⟩.
        loss: `[]`, Σ_t (⟨w, x_t⟩ − y_t)².
        multiplier: `[]`, μ ≥ 0 of the constraint: (XᵀX + μI)w = Xᵀy, zero inside the ball; of
            `l1_ball` ‖Xᵀ(Xw − y)‖∞.
    """

    weights: Array
    predictions: Array
    loss: Array
    multiplier: Array


@comparator
@jax.default_matmul_precision("highest")
def linear_ball(stream: Stream, radius: ArrayLike) -> LinearBall:
    """Computes the weights in a ball that have the least squared loss on a whole clean stream.

        min_{‖w‖ ≤ B} Σ_t (⟨w, x_t⟩ − y_t)²

    This is the best fixed predictor in hindsight, which the regret of linear learners is measured
    against. It is exact up to rounding. Streams may be rank-deficient, and the minimizer may lie
    inside the ball. Singular values below 8(d + 1)ε of the largest, ε the precision of the dtype,
    count as zero: if the scales of features differ by more than 10⁵, work in float64
    (`jax.enable_x64`).

    Args:
        stream: T clean rounds, `[T, d]` and `[T]`; may be traced. Without it,
            `linear_ball(radius=B)` returns a function of a stream, which `study` takes as its
            comparator.
        radius: B > 0, the radius of the ball in the l2 norm.

    Returns:
        A named tuple: `weights` `[d]`, of least norm if several are best; `predictions` `[T]`, ⟨w,
        x_t⟩; `loss` `[]`, Σ_t (⟨w, x_t⟩ − y_t)²; and `multiplier` `[]`, μ ≥ 0 with
        (XᵀX + μI)w = Xᵀy for the matrix X `[T, d]` of instances, zero inside the ball.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[1.0, 0.0], [0.0, 1.0]], [3.0, 4.0])
        >>> print(nj.comparators.linear_ball(stream, radius=2.5).weights)
        [1.5 2. ]
        >>> best = nj.comparators.linear_ball(radius=2.5)
        >>> print(best(stream).weights)
        [1.5 2. ]
    """
    radius = positive("radius", radius)
    x, y = (jnp.asarray(leaf, float) for leaf in stream)
    xp = array_module(x, y)  # NumPy compiles nothing for each T
    rows = xp.column_stack([x, y])
    triangle = partial(np.linalg.qr, mode="r") if xp is np else lambda a: matrices.qr(a)[1]
    least = np.zeros((rows.shape[1], rows.shape[1]), rows.dtype)  # so that there are enough rows
    weights, multiplier = _best_in_ball(triangle(xp.concatenate([least, rows])), radius)
    xp = array_module(rows, weights)
    with np.errstate(over="ignore"):
        predictions = xp.matmul(x, weights)
        loss = xp.sum((predictions - xp.asarray(y)) ** 2)
    return LinearBall(weights, jax.device_put(predictions), jax.device_put(loss), multiplier)


@jax.jit
def _best_in_ball(factor, radius):
    """Returns weights `[d]` and multiplier `[]` from the triangular factor of [X y]."""
    u, s, vt = matrices.svd(factor[:, :-1])
    s = jnp.where(s > RANK_ROUNDINGS * factor.shape[0] * precision(s) * s[0], s, 0)
    v, multiplier = secular(s, factor[:, -1] @ u, radius)
    return v @ vt, multiplier
