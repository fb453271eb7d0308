"""What every learner promises, whichever it is."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import noisy_jax as nj
from noisy_jax.base import unrolled
from noisy_jax.noise import observe

BASE = {
    "two_copies": nj.learners.two_copies,
    "known_covariance": nj.learners.known_covariance,
    "as_printed": lambda **options: nj.learners.known_covariance(as_printed=True, **options),
    "uncorrected": nj.learners.uncorrected,
}


def averaged(**options):
    return nj.wrappers.averaged(nj.learners.two_copies(**options))


def doubling(*, radius, learning_rate):
    def make(horizon):
        rate = learning_rate / jnp.sqrt(jnp.asarray(horizon, float))
        return nj.learners.two_copies(radius=radius, learning_rate=rate)

    return nj.wrappers.doubling(make)


def paired(**options):
    return nj.wrappers.paired(*(make(**options) for make in BASE.values()))


def world(copies=1):
    return nj.worlds.gaussian(dim=DIM, length_scale=1.0, noise=NOISE.cloned(copies))


def parallel_worlds(**options):
    return nj.learners.parallel_worlds(world(), horizon=T, block=16, **options)


def cloned(**options):
    learner = nj.learners.parallel_worlds(world(copies=2), horizon=T, block=16, **options)
    return nj.wrappers.cloned(learner, NOISE)


def fourier_worlds(**options):
    features = nj.worlds.fourier(world(), jax.random.key(7), 8)
    return nj.learners.fourier_worlds(features, block=16, **options)


def uncorrected_kernel(**options):
    kernel = nj.kernels.gaussian(length_scale=1.0)
    return nj.learners.uncorrected_kernel(kernel, horizon=T, block=16, **options)


def random_truncation(*, radius, learning_rate):
    estimator = nj.estimators.gradient(
        nj.kernels.polynomial(degree=2),
        nj.losses.squared(),
        squared_radius=radius * abs(radius),
        x_second_moment=1.8,
    )
    return nj.learners.random_truncation(
        estimator, horizon=T, learning_rate=learning_rate, block=16
    )


def averaged_kernel(**options):
    return nj.wrappers.averaged(parallel_worlds(**options))


def of_signs(learner):
    """A learner of classes, shown the sign of what is a value."""

    def shown(way):
        def run(state, samples, *rest):
            return way(state, samples._replace(y=jnp.sign(samples.y)), *rest)

        return run

    return learner._replace(step=shown(learner.step), unroll=shown(learner.unroll))


def norma(*, radius, learning_rate):
    del radius  # regularization takes its place
    return nj.learners.norma(
        nj.kernels.gaussian(length_scale=1.0), nj.losses.nu_huber(nu=0.3, tracker="joint"),
        learning_rate=learning_rate, regularization=0.5, buffer=20, offset=True,
    )  # fmt: skip


def norma_in_a_world(*, radius, learning_rate):
    del radius
    return nj.learners.norma(
        world(), nj.losses.novelty(nu=0.3), decay="on_update", block=16,
        learning_rate=lambda t: learning_rate / jnp.sqrt(t + 1), regularization=0.5, buffer=T,
    )  # fmt: skip


def perceptron(*, radius, learning_rate):
    del radius, learning_rate  # it has no parameters
    return of_signs(nj.learners.perceptron(nj.kernels.gaussian(length_scale=1.0), buffer=20))


def alma(*, radius, learning_rate):
    kernel = nj.kernels.polynomial(degree=2)
    return of_signs(nj.learners.alma(kernel, threshold=radius, scale=learning_rate, buffer=20))


KERNEL = {
    "parallel_worlds": parallel_worlds,
    "cloned": cloned,
    "fourier_worlds": fourier_worlds,
    "uncorrected_kernel": uncorrected_kernel,
    "random_truncation": random_truncation,
}
DECAYING = {
    "norma": norma,
    "norma_in_a_world": norma_in_a_world,
    "perceptron": perceptron,
    "alma": alma,
}
PROJECTED = {
    **BASE,
    **KERNEL,
    "averaged": averaged,
    "averaged_kernel": averaged_kernel,
    "doubling": doubling,
    "paired": paired,
}
LEARNERS = {**PROJECTED, **DECAYING}
OPTIONS = {"radius": 0.7, "learning_rate": 0.1}
NOISE = nj.noise.Gaussian(0.2)
T, DIM = 37, 4


@pytest.fixture(params=LEARNERS, ids=str, scope="module")  # tests come learner by learner
def make(request):
    yield LEARNERS[request.param]
    jax.clear_caches()


@pytest.fixture(params=PROJECTED, ids=str)
def make_projected(request):
    return PROJECTED[request.param]


@pytest.fixture
def stream():
    return nj.streams.linear(jax.random.key(3), T, DIM)


@functools.cache
def played(make):
    """The learner and its compiled run, one for all tests."""
    learner = make(**OPTIONS)
    return learner, jax.jit(lambda stream, key: nj.rollout(learner, stream, NOISE, key))


def by_hand(learner, stream, key):
    """Round by round, as the contract reads."""
    state, predictions = learner.init(DIM), []

    @jax.jit
    def one_round(state, t, x, y):
        noise_key, step_key = jax.random.split(jax.random.fold_in(key, t))
        sample = observe(noise_key, x, y, NOISE, copies=learner.copies)
        return learner.step(state, sample, step_key), learner.predict(state, x)

    for t in range(T):
        state, prediction = one_round(state, t, stream.x[t], stream.y[t])
        predictions.append(prediction)
    return state, jnp.stack(predictions)


def test_rollout_equals_rounds_by_hand(make, stream):
    (learner, run), key = played(make), jax.random.key(5)
    state, predictions = by_hand(learner, stream, key)
    result = run(stream, key)
    chex.assert_trees_all_close(result.state, state, rtol=1e-5, atol=1e-6)
    chex.assert_trees_all_close(result.predictions, predictions, rtol=1e-5, atol=1e-6)
    assert np.all(result.diverged_at == -1)


def test_unroll_equals_scan_over_step(make, stream):
    learner = make(**OPTIONS)
    keys = jax.random.split(jax.random.key(0), T)
    draw = jax.vmap(lambda k, x, y: observe(k, x, y, NOISE, copies=learner.copies))
    samples = jax.jit(draw)(keys, stream.x, stream.y)
    ways = [unrolled(learner._replace(unroll=None)), unrolled(learner)]
    scanned, direct = (jax.jit(way)(learner.init(DIM), samples, stream.x, keys) for way in ways)
    chex.assert_trees_all_close(direct, scanned, rtol=1e-5, atol=1e-6)


def test_vmap_equals_stacked_singles(make, stream):
    _, run = played(make)
    keys = jax.random.split(jax.random.key(1), 3)
    singles = [run(stream, key) for key in keys]
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *singles)
    at_once = jax.vmap(run, in_axes=(None, 0))(stream, keys)
    chex.assert_trees_all_close(at_once, stacked, rtol=1e-5, atol=1e-6)
    assert not np.allclose(stacked.predictions[0], stacked.predictions[1])


def test_state_keeps_shapes_and_dtypes(make, stream):
    learner, run = played(make)
    result = run(stream, jax.random.key(0))
    chex.assert_trees_all_equal_shapes_and_dtypes(learner.init(DIM), result.state)


def test_prediction_shapes(make, stream):
    learner, run = played(make)
    state = run(stream, jax.random.key(0)).state
    one = learner.predict(state, stream.x[0])
    many = learner.predict(state, stream.x.reshape(1, T, DIM))
    assert many.shape == (1, T, *one.shape)
    chex.assert_trees_all_close(many[0, 0], one, rtol=1e-6)


def test_sweep_over_hyper_parameters_and_noise_traces_once(make, stream):
    def run(radius, rate, variance, key):
        learner = make(radius=radius, learning_rate=rate)
        return nj.rollout(learner, stream, nj.noise.Gaussian(variance), key).predictions

    traces = []
    once = jax.jit(lambda *sweep: traces.append(sweep) or run(*sweep))
    swept = [once(*sweep, jax.random.key(0)) for sweep in [(1.0, 0.1, 0.1), (0.5, 0.2, 0.3)]]
    assert len(traces) == 1
    at_once = jax.jit(jax.vmap(run, in_axes=(0, 0, 0, None)))(
        jnp.array([1.0, 0.5]), jnp.array([0.1, 0.2]), jnp.array([0.1, 0.3]), jax.random.key(0)
    )
    chex.assert_trees_all_close(at_once, jnp.stack(swept), rtol=1e-5, atol=1e-6)
    assert not np.allclose(swept[0], swept[1])


def test_resumes_from_state_round_and_key(make, stream):
    (learner, run), key = played(make), jax.random.key(2)
    whole = run(stream, key)
    first = run(nj.Stream(stream.x[:20], stream.y[:20]), key)
    resumed = functools.partial(nj.rollout, learner, noise=NOISE, first_round=20)
    rest = jax.jit(resumed)(nj.Stream(stream.x[20:], stream.y[20:]), key=key, state=first.state)
    joined = jnp.concatenate([first.predictions, rest.predictions])
    chex.assert_trees_all_close(
        (whole.state, whole.predictions), (rest.state, joined), rtol=1e-5, atol=1e-6
    )


def test_uses_no_key_twice(make, stream):
    learner = make(**OPTIONS)
    run = jax.jit(lambda key: nj.rollout(learner, stream, NOISE, key, y_noise=NOISE).diverged_at)
    with jax.debug_key_reuse(True):
        run(jax.random.key(0))


def test_predictions_do_not_depend_on_the_future(make, stream):
    (_, run), key = played(make), jax.random.key(4)
    changed = nj.Stream(stream.x.at[20:].multiply(-1), stream.y.at[20:].add(1))
    before, after = run(stream, key).predictions, run(changed, key).predictions
    chex.assert_trees_all_equal(before[:20], after[:20])
    assert not np.allclose(before[21:], after[21:])


def test_overflow_is_reported(make_projected, stream):
    def diverged_at(rate):
        learner = make_projected(radius=1e18, learning_rate=rate)
        return nj.rollout(learner, stream, NOISE, jax.random.key(0)).diverged_at

    rounds = jax.jit(jax.vmap(diverged_at))(jnp.array([1e12, 1e30]))
    assert np.all(rounds >= 1)
    assert np.all(rounds <= T)


def test_a_bad_traced_radius_is_reported(make_projected, stream):
    def diverged_at(radius):
        learner = make_projected(radius=radius, learning_rate=0.1)
        return nj.rollout(learner, stream, NOISE, jax.random.key(0)).diverged_at

    assert np.all(jax.jit(jax.vmap(diverged_at))(jnp.array([1e20, -1.0, jnp.nan])) >= 1)


@pytest.mark.parametrize("name", ["two_copies", "uncorrected_kernel"])  # linear ones, and kernels
def test_a_bad_traced_rate_is_reported(name, stream):
    def diverged_at(rate):
        learner = LEARNERS[name](radius=1.0, learning_rate=rate)
        falling = LEARNERS[name](radius=1.0, learning_rate=lambda t: 0.1 - rate * t)
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
        (
            lambda: nj.wrappers.averaged(nj.learners.two_copies),
            "learner must .* got function",
        ),
        (
            lambda: nj.wrappers.paired([BASE["two_copies"](**OPTIONS)]),
            "learner must .* got list",
        ),
        (
            lambda: nj.wrappers.assuming(None, 0.1),
            "learner must be a Learner, .* got None",
        ),
        (
            lambda: nj.wrappers.cloned(None, NOISE),
            "learner must be a Learner, .* got None",
        ),
        (
            lambda: nj.wrappers.noiseless(None, None),
            "learner must be a Learner, .* got None",
        ),
        (
            lambda: nj.wrappers.noiseless(averaged(**OPTIONS), ()),
            "stream must .* got tuple",
        ),
        (
            lambda: nj.wrappers.doubling(averaged(**OPTIONS)),
            "horizon -> Learner, got Learner",
        ),
        (
            lambda: nj.wrappers.doubling(lambda T: (T, None)),
            "what make_learner makes .* got tuple",
        ),
    ],
)
def test_combinators_refuse_what_is_no_learner(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("name", BASE)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": 0.0, "learning_rate": 0.1}, "radius must be positive and finite, got 0.0"),
        ({"radius": jnp.inf, "learning_rate": 0.1}, "radius must be positive and finite, got inf"),
        ({"radius": 1.0, "learning_rate": -0.1}, "learning_rate must be positive and finite"),
        ({"radius": 1e20, "learning_rate": 0.1}, "radius must be at most .* its square overflows"),
        ({"radius": jnp.ones(2), "learning_rate": 0.1}, r"radius must be one number, got shape"),
        (
            {"radius": 1.0, "learning_rate": jnp.ones(2)},
            r"learning_rate must be one number, .* \[2\]",
        ),
        ({"radius": 1.0, "learning_rate": optax.sgd(0.1)}, "got an optimizer: .* as optimizer"),
        (
            {"radius": 1.0, "optimizer": optax.adam},
            r"such as optax\.adam\(0\.1\) gives, got function",
        ),
        ({"radius": 1.0}, "either learning_rate or optimizer"),
        ({"radius": 1.0, "learning_rate": 0.1, "optimizer": optax.sgd(0.1)}, "not both"),
    ],
)
def test_refuses_bad_hyper_parameters(name, options, message):
    with pytest.raises(ValueError, match=message):
        BASE[name](**options)
