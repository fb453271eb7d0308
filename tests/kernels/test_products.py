"""Kernels of inner products and their power series."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import kernels
from tests.kernels.cases import KERNELS


@pytest.mark.claim("NK-Sec2")
def test_the_printed_binomial_kernel_is_not_positive_definite(x64):
    x = np.linspace(-0.6, 0.6, 40)
    printed = np.linalg.eigvalsh((1 + np.outer(x, x)) ** -1.5)[0]
    corrected = kernels.binomial(alpha=1.5)(jnp.asarray(x)[:, None], jnp.asarray(x)[:, None])
    assert printed < -1
    assert np.linalg.eigvalsh(corrected)[0] > -1e-10


SERIES = ["linear", "polynomial", "homogeneous", "exponential", "binomial", "gaussian"]


@pytest.mark.claim("NK-Sec2")
@pytest.mark.parametrize("name", SERIES)
def test_series_and_envelope_make_the_kernel_up_to_their_remainders(x64, name):
    kernel, _ = KERNELS[name]
    x, z = jnp.array([[0.6, -0.3]]), jnp.array([[0.5, 0.8]])
    for order in (0, 1, 4, 60):
        series = kernel.series(order)
        assert series.coefficients.shape == (order + 1,)
        assert np.all(series.coefficients >= 0)
        value, factors = series((x @ z.T)[0, 0]), 1.0
        if kernel.envelope is not None:
            squares = jnp.sum(x**2), jnp.sum(z**2)
            factors = math.prod(map(kernel.envelope.series(60), squares))
            np.testing.assert_allclose(math.prod(map(kernel.envelope.value, squares)), factors)
        error = abs(kernel(x, z)[0, 0] / factors - value)
        assert error <= series.remainder(float(abs(x @ z.T)[0, 0])) + 1e-12
        assert error > 1e-12 or order == 60 or order >= (series.degree or 60)


def test_binomial_outside_its_radius_is_nan():
    assert np.isnan(kernels.binomial(alpha=1.0)(jnp.array([[1.5]]), jnp.array([[1.0]]))[0, 0])
