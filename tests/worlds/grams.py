"""Points, covariances and checks that the tests of worlds share."""

import jax
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
