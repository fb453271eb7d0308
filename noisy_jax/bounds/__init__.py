"""Guarantees: learning rate, second moment and regret bound of each learner.

All formulas are computed with arrays, so that a horizon may be traced (`learners.doubling`).
"""

from noisy_jax.bounds.guarantee import Guarantee
from noisy_jax.bounds.kernel import parallel_worlds, surrogate_radius
from noisy_jax.bounds.linear import Moments, known_covariance, moments, noise_blind, two_copies

__all__ = [
    "Guarantee",
    "Moments",
    "known_covariance",
    "moments",
    "noise_blind",
    "parallel_worlds",
    "surrogate_radius",
    "two_copies",
]
