"""noisy_jax: learning from noisy data, judged on clean data."""

from noisy_jax import (
    bounds,
    claims,
    comparators,
    contaminations,
    estimators,
    kernels,
    learners,
    losses,
    memory,
    noise,
    plots,
    privacy,
    regressors,
    regret,
    series,
    streams,
    subquantile,
    worlds,
)
from noisy_jax.base import Learner, Sample, Stream
from noisy_jax.montecarlo import Estimate, monte_carlo
from noisy_jax.results import Study
from noisy_jax.rollouts import Rollout, rollout
from noisy_jax.studies import study
from noisy_jax.tuning import tuned, tuned_kernel_learner

__version__ = "0.1.0"

__all__ = [
    "Estimate",
    "Learner",
    "Rollout",
    "Sample",
    "Stream",
    "Study",
    "bounds",
    "claims",
    "comparators",
    "contaminations",
    "estimators",
    "kernels",
    "learners",
    "losses",
    "memory",
    "monte_carlo",
    "noise",
    "plots",
    "privacy",
    "regressors",
    "regret",
    "rollout",
    "series",
    "streams",
    "study",
    "subquantile",
    "tuned",
    "tuned_kernel_learner",
    "worlds",
]


def __dir__() -> list[str]:
    """Names for tab completion: what is public, and no modules that hold it."""
    return [*__all__, "__version__"]
