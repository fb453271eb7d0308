"""Comparators: the best clean predictor in hindsight, which regret is measured against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.simulated.comparators.convex import convex_ball
from noisy_jax.simulated.comparators.kernel import kernel_ball, world_ball
from noisy_jax.simulated.comparators.l1 import l1_ball
from noisy_jax.simulated.comparators.linear import linear_ball
from noisy_jax.simulated.comparators.regularized_risk import regularized

__all__ = [
    "convex_ball",
    "kernel_ball",
    "l1_ball",
    "linear_ball",
    "regularized",
    "world_ball",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError; for a name that has left, it names the replacement."""
        refuse(__name__, name)
