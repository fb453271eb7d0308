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


def wave(x):
    return jnp.sin(1.5 * x) + 0.3 * jnp.tanh(2 * x)


SYMMETRIC = [(-1.0, 0.5), (1.0, 0.5)]
SKEWED = [(-0.5, 0.8), (2.0, 0.2)]


def enumerated(function, noise, copies, sigma):
    """The exact mean of function(copies `[V]`) at x = .7."""
    errors, weights = tensor(*zip(*noise, strict=True), copies)
    return weights @ np.asarray(jax.jit(jax.vmap(function))(0.7 + sigma * errors), np.float64)


def mean_at(f, noise, size, sigma):
    """E f(mean of `size` copies)."""
    return enumerated(lambda copies: f(copies.mean()), noise, size, sigma)
