import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax.noise import Gaussian, Laplace, observe
from tests.keys import key
from tests.noise.cases import assert_mean_is


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


@pytest.mark.slow
@pytest.mark.claim("DA-Protocol")
@pytest.mark.statistical
def test_copies_and_target_are_independent_and_copies_shared_between_learners():
    x, y, noise = jnp.zeros(3), jnp.float32(0), Gaussian(1.0)

    def shown(copies):
        def one(key):
            sample = observe(key, x, y, noise, copies=copies, y_noise=Gaussian(1.0))
            return sample.x, sample.y

        return jax.vmap(one)(jax.random.split(key(), 20_000))

    (one, _), (two, target) = shown(1), shown(2)
    chex.assert_trees_all_close(one[:, 0], two[:, 0], rtol=1e-6)
    assert_mean_is(np.asarray(two[:, 0] * two[:, 1]), np.zeros(3), 0.01)
    for copy in (two[:, 0], two[:, 1]):
        assert_mean_is(np.asarray(copy * target[:, None]), np.zeros(3), 0.01)
        assert_mean_is(np.asarray(copy**2 * target[:, None] ** 2), np.ones(3), 0.03)


def test_target_noise_leaves_the_instance_alone():
    x, y, distribution = jnp.zeros(3), jnp.float32(0.5), Gaussian(1.0)
    clean = observe(jax.random.key(0), x, y, distribution, copies=1)
    noisy = observe(jax.random.key(0), x, y, distribution, copies=1, y_noise=Laplace(0.3, mean=2.0))
    chex.assert_trees_all_equal(clean.x, noisy.x)
    assert clean.y == 0.5
    assert abs(float(noisy.y) - 0.5) > 1e-4
