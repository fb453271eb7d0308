"""What every learner does. Each learner compiles five programs, which the tests share."""

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
from tests.errors import raises
from tests.learners.registry import DIM, LEARNERS, NOISE, OPTIONS, T, averaged
from tests.rounds import observations
from tests.slopes import finite_slopes


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


def by_hand(learner, stream, key):
    """Round by round, as the contract reads."""
    state, predictions = learner.init(DIM), []

    @jax.jit
    def one_round(state, sample, step_key, x):
        return learner.step(state, sample, step_key), learner.predict(state, x)

    shown = observations(stream, NOISE, key, copies=learner.needs.copies)
    for t in range(T):
        seen = jax.tree.map(operator.itemgetter(t), shown)
        state, prediction = one_round(state, *seen, stream.x[t])
        predictions.append(prediction)
    return state, jnp.stack(predictions)


@pytest.mark.slow
def test_batched_unrolled_rollout_equals_steps_by_hand(make, stream):
    """`rollout` uses `unroll` and `vmap`; by hand there are single steps of a single run."""
    learner, runs = played(make)
    state, predictions = by_hand(learner, stream, jax.random.key(5))
    chex.assert_trees_all_equal_shapes_and_dtypes(learner.init(DIM), state)
    first = jax.tree.map(lambda a: a[0], runs)
    chex.assert_trees_all_close(first.state, state, rtol=1e-5, atol=1e-5)
    chex.assert_trees_all_close(first.predictions, predictions, rtol=1e-5, atol=1e-5)
    assert np.all(runs.diverged_at == -1)
    assert not np.allclose(runs.predictions[0], runs.predictions[1])


@pytest.mark.claim("NORMA-Eq6")
@pytest.mark.slow
def test_predictions_do_not_depend_on_the_future(make):
    """Nor on the target of their own round: that of round 19 has changed."""
    before, _, after = played(make)[1].predictions
    chex.assert_trees_all_equal(before[:20], after[:20])
    assert not np.allclose(before[21:], after[21:])


@pytest.mark.slow
def test_prediction_shapes(make, stream):
    learner, runs = played(make)
    state = jax.tree.map(lambda a: a[0], runs.state)
    one = learner.predict(state, stream.x[0])
    many = learner.predict(state, stream.x.reshape(1, T, DIM))
    assert many.shape == (1, T, *one.shape)
    chex.assert_trees_all_close(many[0, 0], one, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
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


DRAW = ["cloned", "random_truncation", "multilevel", "model"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["rbg", "unsafe_rbg"])
@pytest.mark.parametrize("name", DRAW)
def test_learners_that_draw_take_keys_of_any_kind(name, kind):
    """`unroll`, which draws for many rounds at once, equals steps; so does a batch of runs."""
    learner = LEARNERS[name].make(**OPTIONS)
    shown, _ = observations(nj.streams.linear(jax.random.key(3), 6, DIM), NOISE,
                            jax.random.key(0), copies=learner.needs.copies)  # fmt: skip
    own = jax.random.split(jax.random.key(1, impl=kind), (2, 6))
    x, start, step = shown.x[:, 0], learner.init(DIM), jax.jit(learner.step)
    together = jax.jit(jax.vmap(lambda keys: unrolled(learner)(start, shown, x, keys)[0]))(own)
    for run in range(2):
        state = start
        for t in range(6):
            state = step(state, jax.tree.map(operator.itemgetter(t), shown), own[run, t])
        one = jax.tree.map(operator.itemgetter(run), together)
        chex.assert_trees_all_close(one, state, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_resumes_from_state_round_and_key(make, stream):
    learner, runs = played(make)

    @jax.jit
    def run(stream, state, first_round):
        key = jax.random.key(5)
        return nj.rollout(learner, stream, NOISE, key, state=state, first_round=first_round)

    first = run(nj.Stream(stream.x[:20], stream.y[:20]), learner.init(DIM), 0)
    rest = run(nj.Stream(stream.x[20:], stream.y[20:]), first.state, 20)
    joined = jnp.concatenate([first.predictions, rest.predictions])
    whole = jax.tree.map(lambda a: a[0], (runs.state, runs.predictions))
    chex.assert_trees_all_close(whole, (rest.state, joined), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.statistical
def test_readings_are_unbiased_and_the_same_in_unroll(case, make, stream):
    learner, runs = played(make)
    if not case.reads:
        assert learner.clean_estimates is None
        return

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
@pytest.mark.of_each_kind
def test_reverse_mode_is_forward_mode(x64, make, stream):
    """By the stream, the radius, the learning rate and the noise, through 32 rounds."""
    start = (nj.Stream(stream.x[:32], stream.y[:32]), 0.7, 0.1, 0.2)
    given = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), start)

    def loss(stream, radius, rate, variance):
        learner = make(radius=radius, learning_rate=rate)
        run = nj.rollout(learner, stream, nj.noise.Gaussian(variance), jax.random.key(5))
        return jnp.mean(run.predictions**2) + jnp.sum(run.predictions[..., :1])

    rng = np.random.default_rng(0)
    direction = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), given)

    @jax.jit
    def both_modes(given, direction):
        reverse = jax.grad(loss, (0, 1, 2, 3))(*given)
        along = jax.tree.map(lambda slope, v: jnp.sum(slope * v), reverse, direction)
        return sum(jax.tree.leaves(along)), jax.jvp(loss, given, direction)[1]

    reverse, forward = both_modes(given, direction)
    np.testing.assert_allclose(reverse, forward, rtol=1e-8)
    assert np.isfinite(forward)
    assert forward != 0


@pytest.mark.slow
@pytest.mark.of_each_kind
@pytest.mark.filterwarnings("ignore:learner was built for other noise")
def test_gradients_are_finite_where_nothing_has_happened_yet(make):
    """Rounds of zeros come first: gradients, norms and differences of copies are zero there."""
    x = jnp.zeros((4, DIM)).at[2:].set(0.5)

    def total(x, y, radius, rate):
        learner = make(radius=radius, learning_rate=rate)
        run = nj.rollout(learner, nj.Stream(x, y), nj.noise.Gaussian(0.0), jax.random.key(5))
        return jnp.sum(run.predictions)

    y = jnp.array([0.5, -0.5, 1.0, 1.0])  # the registry makes labels of them
    finite_slopes(total, x, y, jnp.float32(0.7), jnp.float32(0.1))


@pytest.mark.slow
def test_uses_no_key_twice(make, stream):
    learner = make(**OPTIONS)
    run = jax.jit(lambda key: nj.rollout(learner, stream, NOISE, key, y_noise=NOISE).diverged_at)
    with jax.debug_key_reuse(True):
        run(jax.random.key(0))


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


DONATED = {
    "averaged": averaged,
    "parameter_free": LEARNERS["parameter_free"].make,
    "corrected_ftrl": lambda **_: nj.learners.corrected_ftrl(nj.moments.two_copies()),
    "adam": lambda radius, **_: nj.learners.two_copies(radius=radius, optimizer=optax.adam(0.1)),
}


@pytest.mark.parametrize("name", DONATED)
def test_states_with_several_zeros_can_be_donated(name):
    check_donation(DONATED[name](**OPTIONS))


def test_the_parameters_of_a_model_are_not_in_its_state():
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
def test_every_state_can_be_donated(make):
    """Of a learner that is built from arrays of the caller, which the state must not contain."""
    options = {name: jnp.float32(value) for name, value in OPTIONS.items()}
    check_donation(make(**options))
    assert not any(value.is_deleted() for value in options.values())


def check_without_jit(learner, rounds):
    """As somebody sees them who looks for a fault: `jax.disable_jit()`."""
    short = nj.streams.linear(jax.random.key(3), rounds, DIM)

    def run():
        return nj.rollout(learner, short, NOISE, jax.random.key(5))

    with jax.disable_jit():
        found = run()
    chex.assert_trees_all_close(found, jax.jit(run)(), rtol=1e-4, atol=1e-5)


def test_without_jit_the_numbers_are_the_same():
    check_without_jit(LEARNERS["two_copies"].make(**OPTIONS), rounds=2)


@pytest.mark.slow
@pytest.mark.of_each_kind
def test_no_learner_needs_jit(make):
    check_without_jit(make(**OPTIONS), rounds=1)


@pytest.mark.slow
@pytest.mark.of_each_kind
def test_no_learner_leaks_tracers(make):
    learner, short = make(**OPTIONS), nj.streams.linear(jax.random.key(3), 2, DIM)

    def loss(scale, key):
        stream = nj.Stream(scale * short.x, short.y)
        return nj.rollout(learner, stream, NOISE, key).predictions.sum()

    with jax.checking_leaks():
        assert np.isfinite(jax.jit(jax.grad(loss))(1.0, jax.random.key(5)))


@pytest.mark.slow
@pytest.mark.of_each_kind
def test_a_run_goes_on_in_another_precision(make, stream):
    """Under x64 from a state of float32, with data of either type, and back: by the same noise."""
    learner, runs = played(make)

    def part(first, state, dtype):
        rows = nj.Stream(*(jnp.asarray(leaf[first : first + 16], dtype) for leaf in stream))
        return jax.jit(
            lambda state: nj.rollout(
                learner, rows, NOISE, jax.random.key(5), state=state, first_round=first
            )
        )(state)

    first = part(0, learner.init(DIM), jnp.float32)
    for dtype in (jnp.float32, jnp.float64):
        with jax.enable_x64(True):
            second = part(16, first.state, dtype)
            chex.assert_trees_all_equal_dtypes(second.state, learner.init(DIM))
            sample = nj.Sample(jnp.ones((learner.needs.copies, DIM), dtype), dtype(1), dtype(0.2))
            after = jax.jit(learner.step)(first.state, sample, jax.random.key(0))
            assert np.isfinite(learner.predict(after, sample.x[0])).all()
        third = part(32, second.state, jnp.float32)
        found = np.concatenate([run.predictions for run in (first, second, third)])
        np.testing.assert_allclose(found, runs.predictions[0], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["two_copies", "uncorrected_kernel"])  # linear ones, and kernels
def test_a_bad_traced_rate_is_reported(name, stream):
    def diverged_at(rate):
        learner = LEARNERS[name].make(radius=1.0, learning_rate=rate)
        falling = LEARNERS[name].make(radius=1.0, learning_rate=lambda t: 0.1 - rate * t)
        short = nj.Stream(stream.x[:9], stream.y[:9])
        return [
            nj.rollout(each, short, NOISE, jax.random.key(0)).diverged_at
            for each in (learner, falling)
        ]

    constant, falling = jax.jit(jax.vmap(diverged_at))(jnp.array([-0.1, 0.0, jnp.nan, 0.03]))
    np.testing.assert_array_equal(constant, [1, 1, 1, -1])
    np.testing.assert_array_equal(falling, [-1, -1, 1, 5])  # 0.1 − 0.03t < 0 from round 4 on


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: nj.wrappers.averaged(nj.learners.two_copies), "learner must .* got function"),
        (lambda: nj.wrappers.paired([averaged(**OPTIONS)]), "pass learners one by one, not as one"),
        (lambda: nj.wrappers.assuming(None, 0.1), "learner must be a Learner, got None"),
        (lambda: nj.wrappers.cloned(None, NOISE), "learner must be a Learner, got None"),
        (lambda: nj.wrappers.noiseless(None, None), "learner must be a Learner, got None"),
        (lambda: nj.wrappers.noiseless(averaged(**OPTIONS), ()), "stream must .* got tuple"),
    ],
)
def test_wrappers_raise_if_an_argument_is_not_a_learner(build, message):
    raises(message, build)


@pytest.mark.parametrize("name", [name for name in LEARNERS if LEARNERS[name].linear])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 0.0, "learning_rate": 0.1}, "radius must be positive and finite, got 0.0"),
        ({"radius": jnp.inf, "learning_rate": 0.1}, "radius must be positive and finite, got inf"),
        ({"radius": 1.0, "learning_rate": -0.1}, "learning_rate must be positive and finite"),
        ({"radius": 1e39, "learning_rate": 0.1}, "float32 cannot hold others; change units"),
        ({"radius": jnp.ones(2), "learning_rate": 0.1}, r"radius must be one number, got shape"),
        ({"radius": 1.0, "learning_rate": jnp.ones(2)}, r"learning_rate must be one .* \[2\]"),
        ({"radius": 1.0, "learning_rate": optax.sgd(0.1)}, "got an optimizer: .* as optimizer"),
        ({"radius": 1.0, "optimizer": optax.adam}, r"such as optax\.adam\(0\.1\), got function"),
        ({"radius": 1.0, "learning_rate": 0.1, "optimizer": optax.sgd(0.1)}, "not both"),
    ],
)
def test_rejects_bad_hyper_parameters(name, options, message):
    raises(message, LEARNERS[name].make, **options)
