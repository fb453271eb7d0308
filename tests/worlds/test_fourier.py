import dataclasses
import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import kstest

from noisy_jax import noise as laws
from noisy_jax import worlds
from noisy_jax.noise import ContaminatedGaussian, Gaussian, Laplace, Noise
from tests.errors import raises
from tests.keys import key
from tests.quadrature import gauss_hermite, laplace, tensor
from tests.worlds.grams import SPACE

KEY = jax.random.key(3)


@dataclasses.dataclass(frozen=True, eq=False)
class CentredExponential(Noise):
    """A user's distribution: n_i = b(e_i − 1) with standard exponential e_i; asymmetric."""

    scale: float
    mean: float = 0.0

    @property
    def cov(self):
        return self.scale**2

    def log_characteristic(self, omega):
        a = self.scale * omega
        return jnp.sum(-1j * a - jnp.log(1 - 1j * a), axis=-1)


def exponential(n, scale, dim):
    """Nodes and weights of centred exponential noise."""
    nodes, weights = np.polynomial.laguerre.laggauss(n)
    return tensor(scale * (nodes - 1), weights / weights.sum(), dim)


def gaussian_world(noise, dim):
    return worlds.gaussian(dim=dim, length_scale=1.5**0.5, noise=noise)


def gaussian_features(noise, dim, num_features=16):
    return worlds.fourier(KEY, gaussian_world(noise, dim), num_features)


def weighted_features(noise, dim, num_features=16):
    return worlds.fourier_gaussian(KEY, num_features, dim=dim, length_scale=1.5**0.5, noise=noise)


CASES = {
    "gaussian_3": (gaussian_features, Gaussian(SPACE), 3, gauss_hermite(30, SPACE)),
    "laplace": (gaussian_features, Laplace(0.4), 2, laplace(60, [0.4, 0.4])),
    "too_wide": (weighted_features, Gaussian(2.0), 1, gauss_hermite(90, 2.0, 1)),
    "exponential_2": (weighted_features, CentredExponential(0.6), 2, exponential(90, 0.6, 2)),
}


@pytest.mark.slow
@pytest.mark.claim("EXT-FourierParallelWorlds")
@pytest.mark.parametrize("name", CASES)
def test_noisy_features_have_the_clean_ones_for_their_mean(x64, rng, name):
    build, noise, dim, (nodes, weights) = CASES[name]
    features = build(noise, dim)
    x = rng.normal(size=(2, dim))
    mean = np.einsum("q,xqd->xd", weights, features.noisy(x[:, None] + nodes[None]))
    np.testing.assert_allclose(mean, features.clean(x), atol=1e-9)
    # Neither the uncorrected features nor those without one of the two corrections would do.
    assert np.abs(mean - features.noisy(x)).max() > 0.02
    unshrunk = features._replace(modulus=jnp.ones_like(features.modulus))
    assert np.abs(mean - unshrunk.clean(x)).max() > 0.02
    if isinstance(noise, CentredExponential):
        unturned = features._replace(shift=jnp.zeros_like(features.shift)).noisy(x[:, None] + nodes)
        assert np.abs(np.einsum("q,xqd->xd", weights, unturned) - features.clean(x)).max() > 0.01


@pytest.mark.slow
@pytest.mark.claim("EXT-FourierParallelWorlds")
@pytest.mark.parametrize(
    ("build", "noise"),
    [(weighted_features, CentredExponential(0.6)), (gaussian_features, Laplace(0.4))],
)
def test_features_are_cosines_and_sines_of_the_frequencies(x64, rng, build, noise):
    """Their squares add up to 1/|φ|, or to R² of the world."""
    features, weighted = build(noise, 2), build is weighted_features
    x = rng.normal(size=(3, 2))
    omega = 2 * np.pi * np.asarray(features.frequencies)
    phi = np.exp(np.asarray(noise.log_characteristic(omega)))
    square = 1 / np.abs(phi) if weighted else float(gaussian_world(noise, 2).diagonal)
    amplitude = np.sqrt(square / 8)
    waves = np.exp(1j * x @ omega.T)
    turned = amplitude * waves * np.conj(phi) / np.abs(phi)
    shrunk = amplitude * waves * np.abs(phi)
    np.testing.assert_allclose(features.noisy(x), np.c_[turned.real, turned.imag], atol=1e-12)
    np.testing.assert_allclose(features.clean(x), np.c_[shrunk.real, shrunk.imag], atol=1e-12)


@pytest.mark.statistical
def test_weighted_features_have_the_frequencies_of_the_kernel():
    """Those of `fourier` are drawn by the world's `spectrum`, which has tests of its own."""
    options = {"dim": 2, "length_scale": 1.5**0.5, "noise": CentredExponential(0.6)}
    features = worlds.fourier_gaussian(key(3), 10_000, **options)
    omega = 2 * np.pi * np.asarray(features.frequencies)
    assert kstest(np.ravel(omega) * 1.5**0.5, "norm").pvalue > 6e-7


@pytest.mark.claim("EXT-FourierParallelWorlds")
@pytest.mark.parametrize("build", [gaussian_features, weighted_features])
def test_every_noisy_copy_has_the_squared_norm(rng, build):
    features = jax.jit(lambda: build(Gaussian(SPACE), 3, 64))()
    assert (features.dim, features.num_features) == (3, 64)
    x = (rng.normal(size=(200, 3)) * np.geomspace(0.1, 30, 200)[:, None]).astype(np.float32)
    norms = np.sum(np.asarray(jax.jit(features.noisy)(x), np.float64) ** 2, axis=1)
    np.testing.assert_allclose(norms, float(features.squared_norm), rtol=1e-6)
    if build is gaussian_features:
        diagonal = gaussian_world(Gaussian(SPACE), 3).diagonal
        np.testing.assert_allclose(features.squared_norm, diagonal, rtol=1e-6)


@pytest.mark.slow
def test_keys_and_hyper_parameters_may_be_traced(rng):
    x = jnp.asarray(rng.normal(size=(5, 2)), jnp.float32)

    def noisy(key, length_scale, variance):
        world = worlds.gaussian(dim=2, length_scale=length_scale, noise=Gaussian(variance))
        distribution = ContaminatedGaussian(variance, probability=0.6)
        options = {"dim": 2, "length_scale": length_scale, "noise": distribution}
        return worlds.fourier(key, world, 8), worlds.fourier_gaussian(key, 8, **options)

    keys, scales = jax.random.split(KEY, 3), jnp.array([1.0, 1.2, 1.4])
    many = jax.jit(jax.vmap(noisy, (0, 0, None)))(keys, scales, 0.3)
    maps = jax.jit(jax.vmap(lambda features: features.noisy(x)))
    for features, single in zip(many, noisy(keys[1], scales[1], 0.3), strict=True):
        assert features.squared_norm.shape == (3,)
        np.testing.assert_allclose(maps(features)[1], single.noisy(x), atol=1e-5)
        assert not np.allclose(maps(features)[0], maps(features)[1], atol=0.01)


@pytest.mark.parametrize("make", [Gaussian, functools.partial(ContaminatedGaussian, 1.0)])
def test_features_under_traced_noise_without_a_distribution_are_nan(make):
    @jax.jit
    def noisy(parameter):
        return weighted_features(make(parameter), 2).noisy(jnp.ones(2))

    assert np.isfinite(noisy(0.4)).all()
    assert np.isnan(noisy(-0.4)).all()


WORLD = gaussian_world(Gaussian(0.1), 2)


@pytest.mark.slow
@pytest.mark.parametrize("law", [Gaussian(0.1), Laplace(0.3), None])
def test_frequencies_use_no_key_twice(law):
    rational = functools.partial(worlds.rational, dim=2, noise=Gaussian(0.1), cutoff=1.0)
    world = gaussian_world(law, 2) if law else rational()
    draw = jax.jit(lambda key: worlds.fourier(key, world, 6).frequencies)
    with jax.debug_key_reuse(True):
        assert draw(jax.random.key(0)).shape == (3, 2)


def of_world(noise=WORLD.noise, num_features=8, key=KEY, **changes):
    return worlds.fourier(key, dataclasses.replace(WORLD, noise=noise, **changes), num_features)


def of_kernel(noise=WORLD.noise, num_features=8, key=KEY, dim=2, length_scale=1.0):
    options = {"dim": dim, "length_scale": length_scale, "noise": noise}
    return worlds.fourier_gaussian(key, num_features, **options)


@pytest.mark.parametrize("make", [of_world, of_kernel])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_features": 0}, "num_features must be"),
        ({"num_features": 7}, "num_features must be"),
        ({"num_features": 8.0}, "num_features must be"),
        ({"key": 0}, r"key must be a key .* got 0"),
        ({"noise": laws.Uniform(1.0)}, "Uniform, whose characteristic function has zeros: feature"),
        ({"noise": laws.StudentT(df=5.0, scale=0.1)}, "StudentT, whose characteristic function is"),
        ({"noise": Gaussian(np.ones(3))}, r"of shape \[3\] does not fit data of dimension 2"),
        ({"noise": laws.PerRound(Gaussian(np.ones(4), np.zeros(4)))}, "a Noise, got PerRound"),
    ],
)
def test_wrong_arguments_are_named(make, wrong, message):
    raises(message, make, **wrong)


def test_instances_are_real_numbers():
    features = worlds.fourier(KEY, WORLD, 8)
    assert features.noisy([[1.0, 2.0]]).shape == (1, 8)
    for maps in features.noisy, features.clean:
        raises("x must be an array of real numbers", maps, 1j * np.ones(2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: of_world(noise=None), "must have a noise distribution"),
        (lambda: of_world(spectrum=None), "sampler of its surrogate's spectral density"),
        (lambda: worlds.fourier(KEY, WORLD.kernel, 8), "world must be a World, got Kernel: "),
        (lambda: of_kernel(length_scale=0.0), "length_scale must be positive"),
        (lambda: of_kernel(length_scale=[1.0, 12.0]), r"one number, got shape \[2\]"),
        (lambda: of_kernel(dim=0), "dim must be a whole number"),
        (lambda: of_world().noisy(jnp.ones((4, 3))), "does not fit data of dimension 3"),
    ],
)
def test_what_only_one_of_them_takes_is_named(make, message):
    raises(message, make)


@pytest.mark.slow
def test_the_variance_that_an_error_names_would_do():
    def build(variance):
        return weighted_features(Gaussian(variance), 10, 1000)

    message = r"overflows float32 above R² = exp\(44\.36\); "
    with pytest.raises(ValueError, match=message) as rejected:
        build(9.0)
    share = float(re.search(r"(\S+) times this noise covariance", str(rejected.value)).group(1))
    assert np.isfinite(build(share * 9.0).squared_norm ** 2)
    raises("overflows", build, 1.1 * share * 9.0)
