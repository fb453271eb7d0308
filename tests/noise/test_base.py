"""What every distribution of noise does, and what it must be given."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import noisy_jax as nj
from noisy_jax.noise import (
    ContaminatedGaussian,
    Gaussian,
    Laplace,
    Noise,
    PerRound,
    Product,
    Rademacher,
    StudentT,
    Uniform,
    covariance_times,
    estimate_covariance,
    observe,
)
from tests.errors import raises
from tests.keys import key
from tests.noise.cases import DISTRIBUTIONS, FULL, assert_mean_is, per_round
from tests.quadrature import gauss_hermite

UNITS = {
    Gaussian: stats.norm(),
    Laplace: stats.laplace(),
    Uniform: stats.uniform(-1, 2),
    Rademacher: stats.rv_discrete(values=([-1, 1], [0.5, 0.5])),
    StudentT: stats.t(9),
}
"""One coordinate at scale 1, by SciPy."""


def coordinates(distribution):
    """(law at scale 1, scale) of each of three coordinates; `None` if they are not independent."""
    if isinstance(distribution, Product):
        return [coordinates(column)[0] for column in distribution.columns]
    cov = np.asarray(distribution.cov)
    if type(distribution) not in UNITS or cov.ndim > 1:
        return None
    law = UNITS[type(distribution)]
    return [(law, scale) for scale in np.sqrt(np.broadcast_to(cov, 3)) / law.std()]


def gaussians(distribution):
    """Of the others: the probability that a vector has Gaussian noise, and its covariance."""
    contaminated = isinstance(distribution, ContaminatedGaussian)
    return (0.3, FULL) if contaminated else (1.0, np.asarray(distribution.covariance(3)))


@pytest.fixture(params=DISTRIBUTIONS, ids=str)
def distribution(request):
    return DISTRIBUTIONS[request.param]


def sampled(noise):
    return noise.sample(jax.random.key(0), jnp.zeros(3))


@pytest.mark.statistical
@pytest.mark.slow
def test_moments_of_samples(distribution):
    draw = jax.jit(distribution.sample)
    n = np.asarray(draw(key(), np.zeros((200_000, 3), "float32")), np.float64)
    mean = np.broadcast_to(distribution.mean, 3)
    assert_mean_is(n, mean, 0.005)
    n -= mean
    products = np.einsum("ni,nj->nij", n, n).reshape(len(n), 9)
    assert_mean_is(products, np.asarray(distribution.covariance(3)).reshape(9), 0.02)
    if (each := coordinates(distribution)) is not None:  # of contamination: in test_gaussian.py
        law, scale = each[1]
        if isinstance(distribution, Rademacher):
            np.testing.assert_allclose(np.abs(n[:, 1]), scale, rtol=1e-6)
        else:
            assert stats.kstest(n[:, 1] / scale, law.cdf).pvalue > 1e-6


def test_fourth_moments_exactly(distribution):
    """(Σ_i n_i²)² by the moments of one coordinate, and by quadrature for Gaussian noise."""
    if (each := coordinates(distribution)) is None:
        q, cov = gaussians(distribution)
        nodes, weights = gauss_hermite(4, cov)
        exact = q * weights @ np.sum(nodes**2, axis=1) ** 2
    else:
        second, fourth = np.array([[s**k * law.moment(k) for k in (2, 4)] for law, s in each]).T
        exact = fourth.sum() + second.sum() ** 2 - np.sum(second**2)
    np.testing.assert_allclose(distribution.fourth_moment(3), exact, rtol=1e-5)
    # Of ‖x + n‖ only the covariance counts besides: six vectors n have it, and no odd moments.
    variances, axes = np.linalg.eigh(np.asarray(distribution.covariance(3), np.float64))
    n = (axes * np.sqrt(3 * np.maximum(variances, 0))).T
    x, n = np.array([0.5, -1.0, 2.0]), np.concatenate([n, -n])
    rest = np.sum((x + n) ** 2, axis=1) ** 2 - np.sum(n**2, axis=1) ** 2
    np.testing.assert_allclose(distribution.square_fourth_moment(x), exact + rest.mean(), rtol=1e-5)


@pytest.mark.slow
def test_log_characteristic_exactly(x64, distribution):
    omega = np.array([[0.7, -1.2, 0.4], [2.0, 3.0, 1.0], [3.0, 0.1, 2.5]])
    log_phi = distribution.log_characteristic(jnp.asarray(omega))
    if isinstance(distribution, StudentT):
        assert log_phi is None
        assert Product((distribution, Gaussian(0.1))).log_characteristic(omega[:, :2]) is None
        return
    if (each := coordinates(distribution)) is None:
        q, cov = gaussians(distribution)
        expected = 1 - q + q * np.exp(-np.einsum("ni,ij,nj->n", omega, cov, omega) / 2)
    else:
        waves = [
            [law.expect(lambda n, w=w * scale: np.cos(w * n)) for w in row]
            for row, (law, scale) in zip(omega.T, each, strict=True)
        ]
        expected = np.prod(waves, axis=0)
    np.testing.assert_allclose(np.exp(log_phi), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.slow
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
        raises("set characteristic_vanishes = True", use)


@pytest.mark.parametrize("cov", [0.3, [0.1, 0.4, 0.9], FULL])
def test_covariance_times_every_form(cov):
    v = jnp.array([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])
    expected = v @ Gaussian(cov).covariance(3)
    np.testing.assert_allclose(covariance_times(cov, v), expected, atol=1e-6)


def observed(**changes):
    """One round, with one argument changed."""
    arguments = {"key": jax.random.key(0), "x": np.ones(2), "y": 1.0, "noise": Gaussian(0.1)}
    return observe(**arguments | {"copies": 1} | changes)


THREE, NOT_PSD = np.ones(3), np.array([[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gaussian(-0.1), r"Gaussian\.cov must be finite and >= 0, got -0\.1"),
        (lambda: Gaussian(np.array([[1.0, 0.5], [0.0, 1.0]])), "must be symmetric"),
        (lambda: Gaussian(np.ones((2, 3))), r"shape \[\], \[d\] or \[d, d\], got \[2, 3\]"),
        (lambda: Gaussian(np.ones((2, 2, 2))), r"PerRound\(jax\.vmap\(Gaussian\)\(covs\)\)"),
        (lambda: Gaussian(THREE, mean=np.ones(2)), r"Gaussian .* {'cov': \[3\], 'mean': \[2\]}"),
        (lambda: Gaussian(1.0, mean=np.inf), r"mean must be finite"),
        (lambda: Gaussian(1.0).cloned(1.5), "copies must be a whole number of at least 1, got 1.5"),
        (lambda: ContaminatedGaussian(-1.0, 0.5), r"Gaussian\.outlier_cov must be .* >= 0, got -1"),
        (lambda: ContaminatedGaussian(1.0, 1.5), r"probability must be in \[0, 1\], got 1\.5"),
        (lambda: Laplace(0.0), r"Laplace\.scale must be positive and finite, got 0\.0"),
        (lambda: Laplace(1e300), r"scale must be .* below 1\.84.*, got 1e\+300: float32 must hold"),
        (
            lambda: Uniform(1e300),
            r"half_width must be .* got 1e\+300: float32 must hold its square",
        ),
        (lambda: Rademacher(np.ones((2, 2))), r"Rademacher\.scale must have shape \[\] or \[d\]"),
        (lambda: StudentT(df=2.0, scale=1.0), r"StudentT\.df must be above 2 and finite, got 2\.0"),
        (lambda: sampled(Gaussian(np.eye(2))), "dimension 3"),
        (lambda: Laplace(np.ones(2)).sample(jax.random.key(0), 1.0), "does not fit a scalar"),
        (lambda: estimate_covariance(np.ones((5, 1, 2))), r"\[n, V, d\].*got \[5, 1, 2\]"),
        (lambda: estimate_covariance(np.full((5, 2, 2), np.nan)), r"copies\[0, 0, 0\] is nan"),
        (lambda: observed(copies=0), "copies must be a whole number of at least 1, got 0"),
        (lambda: Gaussian(1 + 1j), r"Gaussian\.cov must be real, got \(1\+1j\)"),
        (lambda: observed(key=0), "key must be a key .* got 0"),
        (lambda: observed(x=np.ones((5, 2))), r"x must be \[d\], got \[5, 2\]; batch rounds with"),
        (lambda: observed(y=np.ones(5)), r"y must be \[\], got \[5\]"),
        (lambda: observed(noise=0.1), r"noise must be a Noise, got 0\.1: noise\.Gaussian"),
        (lambda: observed(noise=per_round(Gaussian, THREE)), "noise must be a Noise, got PerRound"),
        (lambda: observed(y_noise=Gaussian(np.ones(2))), "a scalar distribution, "),
        (lambda: per_round(Gaussian, jnp.stack([np.eye(2), NOT_PSD])), "positive semi-definite"),
        (lambda: per_round(Gaussian, jnp.array([0.1, -0.1])), r"\.cov must.*: jax\.vmap gives NaN"),
        (lambda: PerRound(jnp.ones(3)), r"PerRound\.distribution must be a Noise"),
        (lambda: PerRound(Gaussian(0.1)), "every parameter stacked along the rounds, got"),
        (lambda: rolled(per_round(Gaussian, THREE)), "every parameter stacked along the 4 rounds"),
        (lambda: StudentT(df=np.array([3.0, 4.0]), scale=1.0), "df must be one number"),
        (lambda: Gaussian("wide"), r"Gaussian\.cov must be numbers, got 'wide'"),
        (lambda: Laplace(1.0, mean=np.ones((2, 3))), r"Laplace\.mean must have shape"),
        (lambda: Gaussian([]), "at least one number"),
        (lambda: Gaussian([[1.0, 0.0], [1.0]]), "unequal shapes"),
        (lambda: Gaussian.from_variance("1"), "variance of Gaussian must be"),
        (lambda: nj.noise.Correlated(["a"]), "slopes must be an array of real numbers"),
        (lambda: nj.noise.Correlated(np.array([np.nan])), "slopes must be finite"),
        (lambda: Gaussian(0.1).sample(key(0), "x"), "x must be an array"),
        (lambda: Gaussian(0.1).sample(key(0), jnp.zeros(2, complex)), "real"),
        (lambda: observed(y="1"), "y must be"),
        (lambda: observed(x=np.array([1.0, np.nan])), r"x must be finite, but x\[1\] is nan"),
        (lambda: observed(y=np.nan), "y must be finite, got nan"),
        (lambda: covariance_times(np.eye(3), np.ones(2)), "does not fit"),
        (lambda: covariance_times(np.ones((1, 2, 2)), np.ones(2)), "cov must be"),
        (lambda: nj.noise.register_distribution(lambda x: x), "subclass of Noise"),
    ],
)
def test_bad_input_raises(build, message):
    raises(message, build)


def rolled(noise, rounds=4, dim=2):
    """A run of a learner under this noise."""
    stream = nj.streams.linear(jax.random.key(0), rounds, dim)
    learner = nj.learners.known_covariance(radius=1.0, learning_rate=0.1)
    return nj.rollout(learner, stream, noise, jax.random.key(0))


@pytest.mark.slow
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
    assert rolled(distribution).diverged_at == -1
    stream = nj.streams.linear(jax.random.key(0), 4, 2)
    found, exact = (nj.bounds.moments(stream, each) for each in (distribution, Gaussian(1.0)))
    np.testing.assert_allclose(found.x_second_moment, exact.x_second_moment)
    np.testing.assert_allclose(found.noise_norm, exact.noise_norm)
    assert np.isnan(found.x_fourth_moment)
    assert nj.bounds.two_copies(found, horizon=9, radius=1.0).regret > 0
    message = r"x_fourth_moment must be positive .* `excess_kurtosis`"
    raises(message, nj.bounds.known_covariance, found, horizon=9, radius=1.0)


def test_a_custom_distribution_that_is_not_complete_says_what_is_wrong():
    class Wrong(nj.noise.Noise):
        scale: float
        mean: float = 0.0
        cov = 1.0

        def centred(self, key, x):
            return jnp.zeros(5)

    with pytest.raises(
        TypeError, match=r"write @nj\.noise\.register_distribution above class Wrong"
    ):
        Wrong(0.5)
    noise = nj.noise.register_distribution(Wrong)(0.5)
    message = r"Wrong.centred must return x \+ n in the shape of x, \[2\], got \[5\]"
    raises(message, noise.sample, jax.random.key(0), jnp.ones(2))
    raises(message, nj.noise.observe, jax.random.key(0), jnp.ones(2), 1.0, noise, copies=2)
    stream = nj.streams.linear(jax.random.key(0), 4, 2)
    learner = nj.learners.two_copies(radius=1.0)
    raises(message, nj.rollout, learner, stream, noise, jax.random.key(1))
    bare = type("Bare", (nj.noise.Noise,), {"mean": 0.0})
    raises("Bare must have 'cov', as fields", nj.noise.register_distribution, bare)


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


@pytest.mark.slow
def test_a_custom_distribution_has_parameters_of_any_shape():
    parameters = np.array([0.7, 0.3]), np.array([0.1, 2.0]), np.zeros(4)
    distribution = Mixture(*parameters)
    expected = np.eye(4) * (0.7 * 0.01 + 0.3 * 4)
    np.testing.assert_allclose(distribution.covariance(4), expected, rtol=1e-6)
    stacked = PerRound(jax.vmap(Mixture)(*(np.tile(p, (3, 1)) for p in parameters)))
    alone, per_round = (rolled(noise, 3, 4).predictions for noise in (distribution, stacked))
    np.testing.assert_allclose(per_round, alone, atol=1e-6)

    @nj.noise.register_distribution
    class Lopsided(Mixture):
        @property
        def cov(self):
            return np.ones(3)

    message = r"Lopsided must have .* one dimension d, got {'cov': \[3\], 'mean': \[4\]}"
    raises(message, Lopsided, *parameters)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "right", "wrong"),
    [
        (Gaussian, 1.0, -1.0),
        (Laplace, 1.0, -1.0),
        (Uniform, 1.0, -1.0),
        (Rademacher, 1.0, -1.0),
        (lambda df: StudentT(df=df, scale=1.0), 3.0, -1.0),
        (lambda q: ContaminatedGaussian(1.0, q), 0.5, 1.5),
        (lambda q: ContaminatedGaussian(1.0, q), 0.5, np.nan),
        (Gaussian, np.eye(3), np.eye(3) - 0.7),
    ],
)
def test_a_traced_parameter_that_is_out_of_range_gives_nan(build, right, wrong):
    draw = jax.jit(lambda value: sampled(build(value)))
    assert np.isfinite(draw(right)).all()
    assert np.isnan(draw(wrong)).all()


def test_noise_is_drawn_from_arrays_and_not_from_columns_of_a_data_frame():
    """A mean only where it is added."""
    x, stream = jnp.zeros(2), nj.streams.linear(key(), 3, 2)
    noise = Laplace(pd.Series([0.5, 1.0], index=["a", "b"]))
    assert isinstance(noise.scale, pd.Series)  # a table compares its labels
    message = r"^Laplace.scale must be an array where noise is drawn, got Series: .* as column.to_"
    raises(message, noise.sample, key(), x)
    raises(message, observed, noise=noise)
    changing = PerRound(Gaussian(pd.Series([0.5, 1.0, 2.0]), mean=np.zeros(3)))
    message = r"^PerRound.distribution.cov must be an array where noise is drawn, got Series: "
    raises(message, nj.rollout, nj.learners.two_copies(radius=1.0), stream, changing, key())
    shifted = Gaussian(0.1, mean=pd.Series([1.0, 2.0]))
    np.testing.assert_array_equal(observed(noise=shifted).x, observed().x)
    raises(r"^Gaussian.mean must be an array where noise is drawn", shifted.sample, key(), x)


@pytest.mark.parametrize(
    "noise",
    [
        Gaussian(50_000),
        Gaussian(np.int64(50_000)),
        Gaussian(np.array([50_000])),
        Gaussian(np.diag([50_000])),
        Gaussian(np.full((1, 1), 50_000, np.float16)),
        Gaussian(pd.Series([50_000])),
        ContaminatedGaussian(jnp.full((1, 1), 50_000), probability=1),
    ],
)
def test_moments_are_computed_in_floats_that_hold_them(noise):
    variance = float(np.ravel(noise.cov)[0])
    assert noise.covariance(1).dtype == np.float32
    np.testing.assert_allclose(noise.fourth_moment(1), 3 * variance**2, rtol=1e-6)
    expected = 1 + 6 * variance + 3 * variance**2
    np.testing.assert_allclose(noise.square_fourth_moment(jnp.ones(1)), expected, rtol=1e-6)


def test_a_variance_above_the_integers_of_jax_is_a_float():
    np.testing.assert_allclose(Laplace(50_000).covariance(1), [[5e9]], rtol=1e-6)
    assert Gaussian(2).covariance(1).weak_type


@pytest.mark.parametrize("kind", [np.int8, np.float16, jnp.int8])
def test_clones_of_a_matrix_of_short_numbers_do_not_overflow(kind):
    cov = (jnp if kind is jnp.int8 else np).full((1, 1), 100, kind)
    np.testing.assert_array_equal(Gaussian(cov).cloned(3000).cov, [[300_000]])
