"""Noise distributions, noisy copies of a round, and the noise's covariance from replicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.noise.base import Noise, covariance_times, register_distribution
from noisy_jax.noise.dependent import Attributes, Missing, Multiplicative, Poisson
from noisy_jax.noise.distributions import Laplace, Product, Rademacher, StudentT, Uniform
from noisy_jax.noise.gaussian import ContaminatedGaussian, Gaussian
from noisy_jax.noise.misclassified import Misclassified
from noisy_jax.noise.observation import CovarianceEstimate, estimate_covariance, observe
from noisy_jax.noise.rounds import PerRound
from noisy_jax.noise.targets import Correlated, Flip

__all__ = [
    "Attributes",
    "ContaminatedGaussian",
    "Correlated",
    "CovarianceEstimate",
    "Flip",
    "Gaussian",
    "Laplace",
    "Misclassified",
    "Missing",
    "Multiplicative",
    "Noise",
    "PerRound",
    "Poisson",
    "Product",
    "Rademacher",
    "StudentT",
    "Uniform",
    "covariance_times",
    "estimate_covariance",
    "observe",
    "register_distribution",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError that says what to write in place of a name that is gone."""
        refuse(__name__, name)


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
