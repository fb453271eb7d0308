"""One copy of known Gaussian noise: exact, by quadrature over noise and draws."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.learners.known_covariance import gradient_estimate as from_one_copy
from noisy_jax.unbiased.continuation import Continued
from noisy_jax.unbiased.entire import continued
from tests.quadrature import gauss_hermite
from tests.unbiased.cases import COV, ENTIRE, X, over_noise

pytestmark = pytest.mark.usefixtures("x64")


def averaged_over_draws(f, x, count=40):
    """What `gaussian` estimates from one copy, averaged over its draws by quadrature."""
    drawn, weights = gauss_hermite(count, COV)
    return weights @ jax.vmap(
        lambda xi: continued(f, Continued(jnp.asarray(x), xi), "gaussian").re
    )(drawn)


@pytest.mark.claim("EXT-ImaginaryNoise")
@pytest.mark.parametrize("name", ["polynomial", "network"])
def test_gaussian_is_exact_over_noise_and_draws(name):
    f = ENTIRE[name]
    found = over_noise(lambda copies: averaged_over_draws(f, copies[0], 10), 1, 10)
    np.testing.assert_allclose(found, f(X), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.claim("EXT-ImaginaryNoise")
@pytest.mark.parametrize(("form", "copies"), [("[]", 1), ("[d]", 3), ("[d, d]", 3)])
def test_draws_have_the_covariance_of_the_noise(form, copies):
    """Of a product of coordinates g is x̄_i x̄_j less the mean of ξ_i ξ_j, which is Σ_ij/V."""
    cov = {"[]": 0.3, "[d]": np.array([0.1, 0.5]), "[d, d]": COV}[form]
    g = nj.unbiased.gaussian(lambda x: jnp.outer(x, x), cov, draws=100_000)
    rows = np.arange(2.0 * copies).reshape(copies, 2)
    found = g(rows, key=jax.random.key(0))
    full = nj.noise.Gaussian(cov).covariance(2) / copies
    expected = np.outer(rows.mean(axis=0), rows.mean(axis=0)) - full
    np.testing.assert_allclose(found, expected, atol=5 * 0.5 * 2**0.5 / 100_000**0.5)


@pytest.mark.claim("EXT-ImaginaryNoise")
def test_gaussian_of_the_squared_loss_is_known_covariance():
    w, y = jnp.array([0.8, -1.3]), 0.4
    gradient = jax.jit(jax.grad(lambda w: averaged_over_draws(lambda x: (x @ w - y) ** 2, X, 3)))(w)
    sample = nj.Sample(jnp.asarray(X)[None], jnp.asarray(y), jnp.asarray(COV))
    np.testing.assert_allclose(gradient, from_one_copy(w, sample), rtol=1e-9)


@pytest.mark.claim("EXT-ImaginaryNoise")
def test_gaussian_of_a_kernel_is_the_surrogate_of_its_world():
    world = nj.worlds.gaussian(dim=2, length_scale=1.2, noise=nj.noise.Gaussian(COV))
    atom = jnp.array([0.1, 0.5])

    def kernel(x):
        return jnp.exp(-jnp.sum((x - atom) ** 2) / (2 * 1.2**2))

    expected = world.surrogate(atom[None], jnp.asarray(X)[None])[0, 0]
    found = jax.jit(lambda x: averaged_over_draws(kernel, x))(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_the_noise_may_be_an_iterator_of_variances():
    g = nj.unbiased.gaussian(lambda x: x @ x, iter([0.1, 0.2]))
    np.testing.assert_allclose(g.noise.cov, [0.1, 0.2])


@pytest.mark.claim("EXT-EstimatingEquations")
def test_estimating_equations_have_their_root_at_the_truth():
    """y = θ_0 + θ_1 e^(θ_2 x): the mean gradient is 0 at θ over all noise, not without correction.

    x takes three values; the noise of the copies is Gaussian, of another variance in each row.
    """
    theta = jnp.array([0.5, 1.0, 0.6])

    def curve(theta, x):
        return theta[0] + theta[1] * jnp.exp(theta[2] * x)

    def loss(theta, x, y):
        return (curve(theta, x) - y) ** 2

    x = np.repeat([-1.0, 0.2, 1.1], 100)
    errors, weights = gauss_hermite(10, np.eye(2))
    copies = x[:, None] + np.repeat([0.1, 0.4, 0.25], 100)[:, None] ** 0.5 * np.tile(errors, (3, 1))

    def total(g):
        slope = jax.jit(jax.vmap(jax.grad(g), (None, 0, 0)))
        return np.tile(weights, 3) @ slope(theta, copies, curve(theta, x))

    np.testing.assert_allclose(total(nj.unbiased.pair(loss, 1)), 0, atol=1e-6)
    assert abs(total(nj.unbiased.replicates(loss, 1, order=0))).max() > 0.05
