"""What every learner does, by a few compiled programs of each kind, which the tests share."""

import functools
import operator

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import noisy_jax as nj
from noisy_jax.base import unrolled
from noisy_jax.noise import observe
from tests import keys
from tests.learners.registry import DIM, LEARNERS, NOISE, OPTIONS, T
from tests.rounds import observations

each_kind = pytest.mark.of_each_kind
FEW = "parallel_worlds", "norma", "model"
few = pytest.mark.parametrize(
    "case",
    [name if name in FEW else pytest.param(name, marks=pytest.mark.long) for name in LEARNERS],
    indirect=True,
    scope="module",
)
"""For what takes long and what the engines decide."""

SAME_ESTIMATES = {
    *("two_copies", "known_covariance", "as_printed", "uncorrected", "several_copies"),  # paired
    *("analytic_worlds", "averaged_kernel", "unknown_noise", "pair"),
    *("adaptive", "adaptive kernel", "adaptive random truncation"),
}
"""Learners whose clean estimates are made by the code that makes those of another one."""
reading = pytest.mark.parametrize(
    "case",
    [
        pytest.param(name, marks=pytest.mark.long) if name in SAME_ESTIMATES else name
        for name, case in LEARNERS.items()
        if case.reads
    ],
    indirect=True,
    scope="module",
)


@pytest.fixture(params=LEARNERS, ids=str, scope="module")  # tests come learner by learner
def case(request):
    return LEARNERS[request.param]


@pytest.fixture(scope="module")
def make(case):
    return case.make


@pytest.fixture
def stream():
    return nj.streams.linear(jax.random.key(3), T, DIM)


def changed(stream):
    """The same x up to round 20 and the same y up to round 19, others from there on."""
    return nj.Stream(stream.x.at[20:].multiply(-1), stream.y.at[19:].add(1))


@functools.cache
def played(make):
    """Two runs on the stream, with two keys, and one on the changed stream: one program for all."""
    learner, first = make(**OPTIONS), nj.streams.linear(jax.random.key(3), T, DIM)
    streams = jax.tree.map(lambda *a: jnp.stack(a), first, first, changed(first))
    keys = jnp.stack([jax.random.key(number) for number in (5, 6, 5)])
    run = jax.jit(jax.vmap(lambda stream, key: nj.rollout(learner, stream, NOISE, key)))
    return learner, run(streams, keys)


@functools.cache
def shown(copies):
    stream = nj.streams.linear(jax.random.key(3), T, DIM)
    return observations(stream, NOISE, jax.random.key(5), copies=copies)


def by_hand(learner, stream):
    """Round by round, as the contract reads."""
    state, predictions = learner.init(DIM), []

    @jax.jit
    def one_round(state, sample, step_key, x):
        return learner.step(state, sample, step_key), learner.predict(state, x)

    for t in range(T):
        seen = jax.tree.map(operator.itemgetter(t), shown(learner.needs.copies))
        state, prediction = one_round(state, *seen, stream.x[t])
        predictions.append(prediction)
    return state, jnp.stack(predictions)


@pytest.mark.claim("NORMA-Eq6")
@pytest.mark.slow
@each_kind
def test_batched_unrolled_rollout_equals_steps_by_hand(make, stream):
    """`rollout` uses `unroll` and `vmap`; by hand there are single steps of a single run.

    Predictions do not depend on the future, nor on the target of their own round, 19.
    """
    learner, runs = played(make)
    state, predictions = by_hand(learner, stream)
    chex.assert_trees_all_equal_shapes_and_dtypes(learner.init(DIM), state)
    first = jax.tree.map(lambda a: a[0], runs)
    chex.assert_trees_all_close(first.state, state, rtol=1e-5, atol=1e-5)
    chex.assert_trees_all_close(first.predictions, predictions, rtol=1e-5, atol=1e-5)
    assert np.all(runs.diverged_at == -1)
    before, other, after = runs.predictions
    assert not np.allclose(before, other)
    chex.assert_trees_all_equal(before[:20], after[:20])
    assert not np.allclose(before[21:], after[21:])
    one = learner.predict(state, stream.x[0])
    many = learner.predict(state, stream.x.reshape(1, T, DIM))
    assert many.shape == (1, T, *one.shape)
    chex.assert_trees_all_close(many[0, 0], one, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@each_kind
def test_sweep_over_hyper_parameters_and_noise_traces_once(case, make, stream):
    """Traced ones give what concrete ones give; what is out of range, or overflows, is reported."""

    def run(radius, rate, variance):
        traces.append(radius)
        learner = make(radius=radius, learning_rate=rate)
        return nj.rollout(learner, stream, nj.noise.Gaussian(variance), jax.random.key(5))

    traces, swept = [], jax.jit(jax.vmap(run))
    good = swept(jnp.array([0.7, 0.5, 1.0]), jnp.array([0.1, 0.2, 0.1]), jnp.array([0.2, 0.3, 0.2]))
    concrete = played(make)[1].predictions[0]
    chex.assert_trees_all_close(good.predictions[0], concrete, rtol=1e-5, atol=1e-5)
    assert not np.allclose(good.predictions[0], good.predictions[1])
    # Squares of estimates with large weights overflow from 1e16 or 1e18 on, under some keys.
    huge = 1e15 if case.adaptive else 1e18
    bad = swept(jnp.array([-1.0, jnp.nan, huge]), jnp.array([0.1, 0.1, 1e30]), jnp.array([0.2] * 3))
    assert len(traces) == 1
    if case.adaptive:
        np.testing.assert_array_equal(bad.diverged_at >= 1, [True, True, False])
    elif case.projected:
        assert np.all(bad.diverged_at >= 1)
        large = swept(jnp.array([1e20] * 3), jnp.array([0.1] * 3), jnp.array([0.2] * 3)).diverged_at
        assert np.all((large >= 1) == case.squares)  # linear learners need no square of it


DRAW = ["random_truncation", "model"]


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAW)
def test_learners_that_draw_take_keys_of_any_kind(name):
    """`unroll`, which draws for many rounds at once, equals steps; so does a batch of runs."""
    learner = LEARNERS[name].make(**OPTIONS)
    samples = jax.tree.map(lambda leaf: leaf[:6], shown(learner.needs.copies)[0])
    own = jax.random.split(jax.random.key(1, impl="rbg"), (2, 6))
    x, start, step = samples.x[:, 0], learner.init(DIM), jax.jit(learner.step)
    together = jax.jit(jax.vmap(lambda keys: unrolled(learner)(start, samples, x, keys)[0]))(own)
    for run in range(2):
        state = start
        for t in range(6):
            state = step(state, jax.tree.map(operator.itemgetter(t), samples), own[run, t])
        one = jax.tree.map(operator.itemgetter(run), together)
        chex.assert_trees_all_close(one, state, rtol=1e-5, atol=1e-6)


def test_the_others_have_no_clean_estimates():
    without = {
        name for name, case in LEARNERS.items() if case.make(**OPTIONS).clean_estimates is None
    }
    assert without == {name for name, case in LEARNERS.items() if not case.reads}


@pytest.mark.slow
@each_kind
def test_uses_no_key_twice(make, stream):
    learner = make(**OPTIONS)
    run = jax.jit(lambda key: nj.rollout(learner, stream, NOISE, key, y_noise=NOISE).diverged_at)
    with jax.debug_key_reuse(True):  # jit looks at keys while it traces
        jax.eval_shape(run, jax.random.key(0))


@pytest.mark.slow
@pytest.mark.statistical
@reading
def test_clean_estimates_are_unbiased_and_the_same_in_unroll(make, stream):
    learner, runs = played(make)

    def samples(key, rows):
        own = jax.vmap(jax.random.split)(jax.random.split(key, len(rows.y)))
        draw = functools.partial(observe, noise=NOISE, copies=learner.needs.copies)
        return jax.vmap(draw)(own[:, 0], rows.x, rows.y), own[:, 1]

    @jax.jit
    def all_ways(state, key):
        shown, steps = samples(key, stream)
        ways = [
            unrolled(way)(learner.init(DIM), shown, stream.x, steps)[2]
            for way in (learner, learner._replace(unroll=None))
        ]
        same = jax.tree.map(lambda a: jnp.repeat(a[:1], 4000, axis=0), stream)
        shown, steps = samples(jax.random.fold_in(key, 1), same)
        return ways, jax.vmap(learner.clean_estimates, (None, 0, 0))(state, shown, steps)

    state = jax.tree.map(lambda a: a[0], runs.state)
    (blocks, rounds), (value, square) = all_ways(state, keys.key(8))
    chex.assert_trees_all_close(blocks, rounds, rtol=1e-4, atol=1e-5)
    clean = np.asarray(learner.predict(state, stream.x[0]))
    for reading, expected in ((value, clean), (square, clean**2)):
        error = np.asarray(reading).std(axis=0) / len(reading) ** 0.5
        assert np.all(np.abs(reading.mean(axis=0) - expected) < 5 * error)


@pytest.mark.slow
@each_kind
def test_both_modes_agree_and_are_finite_also_where_nothing_has_happened_yet(x64, make):
    """By the stream, the radius and the rate.

    Without noise the rounds begin with zeros: gradients, norms and differences of copies are zero.
    """
    rng = np.random.default_rng(0)

    def loss(stream, radius, rate, variance):
        learner = make(radius=radius, learning_rate=rate)
        run = nj.rollout(learner, stream, nj.noise.Gaussian(variance), jax.random.key(5))
        return jnp.mean(run.predictions**2) + jnp.sum(run.predictions[..., :1])

    @jax.jit
    def both_modes(variance, given, direction):
        def of(*given):
            return loss(*given, variance)

        reverse = jax.grad(of, (0, 1, 2))(*given)
        along = jax.tree.map(lambda slope, v: jnp.sum(slope * v), reverse, direction)
        return sum(jax.tree.leaves(along)), jax.jvp(of, given, direction)[1]

    random = nj.Stream(rng.normal(size=(32, DIM)), np.resize([0.5, -0.5, 1.0, -1.0, 1.0, 1.0], 32))
    zeros = random._replace(x=random.x * (np.arange(32) > 1)[:, None])
    for variance, stream in ((0.2, random), (0.0, zeros)):
        given = jax.tree.map(jnp.asarray, (stream, 0.7, 0.1))
        direction = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), given)
        reverse, forward = both_modes(variance, given, direction)
        np.testing.assert_allclose(reverse, forward, rtol=1e-8)
        assert np.isfinite(forward)
        assert forward != 0


def check_donation(learner):
    """JAX deletes the arrays of a state that is donated: two rounds, from two first states."""
    step = jax.jit(learner.step, donate_argnums=0)
    sample = nj.Sample(jnp.ones((learner.needs.copies, DIM)), jnp.ones(()), jnp.float32(0.2))
    for state in learner.init(DIM), jax.jit(lambda: learner.init(DIM))():
        leaves = [leaf for leaf in jax.tree.leaves(state) if leaf.size]
        assert len({leaf.unsafe_buffer_pointer() for leaf in leaves}) == len(leaves)
        for number in range(2):
            state = step(state, sample, jax.random.key(number))
        assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(state))
    assert np.isfinite(learner.predict(learner.init(DIM), jnp.ones(DIM))).all()


def test_states_of_an_optimizer_and_of_a_model_can_be_donated():
    """The parameters of the caller are not in the state."""
    check_donation(nj.learners.two_copies(radius=1.0, optimizer=optax.adam(0.1)))
    params = {"w": jnp.zeros(DIM), "b": jnp.zeros(())}
    learner = nj.learners.model(
        lambda p, x: x @ p["w"] + p["b"],
        params,
        nj.losses.squared(),
        radius=1.0,
        estimate=nj.unbiased.replicates,
    )
    check_donation(learner)
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(params))


@pytest.mark.slow
@each_kind
def test_every_state_can_be_donated(make):
    """Of a learner that is built from arrays of the caller, which the state must not contain."""
    options = {name: jnp.float32(value) for name, value in OPTIONS.items()}
    check_donation(make(**options))
    assert not any(value.is_deleted() for value in options.values())


@pytest.mark.slow
def test_no_learner_needs_jit():
    """As somebody sees them who looks for a fault: `jax.disable_jit()`."""
    learner = LEARNERS["parallel_worlds"].make(**OPTIONS)
    short = nj.streams.linear(jax.random.key(3), 1, DIM)

    def run():
        return nj.rollout(learner, short, NOISE, jax.random.key(5))

    with jax.disable_jit():
        found = run()
    chex.assert_trees_all_close(found, jax.jit(run)(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@few
def test_no_learner_leaks_tracers(make):
    learner, short = make(**OPTIONS), nj.streams.linear(jax.random.key(3), 2, DIM)

    def loss(scale, key):
        stream = nj.Stream(scale * short.x, short.y)
        return nj.rollout(learner, stream, NOISE, key).predictions.sum()

    with jax.checking_leaks():
        assert np.isfinite(jax.jit(jax.grad(loss))(1.0, jax.random.key(5)))


@pytest.mark.slow
@few
def test_a_run_goes_on_from_state_round_and_key_also_in_another_precision(make, stream):
    """Under x64 from a state of float32, with data of either type, and back: by the same noise."""
    learner, runs = played(make)

    @jax.jit
    def run(rows, state, first):
        key = jax.random.key(5)
        return nj.rollout(learner, rows, NOISE, key, state=state, first_round=first)

    def part(first, state, dtype):  # 12 rounds are no multiple of a block
        rows = nj.Stream(*(jnp.asarray(leaf[first : first + 12], dtype) for leaf in stream))
        return run(rows, state, first)

    first = part(0, learner.init(DIM), jnp.float32)
    for dtype in (jnp.float32, jnp.float64):
        with jax.enable_x64(True):
            second = part(12, first.state, dtype)
            chex.assert_trees_all_equal_dtypes(second.state, learner.init(DIM))
        third = part(24, second.state, jnp.float32)
        fourth = part(36, third.state, jnp.float32)
        found = np.concatenate([run.predictions for run in (first, second, third, fourth)])
        np.testing.assert_allclose(found, runs.predictions[0], rtol=1e-3, atol=1e-4)
        whole = jax.tree.map(lambda leaf: leaf[0], runs.state)
        chex.assert_trees_all_close(fourth.state, whole, rtol=1e-3, atol=1e-4)
