"""Online learners, one algorithm in each file. `wrappers` make new learners from learners."""

from noisy_jax.learners.alma import alma
from noisy_jax.learners.corrected_ftrl import corrected_ftrl
from noisy_jax.learners.corrected_leader import leader
from noisy_jax.learners.exponentiated_gradient import exponentiated_gradient
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.learners.kernel_descent import fourier_worlds, parallel_worlds, uncorrected_kernel
from noisy_jax.learners.known_covariance import known_covariance
from noisy_jax.learners.model import model
from noisy_jax.learners.norma import norma
from noisy_jax.learners.parameter_free import parameter_free
from noisy_jax.learners.perceptron import perceptron
from noisy_jax.learners.random_truncation import random_truncation
from noisy_jax.learners.several_copies import several_copies
from noisy_jax.learners.two_copies import two_copies
from noisy_jax.learners.uncorrected import uncorrected
from noisy_jax.learners.unknown_noise import unknown_noise

__all__ = [
    "alma",
    "corrected_ftrl",
    "exponentiated_gradient",
    "fourier_worlds",
    "gradient_descent",
    "known_covariance",
    "leader",
    "model",
    "norma",
    "parallel_worlds",
    "parameter_free",
    "perceptron",
    "random_truncation",
    "several_copies",
    "two_copies",
    "uncorrected",
    "uncorrected_kernel",
    "unknown_noise",
]
