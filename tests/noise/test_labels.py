import jax
import jax.numpy as jnp

import noisy_jax as nj


def test_each_label_is_flipped_at_its_own_rate():
    keys = jax.random.split(jax.random.key(0), 1_000)
    for rates, ones, others in (((0.999, 0.0), 0.99, 0.0), ((0.0, 0.999), 0.0, 0.99)):
        flip = jax.vmap(nj.noise.Flip(rates).centred, (0, None))
        assert jnp.mean(flip(keys, 1.0) < 0) >= ones
        assert jnp.mean(flip(keys, -1.0) > 0) >= others
        assert min(jnp.mean(flip(keys, 1.0) < 0), jnp.mean(flip(keys, -1.0) > 0)) == 0
