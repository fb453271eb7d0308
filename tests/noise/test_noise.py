import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import noisy_jax as nj
from noisy_jax.noise import (
    ContaminatedGaussian,
    Gaussian,
    Laplace,
    Noise,
    PerRound,
    Rademacher,
    StudentT,
    Uniform,
    covariance_times,
    estimate_covariance,
    observe,
)
from tests.keys import key
from tests.quadrature import gauss_hermite

FULL = np.array([[0.5, 0.2, 0.0], [0.2, 0.3, -0.1], [0.0, -0.1, 0.4]])
DISTRIBUTIONS = {
    "gaussian": Gaussian(0.3),
    "gaussian_diagonal": Gaussian(np.array([0.1, 0.4, 0.9])),
    "gaussian_full": Gaussian(FULL),
    "gaussian_singular": Gaussian(np.full((3, 3), 0.2)),
    "contaminated": ContaminatedGaussian(FULL, probability=0.3),
    "laplace": Laplace(np.array([0.2, 0.5, 1.0])),
    "uniform": Uniform(0.7),
    "rademacher": Rademacher(np.array([0.2, 0.5, 1.0])),
    "student": StudentT(df=9.0, scale=0.4),
}
UNITS = {
    Laplace: stats.laplace,
    Uniform: stats.uniform(-1, 2),
    Rademacher: stats.rv_discrete(values=([-1, 1], [0.5, 0.5])),
    StudentT: stats.t(9),
}
"""One coordinate at scale 1 of distributions with independent coordinates, by SciPy."""


@pytest.fixture(params=DISTRIBUTIONS, ids=str)
def distribution(request):
    return DISTRIBUTIONS[request.param]


def draws(distribution, n=200_000):
    return np.asarray(distribution.sample(key(), jnp.zeros((n, 3))), np.float64)


def assert_mean_is(values, truth, largest_error):
    """|mean − truth| < 5·SE, where SE is small enough for the test to be able to fail."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    assert np.all(error < largest_error)
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - truth), 5 * error + 1e-7)


@pytest.mark.statistical
@pytest.mark.slow
def test_moments_of_samples(distribution):
    n = draws(distribution)
    assert_mean_is(n, np.zeros(3), 0.005)
    products = np.einsum("ni,nj->nij", n, n).reshape(len(n), 9)
    assert_mean_is(products, np.asarray(distribution.covariance(3)).reshape(9), 0.02)
    if isinstance(distribution, StudentT):  # the others: by their characteristic functions
        assert stats.kstest(n.ravel(), stats.t(9, scale=0.4).cdf).pvalue > 1e-6


def test_fourth_moments_exactly(distribution):
    """(Σ_i n_i²)² by the moments of one coordinate, and by quadrature for Gaussian noise."""
    if isinstance(distribution, (Gaussian, ContaminatedGaussian)):
        contaminated = isinstance(distribution, ContaminatedGaussian)
        q, cov = (0.3, FULL) if contaminated else (1.0, np.asarray(distribution.covariance(3)))
        nodes, weights = gauss_hermite(4, cov)
        exact = q * weights @ np.sum(nodes**2, axis=1) ** 2
    else:
        unit = UNITS[type(distribution)]
        scale = getattr(distribution, distribution._spread) * np.ones(3)
        second, fourth = scale**2 * unit.moment(2), scale**4 * unit.moment(4)
        exact = fourth.sum() + second.sum() ** 2 - np.sum(second**2)
    np.testing.assert_allclose(distribution.fourth_moment(3), exact, rtol=1e-5)
    # Of ‖x + n‖ only the covariance counts besides: six vectors n have it, and no odd moments.
    variances, axes = np.linalg.eigh(np.asarray(distribution.covariance(3), np.float64))
    n = (axes * np.sqrt(3 * np.maximum(variances, 0))).T
    x, n = np.array([0.5, -1.0, 2.0]), np.concatenate([n, -n])
    rest = np.sum((x + n) ** 2, axis=1) ** 2 - np.sum(n**2, axis=1) ** 2
    found = distribution.square_fourth_moment(x)
    np.testing.assert_allclose(found, exact + rest.mean(), rtol=1e-5)


@pytest.mark.statistical
def test_log_characteristic_against_samples(distribution):
    omega = jnp.array([[0.7, -1.2, 0.4], [2.0, 3.0, 1.0], [3.0, 0.1, 2.5]])
    log_phi = distribution.log_characteristic(omega)
    if isinstance(distribution, StudentT):
        assert log_phi is None
        return
    assert log_phi.shape == (3,)
    waves = np.exp(1j * draws(distribution) @ np.asarray(omega).T)
    for part in (np.real, np.imag):
        assert_mean_is(part(waves), part(np.exp(np.asarray(log_phi))), 0.01)


@pytest.mark.parametrize(
    ("distribution", "density"),
    [
        (Laplace(0.6), lambda n: np.exp(-np.abs(n) / 0.6) / 1.2),
        (Uniform(1.5), lambda n: (np.abs(n) <= 1.5) / 3.0),
        (Gaussian(0.49), lambda n: np.exp(-(n**2) / 0.98) / np.sqrt(2 * np.pi * 0.49)),
    ],
    ids=["laplace", "uniform", "gaussian"],
)
def test_log_characteristic_exactly_by_quadrature(x64, distribution, density):
    # Gauss–Legendre on pieces that end where the density has kinks.
    nodes, weights = np.polynomial.legendre.leggauss(60)
    edges = np.array([-30, -10, -5, -1.5, 0, 1.5, 5, 10, 30.0])
    half = np.diff(edges)[:, None] / 2
    n = (edges[:-1, None] + half * (nodes[None] + 1)).ravel()
    w = (half * weights[None]).ravel()
    for omega in (0.3, 1.1, 2.5, 4.0):
        phi = np.sum(w * density(n) * np.exp(1j * omega * n))
        np.testing.assert_allclose(
            np.exp(np.asarray(distribution.log_characteristic(jnp.array([omega])))), phi, atol=1e-9
        )


def test_rademacher_characteristic_by_enumeration(x64):
    distribution, omega = Rademacher(jnp.array([0.5, 2.0])), jnp.array([1.0, 1.3])
    signs = np.array(list(itertools.product([-1, 1], repeat=2))) * np.array([0.5, 2.0])
    phi = np.mean(np.exp(1j * signs @ np.asarray(omega)))
    np.testing.assert_allclose(np.exp(distribution.log_characteristic(omega)), phi, atol=1e-12)


@pytest.mark.claim("EXT-GeneralNoise")
def test_uniform_characteristic_has_zeros():
    at_zero = Uniform(1.0).log_characteristic(jnp.array([jnp.pi]))
    assert float(at_zero.real) < -15


def test_characteristic_functions_with_zeros_say_so(distribution):
    """Where there are none, |φ| of these distributions falls along each axis."""
    omega = np.eye(3)[:, None] * np.linspace(0, 30, 1001)[:, None]
    if (log_phi := distribution.log_characteristic(omega)) is not None:
        falls = np.all(np.diff(log_phi.real) < 1e-5)
        assert distribution.characteristic_vanishes == (not falls)


@pytest.mark.parametrize("forgetful", [Uniform, Rademacher])
def test_a_distribution_that_forgets_its_zeros_is_found_out(forgetful):
    """A real characteristic function that becomes negative has a zero before."""
    kept = type("Kept", (forgetful,), {"characteristic_vanishes": False})
    noise = nj.noise.register_distribution(kept)(0.5)
    key, options = jax.random.key(0), {"dim": 2, "length_scale": 1.0}
    frequencies = functools.partial(nj.moments.gaussian_frequencies, key, 8, **options)
    for use in (
        lambda: nj.worlds.fourier_gaussian(key, 8, **options, noise=noise),
        jax.jit(lambda: frequencies(characteristic=noise).omega),
    ):
        with pytest.raises(ValueError, match="set characteristic_vanishes = True"):
            use()


@pytest.mark.statistical
def test_contamination_hits_whole_vectors_or_none():
    distribution = ContaminatedGaussian(np.array([1.0, 4.0]), probability=0.3, mean=2.0)
    x = jnp.ones((10_000, 2))
    hit = np.asarray(distribution.sample(key(), x) != 3)
    np.testing.assert_array_equal(hit[:, 0], hit[:, 1])
    assert_mean_is(hit[:, 0].astype(float), 0.3, 0.01)
    target = ContaminatedGaussian(1.0, probability=0.3).sample(jax.random.key(0), 1)
    assert target.shape == ()


def test_contamination_that_always_or_never_hits(x64):
    omega = jnp.array([[1.0, -2.0, 0.5], [9.0, 9.0, 9.0]])
    for q, same in ((0.0, Gaussian(0.0)), (1.0, Gaussian(FULL))):
        distribution = ContaminatedGaussian(FULL, probability=q)
        np.testing.assert_allclose(
            distribution.log_characteristic(omega), same.log_characteristic(omega)
        )
        np.testing.assert_allclose(distribution.fourth_moment(3), same.fourth_moment(3))


def test_kurtosis_of_contamination(x64):
    """E n⁴/σ⁴ − 3 of one coordinate by Gauss–Hermite; the vector's own fourth moment in d = 1."""
    distribution = ContaminatedGaussian(1.7, probability=0.3)
    nodes, weights = gauss_hermite(8, np.array([[1.7]]))
    second, fourth = (0.3 * weights @ nodes[:, 0] ** power for power in (2, 4))
    np.testing.assert_allclose(distribution.excess_kurtosis, fourth / second**2 - 3)
    np.testing.assert_allclose(Noise.fourth_moment(distribution, 1), distribution.fourth_moment(1))
    assert ContaminatedGaussian(1.7, probability=0.0).excess_kurtosis == np.inf


@pytest.mark.parametrize("q", [0.0, 0.2, 0.5, 0.8])
def test_gradient_of_the_characteristic_function_of_contamination(x64, q):
    """∂ log φ/∂q = (e − 1)/(1 − q + qe) with e = exp(−½ωᵀΣω)."""
    omega, e = jnp.array([1.3]), np.exp(-0.85 * 1.3**2)
    slope = jax.grad(lambda q: ContaminatedGaussian(1.7, q).log_characteristic(omega).real)(q)
    np.testing.assert_allclose(slope, (e - 1) / (1 - q + q * e), rtol=1e-12)


@pytest.mark.claim("EXT-Cloning")
@pytest.mark.statistical
@pytest.mark.parametrize("copies", [2, 3])
def test_cloned_copies_are_independent_with_the_noise_of_cloned(copies):
    # ξ_i = √copies (ζ_i − ζ̄) has Cov(ξ_i, ξ_j) = (copies δ_ij − 1)Σ.
    distribution, (noise_key, clone_key) = Gaussian(FULL), jax.random.split(key())
    zeta = distribution.sample(clone_key, jnp.zeros((100_000, copies, 3)))
    xi = np.sqrt(copies) * (zeta - zeta.mean(axis=1, keepdims=True))
    noisy = distribution.sample(noise_key, jnp.zeros((100_000, 3)))[:, None] + xi
    clones = np.asarray(noisy, np.float64).reshape(-1, 3 * copies)
    covariance = np.kron(np.eye(copies), distribution.cloned(copies).covariance(3))
    products = np.einsum("ni,nj->nij", clones, clones).reshape(len(clones), -1)
    assert_mean_is(products, covariance.ravel(), 0.02)


@pytest.mark.claim("DA-Protocol")
def test_a_known_mean_is_subtracted():
    mean = jnp.array([5.0, -3.0, 1.0])
    with_mean, without = Gaussian(0.2, mean), Gaussian(0.2)
    x, y = jnp.ones(3), jnp.float32(1)
    samples = [observe(jax.random.key(0), x, y, n, copies=2) for n in (with_mean, without)]
    chex.assert_trees_all_close(samples[0].x, samples[1].x, atol=1e-5)
    shifted = with_mean.sample(jax.random.key(0), x) - without.sample(jax.random.key(0), x)
    chex.assert_trees_all_close(shifted, mean, atol=1e-5)


@pytest.mark.claim("DA-Protocol")
@pytest.mark.statistical
def test_copies_and_target_are_independent_and_copies_shared_between_learners():
    x, y, noise = jnp.zeros(3), jnp.float32(0), Gaussian(1.0)

    def shown(copies):
        def one(key):
            sample = observe(key, x, y, noise, copies=copies, y_noise=Gaussian(1.0))
            return sample.x, sample.y

        return jax.vmap(one)(jax.random.split(key(), 20_000))

    (one, _), (two, target) = shown(1), shown(2)
    chex.assert_trees_all_close(one[:, 0], two[:, 0], rtol=1e-6)
    assert_mean_is(np.asarray(two[:, 0] * two[:, 1]), np.zeros(3), 0.01)
    for copy in (two[:, 0], two[:, 1]):
        assert_mean_is(np.asarray(copy * target[:, None]), np.zeros(3), 0.01)
        assert_mean_is(np.asarray(copy**2 * target[:, None] ** 2), np.ones(3), 0.03)


@pytest.mark.statistical
def test_contamination_is_independent_of_the_size_of_the_noise():
    """With one key for both, whether a vector is hit would depend on its noise."""
    noise = ContaminatedGaussian(np.ones(2), probability=0.5)
    keys = jax.random.split(key(), 10_000)
    n = np.asarray(jax.vmap(lambda k: noise.centred(k, jnp.zeros(2)))(keys))
    hit = n[:, 0] != 0
    assert_mean_is(hit.astype(float), 0.5, 0.006)
    assert_mean_is(n[hit], np.zeros(2), 0.02)
    assert_mean_is(n[hit] ** 2, np.ones(2), 0.03)
    assert stats.kstest(n[hit].ravel(), "norm").pvalue > 1e-6


def test_no_key_is_used_twice(distribution):
    x = jnp.zeros((4, 3))
    with jax.debug_key_reuse(True):
        jax.jit(distribution.sample)(jax.random.key(0), x)
        scalar = ContaminatedGaussian(1.0, probability=0.5)
        jax.jit(lambda k: observe(k, x[0], 1.0, distribution, copies=2, y_noise=scalar))(
            jax.random.key(0)
        )


def test_target_noise_leaves_the_instance_alone():
    x, y, distribution = jnp.zeros(3), jnp.float32(0.5), Gaussian(1.0)
    clean = observe(jax.random.key(0), x, y, distribution, copies=1)
    noisy = observe(jax.random.key(0), x, y, distribution, copies=1, y_noise=Laplace(0.3, mean=2.0))
    chex.assert_trees_all_equal(clean.x, noisy.x)
    assert clean.y == 0.5
    assert abs(float(noisy.y) - 0.5) > 1e-4


def test_sweep_over_parameters_inside_vmap():
    variances = jnp.array([0.0, 1.0, 4.0])
    n = jax.vmap(lambda v: Gaussian(v).sample(jax.random.key(0), jnp.zeros(3)))(variances)
    chex.assert_trees_all_close(n, n[1][None] * jnp.sqrt(variances)[:, None], rtol=1e-6)
    swept = jax.vmap(lambda distribution: distribution.covariance(2))(
        jax.vmap(Laplace)(jnp.array([0.5, 1.0]))
    )
    chex.assert_trees_all_close(swept, jnp.stack([0.5 * jnp.eye(2), 2.0 * jnp.eye(2)]))


def test_pytree_round_trip(distribution):
    leaves, treedef = jax.tree.flatten(distribution)
    again = jax.tree.unflatten(treedef, leaves)
    chex.assert_trees_all_equal(
        again.sample(jax.random.key(0), jnp.zeros(3)),
        distribution.sample(jax.random.key(0), jnp.zeros(3)),
    )


@pytest.mark.parametrize("cov", [0.3, np.array([0.1, 0.4, 0.9]), FULL])
def test_covariance_times_every_form(cov):
    v = jnp.array([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])
    chex.assert_trees_all_close(
        covariance_times(jnp.asarray(cov), v), v @ Gaussian(cov).covariance(3), atol=1e-6
    )


@pytest.mark.statistical
def test_estimated_covariance_is_unbiased_with_its_standard_error():
    distribution, x = Gaussian(FULL), jnp.array([1.0, 2.0, 3.0])

    def one(round_key):
        shift, noise = jax.random.split(round_key)
        instances = x[None, None] + 5 * jax.random.normal(shift, (50, 1, 3))
        return estimate_covariance(distribution.sample(noise, jnp.tile(instances, (1, 2, 1))))

    keys = jax.random.split(key(), 4000)
    estimates = jax.vmap(one)(keys)
    assert_mean_is(np.asarray(estimates.cov).reshape(-1, 9), FULL.reshape(9), 0.005)
    spread = np.asarray(estimates.cov).std(axis=0)
    np.testing.assert_allclose(
        np.sqrt((np.asarray(estimates.std_error) ** 2).mean(axis=0)), spread, rtol=0.05
    )


@pytest.mark.slow
@given(
    n=st.integers(2, 6), copies=st.integers(2, 4), dim=st.integers(1, 4), seed=st.integers(0, 999)
)
def test_estimated_covariance_is_psd(n, copies, dim, seed):
    x = np.random.default_rng(seed).normal(size=(n, copies, dim)).astype(np.float32)
    cov = np.asarray(estimate_covariance(x).cov, np.float64)
    np.testing.assert_allclose(cov, cov.T, atol=1e-6)
    assert np.linalg.eigvalsh(cov)[0] > -1e-5


@pytest.mark.statistical
def test_swapped_axes_of_replicates_raise():
    instance_key, noise_key = jax.random.split(key())
    instances = 5 * jax.random.normal(instance_key, (50, 1, 2))
    copies = np.asarray(instances + jax.random.normal(noise_key, (50, 2, 2)))
    assert estimate_covariance(copies).cov.shape == (2, 2)
    with pytest.raises(ValueError, match=r"n = 2 instances the V = 50 .* np\.swapaxes\(copies"):
        estimate_covariance(copies.swapaxes(0, 1))
    # Many replicates of few instances are no mistake, even if all instances are the same.
    many = np.asarray(jax.random.normal(noise_key, (3, 40, 2)))
    for instance in (0.0, np.arange(3)[:, None, None]):
        assert np.isfinite(estimate_covariance(instance + many).cov).all()
    for table in np.asarray(jax.random.normal(key(1), (30, 3, 40, 3))):  # equal instances
        assert np.isfinite(estimate_covariance(table).cov).all()


def test_each_label_is_flipped_at_its_own_rate():
    keys = jax.random.split(jax.random.key(0), 1_000)
    for rates, ones, others in (((0.999, 0.0), 0.99, 0.0), ((0.0, 0.999), 0.0, 0.99)):
        flip = jax.vmap(nj.noise.Flip(rates).centred, (0, None))
        assert jnp.mean(flip(keys, 1.0) < 0) >= ones
        assert jnp.mean(flip(keys, -1.0) > 0) >= others
        assert min(jnp.mean(flip(keys, 1.0) < 0), jnp.mean(flip(keys, -1.0) > 0)) == 0


def observed(**changes):
    """One round, with one argument changed."""
    arguments = {"key": jax.random.key(0), "x": np.ones(2), "y": 1.0, "noise": Gaussian(0.1)}
    return observe(**arguments | {"copies": 1} | changes)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian(-0.1), r"Gaussian\.cov must be finite and >= 0, got -0\.1"),
        (lambda: Gaussian(np.diag([1.0, -1.0])), "positive semi-definite.* -1"),
        (lambda: Gaussian(np.array([[1.0, 0.5], [0.0, 1.0]])), "must be symmetric"),
        (lambda: Gaussian(np.ones((2, 3))), r"shape \[\], \[d\] or \[d, d\], got \[2, 3\]"),
        (lambda: Gaussian(np.ones((2, 2, 2))), r"PerRound\(jax\.vmap\(Gaussian\)\(covs\)\)"),
        (lambda: Gaussian(np.nan), r"Gaussian\.cov must be finite"),
        (
            lambda: Gaussian(np.ones(3), mean=np.ones(2)),
            r"Gaussian must have parameters of one dimension d, got {'cov': \[3\], 'mean': \[2\]}",
        ),
        (lambda: Laplace(np.ones(3), mean=np.ones(2)), "Laplace must have parameters of one"),
        (lambda: Gaussian(1.0, mean=np.inf), r"mean must be finite"),
        (lambda: Gaussian(1.0).cloned(1.5), "copies must be a whole number of at least 1, got 1.5"),
        (
            lambda: ContaminatedGaussian(-1.0, 0.5),
            r"ContaminatedGaussian\.outlier_cov must be finite and >= 0, got -1",
        ),
        (
            lambda: ContaminatedGaussian(1.0, 1.5),
            r"probability must be in \[0, 1\], got 1\.5",
        ),
        (lambda: ContaminatedGaussian(1.0, np.full(2, 0.5)), "probability must be one number"),
        (
            lambda: ContaminatedGaussian(np.ones(2), 0.5).sample(jax.random.key(0), jnp.zeros(3)),
            r"ContaminatedGaussian\.outlier_cov of shape \[2\] does not fit data of dimension 3",
        ),
        (lambda: Laplace(0.0), r"Laplace\.scale must be positive and finite, got 0\.0"),
        (lambda: Uniform(-1.0), r"Uniform\.half_width must be positive"),
        (lambda: Rademacher(np.ones((2, 2))), r"Rademacher\.scale must have shape \[\] or \[d\]"),
        (lambda: StudentT(df=2.0, scale=1.0), r"StudentT\.df must be above 2 and finite, got 2\.0"),
        (lambda: Gaussian(np.eye(2)).sample(jax.random.key(0), jnp.zeros(3)), "dimension 3"),
        (lambda: Gaussian(np.ones(2)).covariance(3), "dimension 3"),
        (lambda: Laplace(np.ones(2)).sample(jax.random.key(0), 1.0), "does not fit a scalar"),
        (lambda: estimate_covariance(np.ones((5, 1, 2))), r"\[n, V, d\].*got \[5, 1, 2\]"),
        (lambda: estimate_covariance(np.full((5, 2, 2), np.nan)), r"copies\[0, 0, 0\] is nan"),
        (
            lambda: observe(jax.random.key(0), jnp.ones(2), jnp.ones(()), Gaussian(1.0), copies=0),
            "copies must be a whole number of at least 1, got 0",
        ),
        (lambda: Gaussian(1 + 1j), r"Gaussian\.cov must be real, got \(1\+1j\)"),
        (lambda: Gaussian(1.0).covariance(-1), "dim must be a whole number of at least 1, got -1"),
        (lambda: Gaussian(1.0).sample(0, np.ones(2)), "key must be a key .* got 0"),
        (lambda: observed(key=0), "key must be a key .* got 0"),
        (lambda: observed(x=np.ones((5, 2))), r"x must be \[d\], got \[5, 2\]; batch rounds with"),
        (lambda: observed(y=np.ones(5)), r"y must be \[\], got \[5\]"),
        (lambda: observed(noise=0.1), r"noise must be a Noise, got 0\.1: noise\.Gaussian"),
        (
            lambda: observed(noise=PerRound(jax.vmap(Gaussian)(np.ones(2)))),
            "noise must be a Noise, got PerRound: ",
        ),
        (lambda: observed(y_noise=Gaussian(np.ones(2))), "a scalar distribution, "),
    ],
)
def test_bad_input_raises(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: PerRound(jax.vmap(Gaussian)(jnp.array([np.eye(2), [[1, 2], [2, 1]]]))),
            "positive semi-definite",
        ),
        (
            lambda: PerRound(jax.vmap(Gaussian)(jnp.array([0.1, -0.1]))),
            r"Gaussian\.cov must be finite and >= 0, .*: jax\.vmap gives NaN where a parameter is",
        ),
        (
            lambda: PerRound(jax.vmap(Laplace)(jnp.array([0.1, -0.1]))),
            r"Laplace\.scale must be pos",
        ),
        (lambda: PerRound(jnp.ones(3)), r"PerRound\.distribution must be a Noise"),
        (lambda: PerRound(Gaussian(0.1)), "every parameter stacked along the rounds, got"),
        (lambda: PerRound(Gaussian(np.ones(3))), r"every parameter .* \[\(3,\), \(\)\]; build"),
        (lambda: StudentT(df=np.inf, scale=1.0), "infinite ν is Gaussian noise"),
        (lambda: StudentT(df=np.array([3.0, 4.0]), scale=1.0), "df must be one number"),
        (lambda: Gaussian("wide"), r"Gaussian\.cov must be numbers, got 'wide'"),
        (lambda: Laplace(1.0, mean=np.ones((2, 3))), r"Laplace\.mean must have shape"),
    ],
)
def test_bad_stacked_parameters_raise(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_lists_are_accepted():
    cov = Gaussian([[0.2, 0.1], [0.1, 0.3]]).covariance(2)
    chex.assert_trees_all_close(cov, jnp.array([[0.2, 0.1], [0.1, 0.3]]))
    assert Laplace([0.1, 0.2]).sample(jax.random.key(0), jnp.zeros(2)).shape == (2,)


def test_a_traced_matrix_that_is_not_psd_is_reported():
    stream = nj.streams.linear(jax.random.key(0), 5, 2)
    learner = nj.learners.known_covariance(radius=1.0, learning_rate=0.1)

    @jax.jit
    def run(cov):
        return nj.rollout(learner, stream, Gaussian(cov), jax.random.key(0)).diverged_at

    assert run(jnp.eye(2)) == -1
    assert run(jnp.array([[1.0, 2.0], [2.0, 1.0]])) == 1


def test_per_round_distributions_must_be_stacked():
    stream = nj.streams.linear(jax.random.key(0), 4, 2)
    learner = nj.learners.uncorrected(radius=1.0, learning_rate=0.1)
    with pytest.raises(ValueError, match="every parameter stacked along the 4 rounds"):
        nj.rollout(learner, stream, PerRound(jax.vmap(Gaussian)(np.ones(3))), jax.random.key(0))


def test_a_custom_distribution_names_what_it_lacks():
    class Plain(nj.noise.Noise):
        cov, mean = 1.0, 0.0

    class Whole(Plain):
        def centred(self, key, x):
            return x + jax.random.normal(key, x.shape)

    registered = nj.noise.register_distribution(type("Custom", (Plain,), {}))()
    for noise in (Plain(), registered):
        with pytest.raises(NotImplementedError, match=r"must define centred\(self, key, x\)"):
            noise.sample(jax.random.key(0), jnp.ones(2))
    distribution = nj.noise.register_distribution(Whole)()
    stream = nj.streams.linear(jax.random.key(0), 4, 2)
    learner = nj.learners.known_covariance(radius=1.0, learning_rate=0.1)
    assert nj.rollout(learner, stream, distribution, jax.random.key(0)).diverged_at == -1
    found = nj.bounds.moments(stream, distribution)
    exact = nj.bounds.moments(stream, Gaussian(1.0))
    np.testing.assert_allclose(found.x_second_moment, exact.x_second_moment)
    np.testing.assert_allclose(found.noise_norm, exact.noise_norm)
    assert np.isnan(found.x_fourth_moment)
    assert nj.bounds.two_copies(found, horizon=9, radius=1.0).regret > 0
    with pytest.raises(ValueError, match=r"x_fourth_moment must be positive .* `excess_kurtosis`"):
        nj.bounds.known_covariance(found, horizon=9, radius=1.0)


@nj.noise.register_distribution
class Mixture(Noise):
    """Gaussian noise whose scale is drawn anew in each round; of its parameters one has an axis d.

    Its covariance is a product that does not exist of stacked parameters.
    """

    weights: np.ndarray
    scales: np.ndarray
    mean: np.ndarray

    @property
    def cov(self):
        return self.weights @ self.scales**2

    def centred(self, key, x):
        which, draw = jax.random.split(key)
        scale = jax.random.choice(which, self.scales, p=self.weights)
        return x + scale * jax.random.normal(draw, jnp.shape(x))


def test_a_custom_distribution_has_parameters_of_any_shape():
    parameters = np.array([0.7, 0.3]), np.array([0.1, 2.0]), np.zeros(4)
    distribution = Mixture(*parameters)
    np.testing.assert_allclose(
        distribution.covariance(4), np.eye(4) * (0.7 * 0.01 + 0.3 * 4), rtol=1e-6
    )
    stream = nj.streams.linear(jax.random.key(0), 3, 4)
    learner = nj.learners.known_covariance(radius=1.0, learning_rate=0.1)
    alone = nj.rollout(learner, stream, distribution, jax.random.key(0)).predictions
    stacked = PerRound(jax.vmap(Mixture)(*(np.tile(p, (3, 1)) for p in parameters)))
    per_round = nj.rollout(learner, stream, stacked, jax.random.key(0)).predictions
    np.testing.assert_allclose(per_round, alone, atol=1e-6)

    @nj.noise.register_distribution
    class Lopsided(Mixture):
        @property
        def cov(self):
            return np.ones(3)

    message = r"Lopsided must have .* one dimension d, got {'cov': \[3\], 'mean': \[4\]}"
    with pytest.raises(ValueError, match=message):
        Lopsided(*parameters)


@pytest.mark.parametrize(
    "build", [Gaussian, Laplace, Uniform, Rademacher, lambda df: StudentT(df=df, scale=1.0)]
)
def test_a_traced_parameter_that_is_out_of_range_gives_nan(build):
    n = jax.jit(lambda value: build(value).sample(jax.random.key(0), jnp.zeros(3)))(-1.0)
    assert np.isnan(n).all()
