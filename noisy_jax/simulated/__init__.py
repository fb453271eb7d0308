"""The wing of simulated noise: learners on noisy copies of clean data, judged on the clean data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.simulated import adversaries, bounds, comparators, streams
from noisy_jax.simulated.entries import AnyHorizon, MakeLearner, tuned
from noisy_jax.simulated.estimates import Estimate
from noisy_jax.simulated.montecarlo import monte_carlo
from noisy_jax.simulated.results import Study, growth, regret
from noisy_jax.simulated.rollouts import Rollout, final_regret, rollout
from noisy_jax.simulated.studies import study

__all__ = [
    "AnyHorizon",
    "Estimate",
    "MakeLearner",
    "Rollout",
    "Study",
    "adversaries",
    "bounds",
    "comparators",
    "final_regret",
    "growth",
    "monte_carlo",
    "regret",
    "rollout",
    "streams",
    "study",
    "tuned",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError; for a name that has left, it names the replacement."""
        refuse(__name__, name)
