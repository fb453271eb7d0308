"""Moments are unbiased: exact expectations over noise of finitely many values, or by quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.moments.fourier import Frequencies
from tests.errors import raises
from tests.keys import key
from tests.residuals import signs

KEY = jax.random.key(0)
X, Y, W = np.array([0.7, -1.2]), 0.6, np.array([0.3, -0.8])


def expectation(function, points, weights=None):
    """Over points that are equally likely, unless weights are given."""
    values = jax.device_get(jax.jit(jax.vmap(function))(np.asarray(points)))
    return jax.tree.map(lambda leaf: np.average(leaf, axis=0, weights=weights), values)


def one_round(moments, copies, cov=None):
    samples = Sample(jnp.asarray(copies)[None], jnp.full(1, Y), None if cov is None else cov[None])
    one = Sample(jnp.asarray(copies), jnp.asarray(Y), cov)
    return moments.corrected(moments.sums(samples, jnp.ones(1))), moments.clean_estimates(
        jnp.asarray(W), one
    )


def check(expected, clean):
    (gram, cross), (value, square) = expected
    np.testing.assert_allclose(gram, np.outer(clean, clean), atol=1e-10)
    np.testing.assert_allclose(cross, Y * clean, atol=1e-10)
    np.testing.assert_allclose(value, W @ clean, atol=1e-10)
    np.testing.assert_allclose(square, (W @ clean) ** 2, atol=1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("form", ["variances", "matrix"])
def test_one_copy_with_known_covariance_is_unbiased(form):
    factor = np.diag([0.5, 1.5]) if form == "variances" else np.array([[0.5, 0.0], [0.4, 1.5]])
    cov = factor @ factor.T
    moments = nj.moments.known_covariance()
    given = jnp.asarray(np.diag(cov) if form == "variances" else cov)
    expected = expectation(lambda n: one_round(moments, (X + n)[None], given), signs(2) @ factor.T)
    check(expected, X)


def test_the_slack_bounds_the_fall_of_the_smallest_eigenvalue_in_the_units_of_each_column():
    """Of noise of rank one it is d times its variances, whatever the units."""
    cov = jnp.full((3, 3), 0.9) + 0.1 * jnp.eye(3)  # its largest eigenvalue is 2.8
    uneven, scaled = jnp.array([0.1, 2.0, 0.5]), jnp.array([1000.0, 1.0, 1.0])
    sums_of = jax.jit(lambda samples: nj.moments.known_covariance().sums(samples, jnp.ones(5)))
    for each, slack in (
        (cov, 14.0),
        (uneven, 5 * uneven),
        (jnp.outer(scaled, scaled), 15 * scaled**2),
    ):
        covs = jnp.broadcast_to(each, (5, *each.shape))
        sums = sums_of(Sample(jnp.zeros((5, 1, 3)), jnp.zeros(5), covs))
        np.testing.assert_allclose(sums.slack, slack, rtol=1e-5)
        if each is cov:
            np.testing.assert_allclose(sums.slack, -np.linalg.eigvalsh(sums.gram)[0], rtol=1e-5)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("copies", [2, 3])
def test_copies_of_unknown_noise_are_unbiased(copies):
    noise = signs(2 * copies).reshape(-1, copies, 2) * [0.5, 1.5]
    moments = nj.moments.two_copies(copies)
    check(expectation(lambda n: one_round(moments, X[None] + n), noise), X)


@pytest.mark.parametrize("copies", [1, 3])
def test_squares_are_those_of_single_copies(copies, rng):
    moments = nj.moments.two_copies(copies) if copies > 1 else nj.moments.known_covariance()
    x, kept = rng.normal(size=(5, copies, 2)), rng.uniform(size=5)
    sums = moments.sums(Sample(jnp.asarray(x, float), jnp.ones(5), jnp.ones(5)), jnp.asarray(kept))
    np.testing.assert_allclose(sums.squares, kept @ np.mean(x**2, axis=1), rtol=1e-5)


class Skewed(nj.noise.Noise):
    """n = 2 with probability 1/3, −1 with 2/3, in both coordinates at once: not symmetric."""

    mean, cov = 0.0, np.array([[2.0, 2.0], [2.0, 2.0]])

    def log_characteristic(self, omega):
        total = omega.sum(-1)
        return jnp.log(jnp.exp(2j * total) / 3 + 2 * jnp.exp(-1j * total) / 3)


GAUSSIAN = nj.noise.Gaussian(0.1)


def frequencies(noise, dim, count=2, key=KEY):
    options = {"dim": dim, "length_scale": 2.0, "characteristic": noise}
    return nj.moments.gaussian_frequencies(key, count, **options)


def features(noise, dim, wiener=0.0, count=2):
    return nj.moments.fourier(frequencies(noise, dim, count), wiener=wiener)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_fourier_features_are_unbiased_under_skewed_noise():
    moments = features(Skewed(), dim=2)
    expected = expectation(lambda n: one_round(moments, (X + n)[None]), [2.0, -1.0], [1 / 3, 2 / 3])
    check(expected, np.asarray(moments.features(jnp.asarray(X))))


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("count", [1, 40])
def test_the_damping_is_one_over_the_number_of_rounds(count):
    """The divisor of a wave is φ + ε/(tφ̄), here for φ = e^(−1); a reading is not damped."""
    phi = np.exp(-1.0)
    one = jnp.ones((1, 1), complex)
    known = Frequencies(one.real, jnp.ones(()), phi * one[0], one, phi * one)
    samples = Sample(jnp.full((count, 1, 1), 0.3), jnp.ones(count))
    wave = np.array([np.cos(0.3), np.sin(0.3)])
    for wiener, moments in {
        1.0: nj.moments.fourier(known), 2.0: nj.moments.fourier(known, wiener=2.0)
    }.items():  # fmt: skip
        _, cross = jax.jit(lambda s, m=moments: m.corrected(m.sums(s, jnp.ones(count))))(samples)
        np.testing.assert_allclose(cross, count * wave / (phi + wiener / (count * phi)), rtol=1e-9)
        value, _ = moments.clean_estimates(
            jnp.asarray(W), jax.tree.map(lambda leaf: leaf[0], samples)
        )
        np.testing.assert_allclose(value, W @ wave / phi, rtol=1e-9)


@pytest.mark.statistical
def test_frequencies_are_gaussian_vectors_over_the_length_scale():
    """‖ℓω‖² is χ² of d degrees of freedom: mean d and variance 2d."""
    draw = jax.jit(lambda key: frequencies(GAUSSIAN, dim=5, count=1_200, key=key))
    with jax.debug_key_reuse(True):
        drawn = draw(key(5))
    squares = np.sum(np.asarray(2 * drawn.omega) ** 2, axis=1)
    assert abs(squares.mean() - 5) < 5 * (10 / 600) ** 0.5
    assert abs(squares.var() - 10) < 5 * (10**2 * (2 + 12 / 5) / 600) ** 0.5


@pytest.mark.parametrize(
    ("characteristic", "count", "message"),
    [
        (0.1, 4, "characteristic must be a Noise, got 0.1"),
        (nj.noise.Uniform(1.0), 4, "without zeros, got Uniform"),
        (nj.noise.StudentT(5.0, 1.0), 4, "StudentT, whose .* is not known"),
        (lambda omega: omega, 4, r"must be \[2\]"),
        (lambda omega: omega.sum(-1) * jnp.nan, 4, "must be finite"),
        (GAUSSIAN, 3, "num_features must be even, .* got 3"),
    ],
)
def test_what_gives_no_frequencies_raises(characteristic, count, message):
    raises(message, frequencies, characteristic, dim=2, count=count)
    raises("frequencies must be a Frequencies", nj.moments.fourier, 8)
