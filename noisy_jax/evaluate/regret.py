"""Losses and regret as arrays over rounds, and the exponent by which regret grows."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss
from noisy_jax.validation import check_axes, check_shape

__all__ = ["NORMAL_95", "Growth", "cumulative_loss", "growth", "regret"]

NORMAL_95 = 1.959963984540054
"""Half-width of a 95% interval in standard errors."""


def cumulative_loss(loss: Loss, predictions: chex.Array, y: chex.Array) -> chex.Array:
    """Σ_{s ≤ t} ℓ(p_s, y_s) for every t.

    Args:
        loss: by which predictions are judged.
        predictions: `[T]`.
        y: `[T]` clean targets.

    Returns:
        `[T]`.

    Raises:
        ValueError: no loss, predictions and targets of other shapes, or labels other than ±1 for a
            loss of the margin.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> cumulative_loss(nj.losses.squared(), jnp.zeros(3), jnp.array([1.0, 2.0, 0.0]))
        Array([1., 5., 5.], dtype=float32)
    """
    _check(loss, y, predictions=predictions)
    return jnp.cumsum(loss(predictions, y))


def regret(
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
        `[T]`. (Against the best comparator of each prefix: `cumulative_loss(...) −
        comparators.linear_ball_prefix_losses(...)`.)

    Raises:
        ValueError: as `cumulative`.
    """
    _check(loss, y, predictions=predictions, comparator=comparator)
    return jnp.cumsum(loss(predictions, y) - loss(comparator, y))


def _check(loss, y, **predictions) -> None:
    check_loss(loss)
    check_axes("y", y, "[T]", "; batch runs with jax.vmap")
    for name, values in predictions.items():
        check_shape(name, values, np.shape(y), "one for each y")


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

    Raises:
        ValueError: horizons that do not increase, other than H means and errors, negative errors.

    Example:
        >>> fit = growth([100, 400, 1600], [10.0, 20.0, 40.0], [0.1, 0.2, 0.4])
        >>> print(f"{fit.exponent:.3f} [{fit.low:.3f}, {fit.high:.3f}]")
        0.500 [0.480, 0.520]
    """
    horizons = np.asarray(horizons, float)
    if horizons.ndim != 1 or np.any(horizons[:1] <= 0) or not np.all(np.diff(horizons) > 0):
        raise ValueError(f"horizons must be positive and increasing, got {horizons.tolist()}")
    means, errors = np.asarray(mean_regret, float), np.asarray(std_error, float)
    for name, values in {"mean_regret": means, "std_error": errors}.items():
        check_shape(name, values, (len(horizons),), "one for each horizon")
    if np.any(errors < 0):
        raise ValueError(f"std_error must be >= 0, got {errors.min():g}")
    start = min(len(horizons) // 2, len(horizons) - 2)
    if start < 0:
        return Growth(math.nan, math.nan, math.nan)
    log_horizons = np.log(horizons[start:])
    means, errors = means[start:], errors[start:]
    if not np.all(means > 0):
        return Growth(math.nan, math.nan, math.nan)
    centred = log_horizons - log_horizons.mean()
    slope_weights = centred / np.sum(centred**2)
    exponent = float(slope_weights @ np.log(means))
    half = NORMAL_95 * float(np.sqrt(np.sum((slope_weights * errors / means) ** 2)))
    return Growth(exponent, exponent - half, exponent + half)
