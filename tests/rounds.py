import jax
import jax.numpy as jnp

import noisy_jax as nj
from noisy_jax.noise.observation import BLOCK, observe_block


def of_rounds(noise, rounds):
    """The distributions of some rounds."""
    changes = isinstance(noise, nj.noise.PerRound)
    return jax.tree.map(lambda leaf: leaf[rounds], noise) if changes else noise


def observations(stream, noise, key, *, copies, y_noise=None):
    """The samples and keys `[T]` that `nj.rollout` shows to a learner."""

    def one(t):
        noises = (of_rounds(each, t[None]) for each in (noise, y_noise))
        x, y = stream.x[t][None], stream.y[t][None]
        shown = observe_block(key, t[None], t % BLOCK, x, y, *noises, copies=copies)
        return jax.tree.map(lambda leaf: leaf[0], shown)

    return jax.jit(jax.vmap(one))(jnp.arange(len(stream.y)))
