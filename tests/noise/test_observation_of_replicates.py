import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax.noise import Gaussian, estimate_covariance
from tests.keys import key
from tests.noise.cases import FULL, assert_mean_is
from tests.slopes import finite_slopes

pytestmark = pytest.mark.slow


@pytest.mark.statistical
def test_estimated_covariance_is_unbiased_with_its_standard_error():
    distribution, x = Gaussian(FULL), jnp.array([1.0, 2.0, 3.0])

    def one(round_key):
        shift, noise = jax.random.split(round_key)
        instances = x[None, None] + 5 * jax.random.normal(shift, (50, 1, 3))
        return estimate_covariance(distribution.sample(noise, jnp.tile(instances, (1, 2, 1))))

    estimates = jax.vmap(one)(jax.random.split(key(), 4000))
    assert_mean_is(np.asarray(estimates.cov).reshape(-1, 9), FULL.reshape(9), 0.005)
    errors = np.sqrt((np.asarray(estimates.std_error) ** 2).mean(axis=0))
    np.testing.assert_allclose(errors, np.asarray(estimates.cov).std(axis=0), rtol=0.05)


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


def test_gradients_of_an_estimate_without_spread_are_finite():
    copies = jnp.ones((5, 2, 3))
    by_cov, by_error = finite_slopes(lambda copies: estimate_covariance(copies)[:2], copies)
    np.testing.assert_array_equal(by_cov[0], 0)
    np.testing.assert_array_equal(by_error[0], 0)
