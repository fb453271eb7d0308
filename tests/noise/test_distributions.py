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
    Poisson,
    Product,
    Rademacher,
    StudentT,
    Uniform,
)
from tests.errors import raises
from tests.keys import key
from tests.noise.cases import assert_mean_is


@pytest.mark.claim("EXT-GeneralNoise")
def test_uniform_characteristic_has_zeros():
    at_zero = Uniform(1.0).log_characteristic(jnp.array([jnp.pi]))
    assert float(at_zero.real) < -15


PARTS = Laplace(0.3, mean=1.0), Gaussian(0.0), Uniform(0.7), StudentT(df=9.0, scale=0.4)
NOISE = Product(PARTS)


def test_moments_are_those_of_the_coordinates():
    np.testing.assert_allclose(NOISE.cov, [0.18, 0.0, 0.49 / 3, 0.16 * 9 / 7], rtol=1e-15)
    np.testing.assert_array_equal(NOISE.mean, [1.0, 0.0, 0.0, 0.0])
    assert NOISE.cov.dtype == np.float64
    variances, kurtosis = np.asarray(NOISE.cov), np.array([3.0, 0.0, -1.2, 1.2])
    exact = variances.sum() ** 2 + np.sum((2 + kurtosis) * variances**2)
    np.testing.assert_allclose(NOISE.fourth_moment(4), exact, rtol=1e-6)
    alike = Product((Laplace(0.3), Laplace(0.5)))
    together = Laplace(np.array([0.3, 0.5]))
    np.testing.assert_allclose(alike.fourth_moment(2), together.fourth_moment(2), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.statistical
def test_draws_have_the_moments_and_are_independent():
    n = np.asarray(NOISE.sample(key(), jnp.zeros((100_000, 4))), np.float64)
    assert_mean_is(n, np.asarray(NOISE.mean), 0.005)
    n -= np.asarray(NOISE.mean)
    products = np.einsum("ni,nj->nij", n, n).reshape(len(n), 16)
    assert_mean_is(products, np.diag(np.asarray(NOISE.cov)).ravel(), 0.02)
    assert np.all(np.abs(n[:, 2]) <= 0.7 + 1e-6)
    assert np.ptp(n[:, 1]) == 0


@pytest.mark.slow
def test_coordinates_may_depend_on_x(x64):
    """Exact means over a category, a sign and a value that is known: variance and its estimate."""
    matrix = np.array([[0.9, 0.1], [0.2, 0.8]])
    noise = Product((Misclassified(matrix), Rademacher(0.5), Gaussian(0.0)))
    x = np.array([1.0, 0.3, -0.7])
    recoded = np.linalg.inv(matrix)[:, 1]
    copies = np.array([(u, 0.3 + s, -0.7) for u in recoded for s in (-0.5, 0.5)])
    p = np.repeat(matrix[1] / 2, 2)
    variance = np.einsum("m,mi,mj->ij", p, copies - x, copies - x)
    np.testing.assert_allclose(p @ copies, x, atol=1e-12)
    np.testing.assert_allclose(noise.covariance_at(x), variance, atol=1e-12)
    estimates = jax.vmap(noise.estimated_cov)(copies)
    np.testing.assert_allclose(p @ estimates, np.diag(variance), atol=1e-12)
    assert noise.depends_on_x
    drawn = np.asarray(noise.sample(key(), jnp.broadcast_to(x, (200, 3))))
    assert np.isclose(drawn[:, None], copies, atol=1e-6).all(-1).any(axis=1).all()
    wanted = p @ (copies**2).sum(axis=1) ** 2 + p @ copies[:, 0] ** 2
    np.testing.assert_allclose(noise.square_fourth_moment(x), wanted, rtol=1e-12)
    mixed = Product((Poisson(), Gaussian(0.2)))
    np.testing.assert_allclose(mixed.estimated_cov(jnp.array([3.0, 1.0])), [3.0, 0.2])


@pytest.mark.slow
def test_the_characteristic_function_is_a_product():
    parts = Laplace(0.3), Gaussian(0.2), Uniform(0.7)
    omega = np.array([[0.7, -1.2, 0.4], [2.0, 3.0, 8.0]])
    phi = np.exp(jax.device_get(jax.jit(Product(parts).log_characteristic)(omega)))
    wanted = 1 / (1 + 0.09 * omega[:, 0] ** 2) * np.exp(-0.1 * omega[:, 1] ** 2)
    wanted *= np.sin(0.7 * omega[:, 2]) / (0.7 * omega[:, 2])
    np.testing.assert_allclose(phi, wanted, rtol=1e-5, atol=1e-6)
    assert NOISE.log_characteristic(jnp.zeros((1, 4))) is None  # of Student's t it is not known
    assert Product(parts).characteristic_vanishes
    assert not Product(parts[:2]).characteristic_vanishes


@pytest.mark.slow
def test_it_is_swept_jitted_and_used_by_worlds():
    each = jax.jit(jax.vmap(lambda s: Product((Laplace(s), Gaussian(s)))))(np.array([0.1, 0.2]))
    stacked = nj.noise.PerRound(each)
    np.testing.assert_allclose(stacked.distribution.cov, [[0.02, 0.1], [0.08, 0.2]], rtol=1e-6)
    noise = Product((Laplace(0.3), Gaussian(0.2)))
    sample = jax.jit(lambda noise, k: noise.sample(k, jnp.zeros(2)))
    with jax.debug_key_reuse(True):
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
