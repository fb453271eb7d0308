"""Labels −1 and +1: others are refused where they are concrete, and end a run in NaN elsewhere."""

import chex
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample
from noisy_jax.validation import check_labels


def sound_labels(y: chex.Array) -> chex.Array:
    """y where it is −1 or +1, NaN elsewhere, so that a run with other labels ends in NaN."""
    return jnp.where(jnp.abs(y) == 1, y, jnp.nan)


def checking_labels(learner: Learner) -> Learner:
    """The learner, refusing labels other than ±1 where its step and unroll see concrete ones."""

    def checking(way):
        def checked(state, samples: Sample, *rest):
            check_labels("y", samples.y)
            return way(state, samples, *rest)

        return checked

    return learner._replace(step=checking(learner.step), unroll=checking(learner.unroll))
