"""Every transformation is exact: by quadrature over Gaussian noise, and by enumeration."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.learners.known_covariance import gradient_estimate as from_one_copy
from noisy_jax.learners.two_copies import gradient_estimate as from_two_copies
from noisy_jax.unbiased.entire import continued
from tests.quadrature import gauss_hermite

pytestmark = pytest.mark.usefixtures("x64")

COV = np.array([[0.1, 0.04], [0.04, 0.2]])
X = np.array([0.7, -0.4])
HIDDEN = np.array([[0.9, -0.4, 0.3], [0.2, 0.8, -0.6]])


def network(x):
    """The squared error of a network with sines and error functions."""
    hidden = jnp.sin(x @ HIDDEN) + jax.nn.gelu(x @ HIDDEN[:, ::-1], approximate=False)
    return (hidden @ np.array([0.5, -0.7, 0.4]) - 0.3) ** 2


def polynomial(x):
    return x[0] ** 5 - 2 * x[0] ** 2 * x[1] ** 3 + jnp.vdot(x, x) + 1


ENTIRE = {
    "polynomial": polynomial,
    "sine": lambda x: jnp.sin(1.5 * x[0]) * jnp.cos(x[1]),
    "exponential": lambda x: jnp.exp(0.7 * x[0] - 0.4 * x[1]),
    "network": network,
}


def over_noise(function, copies, nodes):
    """The exact mean of function(copies) over Gaussian noise of covariance COV in each copy."""
    errors, weights = gauss_hermite(nodes, np.kron(np.eye(copies), COV))
    return weights @ np.asarray(
        jax.jit(jax.vmap(function))(X + errors.reshape(-1, copies, 2)), np.float64
    )


@pytest.mark.claim("EXT-Pair")
@pytest.mark.parametrize("name", ENTIRE)
def test_pair_is_exact_under_gaussian_noise(name):
    f = ENTIRE[name]
    np.testing.assert_allclose(over_noise(nj.unbiased.pair(f), 2, 11), f(X), rtol=1e-6)
    assert abs(over_noise(lambda copies: f(copies.mean(axis=0)), 2, 11) - f(X)) > 1e-3


@pytest.mark.claim("EXT-Pair")
def test_pair_is_exact_from_three_copies():
    found = over_noise(nj.unbiased.pair(polynomial), 3, 5)
    np.testing.assert_allclose(found, polynomial(X), rtol=1e-10)


def averaged_over_draws(f, x, count=40, cov=COV):
    """What `gaussian` estimates from one copy, averaged over its draws by quadrature."""
    drawn, weights = gauss_hermite(count, cov)
    values = jax.vmap(lambda xi: continued(f, jnp.asarray(x), jnp.asarray(xi), "gaussian"))(drawn)
    return jnp.tensordot(jnp.asarray(weights), values, axes=1)


@pytest.mark.claim("EXT-ImaginaryNoise")
@pytest.mark.parametrize("name", ENTIRE)
def test_gaussian_is_exact_over_noise_and_draws(name):
    f = ENTIRE[name]
    found = over_noise(lambda copies: averaged_over_draws(f, copies[0], 14), 1, 14)
    np.testing.assert_allclose(found, f(X), rtol=1e-6)


@pytest.mark.claim("EXT-ImaginaryNoise")
@pytest.mark.parametrize("form", ["[]", "[d]", "[d, d]"])
@pytest.mark.parametrize("copies", [1, 3])
def test_draws_have_the_covariance_of_the_noise(form, copies):
    """Of a product of coordinates g is x̄_i x̄_j less the mean of ξ_i ξ_j, which is Σ_ij/V."""
    cov = {"[]": 0.3, "[d]": np.array([0.1, 0.5]), "[d, d]": COV}[form]
    g = nj.unbiased.gaussian(lambda x: jnp.outer(x, x), cov, draws=100_000)
    rows = np.arange(2.0 * copies).reshape(copies, 2)
    found = g(rows, key=jax.random.key(0))
    full = nj.noise.Gaussian(cov).covariance(2) / copies
    expected = np.outer(rows.mean(axis=0), rows.mean(axis=0)) - full
    np.testing.assert_allclose(found, expected, atol=5 * 0.5 * 2**0.5 / 100_000**0.5)


def test_gaussian_of_the_squared_loss_is_known_covariance():
    w, y = jnp.array([0.8, -1.3]), 0.4
    gradient = jax.grad(lambda w: averaged_over_draws(lambda x: (x @ w - y) ** 2, X, 3))(w)
    sample = nj.Sample(jnp.asarray(X)[None], jnp.asarray(y), jnp.asarray(COV))
    expected = from_one_copy(w, sample)
    np.testing.assert_allclose(gradient, expected, rtol=1e-10)


@pytest.mark.claim("EXT-ImaginaryNoise")
def test_gaussian_of_a_kernel_is_the_surrogate_of_its_world():
    world = nj.worlds.gaussian(dim=2, length_scale=1.2, noise=nj.noise.Gaussian(COV))
    atom = jnp.array([0.1, 0.5])

    def kernel(x):
        return jnp.exp(-jnp.sum((x - atom) ** 2) / (2 * 1.2**2))

    expected = world.surrogate(atom[None], jnp.asarray(X)[None])[0, 0]
    np.testing.assert_allclose(averaged_over_draws(kernel, X), expected, rtol=1e-9)


def test_gaussian_of_the_poisson_loss_is_its_correction():
    w, y = np.array([0.8, -0.6]), 2.0
    found = averaged_over_draws(lambda x: jnp.exp(x @ w) - y * (x @ w), X)
    expected = nj.losses.corrected(nj.losses.poisson())(X @ w, y, w @ COV @ w)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_replicates_of_the_squared_loss_is_two_copies_in_both_orders():
    w, copies = jnp.array([0.8, -1.3]), jnp.array([[0.3, 0.9], [-0.2, 0.5]])
    g = nj.unbiased.replicates(lambda w, x, y: (x @ w - y) ** 2, 1)
    orders = [from_two_copies(w, nj.Sample(c, 0.4)) for c in (copies, copies[::-1])]
    np.testing.assert_allclose(jax.grad(g)(w, copies, 0.4), np.mean(orders, axis=0), rtol=1e-10)


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

    slopes = {}
    for name, g in {
        "pair": nj.unbiased.pair(loss, 1),
        "uncorrected": nj.unbiased.replicates(loss, 1, order=0),
    }.items():
        total = 0
        for x, variance in ((-1.0, 0.1), (0.2, 0.4), (1.1, 0.25)):
            errors, weights = gauss_hermite(14, variance * np.eye(2))
            y = curve(theta, x)
            slope = jax.vmap(jax.grad(g), (None, 0, None))(theta, x + errors, y)
            total += jnp.asarray(weights) @ slope
        slopes[name] = total
    np.testing.assert_allclose(slopes["pair"], 0, atol=1e-6)
    assert abs(slopes["uncorrected"]).max() > 0.05


@pytest.mark.claim("EXT-MomentsOfFeatures")
def test_moments_of_features_need_no_law():
    """Second moments φφᵀ and φy of Fourier features: `pair` is exact, of another Σ in each row.

    `replicates` of linear features, whose moments are quadratic, is exact under any noise.
    """
    frequencies = np.array([[0.9, -0.4], [0.2, 0.8]])

    def moments(x, y):
        phi = jnp.concatenate([jnp.cos(frequencies @ x), jnp.sin(frequencies @ x)])
        return jnp.outer(phi, phi), phi * y

    for cov in (COV, 2 * np.eye(2) * COV):
        errors, weights = gauss_hermite(9, np.kron(np.eye(2), cov))
        copies = X + errors.reshape(-1, 2, 2)
        found = jax.vmap(nj.unbiased.pair(moments), (0, None))(copies, 1.3)
        for estimate, clean in zip(found, moments(X, 1.3), strict=True):
            mean = np.tensordot(weights, estimate, axes=1)
            np.testing.assert_allclose(mean, clean, rtol=1e-6, atol=1e-8)
    g = nj.unbiased.replicates(lambda x: jnp.outer(x, x))
    errors = np.array(list(itertools.product([-0.5, 2.0], repeat=4))).reshape(-1, 2, 2)
    weights = np.prod(np.where(errors < 0, 0.8, 0.2), axis=(1, 2))
    mean = np.tensordot(weights, jax.vmap(g)(X + errors), axes=1)
    np.testing.assert_allclose(mean, np.outer(X, X), atol=1e-10)


def wave(x):
    return jnp.sin(1.5 * x) + 0.3 * jnp.tanh(2 * x)


SYMMETRIC = [(-1.0, 0.5), (1.0, 0.5)]
SKEWED = [(-0.5, 0.8), (2.0, 0.2)]


def enumerated(function, noise, copies, sigma):
    """The exact mean of function(copies `[V]`) at x = .7, and the number of its values."""
    values, shares = zip(*noise, strict=True)
    errors = np.array(list(itertools.product(values, repeat=copies)))
    weights = np.prod(list(itertools.product(shares, repeat=copies)), axis=1)
    return weights @ np.asarray(jax.jit(jax.vmap(function))(0.7 + sigma * errors), np.float64)


def mean_at(f, noise, size, sigma):
    """E f(mean of `size` copies)."""
    return enumerated(lambda copies: f(copies.mean()), noise, size, sigma)


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize("noise", [SYMMETRIC, SKEWED], ids=["symmetric", "skewed"])
@pytest.mark.parametrize(
    ("copies", "order", "weights"),
    [
        (2, 0, {2: 1}),
        (2, 1, {2: 2, 1: -1}),
        (3, 1, {3: 3 / 2, 1: -1 / 2}),
        (4, 1, {4: 2, 2: -1}),
        (4, 2, {4: 8 / 3, 2: -2, 1: 1 / 3}),
        (6, 2, {6: 12 / 5, 3: -3 / 2, 1: 1 / 10}),
    ],
)
def test_replicates_extrapolates_the_means_of_blocks(noise, copies, order, weights):
    found = enumerated(nj.unbiased.replicates(wave, order=order), noise, copies, 0.4)
    expected = sum(w * mean_at(wave, noise, size, 0.4) for size, w in weights.items())
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize("order", [1, 2])
def test_replicates_is_exact_for_polynomials(order):
    """Of degree k + 1 under skewed noise, and of degree 2k + 1 under Gaussian noise."""
    g = nj.unbiased.replicates(lambda x: x ** (order + 1), order=order)
    np.testing.assert_allclose(enumerated(g, SKEWED, 2**order, 0.9), 0.7 ** (order + 1), rtol=1e-10)
    degree, copies = 2 * order + 1, 2**order
    errors, weights = gauss_hermite(4, np.eye(copies))
    g = nj.unbiased.replicates(lambda x: x**degree, order=order)
    found = weights @ np.asarray(jax.vmap(g)(0.7 + 0.9 * errors))
    np.testing.assert_allclose(found, 0.7**degree, rtol=1e-9)


@pytest.mark.claim("EXT-ReplicatesOrder")
@pytest.mark.parametrize(
    ("order", "noise", "factor"),
    [(1, SKEWED, 8), (2, SKEWED, 16), (2, SYMMETRIC, 16), (1, None, 16), (2, None, 64)],
    ids=["1, skewed", "2, skewed", "2, symmetric", "1, Gaussian", "2, Gaussian"],
)
def test_the_bias_of_replicates_falls_with_the_noise_as_its_order_says(order, noise, factor):
    """Halving σ divides it by 2^(k + 2), and by 2^(2k + 2) under Gaussian noise."""
    g, copies, biases = nj.unbiased.replicates(wave, order=order), 2**order, []
    for sigma in (0.04, 0.02):
        if noise is None:
            errors, weights = gauss_hermite(8, sigma**2 * np.eye(copies))
            found = weights @ np.asarray(jax.vmap(g)(0.7 + errors))
        else:
            found = enumerated(g, noise, copies, sigma)
        biases.append(found - wave(0.7))
    np.testing.assert_allclose(biases[0] / biases[1], factor, rtol=0.15)


LEVELS = [(3, 1, 0.5, 2**-1.5), (2, 2, 1.0, 0.4), (1, 3, 0.3, 0.5)]


def over_levels(g, function, levels, base, q, r):
    """Σ_N p_N function(a key with which g has level N), with the probabilities."""
    probabilities = [1 - q, *(q * (1 - r) * r ** (n - 1) for n in range(1, levels))]
    probabilities.append(1 - sum(probabilities))
    keys = jax.random.split(jax.random.key(0), 4000)
    needed = np.asarray(jax.vmap(g.copies_needed)(keys))
    total = 0.0
    for level, probability in enumerate(probabilities):
        if probability:
            total += probability * function(keys[np.flatnonzero(needed == base * 2**level)[0]])
    return total, probabilities


@pytest.mark.claim("EXT-Multilevel")
@pytest.mark.parametrize("noise", [SYMMETRIC, SKEWED], ids=["symmetric", "skewed"])
@pytest.mark.parametrize(("levels", "base", "q", "r"), LEVELS)
def test_multilevel_telescopes(noise, levels, base, q, r):
    """Its mean over levels and noise is F_0 + Σ_N (F_N − F_{N−1}), with the last one twice."""
    g = nj.unbiased.multilevel(wave, levels=levels, base=base, continue_with=q, ratio=r)

    def given(key):
        return enumerated(lambda copies: g(copies, key=key), noise, g.copies, 0.8)

    found, probabilities = over_levels(g, given, levels, base, q, r)
    sizes = base * 2 ** np.arange(levels + 1)
    before, last = (mean_at(wave, noise, size, 0.8) for size in sizes[-2:].tolist())
    np.testing.assert_allclose(found, 2 * last - before, rtol=1e-9)
    assert abs(found - wave(0.7)) < 0.5 * abs(last - wave(0.7))
    np.testing.assert_allclose(g.mean_copies, np.dot(probabilities, sizes), rtol=1e-12)


@pytest.mark.claim("EXT-Multilevel")
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_multilevel_of_a_quadratic_is_exact_at_every_cap(levels):
    g = nj.unbiased.multilevel(lambda x: 3 * x**2 - x, levels=levels)

    def given(key):
        return enumerated(lambda copies: g(copies, key=key), SKEWED, g.copies, 0.9)

    found, _ = over_levels(g, given, levels, 1, 0.5, 2**-1.5)
    np.testing.assert_allclose(found, 3 * 0.7**2 - 0.7, rtol=1e-9)


def test_the_frequency_of_levels_is_that_of_the_weights():
    """The draw of the level and the weight 1/p_N must agree: 100,000 keys."""
    g = nj.unbiased.multilevel(wave, levels=3, continue_with=0.6, ratio=0.4)
    needed = jax.vmap(g.copies_needed)(jax.random.split(jax.random.key(1), 100_000))
    shares = np.bincount(np.log2(np.asarray(needed)).astype(int)) / 100_000
    expected = np.array([0.4, 0.36, 0.144, 0.096])
    error = np.sqrt(expected * (1 - expected) / 100_000)
    assert (np.abs(shares - expected) < 5 * error).all()
