"""A JAX engineer: a loss that is good at clean inputs, inside their own jit and grad."""

import jax
import jax.numpy as jnp

import noisy_jax as nj


def loss(x: jax.Array, weights: jax.Array, y: jax.Array) -> jax.Array:
    return (jnp.vdot(weights, x) - y) ** 2


clean_loss = nj.unbiased.replicates(loss, order=1)


@jax.jit
def step(weights: jax.Array, copies: jax.Array, y: jax.Array, key: jax.Array) -> jax.Array:
    gradient = jax.grad(lambda w: clean_loss(copies, w, y))(weights)
    return weights - 0.1 * gradient


print(step(jnp.zeros(2), jnp.ones((3, 2)), jnp.ones(()), jax.random.key(0)))
