"""Privacy mechanisms: what their noise really attains, by closed forms and by quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from noisy_jax import noise
from noisy_jax.privacy import clipped, gaussian_mechanism, laplace_mechanism, randomized_response
from tests.errors import raises
from tests.slopes import finite_slopes


@pytest.mark.parametrize("order", [1, 2])
def test_clipping_scales_into_the_ball_and_leaves_its_inside_alone(order, rng):
    x = rng.normal(size=(50, 3))
    x[0] = 0
    made = np.asarray(clipped(x, 1.5, order=order))
    sizes = np.linalg.norm(x, ord=order, axis=1)
    wanted = np.stack([row if s <= 1.5 else 1.5 * row / s for row, s in zip(x, sizes, strict=True)])
    assert 5 < np.sum(sizes > 1.5) < 45
    np.testing.assert_allclose(made, wanted, rtol=1e-6)
    np.testing.assert_array_equal(made[sizes < 1.5], x[sizes < 1.5].astype(np.float32))


@pytest.mark.parametrize("copies", [1, 3])
def test_laplace_copies_attain_the_budget_and_do_not_exceed_it(copies, rng):
    epsilon, sensitivity = 0.8, 2.0
    distribution = laplace_mechanism(epsilon=epsilon, l1_sensitivity=sensitivity, copies=copies)
    density = stats.laplace(scale=distribution.scale).logpdf
    one, other = np.array([1.2, 0.0]), np.array([0.0, -0.8])  # as far apart as they may be
    assert np.abs(one - other).sum() == sensitivity
    released = rng.normal(scale=5, size=(1000, copies, 2))
    released[0] = [2.0, 1.0]  # beyond both in every coordinate, where the ratio is largest
    loss = np.abs(np.sum(density(released - one) - density(released - other), axis=(1, 2)))
    np.testing.assert_allclose(loss.max(), epsilon, rtol=1e-12)


def hockey_stick(epsilon, sigma, sensitivity, copies):
    """max_A P(M(x) ∈ A) − e^ε P(M(x') ∈ A), by quadrature over the mean of the copies."""
    deviation = sigma / np.sqrt(copies)
    here, there = stats.norm(sensitivity, deviation).pdf, stats.norm(0, deviation).pdf
    start = sensitivity / 2 + epsilon * deviation**2 / sensitivity  # where the densities cross

    def excess(z):
        return here(z) - np.exp(epsilon) * there(z)

    return integrate.quad(excess, start, start + 12 * deviation, epsabs=0, epsrel=1e-10)[0]


@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity", "copies"),
    [(0.1, 1e-5, 1.0, 1), (0.9, 1e-6, 2.0, 2), (1.0, 0.05, 0.5, 3), (30.0, 0.05, 2.0, 1)],
)
def test_gaussian_copies_attain_delta_and_no_smaller_noise(epsilon, delta, sensitivity, copies):
    numbers = {"epsilon": epsilon, "delta": delta, "l2_sensitivity": sensitivity}
    sigma = gaussian_mechanism(**numbers, copies=copies).cov ** 0.5
    attained = hockey_stick(epsilon, sigma, sensitivity, copies)
    np.testing.assert_allclose(attained, delta, rtol=1e-6)
    assert hockey_stick(epsilon, 0.999 * sigma, sensitivity, copies) > 1.001 * delta
    classical = np.sqrt(2 * copies * np.log(1.25 / delta)) * sensitivity / epsilon
    if epsilon <= 1:
        assert 1.05 * sigma < classical
        assert hockey_stick(epsilon, classical, sensitivity, copies) < 0.9 * delta
    else:  # beyond its hypothesis it is no longer private
        assert classical < sigma
        assert hockey_stick(epsilon, classical, sensitivity, copies) > delta


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("delta", [1e-12, 0.9])
def test_gaussian_calibration_holds_at_the_ends_of_its_range(epsilon, delta):
    u = gaussian_mechanism(epsilon=epsilon, delta=delta, l2_sensitivity=1.0).cov ** 0.5
    first, second = stats.norm.logcdf([0.5 / u - epsilon * u, -0.5 / u - epsilon * u])
    attained = np.exp(first) * -np.expm1(epsilon + second - first)
    np.testing.assert_allclose(attained, delta, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2])
def test_no_clipped_instance_exceeds_the_norm_in_exact_arithmetic(order, rng):
    """Float32 numbers are exact in float64, in which the norms are then computed."""
    for dim in (1, 10, 300):
        x = rng.normal(size=(4000, dim))
        x[:2000] /= np.linalg.norm(x[:2000], ord=order, axis=1, keepdims=True)  # on the sphere
        for norm in (1.0, 0.1, 0.7):
            for make in (clipped, jax.jit(clipped, static_argnames="order")):
                made = np.asarray(make(norm * x, norm, order=order), np.float64)
                sizes = np.linalg.norm(made, ord=order, axis=1)
                assert sizes.max() <= norm
                assert sizes[:2000].min() >= norm * (1 - (dim + 9) * np.finfo(np.float32).eps)


@pytest.mark.parametrize("order", [1, 2])
def test_clipping_holds_in_extreme_units(order):
    """Squares of these instances underflow or overflow float32."""
    x = np.array([[3.0, 4.0], [-30.0, 40.0], [0.1, 0.2], [0.0, 0.0]])
    expected = np.asarray(clipped(x, 1.0, order=order))
    for unit in (1e-37, 1e-20, 1e30):
        made = np.asarray(clipped(x * unit, unit, order=order), np.float64) / unit
        np.testing.assert_allclose(made, expected, rtol=1e-5)
        assert np.linalg.norm(made, ord=order, axis=1).max() < 1 + 1e-5


def test_clipped_takes_any_batch_and_traced_norms_of_which_wrong_ones_give_nan():
    x = jnp.ones((2, 4, 3))
    made = jax.vmap(clipped, (None, 0))(x, jnp.array([1.0, 10.0, -1.0, np.nan]))
    np.testing.assert_allclose(made[0], clipped(x, 1.0))
    np.testing.assert_array_equal(made[1], x)
    assert np.isnan(made[2:]).all()


def test_mechanisms_are_noise_distributions():
    assert isinstance(laplace_mechanism(epsilon=1.0, l1_sensitivity=1.0), noise.Laplace)
    scales = jax.vmap(lambda e: laplace_mechanism(epsilon=e, l1_sensitivity=2.0).scale)
    np.testing.assert_allclose(scales(jnp.array([1.0, 4.0])), [2.0, 0.5])


RIGHT = {
    clipped: {"x": [1.0], "norm": 1.0},
    laplace_mechanism: {"epsilon": 1.0, "l1_sensitivity": 1.0},
    gaussian_mechanism: {"epsilon": 1.0, "delta": 1e-5, "l2_sensitivity": 1.0},
}
FLOAT32 = r"norm must be in \[1\.175.*e-38, 3\.40.*e\+38\].*: outside the range of float32"


@pytest.mark.parametrize(
    ("call", "wrong", "message"),
    [
        (clipped, {"norm": 0.0}, "norm must be positive and finite, got 0.0"),
        (clipped, {"norm": 1e-45}, FLOAT32),
        (clipped, {"order": 3}, "order must be 1 or 2"),
        (clipped, {"x": 1.0}, r"x must be \[..., d\]"),
        (clipped, {"x": [[np.nan]]}, "^x"),
        (clipped, {"x": [[np.inf]]}, "^x"),
        (clipped, {"x": [["a"]]}, "^x"),
        (clipped, {"x": [[1j]]}, "^x"),
        (clipped, {"x": [[1.0], [1.0, 2.0]]}, "^x"),
        (laplace_mechanism, {"l1_sensitivity": 1e-40}, "the scale of the noise must be in"),
        (laplace_mechanism, {"epsilon": 0.0}, "epsilon must be positive"),
        (laplace_mechanism, {"l1_sensitivity": -1.0}, "l1_sensitivity must be"),
        (laplace_mechanism, {"epsilon": np.ones(2)}, r"epsilon must be one number, got shape \[2"),
        (laplace_mechanism, {"copies": 0}, "copies must be a whole number of at least 1"),
        (gaussian_mechanism, {"l2_sensitivity": 1e-25}, "the variance of the noise must be in"),
        (gaussian_mechanism, {"epsilon": np.inf}, "epsilon must be positive and finite"),
        (gaussian_mechanism, {"delta": 0.0}, "use laplace_mechanism"),
        (gaussian_mechanism, {"delta": 1.0}, "delta must be above 0 and"),
        (gaussian_mechanism, {"l2_sensitivity": 0}, "l2_sensitivity must be"),
        (gaussian_mechanism, {"copies": 1.5}, "copies must be a whole number"),
    ],
)
def test_bad_input_raises(call, wrong, message):
    raises(message, call, **RIGHT[call] | wrong)


def test_gaussian_noise_is_calibrated_outside_of_jit():
    def variance(epsilon):
        return gaussian_mechanism(**RIGHT[gaussian_mechanism] | {"epsilon": epsilon}).cov

    message = "epsilon must be concrete, got a traced one: .* calibrated on the host"
    raises(message, jax.vmap(variance), jnp.ones(2))


def test_randomized_response_attains_the_budget():
    for epsilon in (0.1, 1.0, 50.0):
        rate = randomized_response(epsilon=epsilon).rate[0]
        np.testing.assert_allclose(np.log1p(-rate) - np.log(rate), epsilon, rtol=1e-9)
    traced = jax.vmap(lambda epsilon: randomized_response(epsilon=epsilon))(jnp.array([1.0, -1.0]))
    np.testing.assert_allclose(traced.rate[0], [1 / (1 + np.e), np.nan], rtol=1e-6)
    raises("epsilon must be positive", randomized_response, epsilon=0.0)


@pytest.mark.parametrize("order", [1, 2])
def test_gradients_are_those_of_the_identity_in_a_row_of_zeros(order):
    x = jnp.array([[0.0, 0.0], [0.3, 0.0], [3.0, 4.0]])
    by_x, by_norm = finite_slopes(lambda x, c: clipped(x, c, order=order), x, jnp.float32(1.0))
    np.testing.assert_array_equal(by_x[:2, :, :2].reshape(4, 4), np.eye(4))
    np.testing.assert_array_equal(by_norm[:2], 0)
    assert np.all(by_norm[2] > 0)
