"""Laplace noise and radial kernels, with noise that changes from round to round."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import worlds
from tests.errors import raises
from tests.keys import key
from tests.quadrature import gauss_hermite, laplace
from tests.worlds.grams import POINTS, atoms, check_unbiased

POINTS = POINTS[:3, :2]
FULL = np.array([[0.2, 0.05], [0.05, 0.1]])
TWO_GAUSSIANS = worlds.discrete_measure([0.5, 1.5], [0.7, 0.4])
RATIONAL = worlds.rational_measure(length_scale=1.0)
LARGEST = {"max_cov": 0.3}
VARIANCES = (0.6, np.array([0.0, 0.25, 0.6]))
BY_COORDINATE = (np.array([0.6, 0.3]), np.array([[0.0, 0.0], [0.1, 0.3], [0.6, 0.2]]))
RADIAL = {
    "isotropic": (TWO_GAUSSIANS, 0.2, np.array([0.0, 0.05, 0.2])),
    "diagonal": (TWO_GAUSSIANS, np.array([0.2, 0.1]), np.array([[0, 0], [0.2, 0.05], [0.2, 0.1]])),
    "full": (TWO_GAUSSIANS, FULL, np.stack([0 * FULL, np.diag([0.05, 0.02]), FULL])),
    "a density": (RATIONAL, 0.2, np.array([0.0, 0.05, 0.2])),
}


def laplace_rule(cov):
    """Of two coordinates of Laplace noise with variances `[2]`, or both with the same."""
    return laplace(60, np.sqrt(np.broadcast_to(cov, 2) / 2))


@pytest.mark.claim("EXT-HeteroscedasticLaplace")
@pytest.mark.parametrize(("max_cov", "covs"), [VARIANCES, BY_COORDINATE], ids=["[]", "[d]"])
def test_laplace_noise_of_any_scales_is_unbiased(x64, max_cov, covs):
    world = worlds.heteroscedastic_laplace(dim=2, length_scale=1.0, max_cov=max_cov)
    largest = nj.noise.Laplace(np.sqrt(np.asarray(max_cov) / 2))
    fixed = worlds.gaussian(dim=2, length_scale=1.0, noise=largest)
    assert check_unbiased(world, POINTS, covs, laplace_rule, fixed).max(axis=1).min() > 5e-3
    # The stored noise averaged as well, f is one of the clean kernel.
    nodes, weights = laplace_rule(covs[1])
    stored = atoms(world, POINTS[:1] + nodes, covs[1])
    mean = weights @ np.asarray(world.evaluate(stored, jnp.asarray(POINTS)))
    clean = world.kernel(jnp.asarray(POINTS), jnp.asarray(POINTS))
    np.testing.assert_allclose(mean, clean[0], atol=1e-10)
    # Comparators have the norm of the clean kernel.
    exact = world.atom(jnp.asarray(POINTS), np.zeros(3))
    np.testing.assert_allclose(world.surrogate(exact, exact), clean, rtol=1e-12)
    assert world.norm_ratio == 1


@pytest.mark.slow
@pytest.mark.claim("EXT-HeteroscedasticRadial")
@pytest.mark.parametrize("name", RADIAL)
def test_radial_kernels_are_unbiased_in_every_round(x64, name):
    measure, max_cov, covs = RADIAL[name]
    options = {"dim": 2, "cutoff": 1.8}
    world = worlds.heteroscedastic_radial(measure, max_cov=max_cov, **options)
    fixed = worlds.radial(measure, noise=nj.noise.Gaussian(max_cov), **options)
    rule = functools.partial(gauss_hermite, 50, dim=2)
    assert check_unbiased(world, POINTS, covs, rule, fixed).max(axis=1).min() > 5e-3
    # At Σ_max it is the world of fixed noise, kernel and all.
    lifted, points = atoms(world, POINTS, covs[2]), jnp.asarray(POINTS)
    np.testing.assert_allclose(world.surrogate(lifted, lifted), fixed.surrogate(points, points))
    np.testing.assert_allclose(world.evaluate(lifted, points), fixed.kernel(points, points))
    assert world.diagonal == fixed.diagonal
    assert world.approximation_error == fixed.approximation_error


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["laplace", "radial"])
def test_learns_under_noise_that_changes(kind):
    stream = nj.streams.linear(key(0), 120, 2)
    cov = jnp.tile(jnp.array([0.05, 0.3]), 60)
    if kind == "laplace":
        world = worlds.heteroscedastic_laplace(dim=2, length_scale=1.0, max_cov=0.3)
        noise = nj.noise.PerRound(jax.vmap(nj.noise.Laplace)(jnp.sqrt(cov / 2)))
    else:
        world = worlds.heteroscedastic_radial(RATIONAL, dim=2, max_cov=0.3, cutoff=1.2)
        noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(cov))
    learner = nj.learners.parallel_worlds(world, horizon=120, radius=1.0)
    predictions = jax.jit(lambda key: nj.rollout(learner, stream, noise, key).predictions)(key(1))
    assert jnp.mean((predictions - stream.y)[60:] ** 2) < 0.7 * jnp.mean(stream.y[60:] ** 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_cov": FULL}, r"max_cov must be variances \[\] or \[d\], got \[2, 2\]: coordinates"),
        ({"dim": 90, "length_scale": 0.1, "max_cov": 1.0}, "its square overflows"),
        ({"max_cov": -1.0}, "max_cov must be finite and >= 0"),
        ({"cutoff": 2.0}, "cutoff must be above 0 and below 1.66667"),
        ({"max_cov": np.ones(3), "cutoff": 0.1}, r"shape \[3\] does not fit data of dimension 2"),
    ],
)
def test_rejects_what_is_not_valid(changes, message):
    if "cutoff" in changes:
        raises(message, worlds.heteroscedastic_radial, RATIONAL, **{"dim": 2} | LARGEST | changes)
    else:
        options = {"dim": 2, "length_scale": 1.0} | LARGEST
        raises(message, worlds.heteroscedastic_laplace, **options | changes)


def test_other_noise_names_the_world_or_the_row():
    kinds = nj.noise.Laplace, nj.noise.Gaussian
    laplace, gaussian = (nj.noise.PerRound(jax.vmap(kind)(np.ones(3))) for kind in kinds)
    message = "worlds.heteroscedastic_laplace Laplace noise"
    raises(message, worlds.gaussian, dim=2, length_scale=1.0, noise=laplace)
    message = "worlds.heteroscedastic_radial takes Gaussian noise that changes by round"
    raises(message, worlds.radial, RATIONAL, dim=2, cutoff=0.1, noise=gaussian)
    world = worlds.heteroscedastic_laplace(dim=2, length_scale=1.0, **LARGEST)
    raises(r"cov\[0\] must be at most max_cov", world.atom, jnp.zeros((1, 2)), np.array([0.4]))


def test_what_is_traced_and_too_large_is_nan():
    @jax.jit
    @jax.vmap
    def grams(max_cov):
        laplace = worlds.heteroscedastic_laplace(dim=2, length_scale=1.0, max_cov=max_cov)
        radial = worlds.heteroscedastic_radial(TWO_GAUSSIANS, dim=2, max_cov=max_cov, cutoff=2.0)
        atoms = [world.atom(jnp.zeros((1, 2)), jnp.full(1, 0.2)) for world in (laplace, radial)]
        return laplace.surrogate(atoms[0], atoms[0]), radial.surrogate(atoms[1], atoms[1])

    laplace, radial = grams(jnp.array([0.2, 0.1, 0.4, -0.1]))
    np.testing.assert_array_equal(np.isnan(laplace[:, 0, 0]), [False, True, False, True])
    np.testing.assert_array_equal(np.isnan(radial[:, 0, 0]), [False, True, True, True])
