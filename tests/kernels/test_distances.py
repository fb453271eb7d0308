"""Kernels of distances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from noisy_jax import kernels
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


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (kernels.gaussian(length_scale=0.7), RBF(0.7)),
        (kernels.laplacian(length_scale=0.7), Matern(0.7, nu=0.5)),
        (kernels.matern(nu=1.5, length_scale=0.7), Matern(0.7, nu=1.5)),
        (kernels.matern(nu=2.5, length_scale=0.7), Matern(0.7, nu=2.5)),
        (kernels.rational(length_scale=0.7, alpha=3.0), RationalQuadratic(0.7, alpha=3.0)),
    ],
)
def test_length_scales_are_scikit_learns_as_the_module_says(kernel, reference, rng):
    x, z = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    np.testing.assert_allclose(kernel(x, z), reference(x, z), rtol=1e-4)
