"""Characteristic functions of the independent distributions, exactly, and their products."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.noise import (
    Attributes,
    Gaussian,
    Laplace,
    Misclassified,
    Product,
    Rademacher,
    Uniform,
)
from tests.errors import raises


@pytest.mark.claim("EXT-GeneralNoise")
def test_uniform_characteristic_has_zeros():
    at_zero = Uniform(1.0).log_characteristic(jnp.array([jnp.pi]))
    assert float(at_zero.real) < -15


@pytest.mark.slow
def test_it_is_swept_jitted_and_used_by_worlds():
    each = jax.jit(jax.vmap(lambda s: Product((Laplace(s), Gaussian(s)))))(np.array([0.1, 0.2]))
    stacked = nj.noise.PerRound(each)
    np.testing.assert_allclose(stacked.distribution.cov, [[0.02, 0.1], [0.08, 0.2]], rtol=1e-6)
    noise = Product((Laplace(0.3, mean=1.0), Gaussian(0.2)))
    assert noise.cov.dtype == np.float64
    assert noise.mean.tolist() == [1, 0]
    sample = jax.jit(lambda noise, k: noise.sample(k, jnp.zeros(2)))
    assert sample(noise, jax.random.key(0)).shape == (2,)
    world = functools.partial(nj.worlds.fourier_gaussian, dim=2, length_scale=1.0)
    world(jax.random.key(0), 8, noise=noise)
    zeros = Product((Rademacher(0.3), Gaussian(0.2)))
    raises("characteristic function has zeros", world, jax.random.key(0), 8, noise=zeros)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((0.1, Gaussian(0.1)), r"Product\.columns\[0\] must be a Noise, got 0\.1"),
        ((Laplace([0.1, 0.2]),), r"must be a scalar distribution, got Laplace .* \[\(2,\), \(\)\]"),
        ((Attributes(2),), "must be a scalar distribution, got Attributes"),
        ((Misclassified(np.full((3, 3), 0.2) + 0.4 * np.eye(3)),), "of two categories, got 3"),
        ((), "must be a list of scalar distributions, such as .*, got tuple"),
        (Laplace(0.1), "must be a list of scalar distributions, .*, got Laplace"),
        ((Product((Laplace(0.1),)),), "must be a scalar distribution, got Product"),
    ],
)
def test_other_coordinates_are_an_error(parts, message):
    raises(message, Product, parts)


FROM_VARIANCE = {
    "Gaussian": (nj.noise.Gaussian, {}),
    "Laplace": (nj.noise.Laplace, {}),
    "Uniform": (nj.noise.Uniform, {}),
    "Rademacher": (nj.noise.Rademacher, {}),
    "StudentT": (nj.noise.StudentT, {"df": 5.0}),
    "ContaminatedGaussian": (nj.noise.ContaminatedGaussian, {"probability": 0.2}),
}


@pytest.mark.parametrize("name", FROM_VARIANCE)
def test_from_variance_has_that_variance(name):
    make, parameters = FROM_VARIANCE[name]
    for variance in (0.3, [0.3, 2.0], np.array([0.3, 2.0])):
        noise = make.from_variance(variance, mean=0.5, **parameters)
        np.testing.assert_allclose(noise.cov, np.asarray(variance), rtol=1e-6)
        assert (type(noise), noise.mean) == (make, 0.5)
    swept = jax.vmap(lambda v: make.from_variance(v, **parameters).cov)(jnp.array([0.3, 2.0, -1.0]))
    np.testing.assert_allclose(swept[:2], [0.3, 2.0], rtol=1e-6)
    assert np.isnan(swept[2])
    raises(name, make.from_variance, -1.0, **parameters)
