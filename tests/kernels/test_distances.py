"""Kernels of distances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.kernels.cases import KERNELS


@pytest.mark.slow
def test_gradients_are_finite_where_points_coincide():
    x = jnp.ones((1, 2))
    for name in ("rational", "laplacian", "matern32", "matern52"):
        kernel = KERNELS[name][0]
        slope = jax.grad(lambda z, kernel=kernel: kernel(z * 0.5, x * 0.5)[0, 0])(x)
        assert np.isfinite(slope).all()
