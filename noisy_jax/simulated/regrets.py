"""Regret over rounds, and the exponent at which it grows."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.intervals import half_width
from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss
from noisy_jax.validation import check_axes, check_shape


def regret(
    loss: Loss, predictions: chex.Array, comparator: chex.Array, y: chex.Array
) -> chex.Array:
    """Regret R_t = Σ_{s ≤ t} (ℓ(p_s, y_s) − ℓ(q_s, y_s)) against a comparator, for every round t.

    The differences are summed, which in float32 is more precise over long streams than the
    difference of two sums.

    Args:
        loss: ℓ, one of `losses`.
        predictions: p, `[T]`, of the learner.
        comparator: q, `[T]`, such as `comparators.linear_ball(stream, radius).predictions`.
        y: `[T]` clean targets; −1 or +1 for a margin loss.

    Returns:
        R, `[T]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> p, q, y = jnp.zeros(3), jnp.array([1.0, 1.0, 1.0]), jnp.array([1.0, 2.0, 0.0])
        >>> regret(nj.losses.squared(), p, q, y)
        Array([1., 4., 3.], dtype=float32)
    """
    check_loss(loss, flips=False)
    check_axes("y", y, "[T]", "; batch runs with jax.vmap")
    for name, values in {"predictions": predictions, "comparator": comparator}.items():
        check_shape(name, values, np.shape(y), "one for each y")
    return jnp.cumsum(jnp.subtract(loss(predictions, y), loss(comparator, y)))


class Growth(NamedTuple):
    """Exponent a in regret ~ T^a, with its 95% interval; NaN if it cannot be estimated.

    Attributes:
        exponent: a.
        low: lower end of the interval.
        high: upper end of the interval.
    """

    exponent: float
    low: float
    high: float


def growth(
    horizons: Sequence[int],
    mean_regret: Sequence[float],
    std_error: Sequence[float],
    num_seeds: int,
) -> Growth:
    """The exponent at which regret grows: least squares of log regret on log horizon.

    Only the upper half of the horizons is used (at least two), so that the first rounds do not
    count. The interval follows from the standard errors, which are independent across horizons:
    Var a = Σ_h v_h with v_h = c_h² (SE_h/m_h)², means m_h and the weights c_h of the least-squares
    slope. Student's t has (S − 1) (Σ_h v_h)² / Σ_h v_h² degrees of freedom (Welch, Satterthwaite).

    Args:
        horizons: H increasing numbers of rounds.
        mean_regret: m, H mean regrets.
        std_error: SE, H standard errors of these means, at least 0.
        num_seeds: S ≥ 1, seeds of each mean.

    Returns:
        `Growth`; NaN if there are fewer than two horizons or a mean that is used is not positive.
        With one seed the ends of the interval are NaN.

    Example:
        >>> fit = growth([100, 400, 1600], [10.0, 20.0, 40.0], [0.1, 0.2, 0.4], 8)
        >>> print(f"{fit.exponent:.3f} [{fit.low:.3f}, {fit.high:.3f}]")
        0.500 [0.478, 0.522]
    """
    rounds = np.asarray(horizons, float)
    if rounds.ndim != 1 or np.any(rounds[:1] <= 0) or not np.all(np.diff(rounds) > 0):
        raise ValueError(f"horizons must be positive and increasing, got {rounds.tolist()}")
    means, errors = np.asarray(mean_regret, float), np.asarray(std_error, float)
    for name, values in {"mean_regret": means, "std_error": errors}.items():
        check_shape(name, values, (len(rounds),), "one for each horizon")
    if np.any(errors < 0):
        raise ValueError(f"std_error must be >= 0, got {errors.min():g}")
    upper = slice(max(min(len(rounds) // 2, len(rounds) - 2), 0), None)
    means, errors = means[upper], errors[upper]
    if len(rounds) < 2 or not np.all(means > 0):
        return Growth(math.nan, math.nan, math.nan)
    centred = np.log(rounds[upper]) - np.log(rounds[upper]).mean()
    slope = centred / np.sum(centred**2)
    exponent = float(slope @ np.log(means))
    variances = (slope * errors / means) ** 2
    total, squares = variances.sum(), np.sum(variances**2)
    freedom = (num_seeds - 1) * (total**2 / squares if squares else 1)
    half = float(half_width(np.sqrt(total), freedom))
    return Growth(exponent, exponent - half, exponent + half)
