"""Wrappers: functions that make a new learner from one or several learners.

The new learner has clean estimates if all the given learners have, unless its docstring says
otherwise.
"""

from noisy_jax.learners.wrappers.assuming import assuming
from noisy_jax.learners.wrappers.averaged import averaged
from noisy_jax.learners.wrappers.cloned import cloned
from noisy_jax.learners.wrappers.mixture import mixture
from noisy_jax.learners.wrappers.noiseless import noiseless
from noisy_jax.learners.wrappers.paired import paired
from noisy_jax.learners.wrappers.swept import swept

__all__ = [
    "assuming",
    "averaged",
    "cloned",
    "mixture",
    "noiseless",
    "paired",
    "swept",
]
