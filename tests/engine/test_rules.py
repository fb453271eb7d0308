"""The adaptive rate √2 B/√(Σ ‖g‖²), on weights and on the engine, and its guarantee."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample, unrolled
from noisy_jax.engine import rate_of
from tests.errors import raises
from tests.keys import key

RADIUS, DIM, T = 0.8, 3, 60


def arbitrary_vectors(rng, kind):
    g = rng.normal(size=(T, DIM))
    if kind == "heavy tails":
        g = rng.standard_t(1.5, size=(T, DIM))
    if kind == "growing":
        g *= 1.3 ** np.arange(T)[:, None]
    if kind == "falling":
        g *= 0.7 ** np.arange(T)[:, None]
    if kind == "one direction":
        g = np.abs(g[:, :1]) * np.eye(DIM)[0]
    return g


def descent(g, rate_factor=1.0):
    """Projected gradient descent in NumPy: the iterates, `[T, d]`."""
    w, squares, iterates = np.zeros(DIM), 0.0, []
    for gradient in g:
        iterates.append(w)
        squares += gradient @ gradient
        w = w - rate_factor * 2**0.5 * RADIUS / squares**0.5 * gradient
        w = w * min(1, RADIUS / np.linalg.norm(w))
    return np.array(iterates)


KINDS = ("normal", "heavy tails", "growing", "falling", "one direction")


@pytest.mark.statistical
@pytest.mark.claim("EXT-AdaptiveRate")
@pytest.mark.parametrize("kind", KINDS)
def test_the_inequality_holds_for_arbitrary_vectors(x64, rng, kind):
    """Against the best u, which is opposite to the sum; iterates are those of a NumPy loop."""
    learner = nj.learners.gradient_descent(
        lambda weights, sample: sample.x[0], copies=1, radius=RADIUS
    )
    run = jax.jit(unrolled(learner))
    ratios = []
    for _ in range(60):
        g = arbitrary_vectors(rng, kind)
        samples = Sample(jnp.asarray(g)[:, None], jnp.zeros(T))
        keys = jax.random.split(key(0), T)
        x = jnp.broadcast_to(jnp.eye(DIM)[0], (T, DIM))
        state, first_weights, _ = run(learner.init(DIM), samples, x, keys)
        iterates = descent(g)
        np.testing.assert_allclose(first_weights, iterates[:, 0], rtol=1e-9, atol=1e-12)
        regret = np.sum(g * iterates) + RADIUS * np.linalg.norm(g.sum(axis=0))
        bound = 8**0.5 * RADIUS * np.sum(g**2) ** 0.5
        assert nj.bounds.adaptive_rate(state, radius=RADIUS) == pytest.approx(bound)
        ratios.append(regret / bound)
    assert 0.08 < max(ratios) < 1


@pytest.mark.parametrize("adaptive", [True, False])
def test_an_adversary_breaks_the_inequality_for_a_large_constant_rate_only(adaptive):
    """Gradients along w_t: with a constant rate w jumps to the other side in every round."""
    w, squares, regret, total = RADIUS * np.eye(DIM)[0], 0.0, 0.0, np.zeros(DIM)
    for _ in range(T):
        g = np.sign(w[0]) * np.eye(DIM)[0]
        regret, total, squares = regret + g @ w, total + g, squares + g @ g
        w = w - (2**0.5 * RADIUS / squares**0.5 if adaptive else 2 * RADIUS) * g
        w = w * min(1, RADIUS / max(np.linalg.norm(w), 1e-9))
    holds = regret + RADIUS * np.linalg.norm(total) <= 8**0.5 * RADIUS * squares**0.5
    assert holds == adaptive


@pytest.mark.claim("EXT-AdaptiveRate")
def test_the_engine_knows_the_gradient(x64, rng):
    """‖g̃ k(x̃, ·)‖² of a kernel with k(x, x) ≠ 1, projected, against explicit features."""
    kernel = nj.kernels.polynomial(degree=2)
    x, y = rng.normal(size=(T, 1)), rng.normal(size=T)
    learner = nj.learners.uncorrected_kernel(kernel, horizon=T, radius=RADIUS)
    samples, keys = Sample(jnp.asarray(x)[:, None], jnp.asarray(y)), jnp.zeros((T, 2), jnp.uint32)
    state, predictions, _ = jax.jit(learner.unroll)(learner.init(1), samples, jnp.asarray(x), keys)
    z = np.concatenate([x**2, 2**0.5 * x, np.ones_like(x)], axis=1)  # (xz + 1)²
    w, squares, expected = np.zeros(3), 0.0, []
    for feature, target in zip(z, y, strict=True):
        expected.append(w @ feature)
        g = 2 * (w @ feature - target) * feature
        squares += g @ g
        w = w - 2**0.5 * RADIUS / squares**0.5 * g
        w = w * min(1, RADIUS / np.linalg.norm(w))
    np.testing.assert_allclose(predictions, expected, rtol=1e-9)
    assert nj.bounds.adaptive_rate(state, radius=RADIUS) == pytest.approx(
        8**0.5 * RADIUS * squares**0.5
    )


def test_zero_gradients_change_nothing_and_overflow_is_reported():
    rate = rate_of(None, 2.0)
    eta, state = rate.at(rate.init(), 0, jnp.float32(0.0))
    assert eta == 0
    eta, state = rate.at(state, 1, jnp.float32(4.0))
    assert eta == pytest.approx(2**0.5)
    assert np.isnan(rate.at(state, 2, jnp.float32(np.inf))[0])
    assert np.isnan(rate.at(state, 2, jnp.float32(np.nan))[0])


@pytest.mark.slow
def test_units_of_the_targets_have_no_effect():
    stream = nj.streams.linear(jax.random.key(0), 200, DIM)
    runs = []
    for unit in (1.0, 1e6):
        learner = nj.learners.two_copies(radius=unit)
        scaled = nj.Stream(stream.x, unit * stream.y)
        run = nj.rollout(learner, scaled, nj.noise.Gaussian(0.1), jax.random.key(1))
        runs.append(run.predictions / unit)
    np.testing.assert_allclose(*runs, rtol=1e-3, atol=1e-5)


def test_bad_states_and_guarantees():
    learner = nj.learners.two_copies(radius=1.0, learning_rate=0.1)
    with pytest.raises(ValueError, match="state must hold one adaptive rate"):
        nj.bounds.adaptive_rate(learner.init(2), radius=1.0)
    raises(r"guarantee must bound the regret .* got 1\.5", nj.bounds.at_adaptive_rate, 1.5)
    theory = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
    with pytest.raises(ValueError, match="must be at the theorem's own rate"):
        nj.bounds.at_rate_factor(nj.bounds.at_adaptive_rate(theory), 2.0)
    raises("radius must be given for the adaptive rate", nj.engine.squared_loss)
    with pytest.raises(ValueError, match=r"must be given with engine\.growing"):
        nj.learners.norma(
            nj.kernels.linear(), nj.losses.soft_margin(), regularization=0.1,
            buffer=nj.engine.growing(20, start=5, excess=0.3),
        )  # fmt: skip
    with pytest.raises(ValueError, match="regularization must be positive"):
        nj.learners.norma(
            nj.kernels.linear(), nj.losses.soft_margin(), regularization=0.0, buffer=5
        )
