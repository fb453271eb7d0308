"""Losses and regret as arrays over rounds, and the exponent by which regret grows."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.losses import Loss

NORMAL_95 = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""


def cumulative(loss: Loss, predictions: chex.Array, y: chex.Array) -> chex.Array:
    """Σ_{s ≤ t} ℓ(p_s, y_s) for every t.

    Args:
        loss: by which predictions are judged.
        predictions: `[T]`.
        y: `[T]` clean targets.

    Returns:
        `[T]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> cumulative(nj.losses.squared(), jnp.zeros(3), jnp.array([1.0, 2.0, 0.0]))
        Array([1., 5., 5.], dtype=float32)
    """
    chex.assert_rank([predictions, y], 1)
    return jnp.cumsum(loss.value(predictions, y))


def against(
    loss: Loss, predictions: chex.Array, comparator: chex.Array, y: chex.Array
) -> chex.Array:
    """Regret Σ_{s ≤ t} ℓ(p_s, y_s) − ℓ(q_s, y_s) for every t, against a comparator's predictions q.

    Differences are summed, not sums subtracted, so that float32 holds it over long streams.

    Args:
        loss: by which predictions are judged.
        predictions: `[T]`, of the learner.
        comparator: `[T]`, such as `comparators.linear_ball(stream, radius).predictions`.
        y: `[T]` clean targets.

    Returns:
        `[T]`. (Against the best comparator of each prefix: `cumulative(...) −
        comparators.linear_ball_prefix_losses(...)`.)
    """
    chex.assert_rank([predictions, comparator, y], 1)
    return jnp.cumsum(loss.value(predictions, y) - loss.value(comparator, y))


class Growth(NamedTuple):
    """Exponent a in regret ~ T^a, with its 95% interval; NaN where it cannot be had.

    Attributes:
        exponent: a.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    exponent: float
    low: float
    high: float


def growth(
    horizons: Sequence[int], mean_regret: Sequence[float], std_error: Sequence[float]
) -> Growth:
    """The exponent of growth, by least squares of log regret on log T over the upper half.

    The upper half of the horizons (at least two), where the transient is over, is used. The
    interval carries the standard errors of the means, independent across horizons, through the
    logarithm: Var a = Σ_h c_h² (SE_h/m_h)², c the weights of the least-squares slope.

    Args:
        horizons: H ≥ 2 increasing numbers of rounds.
        mean_regret: H means.
        std_error: H standard errors of these means.

    Returns:
        `Growth`; NaN with fewer than two horizons, or a mean regret that is not positive.

    Example:
        >>> fit = growth([100, 400, 1600], [10.0, 20.0, 40.0], [0.1, 0.2, 0.4])
        >>> print(f"{fit.exponent:.3f} [{fit.low:.3f}, {fit.high:.3f}]")
        0.500 [0.480, 0.520]
    """
    start = min(len(horizons) // 2, len(horizons) - 2)
    if start < 0:
        return Growth(math.nan, math.nan, math.nan)
    log_horizons = np.log(np.asarray(horizons[start:], float))
    means, errors = np.asarray(mean_regret[start:], float), np.asarray(std_error[start:], float)
    if not np.all(means > 0):
        return Growth(math.nan, math.nan, math.nan)
    centred = log_horizons - log_horizons.mean()
    slope_weights = centred / np.sum(centred**2)
    exponent = float(slope_weights @ np.log(means))
    half = NORMAL_95 * float(np.sqrt(np.sum((slope_weights * errors / means) ** 2)))
    return Growth(exponent, exponent - half, exponent + half)
