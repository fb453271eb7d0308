"""noisy_jax: learning from noisy data, judged on clean data."""

from noisy_jax import (
    adversaries,
    bounds,
    comparators,
    engine,
    estimators,
    evaluate,
    fits,
    kernels,
    learners,
    losses,
    moments,
    noise,
    observations,
    plots,
    privacy,
    robust,
    series,
    streams,
    unbiased,
    worlds,
)
from noisy_jax.base import Learner, Sample, Stream
from noisy_jax.evaluate import (
    Estimate,
    Learned,
    Rollout,
    Selection,
    Study,
    learn,
    monte_carlo,
    rollout,
    select,
    study,
    tuned,
    tuned_kernel_learner,
)
from noisy_jax.fits import fit, fourier, load_fit
from noisy_jax.learners import wrappers
from noisy_jax.version import __version__ as __version__

__all__ = [
    "Estimate",
    "Learned",
    "Learner",
    "Rollout",
    "Sample",
    "Selection",
    "Stream",
    "Study",
    "adversaries",
    "bounds",
    "comparators",
    "engine",
    "estimators",
    "evaluate",
    "fit",
    "fits",
    "fourier",
    "kernels",
    "learn",
    "learners",
    "load_fit",
    "losses",
    "moments",
    "monte_carlo",
    "noise",
    "observations",
    "plots",
    "privacy",
    "robust",
    "rollout",
    "select",
    "series",
    "streams",
    "study",
    "tuned",
    "tuned_kernel_learner",
    "unbiased",
    "worlds",
    "wrappers",
]


def __dir__() -> list[str]:
    """Names for tab completion: what is public, and no modules that hold it."""
    return [*__all__, "__version__"]
