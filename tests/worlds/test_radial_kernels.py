import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, special

from noisy_jax import kernels, worlds
from noisy_jax.noise import Gaussian, Laplace, PerRound
from noisy_jax.worlds.mixtures import matern_mixture, rational_mixture
from tests.errors import raises
from tests.keys import key
from tests.quadrature import gauss_hermite
from tests.worlds.grams import grams, mean_is


def matern(nu):
    beta = nu / (2 * 1.21)
    return (
        lambda dim, **more: worlds.matern(dim=dim, nu=nu, length_scale=1.1, **more),
        lambda u: beta**nu * u ** (-nu - 1) * np.exp(-beta / u) / special.gamma(nu),
        None,
        kernels.matern(nu=nu, length_scale=1.1),
    )


RATIONAL = {"length_scale": (1.3 / 1.4) ** 0.5, "alpha": 0.7}
# Each family: its world but for noise and cutoff, its density μ(u), its truncated kernel in closed
# form (of r², cutoff) if there is one, and its kernel not truncated.
FAMILIES = {
    "case study": (
        lambda dim, **more: worlds.rational(dim=dim, length_scale=1.0, **more),
        lambda u: 2 * np.exp(-2 * u),
        lambda r2, c: (1 - np.exp(-c * (2 + r2))) / (1 + r2 / 2),
        kernels.rational(length_scale=1.0),
    ),
    "rational": (
        lambda dim, **more: worlds.rational(dim=dim, **RATIONAL, **more),
        lambda u: 1.3**0.7 * u**-0.3 * np.exp(-1.3 * u) / special.gamma(0.7),
        lambda r2, c: (1 + r2 / 1.3) ** -0.7 * special.gammainc(0.7, c * (1.3 + r2)),
        kernels.rational(**RATIONAL),
    ),
    "laplacian": (
        lambda dim, **more: worlds.laplacian(dim=dim, length_scale=1.3, **more),
        lambda u: u**-1.5 * np.exp(-1 / (4 * 1.69 * u)) / (2.6 * np.sqrt(np.pi)),
        lambda r2, c: laplacian_truncated(np.sqrt(r2), c, 1.3),
        kernels.laplacian(length_scale=1.3),
    ),
    "matern32": matern(1.5),
    "matern52": matern(2.5),
}
COVS = {
    1: np.array(0.05),
    2: np.array([[0.05, 0.02], [0.02, 0.03]]),
    3: np.array([0.06, 0.0, 0.02]),
}
CUTOFF = 3.5


def laplacian_truncated(r, c, s):
    near, far = (1 / (2 * s * np.sqrt(c)) + sign * r * np.sqrt(c) for sign in (-1, 1))
    growing = special.erfcx(far) * np.exp(-1 / (4 * s**2 * c) - c * r**2)
    return (np.exp(-r / s) * special.erfc(near) + growing) / 2


def points(rng, n, dim):
    return jnp.asarray(0.8 * rng.normal(size=(n, dim)))


def noisy_means(world, x, z, cov):
    """E k̂(x + n, z) and E k(x + n, z) over n ~ N(0, Σ), by quadrature, and k(x, z)."""
    dim = x.shape[1]
    noise, mass = gauss_hermite(40 if dim < 3 else 32, cov, dim)
    copies = np.concatenate([np.asarray(x)[:, None] + noise, np.asarray(x)[:, None]], axis=1)
    shape = *copies.shape[:2], len(z)
    surrogate, kernel = (g.reshape(shape) for g in grams(world, copies.reshape(-1, dim), z))
    return *(np.tensordot(mass, g[:, :-1], (0, 1)) for g in (surrogate, kernel)), kernel[:, -1]


@pytest.mark.slow
@pytest.mark.claim("DA-Eq6", "DA-Lemma8", "EXT-FiniteMixture")
@pytest.mark.parametrize(("name", "dim"), [("case study", 2), ("rational", 1), ("laplacian", 3)])
def test_unbiased(x64, rng, name, dim):
    world = FAMILIES[name][0](dim, noise=Gaussian(COVS[dim]), cutoff=CUTOFF)
    x, z = points(rng, 2, dim), points(rng, 3, dim)
    mean, blind, clean = noisy_means(world, x, z, COVS[dim])
    np.testing.assert_allclose(mean, clean, atol=1e-11)
    # What ignores the noise is seen to be biased.
    assert np.abs(blind - mean).max() > 1e-3


@pytest.mark.parametrize("share", [0.6, 0.9])
def test_surrogates_exist_up_to_a_cutoff_of_half_over_the_noise(x64, share):
    """Between 1/(4‖Σ‖) and 1/(2‖Σ‖) the surrogate is unbiased, and R² the integral."""
    variance, x, z = share / (2 * CUTOFF), np.zeros((1, 1)), np.array([[0.4], [-1.1]])
    nodes, weights = gauss_hermite(150, variance, 1)
    for build, density, *_ in (FAMILIES["rational"], FAMILIES["matern32"]):
        world = build(1, noise=Gaussian(variance), cutoff=CUTOFF)
        mean = weights @ np.asarray(world.surrogate(x + nodes, z))
        np.testing.assert_allclose(mean, world.kernel(x, z)[0], atol=1e-9)
        wide = build(3, noise=Gaussian(variance), cutoff=CUTOFF)

        def integrand(v, density=density):  # u = v⁴
            return density(v**4) * 4 * v**3 * (1 - 2 * variance * v**4) ** -1.5

        exact = integrate.quad(integrand, 1e-9, CUTOFF**0.25, epsrel=1e-12, limit=500)[0]
        np.testing.assert_allclose(wide.diagonal, exact, rtol=1e-8)


@pytest.mark.claim("DA-AppE-Eq17", "DA-Thm5")
def test_golden_values(x64):
    world = worlds.rational(dim=4, noise=Gaussian(0.36), cutoff=2 / 4)
    x, z = jnp.zeros((1, 4)), jnp.array([[1.0, 0.5, 0.0, 0.0]])
    np.testing.assert_allclose(world.kernel(x, z), 0.7067125660691417, rtol=1e-13)
    np.testing.assert_allclose(world.surrogate(x, z), 0.8698979821417705, rtol=1e-13)
    np.testing.assert_allclose(world.diagonal, 1.1714357833666746, rtol=1e-13)
    np.testing.assert_allclose(world.surrogate(x, x), 1.1714357833666746, rtol=1e-13)
    np.testing.assert_allclose(world.approximation_error, np.exp(-2), rtol=1e-13)


@pytest.mark.claim("DA-AppE-Eq17", "DA-Lemma8")
def test_the_printed_surrogate_is_biased(x64):
    # σ in place of σ² is the surrogate for noise of variance σ.
    sigma, cutoff = 0.5, 0.9 / 2
    corrected = worlds.rational(dim=2, noise=Gaussian(sigma**2), cutoff=cutoff)
    printed = worlds.rational(dim=2, noise=Gaussian(sigma), cutoff=cutoff)
    x, z = jnp.zeros((1, 2)), jnp.array([[0.5, -0.4]])
    found = (noisy_means(world, x, z, np.array(sigma**2)) for world in (corrected, printed))
    right, wrong = (mean - clean for mean, _, clean in found)
    assert abs(right) < 1e-14 < 0.03 < wrong


@pytest.mark.claim("DA-Eq6", "DA-AppE-Eq16", "EXT-Measures")
@pytest.mark.parametrize("name", FAMILIES)
def test_equals_the_integral_by_adaptive_quadrature(x64, name):
    build, density, closed, _ = FAMILIES[name]
    variance, dim = 0.05, 16
    world = build(dim, noise=Gaussian(variance), cutoff=CUTOFF)
    r = np.append(0, np.geomspace(0.03, 12, 12))
    z, r2 = jnp.zeros((13, dim)).at[:, 0].set(r), r**2
    noisy, clean = (gram[0] for gram in grams(world, jnp.zeros((1, dim)), z))

    def integral(square, variance):
        def integrand(v):  # u = v⁴, which has no singularity at zero
            u = v**4
            decay = 1 - 2 * variance * u
            return decay ** (-dim / 2) * np.exp(-u * square / decay) * density(u) * 4 * v**3

        end, precise = CUTOFF**0.25, {"epsabs": 1e-15, "epsrel": 1e-12, "limit": 500}
        return integrate.quad(integrand, 1e-9, end, **precise)[0]

    for values, noise in ((clean, 0), (noisy, variance)):
        exact = np.array([integral(square, noise) for square in r2])
        near = exact >= 1e-4 * exact[0]
        np.testing.assert_allclose(values[near], exact[near], rtol=1e-9)
        np.testing.assert_allclose(values[~near], exact[~near], rtol=0, atol=1e-8 * exact[0])
        if closed is not None and not noise:
            np.testing.assert_allclose(exact, closed(r2, CUTOFF), rtol=1e-8)


MATERN = [(0.1, 0.5), (0.5, 40.0), (20.0, 0.3), (100.0, 0.55), (100, 2.0)]
FAR_OUT = [(0.2, 0.5), (0.2, 30.0), (5.0, 4.0), (50.0, 60.0)]


@pytest.mark.claim("EXT-Measures")
@pytest.mark.parametrize(("nu", "cutoff"), MATERN)
def test_matern_mixtures_have_the_mass_and_the_moments_of_their_law(nu, cutoff):
    # With v = β/u, v^j e^(−v) v^(ν−1) is the distribution of shape ν + j.
    beta = nu / (2 * 1.1**2)
    nodes, log_weights, _ = matern_mixture(cutoff, nu=nu, length_scale=1.1)
    for j in range(3):
        exact = special.poch(nu, j) * special.gammaincc(nu + j, beta / cutoff)
        np.testing.assert_allclose(np.exp(log_weights) @ (beta / nodes) ** j, exact, rtol=1e-10)


@pytest.mark.claim("EXT-Measures")
@pytest.mark.parametrize(("alpha", "cutoff"), FAR_OUT)
def test_rational_mixtures_are_right_far_out(alpha, cutoff):
    mixture = rational_mixture(cutoff, length_scale=(2 * alpha) ** -0.5, alpha=alpha)
    nodes, log_weights, _ = mixture
    r2 = np.append(0, np.geomspace(1e-2, 1e5, 8))
    exact = (1 + r2) ** -alpha * special.gammainc(alpha, cutoff * (1 + r2))
    values = np.exp(log_weights - r2[:, None] * nodes).sum(axis=1)
    near = exact > 1e-5
    np.testing.assert_allclose(values[near], exact[near], rtol=1e-6)
    np.testing.assert_allclose(values[0], exact[0], rtol=2e-9)


# World, its dimension, noise as a share of the largest that the cutoff allows, and cutoff.
SWEEP = [
    ("laplacian", {"length_scale": 0.2}, 3, 0.9, 20.0),
    ("laplacian", {"length_scale": 1.0}, 40, 0.99, 20.0),
    ("matern", {"nu": 5.0, "length_scale": 0.5}, 16, 0.9, 20.0),
    ("matern", {"nu": 100.0, "length_scale": 1.0}, 2, 0.5, 2.0),
    ("rational", {"length_scale": 5**0.5, "alpha": 0.2}, 2, 0.5, 20.0),
    ("rational", {"length_scale": 0.2**0.5, "alpha": 5.0}, 40, 0.99, 20.0),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "changes", "dim", "share", "cutoff"), SWEEP)
def test_float32_equals_the_sum_in_float64(name, changes, dim, share, cutoff):
    noise = Gaussian(share / (4 * cutoff))
    world = getattr(worlds, name)(dim=dim, noise=noise, cutoff=cutoff, **changes)
    r = np.append(0, np.geomspace(1e-3, 1e4, 150)).astype("float32")
    x, z = jnp.zeros((1, dim)), jnp.zeros((r.size, dim)).at[:, 0].set(r)
    values = np.asarray(jax.jit(world.surrogate)(x, z)[0], float)
    with jax.enable_x64(True):
        exact = np.asarray(jax.jit(world.surrogate)(x.astype(float), z.astype(float))[0])
    share = np.maximum(exact / exact[0], 1e-4)
    # The documented accuracy, and the rounding of r² and of the last operations.
    allowed = (1.3e-6 - 3e-7 * np.log(share)) * share * exact[0]
    allowed = np.where(share < 1e-2, np.maximum(allowed, 1e-7 * exact[0]), allowed)
    np.testing.assert_array_less(np.abs(values - exact), allowed)
    assert np.all(values >= 0)


@pytest.mark.claim("DA-AppE-Eq16", "DA-Fig1", "EXT-Measures")
@pytest.mark.parametrize("name", [name for name in FAMILIES if FAMILIES[name][3]])
def test_approximation_error_is_the_largest_difference(x64, name):
    build, _, _, whole = FAMILIES[name]
    world = build(1, noise=Gaussian(0.01), cutoff=CUTOFF)
    z = jnp.append(0, jnp.geomspace(1e-2, 30, 60))[:, None]
    gap = (whole(z[:1], z) - world.kernel(z[:1], z))[0]
    np.testing.assert_allclose(jnp.max(jnp.abs(gap)), world.approximation_error, rtol=1e-9)
    assert jnp.argmax(gap) == 0
    np.testing.assert_allclose(world.kernel.diagonal(z), 1 - world.approximation_error, rtol=1e-9)


def test_zero_noise_gives_the_clean_kernel(rng):
    noise = Gaussian(np.zeros((3, 3)))
    world = worlds.laplacian(dim=3, noise=noise, cutoff=5.0, length_scale=1.0)
    x = points(rng, 6, 3)
    assert world.ratio == 1
    assert np.abs(np.subtract(*grams(world, x, x))).max() <= 1e-6


@pytest.mark.claim("DA-Thm4", "DA-Lemma9", "EXT-FiniteMixture")
@pytest.mark.parametrize("name", ["case study", "laplacian"])
def test_grams_are_psd_and_within_the_ratio(x64, rng, name):
    world = FAMILIES[name][0](2, noise=Gaussian(COVS[2]), cutoff=CUTOFF)
    x = points(rng, 60, 2)
    noisy, clean = grams(world, x, x)
    assert np.linalg.eigvalsh(noisy)[0] > -1e-12
    assert np.all(noisy > 0)
    assert np.all(noisy <= world.ratio * clean)
    np.testing.assert_allclose(np.diag(noisy), world.diagonal, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.statistical
def test_spectrum_has_the_surrogate_for_its_transform():
    world = worlds.rational(dim=2, noise=Gaussian(COVS[2]), cutoff=CUTOFF, alpha=1.7)
    omega = world.spectrum(key(0), 100_000)
    z = jnp.array([[0.6, -0.3], [0.2, 0.7], [1.5, 0.9]])
    waves = jnp.cos(jnp.matmul(omega, z.T, precision="highest"))
    truth = (world.surrogate(jnp.zeros((1, 2)), z) / world.diagonal)[0]
    assert mean_is(waves, truth, 3e-3).all()


@pytest.mark.slow
def test_everything_may_be_traced(rng):
    x = points(rng, 5, 2).astype("float32")

    def grams(variance, cutoff, shape):
        noise = Gaussian(variance)
        worlds_ = (
            worlds.rational(dim=2, noise=noise, cutoff=cutoff, length_scale=shape, alpha=shape),
            worlds.matern(dim=2, noise=noise, cutoff=cutoff, nu=shape, length_scale=shape),
            worlds.laplacian(
                dim=2, noise=Gaussian(variance * np.eye(2)), cutoff=cutoff, length_scale=shape
            ),
        )
        return [(w.surrogate(x, x), w.kernel(x, x), w.diagonal, w.ratio) for w in worlds_]

    # 2 · 3 · 0.2 is more than 1.
    sweep = [np.float32([0.0, 0.02, 0.2]), np.float32([2, 3, 3]), np.float32([1.5, 0.7, 1])]
    swept = jax.jit(jax.vmap(grams))(*sweep)
    for i in range(2):
        single = grams(*(float(values[i]) for values in sweep))
        chex.assert_trees_all_close(jax.tree.map(lambda a, i=i: a[i], swept), single, rtol=5e-6)
    assert all(np.isnan(surrogate[2]).all() for surrogate, *_ in swept)
    assert all(np.isnan(diagonal[2]) for _, _, diagonal, _ in swept)


def test_a_traced_covariance_that_is_none_gives_nan(rng):
    x = points(rng, 2, 2).astype("float32")

    @jax.jit
    def gram(cov):
        return worlds.rational(dim=2, noise=Gaussian(cov), cutoff=0.5).surrogate(x, x)

    assert np.isnan(gram(np.float32([[0.1, 0.3], [0.3, 0.1]]))).all()
    assert np.isfinite(gram(np.float32([[0.1, 0.1], [0.1, 0.1]]))).all()
    assert np.isnan(gram(np.float32(-0.1))).all()


def test_integers_and_parameters_in_float32_lose_nothing(rng):
    single = {"cutoff": jnp.float32(3.5), "nu": jnp.float32(1.5), "length_scale": jnp.float32(1.25)}
    double = {name: float(value) for name, value in single.items()}
    x = rng.integers(-2, 3, (4, 3))
    grams = []
    for parameters in (single, double):
        world = worlds.matern(dim=3, noise=Gaussian(0.0625), **parameters)
        grams += [world.surrogate(x, x), world.surrogate(x.astype("float32"), 1.0 * x)]
    np.testing.assert_allclose(grams, [grams[0]] * 4, rtol=1e-6)
    np.testing.assert_allclose(world.kernel.diagonal(x), 1 - world.approximation_error, rtol=1e-6)


def test_gradients_are_finite_where_points_coincide():
    world = worlds.laplacian(dim=2, noise=Gaussian(0.01), cutoff=5.0, length_scale=1.0)
    for gram in (world.surrogate, world.kernel):
        slope = jax.jit(jax.grad(lambda z, gram=gram: gram(z, np.ones((1, 2)))[0, 0]))
        np.testing.assert_allclose(slope(np.ones((1, 2))), 0, atol=1e-5)


def build(**changes):
    return worlds.rational(**{"dim": 4, "noise": Gaussian(0.36), "cutoff": 0.5} | changes)


def of_matern(cutoff=1.0, nu=0.5, length_scale=1.0):
    options = {"nu": nu, "length_scale": length_scale}
    return worlds.matern(dim=1, noise=Gaussian(0.0), cutoff=cutoff, **options)


def of_laplacian(cutoff, length_scale=1.0):
    return worlds.laplacian(dim=1, noise=Gaussian(0.0), cutoff=cutoff, length_scale=length_scale)


LARGE = {"dim": 400, "noise": Gaussian(0.49), "length_scale": 0.5**0.5}


@pytest.mark.claim("DA-Eq6", "DA-short")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: build(cutoff=1.5), r"cutoff must be .* below 1\.38889, got 1\.5: from 1/\("),
        (lambda: build(cutoff=0.0), "cutoff must be positive and finite, got 0"),
        (lambda: build(length_scale=0.0), "length_scale must be positive"),
        (lambda: build(length_scale=1e300), r"got 1e\+300: float32 must hold its square"),
        (lambda: of_laplacian(1.0, length_scale=1e300), r"got 1e\+300: float32 must hold its sq"),
        (lambda: build(alpha=0.1), r"alpha must be in \[0\.2, 50\], got 0\.1"),
        (lambda: build(alpha=np.ones(2)), r"alpha must be one number, got shape \[2\]"),
        (lambda: build(alpha=50.0, length_scale=0.1, cutoff=0.1), "cutoff must be larger than 0.1"),
        (lambda: of_laplacian(1.0, length_scale=np.ones(3)), "length_scale must be one number"),
        (lambda: of_matern(nu=1000.0), r"nu must be in \[0\.1, 100\], got 1000"),
        (lambda: of_laplacian(1e-8), "cutoff must be larger than 1e-08: .* no mass"),
        (lambda: build().surrogate(np.ones((2, 3)), np.ones((2, 3))), "made for data of dim.* 4"),
        (lambda: build().kernel(np.ones((2, 4)), np.ones((2, 3))), "made for data of dim.* 4"),
        (lambda: build(noise=Laplace(0.1)), "noise must be a Gaussian, got Laplace"),
        (lambda: build(noise=PerRound(jax.vmap(Gaussian)(jnp.ones(3)))), "got PerRound"),
        (lambda: build(noise=Gaussian(np.ones(3))), "shape.*does not fit data of dimension 4"),
        (lambda: build(**LARGE), r"overflows float32 .* 0\.44 times.* smaller cutoff or fewer dim"),
    ],
)
def test_rejects_bad_input(make, message):
    raises(message, make)
