"""Losses: analytic ones (which random truncation can estimate), piecewise and adaptive ones."""

from noisy_jax.losses.adaptive import (
    AdaptiveLoss,
    novelty,
    nu_epsilon_insensitive,
    nu_huber,
    nu_soft_margin,
)
from noisy_jax.losses.analytic import (
    exponential,
    logistic,
    smoothed_absolute,
    smoothed_hinge,
    squared,
)
from noisy_jax.losses.flipped import flipped
from noisy_jax.losses.loss import Loss
from noisy_jax.losses.piecewise import epsilon_insensitive, huber, soft_margin

__all__ = [
    "AdaptiveLoss",
    "Loss",
    "epsilon_insensitive",
    "exponential",
    "flipped",
    "huber",
    "logistic",
    "novelty",
    "nu_epsilon_insensitive",
    "nu_huber",
    "nu_soft_margin",
    "smoothed_absolute",
    "smoothed_hinge",
    "soft_margin",
    "squared",
]
