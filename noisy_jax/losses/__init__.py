"""Losses: analytic ones, which random truncation can estimate, and piecewise ones."""

from noisy_jax.losses.analytic import (
    exponential,
    logistic,
    smoothed_absolute,
    smoothed_hinge,
    squared,
)
from noisy_jax.losses.loss import Loss
from noisy_jax.losses.piecewise import epsilon_insensitive, huber, soft_margin

__all__ = [
    "Loss",
    "epsilon_insensitive",
    "exponential",
    "huber",
    "logistic",
    "smoothed_absolute",
    "smoothed_hinge",
    "soft_margin",
    "squared",
]
