"""Streams that are hard for a learner, found by gradient ascent on its regret."""

from noisy_jax.simulated.adversaries.ascent import ascend, clean_regret, structured_starts
from noisy_jax.simulated.adversaries.search import worst

__all__ = ["ascend", "clean_regret", "structured_starts", "worst"]
