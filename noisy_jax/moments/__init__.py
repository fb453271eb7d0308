"""Unbiased second moments of clean data from noisy data, for every kind of noise."""

from noisy_jax.moments.fourier import (
    Frequencies,
    estimated_characteristic,
    fourier,
    gaussian_frequencies,
)
from noisy_jax.moments.online import Moments, Sums, known_covariance, two_copies
from noisy_jax.moments.unknown_noise import multilevel, pair, replicates

__all__ = [
    "Frequencies",
    "Moments",
    "Sums",
    "estimated_characteristic",
    "fourier",
    "gaussian_frequencies",
    "known_covariance",
    "multilevel",
    "pair",
    "replicates",
    "two_copies",
]
