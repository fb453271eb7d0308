import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.noise import Gaussian, covariance_times, observe
from tests.errors import raises


@pytest.mark.slow
@pytest.mark.claim("DA-Protocol")
def test_a_known_mean_is_subtracted():
    mean = jnp.array([5.0, -3.0, 1.0])
    with_mean, without = Gaussian(0.2, mean), Gaussian(0.2)
    x, y = jnp.ones(3), jnp.float32(1)
    samples = [observe(jax.random.key(0), x, y, n, copies=2) for n in (with_mean, without)]
    chex.assert_trees_all_close(samples[0].x, samples[1].x, atol=1e-5)
    shifted = with_mean.sample(jax.random.key(0), x) - without.sample(jax.random.key(0), x)
    chex.assert_trees_all_close(shifted, mean, atol=1e-5)


def test_clean_features_are_finite_and_may_be_an_iterator():
    key, noise = jax.random.key(0), Gaussian(0.2)
    look = functools.partial(observe, key, noise=noise, copies=1)
    read, plain = look(iter([1.0, 2.0]), 1.0), look(jnp.array([1.0, 2.0]), 1.0)
    chex.assert_trees_all_close(read, plain)
    raises(r"x must be finite, but x\[0\] is nan", look, jnp.array([jnp.nan]), 1.0)
    raises("y must be finite, got nan", look, jnp.ones(1), jnp.nan)


def test_a_learner_that_has_diverged_goes_on_with_nan_outside_jit_too():
    learner = nj.learners.known_covariance(radius=1.0)
    sample = nj.Sample(jnp.full((1, 2), 1e30), jnp.array(1e30), 0.1)
    state = learner.init(2)
    for t in range(3):
        state = learner.step(state, sample, jax.random.key(t))
    assert not np.isfinite(learner.predict(state, jnp.ones(2)))
    assert np.isnan(covariance_times(1.0, [jnp.nan])).all()
