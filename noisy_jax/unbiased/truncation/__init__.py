"""Unbiased estimates from power series that are cut off at a random order.

`unbiased.gradient` makes an estimate of a kernel learner's gradient. The parts of it are here.
"""

from noisy_jax.unbiased.truncation.gradients import GradientEstimator, gradient
from noisy_jax.unbiased.truncation.means import MeanEstimator
from noisy_jax.unbiased.truncation.orders import OrderDistribution, geometric, optimal

__all__ = [
    "GradientEstimator",
    "MeanEstimator",
    "OrderDistribution",
    "geometric",
    "gradient",
    "optimal",
]
