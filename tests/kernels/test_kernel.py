"""What every kernel does, also far from the origin."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import kernels, worlds
from noisy_jax.noise import Gaussian, Laplace
from tests.errors import raises, told
from tests.kernels.cases import KERNELS

KEY = jax.random.key(0)


@pytest.fixture(params=KERNELS, ids=str)
def case(request):
    return KERNELS[request.param]


def points(rng, n, dim=3):
    x = rng.normal(size=(n, dim))
    return 0.9 * x / np.linalg.norm(x, axis=1).max()


def test_gram_equals_the_definition_pair_by_pair(x64, rng, case):
    kernel, value = case
    x, z = points(rng, 5), points(rng, 4)
    expected = [[value(a, b) for b in z] for a in x]
    np.testing.assert_allclose(jax.jit(kernel)(x, z), expected, rtol=1e-12)


@pytest.mark.slow
def test_diagonal_is_that_of_the_gram(x64, rng, case):
    kernel, _ = case
    x = jnp.asarray(points(rng, 5))
    # The distance of a point to itself by matrix product is zero to 1e-16 only, its root to 1e-8.
    np.testing.assert_allclose(kernel.diagonal(x), jnp.diag(kernel(x, x)), atol=1e-7)


LINEAR, FEATURES = kernels.linear(), functools.partial(kernels.fourier_features, num_features=8)
GAUSSIAN = kernels.gaussian(length_scale=1.0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: kernels.polynomial(degree=0), "degree must be a whole number of at least 1"),
        (lambda: kernels.polynomial(degree=2, offset=-1.0), "offset must be finite and >= 0"),
        (lambda: kernels.binomial(alpha=0.0), "alpha must be positive and finite, got 0"),
        (lambda: kernels.gaussian(length_scale=-1.0), "length_scale must be positive"),
        (lambda: kernels.gaussian(length_scale=np.ones(2)), "length_scale must be one number"),
        # Float32 rounds these, or their squares, to zero and to infinity.
        (lambda: kernels.gaussian(length_scale=1e-60), "length_scale must be above 1.0842e-19"),
        (lambda: kernels.matern(nu=1.5, length_scale=1e20), "and below 1.84467e"),
        (lambda: kernels.laplacian(length_scale=np.inf), "length_scale must be positive"),
        (lambda: kernels.matern(nu=0.5, length_scale=1.0), r"nu must be 1\.5 or 2\.5, got 0\.5"),
        (lambda: FEATURES(LINEAR, KEY), "kernel of the distance"),
        (lambda: FEATURES(GAUSSIAN, KEY, num_features=7), "num_features must be even"),
        (lambda: FEATURES(GAUSSIAN, KEY)([]), r"^x must be \[..., d\] with d >= 1 features, got"),
        (lambda: FEATURES(GAUSSIAN, KEY)(1.0), r"x must be \[..., d\]"),
        (lambda: kernels.Kernel(1.0, LINEAR.diagonal), "gram must be a function"),
        (
            lambda: kernels.Kernel(LINEAR.gram, LINEAR.diagonal, envelope=1.0),
            "envelope .*an Envelope",
        ),
        (
            lambda: kernels.Kernel(LINEAR.gram, LINEAR.diagonal, linear=LINEAR),
            "linear .*True or False",
        ),
    ],
)
def test_rejects_bad_input(build, message):
    raises(message, build)


@pytest.mark.parametrize(
    ("x", "z", "message"),
    [
        ((4, 2), (1, 3), "points of dimension 3 do not fit those of dimension 2"),
        ((3,), (1, 3), r"x must be \[n, d\], got \[3\]; one point is x\[None\]"),
        ((1, 3), (3,), r"z must be \[m, d\], got \[3\]; one point is z\[None\]"),
    ],
)
def test_rejects_points_of_other_shapes(x, z, message):
    for kernel in (kernels.linear(), kernels.gaussian(length_scale=0.8)):
        raises(message, kernel, jnp.ones(x), jnp.ones(z))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rational", "laplacian", "matern32", "matern52"])
def test_gradients_are_finite_where_points_coincide(name):
    x, (kernel, _) = jnp.ones((1, 2)), KERNELS[name]
    assert np.isfinite(jax.grad(lambda z: kernel(z * 0.5, x * 0.5)[0, 0])(x)).all()


OFFSETS = [-1e4, 1e6]
SPACE = np.array([[0.5, 0.2, 0.0], [0.2, 0.3, -0.1], [0.0, -0.1, 0.4]])
NOISES = [
    Gaussian(0.3),
    Gaussian(SPACE),
    Laplace(0.5),
]
GRAMS = {
    "gaussian": lambda: kernels.gaussian(length_scale=0.8),
    "laplacian": lambda: kernels.laplacian(length_scale=0.8),
    "full": lambda: worlds.rational(dim=3, noise=Gaussian(SPACE / 5), cutoff=2.0).surrogate,
}
for law in NOISES:
    make = functools.partial(worlds.gaussian, dim=3, length_scale=1.0, noise=law)
    GRAMS[f"{type(law).__name__}, {np.ndim(law.cov)} axes"] = lambda make=make: make().surrogate


def grid(rng, n):
    """Points that float32 holds exactly at every offset."""
    return np.round(16 * rng.normal(size=(n, 3))) / 16


def moved(points, offset):
    return jnp.asarray(points + np.array([offset, -offset, 0.0]), jnp.float32)


@pytest.mark.slow
@pytest.mark.parametrize("name", GRAMS)
def test_grams_do_not_depend_on_the_origin(rng, name):
    gram, x, z = GRAMS[name](), grid(rng, 6), grid(rng, 5)
    x[:2], x[2] = z[:2], 0
    expected = gram(moved(x, 0.0), moved(z, 0.0))
    for offset in OFFSETS:
        far = gram(moved(x, offset), moved(z, offset))
        np.testing.assert_allclose(far, expected, atol=1e-5 if name != "laplacian" else 2e-3)


def test_slots_of_a_buffer_that_are_still_zero_change_nothing(rng):
    """Stored points come with rows of zeros, which no offset is taken from."""
    z = jnp.asarray(grid(rng, 5) + 1e5, jnp.float32)
    gram = kernels.gaussian(length_scale=0.8)(jnp.zeros((8, 3)).at[:5].set(z), z)
    np.testing.assert_allclose(jnp.diag(gram), 1, atol=1e-5)
    np.testing.assert_array_equal(gram[5:], 0)


def test_a_row_of_nan_does_not_spread(rng):
    x = jnp.asarray(grid(rng, 4) + 1e4, jnp.float32).at[2].set(jnp.nan)
    gram = np.asarray(kernels.gaussian(length_scale=0.8)(x, x))
    bad = np.arange(4) == 2
    np.testing.assert_array_equal(np.isnan(gram), bad[:, None] | bad)
    for name in ("laplacian", "rational"):
        kernel = getattr(kernels, name)(length_scale=1.0)
        assert np.isnan(kernel(np.array([[np.nan]]), np.ones((1, 1)))).all()


@pytest.mark.slow
def test_gradients_do_not_depend_on_the_origin(rng):
    x, z = grid(rng, 1), grid(rng, 4)

    def slopes(offset):
        total = jax.grad(lambda x, z: kernels.gaussian(length_scale=0.8)(x, z).sum(), (0, 1))
        return total(moved(x, offset), moved(z, offset))

    for far, near in zip(slopes(1e6), slopes(0.0), strict=True):
        np.testing.assert_allclose(far, near, atol=1e-5)


def test_a_batch_by_vmap_is_each_gram(rng):
    x = jnp.asarray(np.stack([grid(rng, 4) + offset for offset in OFFSETS]), jnp.float32)
    kernel = kernels.gaussian(length_scale=0.8)
    for grams in (jax.vmap(kernel)(x, x), jax.vmap(kernel, (None, 0))(x[0], x)):
        assert grams.shape == (2, 4, 4)
        np.testing.assert_allclose(grams[0], kernel(x[0], x[0]), atol=1e-6)


def test_fourier_features_far_away_lose_what_float32_loses_of_the_points(rng):
    world = worlds.gaussian(dim=3, length_scale=1.0, noise=Gaussian(0.3))
    features = worlds.fourier(jax.random.key(0), world, 64)
    omega = 2 * np.pi * np.asarray(features.frequencies, np.float64)
    for offset in OFFSETS:
        x = moved(grid(rng, 50), offset)
        phases = np.asarray(x, np.float64) @ omega.T
        waves = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
        exact = np.tile(features.amplitude, 2) * waves
        unit = float(features.amplitude[0]) * np.abs(omega).sum(axis=1).max() * abs(offset) / 2**24
        assert np.abs(features.noisy(x) - exact).max() < 2 * unit + 1e-6


def test_points_may_be_lists_and_whole_numbers():
    gaussian, linear = kernels.gaussian(length_scale=1.0), kernels.linear()
    assert gaussian([[0, 0]], [[0, 0]]).tolist() == linear([[1]], [[1]]).tolist() == [[1]]
    features = kernels.fourier_features(gaussian, jax.random.key(0), 4)
    assert features([0, 0]).shape == (4,)
    for wrong in ([["a"]], [[1j]], [[1.0], [1.0, 2.0]]):
        with told("x", "array"):
            gaussian(wrong, [[1.0]])
        with told("x", "array"):
            features(wrong)
