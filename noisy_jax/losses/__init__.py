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
    poisson,
    smoothed_absolute,
    smoothed_hinge,
    squared,
)
from noisy_jax.losses.corrected import CorrectedLoss, corrected
from noisy_jax.losses.flipped import flipped
from noisy_jax.losses.loss import Loss
from noisy_jax.losses.piecewise import epsilon_insensitive, huber, smoothed, soft_margin

__all__ = [
    "AdaptiveLoss",
    "CorrectedLoss",
    "Loss",
    "corrected",
    "epsilon_insensitive",
    "exponential",
    "flipped",
    "huber",
    "logistic",
    "novelty",
    "nu_epsilon_insensitive",
    "nu_huber",
    "nu_soft_margin",
    "poisson",
    "smoothed",
    "smoothed_absolute",
    "smoothed_hinge",
    "soft_margin",
    "squared",
]
