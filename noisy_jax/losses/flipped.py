"""Losses of class labels that are flipped with known probabilities."""

from __future__ import annotations

from typing import Any, TypeVar

from noisy_jax.losses.adaptive import AdaptiveLoss
from noisy_jax.losses.loss import Loss, parameter_text
from noisy_jax.noise import Flip
from noisy_jax.validation.messages import given

_L = TypeVar("_L", Loss, AdaptiveLoss)


def flipped(loss: _L, rate: Any) -> _L:
    """Corrects a loss for flipped labels: its mean over the flips is ℓ(p, y) at the clean label y.

        ℓ̃(p, ỹ) = [(1 − ρ_{−ỹ}) ℓ(p, ỹ) − ρ_ỹ ℓ(p, −ỹ)]/(1 − ρ₊ − ρ₋),   E ℓ̃(p, ỹ) = ℓ(p, y)

    ỹ is the label that is seen: −y with probability ρ_y, else y. ρ₊ and ρ₋ are ρ_y for y = +1 and
    −1.

    Give ℓ̃ as `loss` to a learner such as `learners.norma` or `learners.known_covariance`, whose
    gradients are then unbiased under flips, and measure regret with ℓ. ℓ̃ may be negative and need
    not be convex in p; its mean is. Comparators, bounds that need a convex loss and
    `unbiased.kernel_gradient` raise ValueError for it. The perceptron under flips is
    `learners.norma` with `flipped(hinge(margin=0.0), rate)`.

    Args:
        loss: ℓ, a loss of the margin yp such as `hinge`, or an adaptive one such as `nu_hinge`,
            whose scale is then corrected as well. Losses of other kinds, `novelty` and flipped
            losses raise ValueError.
        rate: (ρ₊, ρ₋) ≥ 0 with ρ₊ + ρ₋ < 1, or one number ρ in [0, ½) for both (`noise.Flip`).

    Returns:
        The loss ℓ̃, of the type of `loss`.

    Source: Natarajan, Dhillon, Ravikumar and Tewari, Learning with noisy labels (2013), Lemma 1.

    Example:
        >>> import noisy_jax as nj
        >>> hinge = nj.losses.hinge()
        >>> loss = nj.losses.flipped(hinge, (0.3, 0.1))
        >>> mean = 0.7 * loss(0.5, 1.0) + 0.3 * loss(0.5, -1.0)  # y = 1, seen as 1 or as −1
        >>> print(f"{mean:.2f} on average, {hinge(0.5, 1.0):.2f} with the clean label")
        0.50 on average, 0.50 with the clean label
    """
    if not isinstance(loss, (Loss, AdaptiveLoss)) or loss.kind != "margin":
        wanted = "a loss of the margin, such as losses.hinge()"
        got = loss if hasattr(loss, "kind") else given(loss)
        raise ValueError(f"loss must be {wanted}, got {got}")
    if loss.flips is not None or not getattr(loss, "labelled", True):
        raise ValueError(f"loss must read labels, and not be flipped already, got {loss}")
    rates = Flip(rate).rate
    name = f"flipped({loss}, rate=({', '.join(map(parameter_text, rates))}))"
    return loss._replace(name=name, flips=rates)
