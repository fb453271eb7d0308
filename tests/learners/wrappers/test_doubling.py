import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj

NOISE = nj.noise.Gaussian(0.2)


def make(horizon):
    rate = 0.3 / jnp.sqrt(jnp.asarray(horizon, float))
    return nj.learners.two_copies(radius=1.0, learning_rate=rate)


@pytest.mark.slow
def test_equals_fresh_learners_tuned_for_each_phase():
    stream, key = nj.streams.linear(jax.random.key(0), 31, 3), jax.random.key(1)
    predictions = nj.rollout(nj.wrappers.doubling(make), stream, NOISE, key).predictions
    start, length = 0, 1
    while start < 31:
        phase = nj.Stream(*(a[start : start + length] for a in stream))
        alone = nj.rollout(make(length), phase, NOISE, key, first_round=start)
        np.testing.assert_allclose(
            predictions[start : start + length], alone.predictions, atol=1e-6
        )
        start, length = start + length, 2 * length


@pytest.mark.slow
def test_pays_at_most_the_stated_factor_over_a_known_horizon():
    stream = nj.streams.resampled(jax.random.key(0), nj.streams.dataset("diabetes"), 6000)
    moments = nj.bounds.moments(stream, NOISE)

    def tuned(horizon):
        bound = nj.bounds.two_copies(moments, horizon=horizon, radius=1.0)
        return nj.learners.two_copies(radius=1.0, learning_rate=bound.learning_rate)

    learner = nj.wrappers.paired(nj.wrappers.doubling(tuned), tuned(6000))
    best = nj.comparators.linear_ball(stream, 1.0).predictions

    def regret(key):
        return nj.evaluate.final_regret(
            learner, stream, NOISE, key, loss=nj.losses.squared(), comparator=best
        )

    estimate = nj.monte_carlo(regret, jax.random.key(2), 16)
    unknown, known = estimate.mean
    bound = float(nj.bounds.two_copies(moments, horizon=6000, radius=1.0).regret)
    assert known < unknown < 2**0.5 / (2**0.5 - 1) * bound
