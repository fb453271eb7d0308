"""noisy_jax: learning from noisy data, judged on clean data."""

from noisy_jax import (
    engine,
    kernels,
    learners,
    losses,
    moments,
    noise,
    observed,
    plots,
    privacy,
    robust,
    series,
    simulated,
    unbiased,
    worlds,
)
from noisy_jax.base import Learner, Needs, Sample, Stream
from noisy_jax.learners import wrappers
from noisy_jax.observed import (
    Learned,
    Selection,
    csv,
    fit,
    fits,
    fourier,
    learn,
    load_fit,
    load_learned,
    methods,
    observations,
    reliability,
    sd,
    select,
    table,
)
from noisy_jax.simulated import (
    Estimate,
    Rollout,
    Study,
    adversaries,
    bounds,
    comparators,
    monte_carlo,
    rollout,
    streams,
    study,
    tuned,
    tuned_kernel_learner,
)
from noisy_jax.version import __version__ as __version__

evaluate = simulated  # the name of this room in version 0.2

__all__ = [
    "Estimate",
    "Learned",
    "Learner",
    "Needs",
    "Rollout",
    "Sample",
    "Selection",
    "Stream",
    "Study",
    "adversaries",
    "bounds",
    "comparators",
    "csv",
    "engine",
    "evaluate",
    "fit",
    "fits",
    "fourier",
    "kernels",
    "learn",
    "learners",
    "load_fit",
    "load_learned",
    "losses",
    "methods",
    "moments",
    "monte_carlo",
    "noise",
    "observations",
    "observed",
    "plots",
    "privacy",
    "reliability",
    "robust",
    "rollout",
    "sd",
    "select",
    "series",
    "simulated",
    "streams",
    "study",
    "table",
    "tuned",
    "tuned_kernel_learner",
    "unbiased",
    "worlds",
    "wrappers",
]


def __dir__() -> list[str]:
    """Names for tab completion: what is public, and no modules that hold it."""
    return [*__all__, "__version__"]
