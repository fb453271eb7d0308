"""Losses of class labels that are flipped with known probabilities."""

from __future__ import annotations

from typing import Any, TypeVar

from noisy_jax.losses.adaptive import AdaptiveLoss
from noisy_jax.losses.loss import Loss, parameter_text
from noisy_jax.noise import Flip
from noisy_jax.validation.messages import given

_L = TypeVar("_L", Loss, AdaptiveLoss)


def flipped(loss: _L, rate: Any) -> _L:
    """The loss whose mean over flips of the label is ℓ(p, y) at the clean label y.

        ℓ̃(p, ỹ) = [(1 − ρ_{−ỹ}) ℓ(p, ỹ) − ρ_ỹ ℓ(p, −ỹ)]/(1 − ρ₊ − ρ₋),   E ℓ̃(p, ỹ) = ℓ(p, y)

    Learners that take a loss and use its gradient then learn from noisy labels as if they were
    clean, on average; measure their regret with the loss itself. ℓ̃ may be negative, and need not be
    convex; its mean is. Comparators and bounds that need a convex loss, and
    `unbiased.kernel_gradient`, raise ValueError for it. For the flipped-label perceptron give
    `norma` the margin 0.

    Args:
        loss: of the margin y p. The scale that a loss such as `nu_hinge` learns is corrected in the
            same way.
        rate: ρ, or (ρ₊, ρ₋), the probabilities that a label +1 and −1 is flipped (`noise.Flip`).

    Source: Natarajan, Dhillon, Ravikumar and Tewari, Learning with noisy labels (2013), Lemma 1.

    Example:
        >>> import noisy_jax as nj
        >>> hinge = nj.losses.hinge()
        >>> loss = flipped(hinge, (0.3, 0.1))
        >>> mean = 0.7 * loss(0.5, 1.0) + 0.3 * loss(0.5, -1.0)
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
