"""Several learners side by side on the same noise, as one learner."""

import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_learner, unrolled
from noisy_jax.learners.wrappers.noiseless import has_noise


def paired(*learners: Learner) -> Learner:
    """Several learners that see the same samples, as one learner with a column for each.

    Differences between columns are then not blurred by the noise that the learners share.

    Args:
        *learners: L ≥ 1 learners. Each reads as many as it needs of the shared copies, from the
            first on.

    Returns:
        A `Learner` whose state is the tuple of their states and whose predictions are `[..., L]`.
        Each column is what its learner alone would give with the same key. Its `noise` is that of
        the first learner that was built for noise of positive variance.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> options = {"radius": 1.0, "learning_rate": 0.05}
        >>> both = paired(nj.learners.uncorrected(**options), nj.learners.two_copies(**options))
        >>> run = nj.rollout(both, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(((run.predictions - stream.y[:, None]) ** 2).mean(axis=0).round(2))
        [0.11 0.04]
    """
    if not learners:
        raise ValueError("paired needs at least one learner, got none")
    for learner in learners:
        check_learner(learner)

    def init(dim: int) -> tuple:
        return tuple(learner.init(dim) for learner in learners)

    def step(states, sample: Sample, key):
        return tuple(
            learner.step(state, sample._replace(x=jnp.asarray(sample.x)[: learner.copies]), key)
            for learner, state in zip(learners, states, strict=True)
        )

    def predict(states, x):
        columns = [
            learner.predict(state, x) for learner, state in zip(learners, states, strict=True)
        ]
        return jnp.stack(columns, axis=-1)

    def unroll(states, samples: Sample, x, keys):
        shown = jnp.asarray(samples.x)
        runs = [
            unrolled(learner)(state, samples._replace(x=shown[:, : learner.copies]), x, keys)
            for learner, state in zip(learners, states, strict=True)
        ]
        return tuple(state for state, _ in runs), jnp.stack([p for _, p in runs], axis=-1)

    copies = max(learner.copies for learner in learners)
    horizons = [learner.horizon for learner in learners if learner.horizon is not None]
    noises = [learner.noise for learner in learners]
    noise = max(noises, key=lambda noise: (noise is not None) + has_noise(noise))
    exact_targets = any(learner.exact_targets for learner in learners)
    horizon = min(horizons, default=None)
    return Learner(init, step, predict, copies, unroll, horizon, noise, exact_targets)
