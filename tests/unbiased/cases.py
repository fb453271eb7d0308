import jax
import jax.numpy as jnp
import numpy as np

from tests.quadrature import gauss_hermite, tensor

COV = np.array([[0.1, 0.04], [0.04, 0.2]])
X = np.array([0.7, -0.4])
HIDDEN = np.array([[0.9, -0.4, 0.3], [0.2, 0.8, -0.6]])


def network(x):
    """The squared error of a network with sines and error functions."""
    hidden = jnp.sin(x @ HIDDEN) + jax.nn.gelu(x @ HIDDEN[:, ::-1], approximate=False)
    return (hidden @ np.array([0.5, -0.7, 0.4]) - 0.3) ** 2


def polynomial(x):
    return x[0] ** 5 - 2 * x[0] ** 2 * x[1] ** 3 + jnp.vdot(x, x) + 1


ENTIRE = {
    "polynomial": polynomial,
    "sine": lambda x: jnp.sin(1.5 * x[0]) * jnp.cos(x[1]),
    "exponential": lambda x: jnp.exp(0.7 * x[0] - 0.4 * x[1]),
    "network": network,
}


def over_noise(function, copies, nodes):
    """The exact mean of function(copies) over Gaussian noise of covariance COV in each copy."""
    errors, weights = gauss_hermite(nodes, np.kron(np.eye(copies), COV))
    values = jax.jit(jax.vmap(function))(X + errors.reshape(-1, copies, 2))
    return weights @ np.asarray(values, np.float64)


def wave(x, xp=jnp):
    return xp.sin(1.5 * x) + 0.3 * xp.tanh(2 * x)


SKEWED = [(-0.5, 0.8), (2.0, 0.2)]


def enumerated(function, noise, copies, sigma, keys=None):
    """The exact mean of function(copies `[V]`, a key) at x = .7, for each of the keys."""
    errors, weights = tensor(*zip(*noise, strict=True), copies)
    if keys is None:
        values = jax.jit(jax.vmap(function))(0.7 + sigma * errors)
    else:
        of_each = jax.vmap(jax.vmap(function, (0, None)), (None, 0))
        values = jax.jit(of_each)(0.7 + sigma * errors, keys)
    return np.tensordot(weights, np.asarray(values, np.float64), axes=(0, int(keys is not None)))


def mean_at(noise, size, sigma):
    """E wave(mean of `size` copies)."""
    errors, weights = tensor(*zip(*noise, strict=True), size)
    return weights @ wave(0.7 + sigma * errors.mean(axis=1), np)


def levels_of(g, levels, q, r):
    """Probabilities of the levels of `multilevel`, and for each a key with which g has it."""
    probabilities = [1 - q, *(q * (1 - r) * r ** (n - 1) for n in range(1, levels))]
    probabilities = np.append(probabilities, 1 - sum(probabilities))
    keys = jax.random.split(jax.random.key(0), 1000)
    needed = np.asarray(jax.jit(jax.vmap(g.copies_needed))(keys))
    of_each = [np.flatnonzero(needed == g.base * 2**n) for n in range(levels + 1)]
    return probabilities, keys[np.array([own[0] if len(own) else 0 for own in of_each])]
