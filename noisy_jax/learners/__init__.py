"""Online learners, one algorithm a file, and combinators that turn a learner into a learner."""

from noisy_jax.learners.averaged import averaged
from noisy_jax.learners.doubling import doubling
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.learners.known_covariance import known_covariance
from noisy_jax.learners.noise_blind import noise_blind
from noisy_jax.learners.paired import paired
from noisy_jax.learners.two_copies import two_copies

__all__ = [
    "averaged",
    "doubling",
    "gradient_descent",
    "known_covariance",
    "noise_blind",
    "paired",
    "two_copies",
]
