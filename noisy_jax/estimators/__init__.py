"""Estimators of functions of a mean from a random number of independent noisy copies."""

from noisy_jax.estimators.gradients import GradientEstimator, GradientOrders, gradient
from noisy_jax.estimators.maps import MapEstimate, MapEstimator, MapOrders
from noisy_jax.estimators.means import MeanEstimator
from noisy_jax.estimators.orders import OrderDistribution, geometric, optimal
from noisy_jax.estimators.worlds import WorldEstimate, WorldMaps

__all__ = [
    "GradientEstimator",
    "GradientOrders",
    "MapEstimate",
    "MapEstimator",
    "MapOrders",
    "MeanEstimator",
    "OrderDistribution",
    "WorldEstimate",
    "WorldMaps",
    "geometric",
    "gradient",
    "optimal",
]
