import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic

from noisy_jax import kernels

# Each kernel with its value for one pair of points, written from its definition.
KERNELS = {
    "linear": (kernels.linear(), lambda x, z: x @ z),
    "polynomial": (kernels.polynomial(degree=3), lambda x, z: (x @ z + 1) ** 3),
    "homogeneous": (kernels.polynomial(degree=2, offset=0.0), lambda x, z: (x @ z) ** 2),
    "exponential": (kernels.exponential(), lambda x, z: math.exp(x @ z)),
    "binomial": (kernels.binomial(alpha=1.5), lambda x, z: (1 - x @ z) ** -1.5),
    "gaussian": (
        kernels.gaussian(length_scale=0.6),
        lambda x, z: math.exp(-(dist(x, z) ** 2) / 0.72),
    ),
    "rational": (
        kernels.rational(length_scale=0.8, alpha=1.7),
        lambda x, z: (1 + dist(x, z) ** 2 / (2 * 1.7 * 0.64)) ** -1.7,
    ),
    "laplacian": (kernels.laplacian(length_scale=0.6), lambda x, z: math.exp(-dist(x, z) / 0.6)),
    "matern32": (kernels.matern(nu=1.5, length_scale=0.9), lambda x, z: matern(x, z, 1.5)),
    "matern52": (kernels.matern(nu=2.5, length_scale=0.9), lambda x, z: matern(x, z, 2.5)),
}


def dist(x, z):
    return math.sqrt(sum((x - z) ** 2))


def matern(x, z, nu):
    q = math.sqrt(2 * nu) * dist(x, z) / 0.9
    return (1 + q + (q**2 / 3 if nu == 2.5 else 0)) * math.exp(-q)


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
    np.testing.assert_allclose(
        jax.jit(kernel)(jnp.asarray(x), jnp.asarray(z)), expected, rtol=1e-12
    )


def test_diagonal_is_that_of_the_gram(x64, rng, case):
    kernel, _ = case
    x = jnp.asarray(points(rng, 5))
    # The distance of a point to itself by matrix product is zero to 1e-16 only, its root to 1e-8.
    np.testing.assert_allclose(kernel.diagonal(x), jnp.diag(kernel(x, x)), atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("name", KERNELS)
@given(n=st.integers(1, 8), dim=st.integers(1, 4), seed=st.integers(0, 999))
def test_gram_is_symmetric_and_psd(name, n, dim, seed):
    x = jnp.asarray(points(np.random.default_rng(seed), n, dim), jnp.float32)
    gram = np.asarray(KERNELS[name][0](x, x), np.float64)
    np.testing.assert_allclose(gram, gram.T, atol=1e-5)
    # Float32 rounding: roots of distances near zero are good to 1e-3 only.
    assert np.linalg.eigvalsh(gram)[0] > -4e-3 * n


@pytest.mark.claim("NK-Sec2")
def test_the_printed_binomial_kernel_is_not_positive_definite(x64):
    x = np.linspace(-0.6, 0.6, 40)
    printed = np.linalg.eigvalsh((1 + np.outer(x, x)) ** -1.5)[0]
    corrected = kernels.binomial(alpha=1.5)(jnp.asarray(x)[:, None], jnp.asarray(x)[:, None])
    assert printed < -1
    assert np.linalg.eigvalsh(corrected)[0] > -1e-10


SERIES = ["linear", "polynomial", "homogeneous", "exponential", "binomial", "gaussian"]


@pytest.mark.claim("NK-Sec2")
@pytest.mark.parametrize("name", SERIES)
def test_series_and_envelope_make_the_kernel_up_to_their_remainders(x64, name):
    kernel, _ = KERNELS[name]
    x, z = jnp.array([[0.6, -0.3]]), jnp.array([[0.5, 0.8]])
    for order in (0, 1, 4, 60):
        series = kernel.series(order)
        assert series.coefficients.shape == (order + 1,)
        assert np.all(series.coefficients >= 0)
        value, factors = series((x @ z.T)[0, 0]), 1.0
        if kernel.envelope is not None:
            squares = jnp.sum(x**2), jnp.sum(z**2)
            factors = math.prod(map(kernel.envelope.series(60), squares))
            np.testing.assert_allclose(math.prod(map(kernel.envelope.value, squares)), factors)
        error = abs(kernel(x, z)[0, 0] / factors - value)
        assert error <= series.remainder(float(abs(x @ z.T)[0, 0])) + 1e-12
        assert error > 1e-12 or order == 60 or order >= (series.degree or 60)


@pytest.mark.parametrize("name", ["rational", "laplacian", "matern32", "matern52"])
def test_other_radial_kernels_have_no_series(name):
    assert KERNELS[name][0].series is None


@pytest.mark.parametrize("name", ["gaussian", "rational", "laplacian", "matern32", "matern52"])
def test_radial_kernels_have_a_diagonal_of_one(name):
    np.testing.assert_array_equal(KERNELS[name][0].diagonal(jnp.ones((4, 2))), 1)


def test_binomial_outside_its_radius_is_nan():
    assert np.isnan(kernels.binomial(alpha=1.0)(jnp.array([[1.5]]), jnp.array([[1.0]]))[0, 0])


def test_hyper_parameters_sweep_inside_vmap(rng):
    x = jnp.asarray(points(rng, 4), jnp.float32)
    grams = jax.vmap(lambda scale: kernels.gaussian(length_scale=scale)(x, x))(
        jnp.array([0.5, 1.0])
    )
    chex.assert_trees_all_close(grams[1], kernels.gaussian(length_scale=1.0)(x, x), rtol=1e-6)


def test_gradients_are_finite_where_points_coincide():
    x = jnp.ones((1, 2))
    for kernel, _ in KERNELS.values():
        slope = jax.grad(lambda z, kernel=kernel: kernel(z * 0.5, x * 0.5)[0, 0])(x)
        assert np.isfinite(slope).all()


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (kernels.gaussian(length_scale=0.7), RBF(0.7)),
        (kernels.laplacian(length_scale=0.7), Matern(0.7, nu=0.5)),
        (kernels.matern(nu=1.5, length_scale=0.7), Matern(0.7, nu=1.5)),
        (kernels.matern(nu=2.5, length_scale=0.7), Matern(0.7, nu=2.5)),
        (kernels.rational(length_scale=0.7, alpha=3.0), RationalQuadratic(0.7, alpha=3.0)),
    ],
)
def test_length_scales_are_scikit_learns_as_the_module_says(kernel, reference, rng):
    x, z = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    np.testing.assert_allclose(kernel(x, z), reference(x, z), rtol=1e-4)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: kernels.polynomial(degree=0), "degree must be a whole number of at least 1"),
        (lambda: kernels.polynomial(degree=2, offset=-1.0), "offset must be finite and >= 0"),
        (lambda: kernels.binomial(alpha=0.0), "alpha must be positive and finite, got 0"),
        (lambda: kernels.gaussian(length_scale=-1.0), "length_scale must be positive"),
        (lambda: kernels.gaussian(length_scale=np.ones(2)), "length_scale must be one number"),
        (lambda: kernels.rational(length_scale=0.0), "length_scale must be positive"),
        # Float32 rounds these, or their squares, to zero and to infinity.
        (lambda: kernels.gaussian(length_scale=1e-60), "length_scale must be above 1.0842e-19"),
        (lambda: kernels.laplacian(length_scale=1e-20), r"got 1e-20: float32 must hold its square"),
        (lambda: kernels.matern(nu=1.5, length_scale=1e20), "and below 1.84467e"),
        (lambda: kernels.laplacian(length_scale=np.inf), "length_scale must be positive"),
        (lambda: kernels.matern(nu=0.5, length_scale=1.0), r"nu must be 1\.5 or 2\.5, got 0\.5"),
        (
            lambda: kernels.linear()(jnp.ones((4, 2)), jnp.ones((1, 3))),
            "points of dimension 3 do not fit those of dimension 2",
        ),
        (
            lambda: kernels.gaussian(length_scale=0.5**0.5)(jnp.ones(3), jnp.ones((1, 3))),
            r"x must be \[n, d\], got \[3\]; one point is x\[None\]",
        ),
        (
            lambda: kernels.linear()(jnp.ones((1, 3)), jnp.ones(3)),
            r"z must be \[m, d\], got \[3\]; one point is z\[None\]",
        ),
    ],
)
def test_rejects_bad_input(build, message):
    with pytest.raises(ValueError, match=message):
        build()
