"""The engine against plain loops: every memory, every way through the rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.engine import Round, Rule, Update, everything, expansion, ring
from noisy_jax.engine.function_space import round_of_copies
from noisy_jax.engine.memory import Space
from noisy_jax.engine.rules import squared_loss
from tests.errors import one_line_error, raises
from tests.learners import references
from tests.learners.norma_runs import labelled
from tests.learners.runs import both_ways, inputs, unrolled

KERNEL = nj.kernels.gaussian(length_scale=0.75**0.5)
PLAIN = references.gaussian_kernel(0.75**0.5)
SPACE = Space(KERNEL.gram, KERNEL.gram)
T, DIM = 75, 2
RATE, DECAY, MARGIN = 0.3, 0.05, 0.4
KEY = jax.random.key(0)
ONE = Sample(jnp.full((2, 2), 0.4), jnp.array(1.0), jnp.array(0.1))


def world_learner(length_scale):
    world = nj.worlds.gaussian(dim=2, length_scale=length_scale, noise=nj.noise.Gaussian(0.1))
    return nj.learners.parallel_worlds(world, radius=1.0, horizon=9)


def kernel_learner(length_scale):
    kernel = nj.kernels.gaussian(length_scale=length_scale)
    return nj.learners.uncorrected_kernel(kernel, radius=1.0, horizon=9)


def model_learner(length_scale):
    def apply(w, x):
        return jnp.sin(w @ x / length_scale)

    return nj.learners.model(
        apply, jnp.zeros(2), nj.losses.squared(), estimate=nj.unbiased.replicates, radius=1.0
    )


itself = round_of_copies(lambda x: x, 1)


def hinge(memory, **options):
    """A learner with decay, an offset and a margin: the parts of NORMA."""

    def update(offset, values, y, t, square):
        step = RATE * y * (y * (values[0] + offset) <= MARGIN)
        return Update(step, 1 - DECAY, offset + step)

    rule = Rule(lambda: jnp.zeros(()), update, lambda offset, f: f + offset)
    given = {"round_of": itself, "rule": rule, "memory": memory, "copies": 1}
    return expansion(**given | options)


@pytest.mark.slow
@pytest.mark.claim("EXT-IncrementalNorm")
def test_everything_kept_equals_the_loop_and_the_norm_the_double_sum(x64, rng):
    x, y = labelled(rng, rounds=300)  # more than one chunk of stored atoms
    predictions, _, alpha, *_ = references.norma(
        PLAIN, lambda t, p, y, s: (RATE * y * (y * p <= MARGIN), s), lambda t, added: 1 - DECAY,
        x, y, oldest=lambda t: 0, offset=True,
    )  # fmt: skip
    squared_norm = alpha @ PLAIN(x[:, None], x[None]) @ alpha
    for state, made in both_ways(hinge(everything(300)(SPACE), block=64), x, y):
        np.testing.assert_allclose(made, predictions, atol=1e-12)
        np.testing.assert_allclose(state.squared_norm, squared_norm, rtol=1e-12)
        assert state.round == 300


@pytest.mark.slow
def test_weight_vector_equals_the_expansion_of_the_linear_kernel(x64, rng):
    x, y = labelled(rng, T)
    linear = nj.kernels.linear()
    memory = everything(T)(Space(linear.gram, linear.gram))
    free, kept = (unrolled(hinge(memory, block=8, radius=ball), x, y) for ball in (None, 0.3))
    assert np.abs(kept[1] - free[1]).max() > 0.1  # the projection is at work
    vector = hinge(nj.engine.weight_vector()(SPACE), radius=0.3)
    state, predictions = unrolled(vector, x, y)
    np.testing.assert_allclose(predictions, kept[1], atol=1e-12)
    np.testing.assert_allclose(state.weights, kept[0].weights[:T] @ x, atol=1e-12)


@pytest.mark.slow
@pytest.mark.claim("EXT-IncrementalNorm")
def test_the_norm_holds_over_long_runs_in_float32(rng):
    rounds = 4096
    x = rng.normal(size=(rounds, DIM)).astype(np.float32)
    y = np.sin(2 * x[:, 0]) + rng.normal(size=rounds).astype(np.float32)
    rule = squared_loss(0.05)
    state, _ = unrolled(hinge(everything(rounds)(SPACE), rule=rule, radius=4.0), x, y)
    alpha = np.asarray(state.weights, np.float64)[:rounds]
    gram = PLAIN(x[:, None].astype(np.float64), x[None])
    np.testing.assert_allclose(state.squared_norm, alpha @ gram @ alpha, rtol=1e-5)


@pytest.mark.slow
def test_atoms_may_be_pytrees_with_several_query_points(x64, rng):
    """f of the kernel ⟨x, z⟩ w v on pairs (x, w), read at two query_points of other weights."""
    x, y = labelled(rng, rounds=40)

    def read(sample, key):
        query_points = (jnp.stack([sample.x[0], -sample.x[0]]), jnp.array([2.0, 0.5]))
        return Round((sample.x[0], sample.y), query_points, sample.y)

    def update(state, values, y, t, square):
        return Update(0.1 * (y - values[1] + values[2]), 0.9, state)

    space = Space(
        lambda e, q: e[0] @ q[0].T * e[1][:, None] * q[1][None],
        lambda e, x: e[0] @ x.T * e[1][:, None],
    )
    learner = expansion(
        round_of=read, rule=Rule(lambda: (), update), memory=everything(40)(space), copies=1,
        radius=0.7, block=16,
    )  # fmt: skip
    w, predictions = np.zeros(DIM), []
    for t in range(40):
        predictions.append(w @ x[t])
        w = 0.9 * w + 0.1 * (y[t] - 2 * w @ x[t] - 0.5 * w @ x[t]) * y[t] * x[t]
        w *= min(1, 0.7 / np.linalg.norm(w))
    state, made = unrolled(learner, x, y)
    np.testing.assert_allclose(made, predictions, atol=1e-12)
    np.testing.assert_allclose(state.squared_norm, w @ w, atol=1e-12)


@pytest.mark.slow
def test_a_run_that_overflows_stays_nan_after_its_terms_are_dropped(rng):
    x, y = labelled(rng, T)

    def update(state, values, y, t, square):
        return Update(jnp.where(t == 5, jnp.inf, 0.1 * y * (values[0] <= MARGIN)), 1.0, state)

    learner = hinge(ring(4)(SPACE), rule=Rule(lambda: (), update), block=4)
    _, predictions = unrolled(learner, x, y)
    np.testing.assert_array_equal(np.isfinite(predictions), np.arange(T) <= 5)


@pytest.mark.slow
def test_runs_on_from_its_own_state_without_a_new_trace(rng):
    x, y = labelled(rng, T)
    learner, shown, traces = hinge(everything(2 * T)(SPACE)), inputs(x, y), []
    run = jax.jit(lambda state: traces.append(0) or learner.unroll(state, *shown)[0])
    run(run(learner.init(DIM)))
    assert len(traces) == 1


@pytest.mark.slow
@pytest.mark.parametrize("make", [world_learner, kernel_learner, model_learner])
def test_functions_of_a_learner_are_traced_once_outside_jit(make):
    learner, x = make(1.0), jnp.array([0.3, 0.2])

    def one_round(state):
        read = None if learner.clean_estimates is None else learner.clean_estimates(state, ONE, KEY)
        return learner.step(state, ONE, KEY), learner.predict(state, x), read

    state = one_round(one_round(learner.init(2))[0])[0]
    with jax.no_tracing():
        one_round(state)


@pytest.mark.slow
def test_rounds_beyond_the_horizon_are_reported():
    learner = nj.learners.uncorrected_kernel(KERNEL, horizon=10, radius=1.0, learning_rate=0.1)
    stream = nj.streams.linear(jax.random.key(0), 16, DIM)
    noise, key = nj.noise.Gaussian(0.1), jax.random.key(1)
    raises("16 rounds, but the learner has room for 10", nj.rollout, learner, stream, noise, key)
    begun = learner.init(DIM)._replace(round=jnp.int32(8))
    more = nj.Stream(stream.x[8:], stream.y[8:])
    with one_line_error("8 rounds after 8 others, but the learner has room for 10"):
        nj.rollout(learner, more, noise, key, state=begun)
    traced = jax.jit(lambda state: nj.rollout(learner, more, noise, key, state=state).diverged_at)
    assert traced(begun) == 3
