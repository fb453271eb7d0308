"""A lower bound on the regret of every learner that reads one noisy copy a round.

    lower_bound = min_{|w| ≤ B} max(excess_A(w), excess_B(w)),   excess = risk − its minimum,

    risk_A(w) = ½ℓ(3w, 1) + ½ℓ(−w, 1),   risk_B(w) = ℓ(w, 1)

Under the two adversaries of `streams.one_copy_adversaries` the weights of such a learner have the
same distribution, and so the same mean w̄ = E Σ_t w_t / T. As ℓ is convex, the expected average
regret is at least excess_A(w̄) in A and excess_B(w̄) in B.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np

from noisy_jax.losses import Loss
from noisy_jax.losses.loss import check_loss
from noisy_jax.validation.numbers import number, positive
from noisy_jax.validation.values import Array, check_concrete

# Halvings of an interval of float64 numbers, until its ends are neighbours.
_HALVINGS = 64


class OneCopyLowerBound(NamedTuple):
    """The bound on the larger of the two expected average regrets, and the w that attains it."""

    weight: float
    lower_bound: float


def one_copy_lower_bound(loss: Loss, *, radius: float) -> OneCopyLowerBound:
    """Returns a lower bound on the regret per round of all learners that read one copy a round.

        min_{|w| ≤ B} max(excess_A(w), excess_B(w))

    Take a learner with weights in [−B, B], which predicts w x. It reads one noisy copy a round, and
    is not told the distribution of the noise. Two adversaries, A without noise and B with noise,
    look the same to it (`streams.one_copy_adversaries`). Against one of them its expected regret on
    clean data, divided by the number of rounds T, is at least this bound, for every T. excess_A(w)
    and excess_B(w) are the regret per round of the constant weight w against each, compared with
    the best weight in [−B, B] (`one_copy_excess`).

    Args:
        loss: any loss of `losses` but a `flipped` one, and an adaptive loss as `.at(scale)`; only
            its values for the label 1 are used.
        radius: B > 0; not traced. If one weight in [−B, B] is best against both, the bound is 0.

    Returns:
        A named tuple of floats, in float64: `weight`, the minimizing w, and `lower_bound`. They are
        found by bisection on the host.

    Source: Online Learning of Noisy Data with Kernels, Theorem 5 and Appendices E and F, which show
    that it is positive; the values are computed here: (1 − 1/√5)² at w = 1/√5 for the squared loss,
    2/9 at 7/9 for the hinge loss, 4/9 at 5/9 for the absolute loss.

    Example:
        >>> import noisy_jax as nj
        >>> weight, lower_bound = nj.bounds.one_copy_lower_bound(nj.losses.hinge(), radius=1.5)
        >>> print(f"{lower_bound:.4f} at {weight:.4f}")
        0.2222 at 0.7778
    """
    best = a, b = _minimizers(loss, radius)

    def crossed(share):
        of_a, of_b = _excess(loss, a + share * (b - a), best)
        return of_a - of_b

    weight = a + _first_not_negative(crossed, 0.0, 1.0) * (b - a)
    return OneCopyLowerBound(weight, float(_excess(loss, weight, best).max()))


def one_copy_excess(loss: Loss, weights: Array, *, radius: float) -> np.ndarray:
    """Computes the average regret of constant weights against each of two adversaries.

        A: ½ℓ(3w, 1) + ½ℓ(−w, 1),   B: ℓ(w, 1),   each minus its least value over |w| ≤ B

    These are the clean losses per round of the prediction w x, with label 1, on average over x = 3
    and x = −1 in A, and at x = 1 in B (`streams.one_copy_adversaries`).

    Args:
        loss: ℓ, any loss of `losses` but a `flipped` one, and an adaptive loss as `.at(scale)`.
        weights: w, `[...]`, any number of weights.
        radius: B > 0, radius of the interval [−B, B] of the weights compared with; not traced.

    Returns:
        `[2, ...]`, NumPy array in float64: the regret per round against A, then against B.

    Source: Online Learning of Noisy Data with Kernels, Theorem 5, for the adversaries.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.bounds.one_copy_excess(nj.losses.squared(), 0.0, radius=1.5))
        [0.2 1. ]
    """
    check_concrete("weights", weights, "it is used on the host")
    weights = number("weights", weights, shape=None)
    return _excess(loss, weights, _minimizers(loss, radius))


def _minimizers(loss, radius) -> tuple[float, float]:
    """Returns the smallest minimizer of each risk in the ball."""
    check_loss(loss, flips=False)
    check_concrete("radius", radius, "it is used on the host")
    reach = float(positive("radius", radius))

    def slope_of_a(w):
        return 3 * loss.gradient(3 * w, 1.0) - loss.gradient(-w, 1.0)

    slopes = slope_of_a, lambda w: loss.gradient(w, 1.0)
    a, b = (_first_not_negative(slope, -reach, reach) for slope in slopes)
    return a, b


def _excess(loss, weights, best) -> np.ndarray:
    """Returns the average loss of weights minus the least loss, in A and in B, `[2, ...]`."""
    of_a, of_b = best
    a, b = _risks(loss, weights)
    return np.stack([a - _risks(loss, of_a)[0], b - _risks(loss, of_b)[1]])


def _risks(loss, weights) -> tuple[np.ndarray, np.ndarray]:
    w = np.asarray(weights, np.float64)
    with jax.enable_x64(True):
        at_three, at_minus_one, at_one = np.asarray(loss(np.stack([3 * w, -w, w]), 1.0))
    return (at_three + at_minus_one) / 2, at_one


def _first_not_negative(increasing: Callable[[float], float], low: float, high: float) -> float:
    """Returns the point where an increasing function reaches 0; `high` if it never does."""
    with jax.enable_x64(True):
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if increasing(middle) < 0 else (low, middle)
    return high
