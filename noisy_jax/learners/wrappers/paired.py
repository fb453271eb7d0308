"""Several learners side by side on the same noise, as one learner."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, Needs, Sample, check_learner, unrolled
from noisy_jax.validation.messages import given
from noisy_jax.validation.objects import instance


def paired(*learners: Learner) -> Learner:
    """Joins L learners that see the same samples into one learner with a column for each.

    Each column holds the results that its learner alone would give with the same key. As all
    columns share one draw of the noise, differences between them are more exact than differences
    between separate runs.

    Args:
        *learners: one or more learners. Each reads as many as it needs of the shared copies, from
            the first on. One with several columns, such as `wrappers.swept` makes, keeps all of
            them.

    Returns:
        A `Learner`. Its state is the tuple of the learners' states, its predictions are `[..., L]`,
        and its `clean_estimates` are `[L]`, if all learners have them. Its `needs` are the needs of
        all learners together, such as the largest number of copies and the smallest horizon.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> both = nj.wrappers.paired(
        ...     nj.learners.uncorrected(radius=1.0), nj.learners.two_copies(radius=1.0))
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

    reads = [learner.clean_estimates for learner in learners if learner.clean_estimates is not None]
    readable = len(reads) == len(learners)

    def first_copies(sample: Sample, learner: Learner) -> Sample:
        instance("sample", sample, Sample, "noise.observe makes one")
        return sample._replace(x=jnp.asarray(sample.x)[..., : learner.needs.copies, :])

    def init(dim: int) -> tuple[Any, ...]:
        return tuple(learner.init(dim) for learner in learners)

    def of_each(functions, states, sample: Sample, *rest):
        """Returns results of a function of each learner, on its state and its copies."""
        every = zip(functions, learners, states, strict=True)
        return tuple(
            function(state, first_copies(sample, learner), *rest)
            for function, learner, state in every
        )

    def step(states, sample: Sample, key):
        return of_each([learner.step for learner in learners], states, sample, key)

    def predict(states, x):
        parts = [learner.predict(state, x) for learner, state in zip(learners, states, strict=True)]
        return _joined(parts, np.ndim(x) - 1)

    def unroll(states, samples: Sample, x, keys):
        runs = of_each(map(unrolled, learners), states, samples, x, keys)
        states, predictions, estimates = zip(*runs, strict=True)
        return states, _joined(predictions, 1), _joined(estimates, 1) if readable else None

    def clean_estimates(states, sample: Sample, key):
        return _joined(of_each(reads, states, sample, key), 0)

    finishes = any(learner.finish for learner in learners)

    def finish(states):
        return tuple(
            learner.finish(state) if learner.finish else state
            for learner, state in zip(learners, states, strict=True)
        )

    def weights(states):
        getters: Any = [learner.weights for learner in learners]
        return tuple(getter(state) for getter, state in zip(getters, states, strict=True))

    def with_weights(states, weights):
        setters: Any = [learner.with_weights for learner in learners]
        every = zip(setters, states, weights, strict=True)
        return tuple(setter(state, column) for setter, state, column in every)

    linear = all(learner.with_weights for learner in learners)
    return Learner(
        init,
        step,
        predict,
        functools.reduce(Needs.both, [learner.needs for learner in learners]),
        unroll,
        clean_estimates=clean_estimates if readable else None,
        finish=finish if finishes else None,
        weights=weights if linear else None,
        with_weights=with_weights if linear else None,
    )


def _joined(parts, rank: int):
    """Joins results of several learners on a last axis; some results may have this axis already."""

    def joined(*leaves):
        return jnp.concatenate([a.reshape(*a.shape[:rank], -1) for a in leaves], axis=-1)

    return jax.tree.map(joined, *parts)
