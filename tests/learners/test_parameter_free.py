"""FreeGrad against a loop and against its theorem."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.engine import everything, weight_vector
from noisy_jax.learners import parameter_free
from noisy_jax.losses import Loss
from tests.keys import key
from tests.learners.runs import unrolled
from tests.slopes import finite_slopes

NORMS = (0.01, 0.1, 1.0, 10.0, 100.0)
LINEAR = nj.kernels.linear()
IDENTITY = Loss("identity", "residual", lambda a: a, lambda a: jnp.ones_like(a))
ABSOLUTE = nj.losses.epsilon_insensitive(epsilon=0.0)

vector = weight_vector()


def free_grad(gradient, rounds, dim, unit=1.0):
    """The loop of the paper: g_t and w_t, `[T, d]` each. `gradient(t, w)` is g_t."""
    minus_sum, squares, first, hint = np.zeros(dim), 0.0, 0.0, 0.0
    gradients, weights = [], []
    for t in range(rounds):
        w, n = np.zeros(dim), np.linalg.norm(minus_sum)
        if first:
            total = squares + hint * n
            power = n**2 / (2 * squares + 2 * hint * n)
            w = (2 * squares + hint * n) * first**2 / (2 * total**2 * squares**0.5) * minus_sum
            w = unit * np.exp(power) * w
        g = gradient(t, w)
        size = np.linalg.norm(g)
        if not first and size:
            first, squares, hint = size, size**2, size
        clipped = g * min(1, hint / size) if size else g
        minus_sum, squares = minus_sum - clipped, squares + clipped @ clipped
        hint = max(hint, size)
        gradients.append(g)
        weights.append(w)
    return np.array(gradients), np.array(weights)


def sequences(rng, rounds, dim):
    """Rules for g_t: random, heavy-tailed, growing, shrinking, sparse and adversarial ones."""
    e, turn, wait = rng.normal(size=(rounds, dim)), rng.integers(rounds), rng.integers(1, 20)
    drift, top = rng.normal(size=dim) * 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-2, 2)
    heavy = rng.standard_t(rng.choice([1.0, 1.5, 3.0]), size=(rounds, dim))

    def reversal(t, w):  # follow the leader's trap: away until it is far, then against it
        return drift * np.where(np.linalg.norm(w) > top or t > turn, -1, 1)

    return (
        lambda t, w: e[t] + drift,
        lambda t, w: heavy[t] + drift,
        lambda t, w: e[t] * 1.2 ** min(t, 60),
        lambda t, w: (e[t] + drift) * 0.9**t,
        lambda t, w: (e[t] + drift) * (t % wait == wait - 1),
        lambda t, w: (w if w.any() else e[t]) / np.linalg.norm(w if w.any() else e[t]),
        reversal,
        lambda t, w: np.sign(w - top * drift) * np.abs(e[t]),  # a target at top·drift
        lambda t, w: drift * (-30 if t == turn else 1),  # a shock to what was clear
    )


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-ParameterFree")
def test_equals_the_loop_and_keeps_the_theorem_on_arbitrary_vectors(x64, rng):
    """Through the linear loss ⟨w, x⟩, whose gradient is x, on 180 sequences."""
    rounds, dim = 150, 3
    played = [
        free_grad(rule, rounds, dim) for _ in range(20) for rule in sequences(rng, rounds, dim)
    ]
    gradients, weights = map(np.array, zip(*played, strict=True))
    learner = parameter_free(LINEAR, IDENTITY, buffer=vector, block=16)

    @jax.jit
    @jax.vmap
    def run(x):
        keys = jax.random.split(key(0), rounds)
        samples = Sample(x[:, None], jnp.zeros(rounds))
        state, made, _ = learner.unroll(learner.init(dim), samples, x, keys)
        norms = jnp.array(NORMS)
        return made, jax.vmap(lambda u: nj.bounds.parameter_free(state, comparator_norm=u))(norms)

    made, bounds = run(jnp.asarray(gradients))
    expected = np.sum(gradients * weights, axis=2)
    scale = np.abs(expected).max(axis=1, keepdims=True) + 1e-9
    np.testing.assert_allclose(made / scale, expected / scale, atol=1e-8)
    ratios = []
    for g, w, bound in zip(gradients, weights, bounds, strict=True):
        total = g.sum(axis=0)
        for direction in (-total, rng.normal(size=dim)):
            unit = direction / max(np.linalg.norm(direction), 1e-300)
            regrets = np.sum(g * w) - np.array(NORMS) * (total @ unit)
            ratios.append(regrets / np.asarray(bound))
    largest = np.max(ratios, axis=0)
    print("largest ratio of regret to bound:", dict(zip(NORMS, largest.round(3), strict=True)))
    assert np.all(largest <= 1 + 1e-9)
    assert np.all(largest > 0.1)  # so the bound is not vacuous


@pytest.mark.slow
@pytest.mark.statistical
def test_with_a_kernel_and_two_copies_equals_the_loop_in_its_space(x64, rng):
    """The Gram matrix's root gives features of the same inner products."""
    rounds, unit = 60, 3.0
    clean = rng.normal(size=(rounds, 2))
    x = clean[:, None] + 0.3 * rng.normal(size=(rounds, 2, 2))
    y = 10 * np.sin(clean[:, 0]) + rng.laplace(size=rounds)
    kernel, points = nj.kernels.gaussian(length_scale=1.0), jnp.asarray(x.reshape(-1, 2))
    values, vectors = np.linalg.eigh(np.asarray(kernel(points, points)))
    features = (vectors * np.sqrt(np.maximum(values, 0))).reshape(rounds, 2, -1)

    def gradient(t, w):
        if t == rounds:
            return 0 * w
        return np.sign(w @ features[t, 1] - y[t]) * features[t, 0]

    weights = free_grad(gradient, rounds + 1, 2 * rounds, unit)[1]
    learner = parameter_free(kernel, ABSOLUTE, copies=2, buffer=everything(rounds), unit=unit)
    state, made = unrolled(learner, x[:, 0], y, copies=x)
    np.testing.assert_allclose(made, np.sum(weights[:-1] * features[:, 0], axis=1), atol=1e-8)
    np.testing.assert_allclose(state.squared_norm, np.sum(weights[-1] ** 2), rtol=1e-6)
    assert state.squared_norm > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(("first", "diverges"), [(1.0, True), (1e-13, True), (1e-6, False)])
def test_a_run_out_of_the_range_of_floats_ends_in_nan(first, diverges):
    """f grows as exp(t/2h) while gradients agree; after a tiny first one its factor vanishes."""
    learner = parameter_free(LINEAR, ABSOLUTE if first < 1 else IDENTITY, buffer=vector)
    stream = nj.Stream(jnp.ones((500, 1)).at[0].set(first), jnp.full(500, 3.0))
    run = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(0))
    assert (run.diverged_at >= 1) == diverges
    assert jnp.isnan(nj.bounds.parameter_free(run.state, comparator_norm=1.0)) == diverges
    if not diverges:
        assert abs(run.predictions[-1] - 3) < 1


@pytest.mark.slow
def test_gradients_are_finite_where_the_first_gradients_are_zero():
    """Of targets that the first function predicts; where inputs are zero: by the contract."""
    learner = parameter_free(
        nj.kernels.linear(), nj.losses.huber(), buffer=weight_vector(), block=4
    )
    x, y = jnp.ones((4, 2)), jnp.zeros(4).at[3].set(0.2)

    def total(x, y):
        stream = nj.Stream(x, y)
        return jnp.sum(nj.rollout(learner, stream, nj.noise.Gaussian(0.0), key()).predictions)

    finite_slopes(total, x, y)
