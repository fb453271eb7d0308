import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.noise import Gaussian, covariance_times, estimate_covariance, observe
from tests.keys import key
from tests.slopes import finite_slopes


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


def test_clean_features_may_be_an_iterator():
    look = functools.partial(observe, jax.random.key(0), noise=Gaussian(0.2), copies=1)
    read, plain = look(iter([1.0, 2.0]), 1.0), look(jnp.array([1.0, 2.0]), 1.0)
    chex.assert_trees_all_close(read, plain)


def test_a_learner_that_has_diverged_goes_on_with_nan_outside_jit_too():
    learner = nj.learners.known_covariance(radius=1.0)
    sample = nj.Sample(jnp.full((1, 2), 1e30), jnp.array(1e30), 0.1)
    state = learner.init(2)
    for t in range(3):
        state = learner.step(state, sample, jax.random.key(t))
    assert not np.isfinite(learner.predict(state, jnp.ones(2)))
    assert np.isnan(covariance_times(1.0, [jnp.nan])).all()


def test_estimated_covariance_and_its_standard_error_are_those_of_numpy(rng):
    copies = rng.normal(size=(20, 3, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]])
    copies += rng.normal(scale=5, size=(20, 1, 2))
    found = estimate_covariance(copies)
    each = np.stack([np.cov(own.T) for own in copies])
    np.testing.assert_allclose(found.cov, each.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.std_error, each.std(axis=0, ddof=1) / 20**0.5, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.statistical
def test_swapped_axes_of_replicates_raise():
    instance_key, noise_key = jax.random.split(key())
    instances = 5 * jax.random.normal(instance_key, (50, 1, 2))
    copies = np.asarray(instances + jax.random.normal(noise_key, (50, 2, 2)))
    assert estimate_covariance(copies).cov.shape == (2, 2)
    with pytest.raises(ValueError, match=r"n = 2 instances the V = 50 .* np\.swapaxes\(copies"):
        estimate_covariance(copies.swapaxes(0, 1))
    # Many replicates of few instances are no mistake, even if all instances are the same.
    many = np.asarray(jax.random.normal(noise_key, (3, 40, 2)))
    for instance in (0.0, np.arange(3)[:, None, None]):
        assert np.isfinite(estimate_covariance(instance + many).cov).all()
    for table in np.asarray(jax.random.normal(key(1), (30, 3, 40, 3))):  # equal instances
        assert np.isfinite(estimate_covariance(table).cov).all()


@pytest.mark.slow
def test_gradients_of_an_estimate_without_spread_are_finite():
    copies = jnp.ones((5, 2, 3))
    by_cov, by_error = finite_slopes(lambda copies: estimate_covariance(copies)[:2], copies)
    np.testing.assert_array_equal(by_cov[0], 0)
    np.testing.assert_array_equal(by_error[0], 0)
