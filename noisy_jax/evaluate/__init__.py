"""Evaluates learners on clean data: rollouts, regret, Monte Carlo over seeds, and studies."""

from noisy_jax.evaluate.learning import Learned, learn
from noisy_jax.evaluate.montecarlo import Estimate, monte_carlo
from noisy_jax.evaluate.regrets import Growth, cumulative_loss, growth, regret
from noisy_jax.evaluate.results import Row, Study
from noisy_jax.evaluate.rollouts import Rollout, final_regret, rollout
from noisy_jax.evaluate.selection import Selection, select
from noisy_jax.evaluate.studies import study
from noisy_jax.evaluate.tables import Table
from noisy_jax.evaluate.tuning import MakeLearner, tuned, tuned_kernel_learner

__all__ = [
    "Estimate",
    "Growth",
    "Learned",
    "MakeLearner",
    "Rollout",
    "Row",
    "Selection",
    "Study",
    "Table",
    "cumulative_loss",
    "final_regret",
    "growth",
    "learn",
    "monte_carlo",
    "regret",
    "rollout",
    "select",
    "study",
    "tuned",
    "tuned_kernel_learner",
]
