"""Streams on which a learner does badly, found by gradient ascent on its regret."""

from noisy_jax.simulated.adversaries.ascent import ascend
from noisy_jax.simulated.adversaries.regrets import clean_regret
from noisy_jax.simulated.adversaries.search import Worst, worst
from noisy_jax.simulated.adversaries.starts import structured_starts

__all__ = ["Worst", "ascend", "clean_regret", "structured_starts", "worst"]
