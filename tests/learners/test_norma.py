"""NORMA against other libraries, in worlds, and as the papers print it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import SGDRegressor

import noisy_jax as nj
from noisy_jax import losses
from noisy_jax.base import Sample
from noisy_jax.engine import everything, weight_vector
from noisy_jax.learners import norma, perceptron
from tests.keys import SHIFT, key
from tests.learners import references
from tests.learners.norma_runs import (
    DIM,
    FAR,
    KERNEL,
    LENGTH_SCALE,
    PLAIN,
    T,
    kept,
    labelled,
    scanned,
    valued,
)
from tests.learners.runs import inputs, unrolled
from tests.quadrature import gauss_hermite

NU = 0.3


@pytest.mark.slow
@pytest.mark.claim("NORMA-Eq13-16,18", "NORMA-Eq25-27")
def test_perceptron_is_norma_without_margin_and_decay(rng):
    x, y = labelled(rng)
    options = {"learning_rate": 0.25, "regularization": 0.0, "buffer": 30}
    state, predictions = unrolled(perceptron(KERNEL, buffer=30), x, y)
    slow, quarter = unrolled(norma(KERNEL, losses.hinge(margin=0.0), **options), x, y)
    np.testing.assert_array_equal(predictions * 0.25, quarter)
    np.testing.assert_array_equal(state.weights * 0.25, slow.weights)
    mistakes = np.asarray(y * predictions <= 0)
    assert np.any(mistakes[1:])
    np.testing.assert_array_equal(state.weights[:30], kept(y * mistakes, 30).astype(np.float32))


@pytest.mark.claim("NORMA-offset")
def test_perceptron_makes_the_mistakes_of_river(x64):
    from river.linear_model import Perceptron

    x, y = load_breast_cancer(return_X_y=True)
    x, signs = (x - x.mean(axis=0)) / x.std(axis=0), np.where(y == 1, 1.0, -1.0)
    model, chances = Perceptron(), []
    for row, label in zip(x.tolist(), y == 1, strict=True):
        row = dict(enumerate(row))
        chances.append(model.predict_proba_one(row)[True])
        model.learn_one(row, label)
    learner = perceptron(nj.kernels.linear(), buffer=weight_vector(), offset=True)
    state, predictions = unrolled(learner, x, signs)
    mistakes = np.asarray(signs * predictions <= 0)
    np.testing.assert_array_equal(mistakes, signs * (np.array(chances) - 0.5) <= 0)
    assert 10 < mistakes.sum() < 100
    np.testing.assert_allclose(state.weights, list(model.weights.values()), atol=1e-9)
    np.testing.assert_allclose(state.rule.offset, model.intercept, atol=1e-9)


@pytest.mark.slow
@pytest.mark.claim("NORMA-Fig2-repro")
@pytest.mark.statistical
def test_untuned_norma_beats_the_perceptron_on_a_drifting_target():
    """Over 2,000 rounds it makes under 0.85 of the mistakes, by 5 standard errors of 20 seeds."""
    kernel = nj.kernels.gaussian(length_scale=0.5)
    options = {"learning_rate": 1.0, "regularization": 0.03, "buffer": 200}
    learners = perceptron(kernel, buffer=2000), norma(kernel, losses.hinge(), **options)

    @jax.jit
    @jax.vmap
    def mistakes(stream_key):
        x, y = nj.streams.drifting(stream_key, 2000)
        return [
            jnp.sum(y * learner.unroll(learner.init(2), *inputs(x, y))[1] <= 0)
            for learner in learners
        ]

    theirs, ours = map(np.asarray, mistakes(jax.random.split(key(0), 20)))
    excess = ours - 0.85 * theirs
    assert excess.mean() < -5 * excess.std() / 20**0.5, ours / theirs
    assert theirs.mean() < 400


@pytest.mark.slow
@pytest.mark.claim("NORMA-Eq21")
def test_squared_loss_on_the_linear_kernel_is_sgd_of_scikit_learn(x64):
    x, y = load_diabetes(return_X_y=True)
    x, y = (x / x.std(axis=0))[:150], (y[:150] - y.mean()) / y.std()
    eta, alpha = 0.05, 0.3  # of ½(y − p)² + (α/2)‖w‖²
    peer = SGDRegressor(
        alpha=alpha, learning_rate="constant", eta0=eta, shuffle=False, max_iter=1, tol=None
    )
    theirs = []
    for row, target in zip(x, y, strict=True):
        theirs.append(peer.predict(row[None])[0] if theirs else 0.0)
        peer.partial_fit(row[None], [target])
    options = {"regularization": 2 * alpha, "buffer": 150, "offset": True}
    learner = norma(nj.kernels.linear(), losses.squared(), learning_rate=eta / 2, **options)
    state, ours = unrolled(learner, x, y)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)
    np.testing.assert_allclose(state.rule.offset, peer.intercept_[0], atol=1e-12)


def alarms(sign, initial, nu=0.1, rate=0.05, rounds=600):
    """Shares of alarms under ρ ← ρ + sign · η(ν − σ), with decay 1 − η as in Eq. 20."""
    x = np.random.default_rng(1 + 1000 * SHIFT).normal(size=(rounds, DIM))

    def step(t, f, _, rho):
        alarm = f < rho
        return rate * alarm, rho + sign * rate * (nu - alarm)

    predictions, scales, *_ = references.norma(
        PLAIN, step, lambda t, added: 1 - rate, x, x[:, 0], oldest=lambda t: t - 100, scale=initial
    )
    return np.mean(predictions < scales)


@pytest.mark.statistical
@pytest.mark.claim("NORMA-Eq20")
def test_the_printed_sign_of_novelty_sounds_no_alarm_or_every_one():
    assert alarms(-1, 0.0) == 0
    assert alarms(-1, 0.1) == 1
    np.testing.assert_allclose([alarms(1, 0.0), alarms(1, 0.1)], 0.1, atol=0.02)


@pytest.mark.statistical
@pytest.mark.claim("NORMA-Eq19", "NORMA-Eq22")
def test_printed_updates_of_other_scales_miss_their_share(rng):
    rate, rounds = 0.1, 1000

    def share(data, step, far):
        x, y = data(rng, rounds)
        predictions, scales, *_ = references.norma(
            PLAIN, step, lambda t, added: 0.96, x, y, oldest=lambda t: t - 100
        )
        return np.mean(far(predictions, y, scales))

    def margin(sign):
        def step(t, p, y, s):
            error = y * p <= s
            return rate * y * error, s + sign * rate * (NU - error)

        return share(labelled, step, FAR["nu"])

    def tube(excess, rest):
        def step(t, p, y, s):
            far = abs(y - p) > s
            return rate * np.sign(y - p) * far, s + rate * (excess if far else -rest)

        return share(valued, step, FAR["nu tube"])

    assert margin(-1) > 0.9  # Eq. 19 as printed
    np.testing.assert_allclose(tube(NU, 1 - NU), 1 - NU, atol=0.02)  # the text below Eq. 22
    np.testing.assert_allclose([margin(1), tube(1 - NU, NU)], NU, atol=0.02)


@pytest.mark.claim("NORMA-adaptive-σ")
def test_scales_are_clamped(x64, rng):
    x = rng.normal(size=(T, DIM))
    for loss, least in (
        (losses.nu_epsilon_insensitive(nu=0.9), 0.0),
        (losses.nu_huber(nu=0.45, tracker="joint", smallest=0.05), 0.05),
    ):
        learner = norma(KERNEL, loss, learning_rate=0.1, regularization=0.1, buffer=T)
        _, _, rules = scanned(learner, x, np.zeros(T))  # nothing to learn: scales fall
        assert np.min(rules.scale) == least


@pytest.mark.claim("NORMA-Eq17")
def test_everything_kept_gives_a_norm_below_the_bound(x64, rng):
    """‖f‖ ≤ X/λ for the soft margin, and ‖f‖² is αᵀKα."""
    x, y = labelled(rng)
    options = {"learning_rate": 0.5, "regularization": 0.5, "buffer": everything(T)}
    state, _ = unrolled(norma(KERNEL, losses.hinge(), **options), x, y)
    alpha = np.asarray(state.weights)[:T]
    squared_norm = alpha @ PLAIN(x[:, None], x[None]) @ alpha
    np.testing.assert_allclose(state.squared_norm, squared_norm, rtol=1e-12)
    assert np.abs(alpha).sum() <= 1 / 0.5
    assert np.sqrt(squared_norm) <= 1 / 0.5


@pytest.mark.slow
def test_in_a_world_a_small_ring_with_decay_equals_the_loop(x64, rng):
    """Noisy inputs and drift together: f is read at the second copy, and terms hold the first."""
    (x, y), variance, size = labelled(rng), 0.2, 15
    noise = nj.noise.Gaussian(variance)
    world = nj.worlds.gaussian(dim=DIM, length_scale=LENGTH_SCALE, noise=noise)
    surrogate = references.gaussian_surrogate(LENGTH_SCALE, variance * np.eye(DIM))
    copies = x[:, None] + variance**0.5 * rng.normal(size=(T, 2, DIM))
    alpha, predictions = np.zeros(T), np.zeros(T)
    for t in range(T):
        kept = slice(max(t - size, 0), t)
        predictions[t] = alpha[kept] @ PLAIN(copies[kept, 0], x[t])
        value = alpha[kept] @ surrogate(copies[kept, 0], copies[t, 1])
        alpha *= 0.94
        alpha[t] = 0.3 * y[t] * (y[t] * value <= 1)
    options = {"learning_rate": 0.3, "regularization": 0.2, "buffer": size}
    _, made = unrolled(norma(world, losses.hinge(), **options), x, y, copies=copies)
    np.testing.assert_allclose(made, predictions, atol=1e-12)
    smooth = (norma(world, losses.logistic(), copies=v, **options) for v in (2, 1))
    two, one = (unrolled(c, x, y, copies=copies[:, : c.needs.copies])[1] for c in smooth)
    assert np.abs(two - one).max() > 0.01  # with one copy f is read where it is stored


@pytest.mark.slow
def test_a_second_copy_makes_the_step_right_on_average(x64):
    """After one fixed round, the mean step over all pairs of ±n is the clean one; of one, not."""
    linear = nj.kernels.linear()  # its own surrogate under any noise
    first, second, y = jnp.array([[1.0]]), 1.5, -1.0

    @functools.partial(jax.jit, static_argnums=0)
    def after(copies, second_round):
        learner = norma(
            linear, losses.squared(), learning_rate=0.1, regularization=0.1, buffer=4, copies=copies
        )
        state = learner.init(1)
        for x, target in ((jnp.broadcast_to(first, (2, 1)), 1.0), (second_round[:, None], y)):
            state = learner.step(state, Sample(x, jnp.asarray(target)), jax.random.key(0))
        return learner.predict(state, jnp.ones(1))

    signs = jnp.array([[1, 1], [1, -1], [-1, 1], [-1, -1]]) * 0.5
    clean = after(1, jnp.full(2, second))
    two, one = (jnp.mean(jax.vmap(lambda n, v=v: after(v, second + n))(signs)) for v in (2, 1))
    np.testing.assert_allclose(two, clean, atol=1e-12)
    assert abs(one - clean) > 0.005


def test_a_step_in_a_world_descends_the_loss_at_a_fixed_error_of_the_value(x64):
    """With two copies. A step from one copy descends another function, E ℓ(f(x̃), y)."""
    noise, x, y = nj.noise.Gaussian(0.3), jnp.array([0.7]), jnp.array(0.3)
    world = nj.worlds.gaussian(dim=1, length_scale=1.0, noise=noise)
    features = nj.worlds.fourier(jax.random.key(0), world, 4)
    loss = losses.smoothed_absolute(sharpness=3.0)
    w = jnp.array([3.0, -1.0, 2.0, 1.0])
    nodes, weights = gauss_hermite(40, 0.3, 1)
    copies_of_x = x[None] + nodes
    noisy = features.noisy(copies_of_x)

    def mean(values):
        return jnp.asarray(weights) @ values

    def mean_step(copies):
        options = {"learning_rate": 1.0, "regularization": 0.0, "copies": copies}
        learner = norma(features, loss, **options)
        state = learner.init(1)._replace(weights=w)

        def moved(*x):
            sample = Sample(jnp.stack(x), y)
            return w - learner.step(state, sample, jax.random.key(0)).weights

        if copies == 1:
            return mean(jax.vmap(moved)(copies_of_x))

        def over_second(first):
            return mean(jax.vmap(functools.partial(moved, first))(copies_of_x))

        return mean(jax.vmap(over_second)(copies_of_x))

    error = noisy @ w - features.clean(x) @ w
    fixed = jax.grad(lambda w: mean(loss(features.clean(x) @ w + error, y)))(w)
    at_copies = jax.grad(lambda w: mean(loss(noisy @ w, y)))(w)
    np.testing.assert_allclose(mean_step(2), fixed, atol=1e-6)
    np.testing.assert_allclose(mean_step(1), at_copies, atol=1e-6)
    assert np.abs(fixed - at_copies).max() > 0.05
