"""Losses: analytic ones (which random truncation can estimate), piecewise and adaptive ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.losses.adaptive import (
    novelty,
    nu_epsilon_insensitive,
    nu_hinge,
    nu_huber,
)
from noisy_jax.losses.analytic import (
    exponential,
    logistic,
    poisson,
    smoothed_absolute,
    smoothed_hinge,
    squared,
)
from noisy_jax.losses.corrected import corrected
from noisy_jax.losses.flipped import flipped
from noisy_jax.losses.loss import Loss
from noisy_jax.losses.piecewise import absolute, epsilon_insensitive, hinge, huber, smoothed

__all__ = [
    "Loss",
    "absolute",
    "corrected",
    "epsilon_insensitive",
    "exponential",
    "flipped",
    "hinge",
    "huber",
    "logistic",
    "novelty",
    "nu_epsilon_insensitive",
    "nu_hinge",
    "nu_huber",
    "poisson",
    "smoothed",
    "smoothed_absolute",
    "smoothed_hinge",
    "squared",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError; for a name that has left, it names the replacement."""
        refuse(__name__, name)
