"""Unbiased estimates from power series that are cut off at a random order.

`unbiased.kernel_gradient` makes an estimate of a kernel learner's gradient. Here are the parts of
an estimate of any function of a mean.
"""

from noisy_jax.unbiased.truncation.means import MeanEstimator
from noisy_jax.unbiased.truncation.orders import geometric, optimal

__all__ = ["MeanEstimator", "geometric", "optimal"]
