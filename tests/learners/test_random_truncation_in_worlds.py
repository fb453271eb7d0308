"""Analytic losses in parallel worlds: random truncation with estimates by a surrogate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.unbiased.truncation.gradients import kernel_gradient
from tests.errors import raises
from tests.quadrature import gauss_hermite

VARIANCE = 0.1
NOISE = nj.noise.Gaussian(VARIANCE)
LOSSES = {
    "smoothed_hinge": (nj.losses.smoothed_hinge(), 0.0),
    "about another centre": (nj.losses.smoothed_hinge(), 0.4),
    "smoothed_absolute": (nj.losses.smoothed_absolute(), 0.3),
}


def world_of(noise=NOISE, length_scale=0.5**0.5, dim=1):
    return nj.worlds.gaussian(dim=dim, length_scale=length_scale, noise=noise)


@pytest.mark.slow
@pytest.mark.claim("EXT-AnalyticWorlds")
@pytest.mark.parametrize("name", LOSSES)
def test_a_step_is_the_plain_formula(x64, rng, name):
    """NumPy's formula has γ_n Π (a_i − c) of n separate copies, whose mean is γ_n (a − c)ⁿ."""
    (loss, center), rounds, dim = LOSSES[name], 30, 2
    margin, world = loss.kind == "margin", world_of(length_scale=1.0, dim=dim)
    options = {"radius": 0.4, "loss_order": 3, "max_bias": 1e9, "center": center}
    estimator = kernel_gradient(world, loss, **options)
    assert estimator.copies == 4
    learner = nj.learners.random_truncation(estimator, horizon=rounds, learning_rate=0.3, block=8)
    x = rng.normal(size=(rounds, dim))
    copies = x[:, None] + VARIANCE**0.5 * rng.normal(size=(rounds, 4, dim))
    y, keys = np.sign(rng.normal(size=rounds)), jax.random.split(jax.random.key(2), rounds)
    samples = nj.Sample(jnp.asarray(copies), jnp.asarray(y), jnp.full(rounds, VARIANCE))
    state, predictions, _ = learner.unroll(learner.init(dim), samples, jnp.asarray(x), keys)
    orders = np.asarray(jax.vmap(estimator.draw_orders)(keys).derivative)
    assert len(set(orders)) > 2
    weights, projected = np.zeros(rounds), 0
    stored, gamma = copies[:, 0], estimator.derivative.weights
    for t in range(rounds):
        clean = weights @ np.asarray(world.kernel(stored, x[t : t + 1]))[:, 0]
        np.testing.assert_allclose(predictions[t], clean, atol=1e-10)
        read = weights @ np.asarray(world.surrogate(stored, copies[t, 1:]))
        arguments = y[t] * read if margin else read - y[t]
        slope = gamma[orders[t]] * np.prod(arguments[: orders[t]] - center)
        weights[t] = -0.3 * (y[t] * slope if margin else slope)
        norm = np.sqrt(weights @ np.asarray(world.surrogate(stored, stored)) @ weights)
        projected += norm > 0.4
        weights *= 0.4 / max(norm, 0.4)
    assert projected > 2
    np.testing.assert_allclose(state.weights[:rounds], weights, atol=1e-10)
    np.testing.assert_array_equal(state.atoms.copies[:rounds], 1 + orders)


@pytest.mark.slow
@pytest.mark.claim("EXT-AnalyticWorlds")
def test_the_soft_margin_of_one_reading_is_biased(x64):
    """The numbers in the docstring of `norma`, and those of the smoothed hinge."""
    world = world_of(nj.noise.Gaussian(0.4))
    nodes = np.linspace(-9, 9, 20_001)
    weights = np.exp(-(nodes**2) / 2) / np.exp(-(nodes**2) / 2).sum()
    read = np.asarray(world.surrogate(jnp.zeros((1, 1)), jnp.asarray(0.4**0.5 * nodes[:, None])))[0]
    np.testing.assert_allclose(weights @ read, 1, rtol=1e-10)  # f(x) = 1, without bias
    hinge = nj.losses.hinge(margin=0.5)
    assert hinge.gradient(1.0, 1.0) == 0
    assert abs(weights @ np.asarray(hinge.gradient(read, np.ones_like(read))) + 0.3868) < 5e-4
    # At a clean margin of 2 the smoothed hinge has slope −0.079; on average, at estimates, −0.360.
    loss = nj.losses.smoothed_hinge()
    clean = float(loss.gradient(2.0, 1.0))
    biased = weights @ np.asarray(loss.gradient(2 * read, np.ones_like(read)))
    np.testing.assert_allclose([clean, biased], [-0.0786, -0.3603], atol=5e-4)
    # The estimate about 1 at most at order 7 is right there up to what is cut off.
    options = {"radius": 2.0, "loss_order": 7, "center": 1.0, "max_bias": 1e9}
    derivative = kernel_gradient(world, loss, **options).derivative
    powers = (weights @ (2 * read - 1)) ** np.arange(8)
    mean = derivative.orders.probabilities @ (derivative.weights * powers)
    assert abs(mean - clean) < 0.003


@pytest.mark.parametrize("variance", [0.0, 0.2])
@pytest.mark.slow
def test_bounds_on_values_and_moments_hold_in_the_ball(x64, rng, variance):
    """|f(x)| ≤ W√k(x, x) and E f̂(x̃)² ≤ W²R², both attained without noise; k(x, x) is not 1."""
    world = nj.worlds.rational(dim=1, noise=nj.noise.Gaussian(variance), cutoff=2.0)
    options = {"radius": 2.0, "loss_order": 2, "max_bias": 1e9}
    estimator = kernel_gradient(world, nj.losses.smoothed_hinge(), **options)
    nodes, chances = gauss_hermite(60, np.array([[variance]]))
    largest, moment = 0.0, 0.0
    for terms in (1, 1, 3, 3, 8):
        atoms = jnp.asarray(0.3 * rng.normal(size=(terms, 1)))
        weights = rng.normal(size=terms)
        weights *= 2 / np.sqrt(weights @ np.asarray(world.surrogate(atoms, atoms)) @ weights)
        x = np.asarray(atoms[:1])
        largest = max(largest, abs(weights @ np.asarray(world.kernel(atoms, x)))[0])
        read = weights @ np.asarray(world.surrogate(atoms, jnp.asarray(x + nodes)))
        moment = max(moment, chances @ read**2)
    assert largest <= estimator.largest_value * (1 + 1e-12)
    bound = estimator.radius**2 * estimator.map_second_moment
    assert moment <= bound * (1 + 1e-12)
    if variance == 0:
        np.testing.assert_allclose([largest, moment], [estimator.largest_value, bound])
    else:
        assert 1 < world.diagonal == estimator.map_second_moment
    exact = estimator.derivative.second_moment(np.sqrt(bound) ** 2)
    np.testing.assert_allclose(estimator.derivative_second_moment, exact)
    theory = nj.bounds.random_truncation(estimator, horizon=100)
    expected = 2 * np.sqrt(world.diagonal * exact * 100) + theory.bias
    np.testing.assert_allclose(theory.regret, expected, rtol=1e-6)


def estimator_of(loss=LOSSES["smoothed_hinge"][0], **options):
    return kernel_gradient(**{"kernel": world_of(), "loss": loss, "radius": 1.0} | options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: estimator_of(kernel_order=2), "x_second_moment and kernel_order must be None in"),
        (
            lambda: estimator_of(x_second_moment=1.0),
            "x_second_moment and kernel_order must be None",
        ),
        (lambda: estimator_of(kernel=nj.kernels.linear()), "x_second_moment must be numbers, got"),
        (lambda: estimator_of(nj.losses.hinge()), r"a power series, .* losses\.smoothed_hinge"),
        (lambda: estimator_of(radius=2.0, loss_order=4), "too small: .* loss_order=18 would do"),
        (
            lambda: nj.bounds.random_truncation(estimator_of(), horizon=10, closed_form=True),
            "in a world there is no closed form",
        ),
        (
            lambda: nj.bounds.as_printed.random_truncation(estimator_of(), horizon=10),
            "the theorems are of kernels",
        ),
        (
            lambda: nj.wrappers.cloned(
                nj.learners.random_truncation(estimator_of(), horizon=5), NOISE
            ),
            r"build its world with noise\.cloned",
        ),
    ],
)
def test_bad_arguments_raise(call, message):
    raises(message, call)
