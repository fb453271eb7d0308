"""Online learners, one algorithm a file, and combinators that turn a learner into a learner."""

from noisy_jax.learners.alma import alma
from noisy_jax.learners.assuming import assuming
from noisy_jax.learners.averaged import averaged
from noisy_jax.learners.cloned import cloned
from noisy_jax.learners.doubling import doubling
from noisy_jax.learners.fourier_worlds import fourier_worlds
from noisy_jax.learners.gradient_descent import gradient_descent
from noisy_jax.learners.known_covariance import known_covariance
from noisy_jax.learners.noise_blind import noise_blind
from noisy_jax.learners.noise_blind_kernel import noise_blind_kernel
from noisy_jax.learners.noiseless import noiseless
from noisy_jax.learners.norma import norma
from noisy_jax.learners.paired import paired
from noisy_jax.learners.parallel_worlds import parallel_worlds
from noisy_jax.learners.perceptron import perceptron
from noisy_jax.learners.random_truncation import random_truncation
from noisy_jax.learners.two_copies import two_copies

__all__ = [
    "alma",
    "assuming",
    "averaged",
    "cloned",
    "doubling",
    "fourier_worlds",
    "gradient_descent",
    "known_covariance",
    "noise_blind",
    "noise_blind_kernel",
    "noiseless",
    "norma",
    "paired",
    "parallel_worlds",
    "perceptron",
    "random_truncation",
    "two_copies",
]
