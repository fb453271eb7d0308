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
from tests.errors import raises
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
@pytest.mark.claim("NK-Alg1", "NK-Sub3", "NK-Lemma4")
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
@pytest.mark.claim("NK-Sub1")
def test_second_round_enumerated_is_the_gradient_step_of_a_margin_loss(x64):
    """Given f_2. Without the label inside the product it would be another slope for y = −1."""
    kernel, rate, x, y = KERNELS["polynomial"], 0.2, np.array([-0.6]), -1.0
    estimator = estimator_of(kernel, nj.losses.exponential(), max_bias=1e6)
    estimator = estimator._replace(radius=1e4)  # never projected
    z = np.array([[0.2], [0.9]])
    start = nj.learners.random_truncation(estimator, horizon=2, learning_rate=rate)
    key, copies = jax.random.key(7), jnp.full((estimator.copies, 1), 0.8)
    before = start.step(start.init(1), nj.Sample(copies, jnp.ones(())), key)
    orders, copies, chances = every_round(estimator, x, 0.3 * np.ones((estimator.copies, 1)))
    after = jax.jit(jax.vmap(step_of(estimator, y), (None, 0, 0)))(before, orders, copies)
    f, values = start.predict(before, x[None])[0], jax.vmap(start.predict, (0, None))(after, z)
    assert abs(f) > 0.1
    moved = chances @ values - start.predict(before, z)
    at_z = kernel(z, x[None])[:, 0]
    exact = -rate * y * estimator.derivative.series(y * f) * at_z
    np.testing.assert_allclose(moved, exact, rtol=1e-10)
    printed = -rate * y * estimator.derivative.series(f) * at_z
    assert not np.allclose(moved, printed, rtol=1e-3)

    same = jnp.repeat(copies[:, :1], estimator.copies, axis=1)  # one copy, used for all
    biased = jax.jit(jax.vmap(step_of(estimator, y), (None, 0, 0)))(before, orders, same)
    biased = chances @ jax.vmap(start.predict, (0, None))(biased, z) - start.predict(before, z)
    assert np.abs(biased / moved - 1).max() > 0.05


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


def test_bad_input_is_rejected():
    estimator = estimator_of(KERNELS["polynomial"], nj.losses.squared())
    make = nj.learners.random_truncation
    raises("estimator must be a GradientEstimator", make, KERNELS["polynomial"], horizon=5)
    raises("learning_rate must be positive", make, estimator, horizon=5, learning_rate=-0.1)
    raises("horizon must be a whole number", make, estimator, horizon=0, learning_rate=0.1)
    learner = make(estimator, horizon=5, learning_rate=0.1)
    given = learner.init(2), nj.Sample(jnp.ones((3, 2)), jnp.ones(())), jax.random.key(0)
    raises("reads 4 independent noisy copies", learner.step, *given)
    stream = nj.streams.linear(jax.random.key(0), 6, 2)
    raises("room for 5", nj.rollout, learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1))


@pytest.mark.slow
def test_noisy_targets_raise_where_they_would_bias():
    stream, noise = nj.streams.linear(jax.random.key(0), 6, 2), nj.noise.Gaussian(0.1)

    def run(loss, wrap=lambda learner: learner, y_noise=noise):
        estimator = estimator_of(KERNELS["polynomial"], loss, radius=0.1**0.5)
        learner = nj.learners.random_truncation(estimator, horizon=6, learning_rate=0.01)
        given = wrap(learner), stream, noise, jax.random.key(1)
        jax.eval_shape(lambda: nj.rollout(*given, y_noise=y_noise).predictions)

    biased = nj.losses.smoothed_absolute()
    for wrap in (
        lambda learner: learner,
        lambda learner: nj.wrappers.cloned(learner, noise),
        nj.wrappers.paired,
    ):
        raises("y_noise must be None: this learner is biased", run, biased, wrap)
    run(nj.losses.squared())  # linear in y, and unbiased
