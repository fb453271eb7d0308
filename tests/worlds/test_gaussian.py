import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from noisy_jax import noise, worlds
from tests.errors import raises
from tests.keys import key
from tests.quadrature import gauss_hermite, laplace
from tests.worlds.grams import POINTS, SPACE, grams

PLANE = np.array([[0.3, 0.1], [0.1, 0.2]])
DISTRIBUTIONS = {
    "gaussian_plane": (2, noise.Gaussian(0.3)),
    "gaussian_diagonal": (3, noise.Gaussian(np.array([0.1, 0.5, 0.0]))),
    "gaussian_full": (3, noise.Gaussian(SPACE)),
    "laplace": (1, noise.Laplace(1.5)),
    "laplace_plane": (2, noise.Laplace(np.array([0.4, 0.9]))),
}


def made(distribution, dim=1, length_scale=1.0):
    return worlds.gaussian(dim=dim, length_scale=length_scale, noise=distribution)


@pytest.fixture(params=DISTRIBUTIONS, ids=str)
def case(request):
    dim, distribution = DISTRIBUTIONS[request.param]
    return distribution, made(distribution, dim), POINTS[:, :dim]


def quadrature(distribution, dim):
    """Nodes `[N, d]` and weights `[N]` of the distribution's expectation."""
    if isinstance(distribution, noise.Laplace):
        return laplace({1: 100, 2: 54}[dim], np.broadcast_to(distribution.scale, dim))
    return gauss_hermite(44, np.asarray(distribution.covariance(dim), float))


@pytest.mark.slow
@pytest.mark.claim("DA-Eq4", "DA-Eq5", "DA-Lemma4", "EXT-GeneralSigma", "EXT-LaplaceSurrogate")
def test_unbiased_where_the_clean_kernel_is_not(x64, case):
    """The diagonal is the surrogate at distance zero."""
    distribution, world, points = case
    nodes, weights = quadrature(distribution, world.dim)
    np.testing.assert_allclose(weights.sum(), 1, atol=1e-10)
    surrogate, kernel = grams(world, np.concatenate([points, points[0] + nodes]), points)
    np.testing.assert_allclose(np.diag(surrogate[:4]), world.diagonal, rtol=1e-12)
    truth = kernel[0]
    np.testing.assert_allclose(weights @ surrogate[4:], truth, atol=1e-9)
    assert np.abs(weights @ kernel[4:] - truth).max() > 1e-2


@pytest.mark.slow
@pytest.mark.claim("DA-Eq5", "EXT-GeneralSigma", "EXT-LaplaceSurrogate")
def test_golden_values(x64):
    z, origin = jnp.array([[0.5, -1.0]]), jnp.zeros((1, 2))
    full, laplace = made(noise.Gaussian(PLANE), 2), made(noise.Laplace(np.array([0.4, 0.9])), 2)
    for value, golden in (
        (full.surrogate(z, origin), 0.6515805665539386),
        (full.diagonal, 1.348399724926484),
        (full.kernel(z, origin), 0.5352614285189903),
        (laplace.surrogate(z, origin), 0.5994927999412691),
        (laplace.diagonal, 2.0996),
    ):
        np.testing.assert_allclose(value, golden, rtol=1e-14)


@pytest.mark.slow
def test_random_grams_are_symmetric_and_psd(case, rng):
    _, world, _ = case
    spread = np.repeat([0.1, 0.5, 1.0, 3.0], 5)[:, None, None]
    points = (spread * rng.normal(size=(20, 30, world.dim))).astype(np.float32)
    found = np.asarray(jax.jit(jax.vmap(world.surrogate))(points, points), np.float64)
    np.testing.assert_allclose(found, found.swapaxes(1, 2), atol=1e-5)
    assert np.linalg.eigvalsh(found).min() > -3e-6 * 30 * float(world.diagonal)


@pytest.mark.parametrize("shape", [(), (3,), (3, 3)], ids=str)
def test_zero_noise_gives_the_clean_kernel(shape):
    world, x = made(noise.Gaussian(np.zeros(shape)), 3, 0.65**0.5), POINTS.astype("float32")
    np.testing.assert_allclose(*grams(world, x, x[:2] / 3), rtol=1e-5)
    np.testing.assert_allclose(world.diagonal, 1, rtol=1e-5)


def test_ratio_bounds_the_gaussian_surrogate_pointwise(x64, rng):
    world, x = made(noise.Gaussian(SPACE), 3), rng.normal(size=(40, 3))
    surrogate, clean = grams(world, x, x)
    assert (surrogate > 0).all()
    assert (surrogate <= world.ratio * clean * (1 + 1e-12)).all()


@pytest.mark.claim("EXT-LaplaceSurrogate")
def test_the_laplace_surrogate_takes_negative_values(x64):
    world = made(noise.Laplace(0.9))
    values = world.surrogate(jnp.linspace(-4, 4, 801)[:, None], jnp.zeros((1, 1)))
    np.testing.assert_allclose(values.min(), -0.195, atol=5e-4)
    assert world.ratio == np.inf


def test_the_laplace_surrogate_vanishes_far_away_where_its_polynomial_overflows():
    world, far = made(noise.Laplace(0.9), 64), jnp.full((1, 64), 7.0)
    assert np.isinf((1 + 0.81 - 0.81 * far**2).prod())
    assert world.surrogate(far, 0 * far) == 0


@pytest.mark.slow
@pytest.mark.statistical
def test_spectrum_is_the_surrogates(case):
    _, world, points = case
    omega = np.asarray(jax.jit(world.spectrum, static_argnums=1)(key(0), 100_000))
    assert omega.shape == (100_000, world.dim)
    z = points - points[:1]
    truth, clean = (gram[:, 0] for gram in grams(world, z.astype(np.float32), z[:1] * 0))
    values = float(world.diagonal) * np.cos(omega @ z.T)
    error = values.std(axis=0) / np.sqrt(len(omega))
    assert error.max() < 0.02
    assert np.all(np.abs(values.mean(axis=0) - truth) < 5 * error + 1e-5)
    # The clean kernel's own spectrum would be seen.
    clean = float(world.diagonal) * clean
    assert np.any(np.abs(values.mean(axis=0) - clean) > 5 * error + 1e-5)


def test_a_sweep_over_variances_traces_once_and_reports_where_no_surrogate_exists():
    x = jnp.asarray(POINTS, jnp.float32)

    @jax.jit
    @chex.assert_max_traces(n=1)
    def sweep(variances, length_scale):
        def one(variance):
            covs = variance, variance * jnp.eye(3)
            built = [made(noise.Gaussian(cov), 3, length_scale) for cov in covs]
            return [(world.surrogate(x, x), world.diagonal) for world in built]

        return jax.vmap(one)(variances)

    sweep(jnp.array([0.1, 0.2, 0.3, 0.4]), 0.7)
    variances = jnp.array([0.0, 0.3, 1.0, 1.7])
    for found, diagonals in sweep(variances, 1.0):
        for i in range(2):
            world = made(noise.Gaussian(float(variances[i])), 3)
            chex.assert_trees_all_close(found[i], world.surrogate(x, x), rtol=1e-5)
        assert np.isnan(found[2:]).all()
        assert np.isnan(diagonals[2:]).all()


@pytest.mark.parametrize(
    ("make", "bad"),
    [
        (lambda v: made(noise.Gaussian(v), 2), -0.1),
        (lambda v: made(noise.Gaussian(v), 2), np.array([[0.1, 0.3], [0.3, 0.1]])),
        (lambda v: made(noise.Laplace(v), 2), -0.5),
        (lambda v: made(noise.Laplace(0.5), 2, v), -1.0),
    ],
)
def test_what_is_traced_and_wrong_is_nan(make, bad):
    x = jnp.asarray(POINTS[:, :2], jnp.float32)

    def parts(value):
        world = make(value)
        return world.surrogate(x, x), world.diagonal

    good = np.eye(2) / 8 if np.ndim(bad) == 2 else np.abs(bad) / 2
    traced = jax.jit(parts)
    assert all(np.isnan(part).all() for part in traced(jnp.asarray(bad, jnp.float32)))
    found = traced(jnp.asarray(good, jnp.float32))
    chex.assert_trees_all_close(found, parts(good), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("distribution", [noise.Gaussian(0.1), noise.Laplace(0.3)])
def test_data_of_another_dimension_are_rejected(distribution):
    world, other = made(distribution, 2), np.ones((2, 5))
    for fits in (np.ones((2, 2)), other):
        raises("data of dimension 2, got dimension 5", world.surrogate, other, fits)


@pytest.mark.parametrize("make", [noise.Gaussian, noise.Laplace])
def test_a_world_of_arrays_may_be_made_under_jit(make):
    """Arithmetic on a constant under `jit` is traced."""
    length_scale, scale = jnp.array(1.0), jnp.array(0.1)
    diagonal = jax.jit(lambda: made(make(scale), 2, length_scale).diagonal)()
    np.testing.assert_allclose(diagonal, made(make(0.1), 2).diagonal, rtol=1e-6)


class Triangular(noise.Noise):
    """A user's distribution with a characteristic function."""

    mean = cov = 0.0

    def __post_init__(self):
        pass

    def log_characteristic(self, omega):
        return jnp.zeros(omega.shape[:-1], complex)


WIDE, MANY = {"noise": noise.Gaussian(1.0)}, {"dim": 200, "length_scale": 1.25**0.5}


@pytest.mark.claim("DA-Thm3")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (WIDE | {"length_scale": 0.75**0.5}, r"length_scale .* above 1 .* 0\.866.*: up to √‖Σ‖,"),
        ({"length_scale": 0.6**0.5, "noise": noise.Gaussian(SPACE)}, r"above 0\.7975.* no surr"),
        (
            MANY | WIDE,
            r"exp\(160\.9\).* above R² = exp\(44\.36\); 0\.44.* larger length_scale or fewer",
        ),
        (MANY | {"noise": noise.Laplace(1.0)}, r"exp\(117\.6\).*; 0\.31 times this noise cov"),
        (
            {"noise": noise.ContaminatedGaussian(1.0, 0.5)},
            r"got Contaminated.*fourier_gaussian takes",
        ),
        ({"noise": noise.Uniform(1.0)}, "one of Gaussian, Laplace, got Unif.*zeros"),
        ({"noise": noise.StudentT(3.0, 1.0)}, "StudentT, whose characteristic function is not kn"),
        ({"noise": Triangular()}, r"got Triangular.*worlds\.fourier_gaussian takes any noise"),
        (
            {"noise": noise.PerRound(jax.vmap(noise.Gaussian)(np.ones(5)))},
            "got PerRound: .*unknown_noise",
        ),
        ({"noise": 0.3}, "got float"),
        ({"noise": noise.Gaussian(np.ones(2))}, r"Gaussian\.cov of shape \[2\].*dimension 3"),
        ({"length_scale": np.ones(3)}, r"one number, got shape \[3\]"),
        ({"dim": 0}, "dim must be a whole number of at least 1"),
    ],
)
def test_rejects_bad_input(settings, message):
    defaults = {"dim": 3, "length_scale": 2**0.5, "noise": noise.Gaussian(0.1)}
    raises(message, worlds.gaussian, **(defaults | settings))


def test_a_world_is_rejected_where_its_squared_diagonal_overflows(x64):
    def build(dim, variance=1.0):
        return made(noise.Gaussian(variance), dim, 1.25**0.5)

    assert np.isfinite(build(441).diagonal ** 2)
    assert 441 < np.log(np.finfo(np.float64).max) / np.log(5) < 442
    raises(r"float64 .*; 0\.99 times this noise covariance", build, 442)
    assert np.isfinite(build(442, 0.99).diagonal ** 2)
