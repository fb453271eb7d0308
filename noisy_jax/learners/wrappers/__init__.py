"""Wrappers: functions that turn a learner, or several, into a learner."""

from noisy_jax.learners.wrappers.assuming import assuming
from noisy_jax.learners.wrappers.averaged import averaged
from noisy_jax.learners.wrappers.cloned import cloned
from noisy_jax.learners.wrappers.doubling import doubling
from noisy_jax.learners.wrappers.noiseless import noiseless
from noisy_jax.learners.wrappers.paired import paired

__all__ = ["assuming", "averaged", "cloned", "doubling", "noiseless", "paired"]
