"""Second moments of clean data from noisy data, for every kind of noise.

They are unbiased, or nearly so, where their docstring says it: `replicates` to an order in the
noise, and `fourier`, which by default damps what a short stream cannot show, to an order of 1/t.
"""

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
