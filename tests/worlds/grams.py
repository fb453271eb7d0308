"""Points, covariances and checks that the tests of worlds share."""

import jax
import jax.numpy as jnp
import numpy as np

SPACE = np.array([[0.5, 0.2, 0.0], [0.2, 0.3, -0.1], [0.0, -0.1, 0.4]])
POINTS = np.array([[0.3, -0.5, 0.8], [-1.0, 0.4, 0.1], [0.0, 1.6, -0.7], [2.1, 0.2, 0.3]])


def grams(world, x, z):
    """The surrogate and the clean kernel, `[n, m]` in NumPy, by one program."""
    return jax.device_get(jax.jit(lambda x, z: (world.surrogate(x, z), world.kernel(x, z)))(x, z))


def mean_is(values, truth, largest_error):
    """Whether |mean − truth| < 5·SE, where SE is small enough for the test to fail."""
    values = np.asarray(values, np.float64)
    error = values.std(axis=0) / np.sqrt(len(values))
    assert np.all(error < largest_error)
    return np.abs(values.mean(axis=0) - truth) < 5 * error


def atoms(world, x, cov):
    return world.atom(jnp.asarray(x), np.broadcast_to(cov, (len(x), *np.shape(cov))))


def check_unbiased(world, points, covs, rule, fixed):
    """Everywhere, and psd: the biases of the surrogate at Σ_max in all rounds, `[covs, atoms]`."""
    x, stored = np.array([[0.4, 0.1, -0.2]])[:, : world.dim], world.atom(jnp.asarray(points), covs)
    truth = np.asarray(world.evaluate(stored, jnp.asarray(x)))[:, 0]
    surrogate, biases = jax.jit(world.surrogate), []
    for cov in covs:
        nodes, weights = rule(cov)
        mean = np.asarray(surrogate(stored, atoms(world, x + nodes, cov))) @ weights
        np.testing.assert_allclose(mean, truth, atol=1e-10)
        blind = np.asarray(fixed.surrogate(jnp.asarray(points), jnp.asarray(x + nodes))) @ weights
        biases.append(np.abs(blind - truth))
    gram = np.asarray(surrogate(stored, stored))
    assert np.linalg.eigvalsh(gram)[0] > 0
    assert gram.diagonal().max() <= world.diagonal * (1 + 1e-12)
    return np.array(biases)
