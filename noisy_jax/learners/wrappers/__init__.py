"""Wrappers: functions that make a new learner from one or several others."""

from noisy_jax.learners.wrappers.assuming import assuming
from noisy_jax.learners.wrappers.averaged import AveragedState, averaged
from noisy_jax.learners.wrappers.cloned import cloned
from noisy_jax.learners.wrappers.doubling import DoublingState, doubling
from noisy_jax.learners.wrappers.noiseless import NoiselessState, noiseless
from noisy_jax.learners.wrappers.paired import paired

__all__ = [
    "AveragedState",
    "DoublingState",
    "NoiselessState",
    "assuming",
    "averaged",
    "cloned",
    "doubling",
    "noiseless",
    "paired",
]
