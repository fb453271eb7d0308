"""Regret under noise of unknown distribution: corrected, and from the mean of as many copies."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from tests import keys

HORIZON, SEEDS = 2048, 8


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-WholeGradient")
def test_corrections_of_four_copies_beat_their_mean():
    """On the diabetes data; also if the covariance changes in each round, and nobody tells it."""
    kernel, loss = nj.kernels.gaussian(length_scale=1.0), nj.losses.squared()
    stream = nj.streams.resampled(jax.random.key(0), nj.streams.dataset("diabetes"), HORIZON)
    best = nj.comparators.kernel_ball(kernel(stream.x, stream.x), stream.y, 1.0)
    least = float(jnp.sum((best.predictions - stream.y) ** 2))
    changing = 0.6 * jax.random.uniform(jax.random.key(1), (HORIZON, 10))
    variances = jnp.stack([jnp.full((HORIZON, 10), 0.1), jnp.full((HORIZON, 10), 0.3), changing])

    def regrets(estimate=None):
        learner = nj.learners.unknown_noise(
            kernel, loss, radius=1.0, horizon=HORIZON, estimate=estimate
        )

        @jax.jit
        @jax.vmap
        def run(variances, key):
            noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(variances))
            return jnp.sum((nj.rollout(learner, stream, noise, key).predictions - stream.y) ** 2)

        every = jnp.repeat(variances, SEEDS, axis=0)
        found = run(every, jnp.tile(jax.random.split(keys.key(3), SEEDS), 3))
        return np.asarray(found).reshape(3, SEEDS) - least

    mean, corrected = regrets(partial(nj.unbiased.replicates, order=0, copies=4)), regrets()
    assert np.all(corrected.mean(axis=1)[:2] < [31, 51])
    gain = mean - corrected
    assert np.all(gain.mean(axis=1) > 5 * gain.std(axis=1, ddof=1) / SEEDS**0.5)
    leveled = regrets(partial(nj.unbiased.multilevel, levels=4, base=2))
    error = leveled.std(axis=1, ddof=1) / SEEDS**0.5
    assert np.all((leveled.mean(axis=1) - 2 * error)[:2] < [34, 50])
    assert nj.unbiased.multilevel(loss.gradient, levels=4, base=2).mean_copies < 4.8
