"""Comparators: the best clean predictor in hindsight, which regret is measured against."""

from noisy_jax.simulated.comparators.convex import ConvexBall, convex_ball
from noisy_jax.simulated.comparators.kernel import KernelBall, kernel_ball, world_ball
from noisy_jax.simulated.comparators.l1 import l1_ball
from noisy_jax.simulated.comparators.linear import LinearBall, linear_ball
from noisy_jax.simulated.comparators.regularized_risk import Regularized, regularized

__all__ = [
    "ConvexBall",
    "KernelBall",
    "LinearBall",
    "Regularized",
    "convex_ball",
    "kernel_ball",
    "l1_ball",
    "linear_ball",
    "regularized",
    "world_ball",
]
