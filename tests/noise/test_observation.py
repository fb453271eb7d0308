import chex
import jax
import jax.numpy as jnp
import pytest

from noisy_jax.noise import Gaussian, observe


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
