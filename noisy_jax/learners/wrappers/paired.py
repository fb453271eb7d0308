"""Several learners side by side on the same noise, as one learner."""

import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_learner, unrolled
from noisy_jax.learners.wrappers.noiseless import has_noise
from noisy_jax.validation import given


def paired(*learners: Learner) -> Learner:
    """Several learners that see the same samples, as one learner with a column for each.

    Differences between columns are then not blurred by the noise that the learners share.

    Args:
        *learners: one or more learners. Each reads as many as it needs of the shared copies, from
            the first on. One with several columns, such as `swept` makes, keeps all of them.

    Returns:
        A `Learner` whose state is the tuple of their states and whose predictions are `[..., L]`.
        It has unbiased readings, `[L]`, if all of them have.
        Each column is what its learner alone would give with the same key. Its `noise` is that of
        the first learner that was built for noise of positive variance.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> options = {"radius": 1.0}
        >>> both = paired(nj.learners.uncorrected(**options), nj.learners.two_copies(**options))
        >>> run = nj.rollout(both, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> losses = ((run.predictions - stream.y[:, None]) ** 2).mean(axis=0)
        >>> print([f"{loss:.2f}" for loss in losses])
        ['0.10', '0.01']
    """
    if not learners:
        raise ValueError("paired needs at least one learner, got none")
    for learner in learners:
        if isinstance(learner, list | tuple | dict) and not isinstance(learner, Learner):
            raise ValueError(f"pass learners one by one, not as one {given(learner)}")
        check_learner(learner)

    reads = [learner.read for learner in learners if learner.read is not None]
    readable = len(reads) == len(learners)

    def shown(sample: Sample, learner: Learner) -> Sample:
        return sample._replace(x=jnp.asarray(sample.x)[..., : learner.copies, :])

    def init(dim: int) -> tuple:
        return tuple(learner.init(dim) for learner in learners)

    def step(states, sample: Sample, key):
        return tuple(
            learner.step(state, shown(sample, learner), key)
            for learner, state in zip(learners, states, strict=True)
        )

    def predict(states, x):
        parts = [learner.predict(state, x) for learner, state in zip(learners, states, strict=True)]
        return _columns(parts, x.ndim - 1)

    def unroll(states, samples: Sample, x, keys):
        runs = [
            unrolled(learner)(state, shown(samples, learner), x, keys)
            for learner, state in zip(learners, states, strict=True)
        ]
        states, predictions, readings = zip(*runs, strict=True)
        return states, _columns(predictions, 1), _columns(readings, 1) if readable else None

    def read(states, sample: Sample, key):
        parts = [
            read(state, shown(sample, learner), key)
            for read, learner, state in zip(reads, learners, states, strict=True)
        ]
        return _columns(parts, 0)

    finishes = any(learner.finish for learner in learners)

    def finish(states):
        return tuple(
            learner.finish(state) if learner.finish else state
            for learner, state in zip(learners, states, strict=True)
        )

    copies = max(learner.copies for learner in learners)
    horizons = [learner.horizon for learner in learners if learner.horizon is not None]
    noises = [learner.noise for learner in learners]
    noise = max(noises, key=lambda noise: (noise is not None) + has_noise(noise))
    exact_targets = any(learner.exact_targets for learner in learners)
    correlated_targets = all(learner.correlated_targets for learner in learners)
    known = {learner.labels for learner in learners}
    labels = False if False in known else None if None in known else True
    horizon = min(horizons, default=None)
    return Learner(
        init, step, predict, copies, unroll, horizon, noise, exact_targets,
        read=read if readable else None, finish=finish if finishes else None,
        correlated_targets=correlated_targets, labels=labels,
    )  # fmt: skip


def _columns(parts, rank: int):
    """Results of several learners side by side, on a last axis, which some may have already."""

    def joined(*leaves):
        return jnp.concatenate([a.reshape(*a.shape[:rank], -1) for a in leaves], axis=-1)

    return jax.tree.map(joined, *parts)
