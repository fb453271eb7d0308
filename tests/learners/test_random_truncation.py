"""Random truncation: against a NumPy loop on explicit features, and enumerated exactly."""

import functools
import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.unbiased import kernel_gradient
from noisy_jax.unbiased.truncation.gradients import GradientEstimator, GradientOrders
from noisy_jax.unbiased.truncation.maps import MapOrders
from tests.learners.references import random_truncation as reference

LOSSES = {
    "squared": nj.losses.squared(),
    "exponential": nj.losses.exponential(),
    "smoothed_hinge": nj.losses.smoothed_hinge(sharpness=0.6),
    "smoothed_absolute": nj.losses.smoothed_absolute(sharpness=0.6),
    "logistic": nj.losses.logistic(),
}
KERNELS = {
    "polynomial": nj.kernels.polynomial(degree=2),
    "gaussian": nj.kernels.gaussian(length_scale=1.0),
    "exponential": nj.kernels.exponential(),
    "binomial": nj.kernels.binomial(alpha=0.7),
}
PAIRS = [
    ("polynomial", "exponential", "geometric"),
    ("gaussian", "squared", "geometric"),
    ("gaussian", "smoothed_hinge", "optimal"),
    ("exponential", "smoothed_absolute", "optimal"),
    ("binomial", "logistic", "geometric"),
]


def estimator_of(kernel, loss, **options):
    options = {"radius": 2.0, "x_second_moment": 0.45, "max_bias": 9.0, **options}
    return kernel_gradient(kernel, loss, kernel_order=2, loss_order=2, **options)


@pytest.mark.slow
@pytest.mark.claim("NK-Alg1", "NK-Sub1", "NK-Sub3", "NK-Lemma4")
@pytest.mark.parametrize(("kernel", "loss", "distribution"), PAIRS)
def test_equals_the_plain_loop_on_explicit_features(x64, rng, kernel, loss, distribution):
    rounds, dim, rate = 25, 2, 0.3
    kernel, loss = KERNELS[kernel], LOSSES[loss]
    estimator = estimator_of(kernel, loss, radius=0.3**0.5, distribution=distribution)
    x = rng.uniform(-0.6, 0.6, (rounds, dim))
    y = np.sign(rng.normal(size=rounds))
    copies = x[:, None] + 0.3 * rng.normal(size=(rounds, estimator.copies, dim))
    keys = jax.random.split(jax.random.key(2), rounds)
    orders = jax.vmap(estimator.draw_orders)(keys)
    given = estimator, jax.tree.map(np.asarray, orders), x, y, copies, 0.3, rate
    predictions, squared_norm, projected, used = reference(*given)
    learner = nj.learners.random_truncation(estimator, horizon=rounds, learning_rate=rate, block=8)
    samples = nj.Sample(jnp.asarray(copies), jnp.asarray(y))
    state, ours, _ = learner.unroll(learner.init(dim), samples, jnp.asarray(x), keys)
    np.testing.assert_allclose(ours, predictions, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(state.squared_norm, squared_norm, rtol=1e-10)
    np.testing.assert_array_equal(state.atoms.copies[:rounds], used)
    assert projected >= 3
    printed, *_ = reference(*given, as_printed=True)
    assert np.abs(printed - ours).max() > 0.05  # √B_w/‖f‖² in place of √(B_w/‖f‖²)
    if loss.kind == "margin":  # without the label inside the product
        printed, *_ = reference(*given, labelled=False)
        assert np.abs(printed - ours).max() > 1e-3


def every_round(estimator, x, noise):
    """All orders and all noise of one round, `[cases]` and `[cases, V, d]`, with probabilities."""
    maps = [estimator.maps.orders] * (1 + estimator.derivative.copies)
    distributions = [estimator.derivative.orders, *maps]
    drawn = [np.flatnonzero(each.probabilities) for each in distributions]
    signs = [[-1.0, 1.0]] * estimator.copies
    every = np.array(list(itertools.product(*drawn, *signs)))
    orders, signs = every[:, : len(distributions)].astype(int), every[:, len(distributions) :]
    chances = math.prod(d.probabilities[n] for d, n in zip(distributions, orders.T, strict=True))
    tensor = jnp.asarray(orders[:, 1:])
    told = GradientOrders(jnp.asarray(orders[:, 0]), MapOrders(tensor, 0 * tensor))
    return told, jnp.asarray(x + signs[:, :, None] * noise), chances / 2**estimator.copies


def step_of(estimator, y):
    """`(state, orders, copies) -> state`, the learner's step at orders that are given."""

    def step(state, orders, copies):
        class Told(GradientEstimator):
            def draw_orders(self, key):
                return orders

        learner = nj.learners.random_truncation(Told(*estimator), horizon=2, learning_rate=0.2)
        state = learner.init(1) if state is None else state
        return learner.step(state, nj.Sample(copies, jnp.asarray(y)), jax.random.key(0))

    return step


@pytest.mark.slow
@pytest.mark.claim("NK-Thm4")
def test_two_rounds_enumerated_are_the_gradient_steps_of_the_clean_kernel(x64):
    """Squared loss, whose slope is linear: exact over both rounds at once."""
    kernel, rate = KERNELS["polynomial"], 0.2
    estimator = estimator_of(kernel, nj.losses.squared(), radius=100.0)
    x, y, z = np.array([[0.5], [-0.3]]), (0.7, -1.0), np.array([[0.2], [0.9], [-1.1]])
    first = every_round(estimator, x[0], np.array([0.4, 0.2, 0.5, 0.3])[:, None])
    second = every_round(estimator, x[1], np.array([0.6, 0.1, 0.3, 0.2])[:, None])
    predict = nj.learners.random_truncation(estimator, horizon=2, learning_rate=rate).predict

    @jax.jit
    def both():
        def after_both(state):
            steps = jax.vmap(step_of(estimator, y[1]), (None, 0, 0))
            values = jax.vmap(predict, (0, None))(steps(state, *second[:2]), z)
            return jnp.asarray(second[2]) @ values, predict(state, z)

        states = jax.vmap(functools.partial(step_of(estimator, y[0]), None))(*first[:2])
        two, one = jax.lax.map(after_both, states, batch_size=16)
        return jnp.asarray(first[2]) @ one, jnp.asarray(first[2]) @ two

    once, twice = both()
    f2 = -rate * 2 * (0 - y[0]) * kernel(z, x[:1])[:, 0]
    at_x2 = -rate * 2 * (0 - y[0]) * kernel(x[1:], x[:1])[0, 0]
    np.testing.assert_allclose(once, f2, rtol=1e-10)
    f3 = f2 - rate * 2 * (at_x2 - y[1]) * kernel(z, x[1:])[:, 0]
    np.testing.assert_allclose(twice, f3, rtol=1e-10)


@pytest.mark.slow
@pytest.mark.claim("NK-Ex1")
def test_squared_loss_over_a_linear_kernel_is_two_copies():
    estimator = kernel_gradient(
        nj.kernels.linear(), nj.losses.squared(), radius=0.5, x_second_moment=2.0
    )
    assert (estimator.copies, estimator.mean_copies) == (2, 2)
    dual = nj.learners.random_truncation(estimator, horizon=40, learning_rate=0.1)
    primal = nj.learners.two_copies(radius=0.5, learning_rate=0.1)

    def step(state, sample, key):  # which stores its second copy
        return primal.step(state, sample._replace(x=sample.x[::-1]), key)

    stream, noise = nj.streams.linear(jax.random.key(0), 40, 3), nj.noise.Gaussian(0.3)
    run = jax.jit(lambda learner, key: nj.rollout(learner, stream, noise, key), static_argnums=0)
    ours, theirs = run(dual, jax.random.key(1)), run(primal._replace(step=step), jax.random.key(1))
    chex.assert_trees_all_close(ours.predictions, theirs.predictions, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ours.state.squared_norm, jnp.sum(theirs.state.weights**2), rtol=1e-4)
    assert np.all(ours.state.atoms.copies[:40] == 2)
