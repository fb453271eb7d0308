import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax import noise, worlds
from tests.errors import raises
from tests.keys import key
from tests.quadrature import gauss_hermite, matrix
from tests.worlds.grams import POINTS, SPACE, atoms, check_unbiased, mean_is

FULL = np.array([[0.5, 0.2], [0.2, 0.3]])
# Σ_max with covariances of three atoms, the last of them Σ_max itself and the first clean.
COVS = {
    "isotropic": (0.5, np.array([0.0, 0.2, 0.5])),
    "diagonal": (np.array([0.5, 0.3]), np.array([[0.0, 0.0], [0.1, 0.3], [0.5, 0.3]])),
    "full": (FULL, np.stack([0 * FULL, np.diag([0.3, 0.1]), FULL])),
    "isotropic_under_full": (FULL, np.array([0.0, 0.1, 0.15])),
    "isotropic_under_diagonal": (np.array([0.5, 0.3]), np.array([0.0, 0.1, 0.3])),
}
IN_SPACE, POINTS = POINTS[:3], POINTS[:3, :2]
# The same with the points of three atoms in d = 1, 2, 3.
UNBIASED = {
    "line": (0.5, np.array([0.0, 0.2, 0.5]), IN_SPACE[:, :1]),
    **{name: (*COVS[name], POINTS) for name in ("isotropic", "diagonal", "full")},
    "space": (0.5, np.array([0.0, 0.2, 0.5]), IN_SPACE),
    "space_full": (SPACE, np.stack([0 * SPACE, np.diag([0.2, 0.1, 0.2]), SPACE]), IN_SPACE),
}


@pytest.fixture(params=COVS, ids=str)
def case(x64, request):
    return made(request.param)


@functools.cache
def made(name):
    """A world in float64, Σ_max as a matrix, covariances, and atoms of them."""
    max_cov, covs = COVS[name]
    world = worlds.heteroscedastic(dim=2, length_scale=1.0, max_cov=max_cov)
    return world, matrix(max_cov, 2), covs, world.atom(jnp.asarray(POINTS), covs)


def bump(z, A):
    """det(A)^(−½) exp(−½zᵀA⁻¹z) in NumPy."""
    return np.exp(-z @ np.linalg.solve(A, z) / 2) / np.sqrt(np.linalg.det(A))


def test_evaluate_and_surrogate_are_their_formulas(case):
    world, max_cov, covs, atoms = case
    queries = POINTS[::-1] / 2
    evaluated = jax.jit(world.evaluate)(atoms, queries)
    gram = jax.jit(world.surrogate)(atoms, atoms)
    for i in range(3):
        A = np.eye(2) + max_cov - matrix(covs[i], 2)
        expected = [bump(POINTS[i] - query, A) for query in queries]
        np.testing.assert_allclose(evaluated[i], expected, rtol=1e-12)
        expected = [bump(POINTS[i] - POINTS[j], A - matrix(covs[j], 2)) for j in range(3)]
        np.testing.assert_allclose(gram[i], expected, rtol=1e-12)


@pytest.mark.claim("EXT-HeteroscedasticAlg2")
@pytest.mark.parametrize("name", UNBIASED)
@pytest.mark.slow
def test_unbiased_for_every_atom_and_every_covariance(x64, name):
    max_cov, covs, points = UNBIASED[name]
    options = {"dim": points.shape[1], "length_scale": 1.0}
    world = worlds.heteroscedastic(max_cov=max_cov, **options)
    fixed = worlds.gaussian(noise=noise.Gaussian(max_cov), **options)
    rule = functools.partial(gauss_hermite, 34, dim=world.dim)
    # The surrogate for Σ_max in all rounds is biased unless Σ_i = Σ_t = Σ_max.
    assert check_unbiased(world, points, covs, rule, fixed)[:, 0].min() > 1e-2


@pytest.mark.slow
@pytest.mark.statistical
def test_unbiased_in_ten_dimensions_by_sampling():
    max_cov = np.linspace(0.1, 0.4, 10)
    world = worlds.heteroscedastic(dim=10, length_scale=3**0.5, max_cov=max_cov)
    atom = world.atom(jnp.linspace(-0.5, 0.5, 10)[None], 0.3 * max_cov[None])
    x, cov = jnp.full((100_000, 10), 0.3), 0.6 * max_cov
    copies = noise.Gaussian(cov).sample(key(0), x)
    truth = float(world.evaluate(atom, x[:1])[0, 0])
    fixed = worlds.gaussian(dim=10, length_scale=3**0.5, noise=noise.Gaussian(max_cov))
    assert mean_is(world.surrogate(atom, atoms(world, copies, cov))[0], truth, 0.005)
    assert not mean_is(fixed.surrogate(atom[0], copies)[0], truth, 0.005)


@pytest.mark.slow
def test_comparators_are_those_of_the_gaussian_world_at_the_largest_covariance(case):
    world, max_cov, _, _ = case
    fixed = worlds.gaussian(dim=2, length_scale=1.0, noise=noise.Gaussian(max_cov))
    z, x = jnp.asarray(POINTS), jnp.asarray(POINTS / 3)
    form = world.atom(z, np.zeros(3))[1].shape[1:]
    given = {(): max_cov[0, 0], (2,): np.diag(max_cov), (2, 2): max_cov}[form]
    lifted = world.atom(z, np.broadcast_to(given, (3, *form)))
    np.testing.assert_allclose(world.evaluate(lifted, x), world.kernel(z, x), rtol=1e-12)
    np.testing.assert_allclose(world.evaluate(lifted, x), fixed.kernel(z, x), rtol=1e-12)
    np.testing.assert_allclose(world.surrogate(lifted, lifted), fixed.surrogate(z, z), rtol=1e-12)
    np.testing.assert_allclose([world.diagonal, world.ratio], [fixed.diagonal, fixed.ratio])


@pytest.mark.slow
@pytest.mark.claim("DA-Eq4")
def test_with_both_noises_averaged_the_kernel_is_smoothed(x64):
    world = worlds.heteroscedastic(dim=2, length_scale=1.0, max_cov=FULL)
    cov = COVS["full"][1][1]
    nodes, weights = gauss_hermite(50, cov)
    stored = atoms(world, POINTS[0] + nodes, cov)
    mean = weights @ np.asarray(world.evaluate(stored, jnp.asarray(POINTS[1:])))
    smoothed = [bump(POINTS[0] - x, np.eye(2) + FULL) for x in POINTS[1:]]
    np.testing.assert_allclose(mean, smoothed, atol=1e-9)
    clean = world.kernel(jnp.asarray(POINTS[:1]), jnp.asarray(POINTS[1:]))[0]
    assert np.abs(mean - clean).max() > 1e-2


@pytest.mark.claim("EXT-HeteroscedasticAlg2")
def test_random_grams_are_psd_with_diagonals_below_the_worlds(case, rng):
    world, _, covs, _ = case
    atoms = world.atom(rng.normal(size=(30, 2)), covs[rng.integers(3, size=30)])
    gram = np.asarray(jax.jit(world.surrogate)(atoms, atoms))
    np.testing.assert_allclose(gram, gram.T, rtol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > -1e-12
    assert gram.diagonal().max() <= world.diagonal * (1 + 1e-12)


def test_zero_noise_gives_the_clean_kernel():
    world = worlds.heteroscedastic(dim=2, length_scale=0.65**0.5, max_cov=0.0)
    x = POINTS.astype(np.float32)
    stored = world.atom(x, jnp.zeros(3))
    found = world.surrogate(stored, stored), world.evaluate(stored, x)
    np.testing.assert_allclose(found, [world.kernel(x, x)] * 2, rtol=1e-5)


def test_what_is_traced_and_too_large_is_nan():
    x = jnp.asarray(POINTS, jnp.float32)

    @jax.jit
    def grams(max_cov, covs):
        world = worlds.heteroscedastic(dim=2, length_scale=1.0, max_cov=max_cov)
        atoms = world.atom(x, covs)
        return world.surrogate(atoms, atoms), world.evaluate(atoms, x)

    for cov in (jnp.ones(()), jnp.eye(2)):
        covs = jnp.stack([0.1 * cov, 0.2 * cov, 0.3 * cov])
        assert np.isfinite(grams(0.3 * cov, covs)).all()
        surrogate, evaluated = grams(0.2 * cov, covs)
        assert np.isfinite(evaluated[:2]).all()
        assert np.isnan(evaluated[2]).all()
        np.testing.assert_array_equal(np.isnan(surrogate[2]), True)
        for largest in (1.1 * cov, -0.3 * cov):
            assert np.isnan(grams(largest, covs)).all()
        surrogate, evaluated = grams(0.3 * cov, covs.at[1].multiply(-1))
        np.testing.assert_array_equal(np.isnan(evaluated[:, 0]), [False, True, False])
        np.testing.assert_array_equal(np.isnan(surrogate[1]), True)


@pytest.mark.parametrize(
    ("cov", "message"),
    [
        (None, "cov must hold the covariance of each noisy copy, got None"),
        (0.1, r"cov must have shape \[3\] for max_cov \[\], got \[\]"),
        (np.ones((3, 3)) / 10, r"got \[3, 3\]"),
        (np.array([0.1, 0.2, -0.1]), r"cov must be finite and >= 0, but cov\[2\] is -0\.1"),
        ([0.1, 0.4, 0.1], r"cov\[1\] must be at most max_cov.* − cov\[1\] has an eigenvalue -0\.1"),
        (np.stack([FULL, FULL, FULL]), r"for max_cov \[\], got \[3, 2, 2\]"),
    ],
)
def test_atom_rejects(cov, message):
    world = worlds.heteroscedastic(dim=2, length_scale=1.0, max_cov=0.3)
    raises(message, world.atom, jnp.zeros((3, 2)), cov)


@pytest.mark.parametrize("max_cov", [0.3, np.array([0.3, 0.2]), FULL], ids=np.ndim)
def test_data_of_another_dimension_are_rejected(max_cov):
    world = worlds.heteroscedastic(dim=2, length_scale=1.0, max_cov=max_cov)
    atoms = world.atom(jnp.zeros((3, 2)), jnp.zeros(3))
    message = "data of dimension 2, got dimension 5"
    raises(message, world.atom, jnp.ones((3, 5)), jnp.zeros(3))
    raises(message, world.evaluate, atoms, jnp.ones((3, 5)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_cov": 1.5}, "length_scale must be above 1\\.22"),
        ({"max_cov": -1.0}, "^max_cov must be finite and >= 0, got -1.0: it holds variances"),
        ({"max_cov": np.nan}, "^max_cov must be finite"),
        ({"max_cov": np.ones(3)}, r"^max_cov of shape \[3\] does not fit data of dimension 2"),
        ({"length_scale": 0.0}, "length_scale must be positive"),
    ],
)
def test_rejects_bad_input(settings, message):
    good = {"dim": 2, "length_scale": 1.0, "max_cov": 0.3}
    raises(message, worlds.heteroscedastic, **good | settings)


@pytest.mark.slow
@pytest.mark.parametrize("other", [noise.Laplace(0.1), noise.Multiplicative(0.1)])
def test_noise_of_another_kind_is_a_warning(other):
    world = worlds.heteroscedastic(dim=2, length_scale=2.0, max_cov=jnp.ones(2))
    learner = nj.learners.parallel_worlds(world, horizon=4, radius=1.0)
    stream = nj.streams.linear(jax.random.key(0), 4, 2)
    with pytest.warns(UserWarning, match="built for other noise"):
        nj.rollout(learner, stream, other, jax.random.key(1))
