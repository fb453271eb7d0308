"""Pictures of results, by matplotlib, which is imported where a picture is made.

Each function draws on the axes it is given, or on new ones, and returns them.
"""

from noisy_jax.plots.regret import regret
from noisy_jax.plots.worlds import profile, worlds

__all__ = ["profile", "regret", "worlds"]
