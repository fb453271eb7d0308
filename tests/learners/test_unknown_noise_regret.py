"""Regret under noise of unknown distribution: corrected, and from the mean of as many copies."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from tests import keys

HORIZON, SEEDS = 512, 16


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-WholeGradient")
def test_corrections_of_four_copies_beat_their_mean():
    """On the diabetes data; also if the covariance changes in each round, and nobody tells it."""
    kernel, loss = nj.kernels.gaussian(length_scale=1.0), nj.losses.squared()
    stream = nj.streams.resampled(jax.random.key(0), nj.streams.dataset("diabetes"), HORIZON)
    changing = 0.6 * jax.random.uniform(jax.random.key(1), (HORIZON, 10))
    variances = jnp.stack([jnp.full((HORIZON, 10), 0.3), changing])

    def learner(**options):
        estimate = partial(nj.unbiased.replicates, copies=4, **options)
        return nj.learners.unknown_noise(
            kernel, loss, radius=1.0, horizon=HORIZON, estimate=estimate
        )

    learners = nj.wrappers.paired(learner(order=0), learner())

    @jax.jit
    @partial(jax.vmap, in_axes=(0, None))
    @partial(jax.vmap, in_axes=(None, 0))
    def losses(variances, key):
        noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(variances))
        run = nj.rollout(learners, stream, noise, key)
        return jnp.sum((run.predictions - stream.y[:, None]) ** 2, axis=0)

    found = np.asarray(losses(variances, jax.random.split(keys.key(3), SEEDS)))
    gain = found[:, :, 0] - found[:, :, 1]
    print("gain in standard errors:", gain.mean(axis=1) / gain.std(axis=1, ddof=1) * SEEDS**0.5)
    assert np.all(gain.mean(axis=1) > 5 * gain.std(axis=1, ddof=1) / SEEDS**0.5)
