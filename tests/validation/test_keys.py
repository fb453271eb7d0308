"""Random keys: typed and raw, of JAX's default kind and of others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.moments.fourier import gaussian_frequencies
from noisy_jax.noise import observe
from noisy_jax.unbiased.truncation.orders import geometric
from noisy_jax.validation import keys
from tests.errors import raises


def test_keys_are_told_from_numbers():
    assert keys.is_key(jax.random.key(0))
    assert keys.is_key(jax.random.PRNGKey(0))
    assert not keys.is_key(3)
    assert not keys.is_key(np.ma.array([0, 1], np.uint32, mask=[False, False]))
    raises("key must be a key such as", keys.parsed_key, 0)


POINTS, SIGNS = jnp.arange(12.0).reshape(6, 2), jnp.resize(jnp.array([1.0, -1.0]), 6)
LABELLED = nj.Stream(POINTS, SIGNS)
KERNEL = nj.kernels.gaussian(length_scale=1.0)
WORLD = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.1))
DRAWS = {
    "Gaussian.sample": lambda key: nj.noise.Gaussian(0.1).sample(key, POINTS),
    "Laplace.centred": lambda key: nj.noise.Laplace(0.1).centred(key, POINTS),
    "Missing.centred": lambda key: nj.noise.Missing(0.5).centred(key, POINTS),
    "Flip.centred": lambda key: nj.noise.Flip(0.3).centred(key, SIGNS[0]),
    "observe": lambda key: observe(key, POINTS[0], 1.0, nj.noise.Uniform(0.1), copies=2).x,
    "copies_needed": lambda key: nj.unbiased.multilevel(jnp.sum).copies_needed(key),
    "multilevel": lambda key: nj.unbiased.multilevel(jnp.cos)(jnp.arange(32.0), key=key),
    "gaussian": lambda key: nj.unbiased.gaussian(jnp.cos, 0.3)(jnp.ones(1), key=key),
    "geometric": lambda key: geometric(jnp.ones(9), p=1.2).draw(key),
    "fourier_features": lambda key: nj.kernels.fourier_features(KERNEL, key, 4)(POINTS),
    "worlds.fourier": lambda key: nj.worlds.fourier(key, WORLD, 4).frequencies,
    "gaussian_frequencies": lambda key: gaussian_frequencies(
        key, 4, dim=2, length_scale=1.0, characteristic=nj.noise.Gaussian(0.1)
    ).omega,
    "streams.linear": lambda key: nj.streams.linear(key, 5, 2).x,
    "streams.resampled": lambda key: nj.streams.resampled(key, LABELLED, 9).x,
    "contaminations": lambda key: nj.robust.contaminations.covariate(key, POINTS, SIGNS, 0.3).x,
    "rollout": lambda key: nj.rollout(
        nj.learners.two_copies(radius=1.0), LABELLED, nj.noise.Gaussian(0.1), key,
        y_noise=nj.noise.Laplace(0.1),
    ).predictions,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_a_function_of_their_key_alone(name):
    """Also of raw keys "rbg", and inside `vmap` as outside: JAX draws others of such keys there."""
    draw, keys = DRAWS[name], [jax.random.PRNGKey(seed, impl="rbg") for seed in range(12)]
    run = jax.jit(draw)
    alone = [run(key) for key in keys]
    together = jax.jit(jax.vmap(draw))(jnp.stack(keys))
    np.testing.assert_allclose(together, jnp.stack(alone), rtol=1e-4, atol=1e-5)
    assert any(not np.allclose(alone[0], other) for other in alone[1:])


def test_keys_of_other_kinds_give_way_to_keys_of_the_default_kind():
    for key in (jax.random.key(3), jax.random.PRNGKey(3)):
        assert keys.parsed_key(key) is key
    words = jnp.array([1, 2, 3, 4], jnp.uint32)
    found = [words.at[i].add(1) for i in range(4)] + [words]
    found = [jax.random.key_data(keys.parsed_key(each)).tolist() for each in found]
    assert len({tuple(each) for each in found}) == 5  # each word counts
    typed = jax.random.wrap_key_data(words, impl="rbg")
    assert jax.random.key_data(keys.parsed_key(typed)).tolist() == found[-1]
    with jax.default_prng_impl("rbg"):
        key = keys.parsed_key(jax.random.PRNGKey(3))
        assert jax.random.key_impl(key) == "threefry2x32"
        typed = jax.random.key(3, impl="threefry2x32")
        assert keys.parsed_key(typed) is typed
    raises("a raw key has 2 or 4 numbers", keys.parsed_key, jnp.ones(3, jnp.uint32))
