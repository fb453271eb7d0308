"""Kernels of distances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.kernels.cases import KERNELS


@pytest.mark.parametrize("name", ["rational", "laplacian", "matern32", "matern52"])
def test_other_radial_kernels_have_no_series(name):
    assert KERNELS[name][0].series is None


@pytest.mark.parametrize("name", ["gaussian", "rational", "laplacian", "matern32", "matern52"])
def test_radial_kernels_have_a_diagonal_of_one(name):
    np.testing.assert_array_equal(KERNELS[name][0].diagonal(jnp.ones((4, 2))), 1)


def test_gradients_are_finite_where_points_coincide():
    x = jnp.ones((1, 2))
    for kernel, _ in KERNELS.values():
        slope = jax.grad(lambda z, kernel=kernel: kernel(z * 0.5, x * 0.5)[0, 0])(x)
        assert np.isfinite(slope).all()
