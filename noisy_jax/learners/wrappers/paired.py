"""Several learners side by side on the same noise, as one learner."""

import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_learner, unrolled
from noisy_jax.learners.wrappers.noiseless import has_noise


def paired(*learners: Learner) -> Learner:
    """Several learners that see the same samples, as one learner with a column for each.

    Differences between columns are then free of the noise that the learners share.

    Args:
        *learners: L ≥ 1 learners. Each reads the first of the shared copies, as many as it needs.

    Returns:
        A `Learner` whose state is the tuple of states and whose predictions are `[..., L]`. Each
        column is what its learner alone would give with the same key. Its `noise` is that of the
        first learner that was built for some, variance zero only where no other was.

    Raises:
        ValueError: no learner, or what is none.

    Example:
        >>> import noisy_jax as nj
        >>> blind = nj.learners.uncorrected(radius=1.0, learning_rate=0.1)
        >>> paired(blind, nj.learners.two_copies(radius=1.0, learning_rate=0.1)).copies
        2
    """
    if not learners:
        raise ValueError("paired needs at least one learner, got none")
    for learner in learners:
        check_learner(learner)

    def init(dim: int) -> tuple:
        return tuple(learner.init(dim) for learner in learners)

    def step(states, sample, key):
        return tuple(
            learner.step(state, sample._replace(x=sample.x[: learner.copies]), key)
            for learner, state in zip(learners, states, strict=True)
        )

    def predict(states, x):
        columns = [
            learner.predict(state, x) for learner, state in zip(learners, states, strict=True)
        ]
        return jnp.stack(columns, axis=-1)

    def unroll(states, samples: Sample, x, keys):
        runs = [
            unrolled(learner)(state, samples._replace(x=samples.x[:, : learner.copies]), x, keys)
            for learner, state in zip(learners, states, strict=True)
        ]
        return tuple(state for state, _ in runs), jnp.stack([p for _, p in runs], axis=-1)

    copies = max(learner.copies for learner in learners)
    horizons = [learner.horizon for learner in learners if learner.horizon is not None]
    distributions = (learner.noise for learner in learners)
    noise = max(
        distributions, key=lambda distribution: (distribution is not None) + has_noise(distribution)
    )
    exact_targets = any(learner.exact_targets for learner in learners)
    horizon = min(horizons, default=None)
    return Learner(init, step, predict, copies, unroll, horizon, noise, exact_targets)
