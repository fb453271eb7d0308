import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from noisy_jax.noise import ContaminatedGaussian, Gaussian, Noise
from tests.keys import key
from tests.noise.cases import assert_mean_is
from tests.quadrature import gauss_hermite


def test_kurtosis_of_contamination(x64):
    """E n⁴/σ⁴ − 3 of one coordinate by Gauss–Hermite; the vector's own fourth moment in d = 1."""
    distribution = ContaminatedGaussian(1.7, probability=0.3)
    nodes, weights = gauss_hermite(8, np.array([[1.7]]))
    second, fourth = (0.3 * weights @ nodes[:, 0] ** power for power in (2, 4))
    np.testing.assert_allclose(distribution.excess_kurtosis, fourth / second**2 - 3)
    np.testing.assert_allclose(Noise.fourth_moment(distribution, 1), distribution.fourth_moment(1))
    assert ContaminatedGaussian(1.7, probability=0.0).excess_kurtosis == np.inf


def test_gradient_of_the_characteristic_function_of_contamination(x64):
    """∂ log φ/∂q = (e − 1)/(1 − q + qe) with e = exp(−½ωᵀΣω)."""
    omega, e, q = jnp.array([1.3]), np.exp(-0.85 * 1.3**2), np.array([0.0, 0.5, 1.0])
    slopes = jax.grad(lambda q: ContaminatedGaussian(1.7, q).log_characteristic(omega).real)
    slope = jax.jit(jax.vmap(slopes))(q)
    np.testing.assert_allclose(slope, (e - 1) / (1 - q + q * e), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.statistical
def test_contamination_hits_whole_vectors_whatever_the_size_of_the_noise():
    """With one key for both, whether a vector is hit would depend on its noise."""
    noise = ContaminatedGaussian(np.ones(2), probability=0.3)
    keys = jax.random.split(key(), 20_000)
    n = np.asarray(jax.vmap(lambda k: noise.centred(k, jnp.zeros(2)))(keys))
    hit, other = (n != 0).T
    np.testing.assert_array_equal(hit, other)
    assert_mean_is(hit.astype(float), 0.3, 0.006)
    assert ContaminatedGaussian(1.0, probability=0.3).sample(jax.random.key(0), 1).shape == ()
    assert_mean_is(n[hit], np.zeros(2), 0.02)
    assert_mean_is(n[hit] ** 2, np.ones(2), 0.03)
    assert stats.kstest(n[hit].ravel(), "norm").pvalue > 1e-6


@pytest.mark.parametrize("kind", [np.float16, bool])
def test_covariances_of_short_types_are_checked_and_drawn_with(kind):
    noise, x = Gaussian(np.eye(2).astype(kind)), np.zeros(2)
    np.testing.assert_allclose(noise.centred(key(), x), Gaussian(np.eye(2)).centred(key(), x))
