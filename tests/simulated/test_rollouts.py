import functools
import warnings

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import noisy_jax as nj
from noisy_jax.simulated.rollouts import BLOCK, final_regret
from tests.errors import raises, told
from tests.noise.cases import per_round
from tests.rounds import observations

NOISE = nj.noise.Gaussian(0.2)
STREAM = nj.streams.linear(jax.random.key(0), 5, 2)
BLIND = nj.learners.uncorrected(radius=1.0, learning_rate=0.1)
KEY = jax.random.key(0)
GOOD = {"learner": BLIND, "stream": STREAM, "noise": NOISE, "key": KEY}
LEADER = nj.learners.corrected_ftrl(nj.moments.known_covariance())
WATCHER = nj.Learner(  # predicts what it was last shown, y and the first feature
    init=lambda dim: jnp.zeros(2),
    step=lambda state, sample, key: jnp.stack([sample.y, sample.x[0, 0]]),
    predict=lambda state, x: state,
    needs=nj.Needs(1),
)


@pytest.mark.slow
def test_noise_that_changes_by_round():
    """Each round shows what a round of its own distributions shows, over several blocks."""
    horizon = BLOCK + 3
    stream = nj.streams.linear(jax.random.key(0), horizon, 2)
    scales = jnp.linspace(0.5, 2.0, horizon)
    noise = per_round(nj.noise.Gaussian, scales)
    y_noise = per_round(nj.noise.Laplace, scales)
    run = jax.jit(lambda key: nj.rollout(WATCHER, stream, noise, key, y_noise=y_noise).predictions)
    samples, _ = observations(stream, noise, KEY, copies=1, y_noise=y_noise)
    expected = jnp.stack([samples.y, samples.x[:, 0, 0]], axis=1)
    np.testing.assert_allclose(run(KEY)[1:], expected[:-1], rtol=1e-4, atol=1e-6)


@pytest.mark.slow
@pytest.mark.claim("DA-Protocol")
def test_step_sees_nothing_clean():
    """All that a learner can learn of a stream reaches it through noisy samples."""
    seen = []

    def step(state, sample, key):
        seen.append((jax.tree.map(jnp.shape, sample), jnp.shape(state)))
        return state

    learner = nj.Learner(lambda dim: jnp.zeros(()), step, lambda state, x: state, nj.Needs(2))
    nj.rollout(learner, STREAM, NOISE, KEY)
    assert seen[0] == (nj.Sample((2, 2), (), ()), ())


@pytest.mark.slow
@pytest.mark.parametrize("round_of_failure", [0, BLOCK + 3])
def test_diverged_at_names_the_round(round_of_failure):
    stream = nj.streams.linear(jax.random.key(0), BLOCK + 20, 2)
    learner = nj.Learner(
        init=lambda dim: jnp.int32(0),
        step=lambda state, sample, key: state + 1,
        predict=lambda state, x: jnp.where(state >= round_of_failure, jnp.nan, 0.0) + 0 * x[..., 0],
        needs=nj.Needs(1),
    )
    assert nj.rollout(learner, stream, NOISE, jax.random.key(1)).diverged_at == round_of_failure


@pytest.mark.slow
def test_diverged_in_the_last_step_is_reported():
    def rate(count):
        return jnp.where(count == 4, jnp.inf, 0.1)

    learner = nj.learners.two_copies(radius=1.0, learning_rate=rate)
    result = nj.rollout(learner, STREAM, NOISE, jax.random.key(1))
    assert np.isfinite(result.predictions).all()
    assert result.diverged_at == 5


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"learner": nj.learners.two_copies}, "learner must .* got function"),
        ({"learner": BLIND._replace(needs=nj.Needs(0))}, r"learner\.needs\.copies must be a whole"),
        (
            {"learner": BLIND._replace(needs=nj.Needs(targets="all"))},
            "needs.targets must be 'exact',",
        ),
        (
            {"learner": BLIND._replace(needs=nj.Needs(1, labels="no"))},
            r"needs\.labels must be True or False",
        ),
        (
            {"learner": BLIND._replace(needs=nj.Needs(1, horizon=2.5))},
            r"needs\.horizon must be a whole",
        ),
        ({"learner": BLIND._replace(step=None)}, r"learner\.step must be a function, got None"),
        ({"state": BLIND.init(3)}, r"weights of shape \[3\] does not fit data of dimension 2"),
        ({"state": NOISE}, "state must be one of this learner.* got Gaussian"),
        ({"stream": tuple(STREAM)}, "stream must be a Stream, got tuple: .* makes one"),
        ({"stream": nj.Stream(1j * STREAM.x, STREAM.y)}, "x must be real, got an array"),
        ({"noise": 0.1}, r"noise must be a Noise, got 0\.1: "),
        ({"key": 0}, r"key must be a key such as jax\.random\.key\(0\), got 0"),
        ({"y_noise": nj.noise.Gaussian(np.ones(2))}, "scalar distribution"),
        ({"first_round": -1}, "first_round must .* at least 0, got -1"),
        ({"state": LEADER.init(2)}, "state must be one of this learner.* got CorrectedState"),
        ({"noise": nj.noise.Gaussian(np.ones(3))}, r"Gaussian\.cov of shape \[3\] .* dimension 2"),
        ({"stream": nj.Stream(np.ones((5, 2)), np.ones(4))}, r"got x \[5, 2\] and y \[4\]"),
        ({"stream": nj.Stream(np.ones((3, 5, 2)), np.ones((3, 5)))}, r"with jax\.vmap"),
        ({"stream": nj.Stream(np.ones((2, 2)), np.array([1.0, np.nan]))}, r"y\[1\] is nan"),
    ],
)
def test_bad_input_is_an_error(change, message):
    raises(message, nj.rollout, **GOOD | change)


HINGE = nj.losses.smoothed_hinge(sharpness=0.5)
BUFFER = {"buffer": nj.engine.weight_vector()}
OF_LABELS = {
    "known_covariance": nj.learners.known_covariance(radius=1.0, loss=HINGE),
    "model": nj.learners.model(lambda w, x: w @ x, jnp.zeros(2), HINGE, radius=1.0),
    "norma": nj.learners.norma(nj.kernels.linear(), HINGE, regularization=0.1, **BUFFER),
    "parameter_free": nj.learners.parameter_free(nj.kernels.linear(), HINGE, **BUFFER),
    "perceptron": nj.learners.perceptron(nj.kernels.linear(), buffer=5),
    "alma": nj.learners.alma(nj.kernels.linear(), threshold=1.0, buffer=5),
    "unknown_noise": nj.learners.unknown_noise(nj.kernels.linear(), HINGE, radius=1.0, horizon=5),
    "random_truncation": nj.learners.random_truncation(
        nj.unbiased.kernel_gradient(
            nj.kernels.linear(), HINGE, radius=1.0, x_second_moment=1.0, loss_order=2, max_bias=9.0
        ),
        horizon=5,
    ),
}


OTHER_LABELS = r"y must be labels −1 and \+1, got 0; 2y − 1 turns"


@pytest.mark.parametrize("name", OF_LABELS)
def test_other_labels_than_these_are_an_error_for_every_learner(name):
    learner = OF_LABELS[name]
    assert learner.needs.labels
    sample = nj.Sample(jnp.ones((learner.needs.copies, 2)), jnp.array(0.0), jnp.array(0.2))
    raises(OTHER_LABELS, learner.step, learner.init(2), sample, KEY)


def test_other_labels_than_these_are_an_error_for_every_run():
    learner = OF_LABELS["norma"]
    zeros = STREAM._replace(y=jnp.array([0.0, 1.0, 1.0, 0.0, 1.0]))
    for one in (learner, nj.wrappers.paired(BLIND, learner)):
        raises(OTHER_LABELS, nj.rollout, one, zeros, NOISE, KEY)
        run = one, zeros, NOISE, KEY
        raises(OTHER_LABELS, final_regret, *run, loss=HINGE, comparator=zeros.y)
    options = {"num_seeds": 2, "horizons": [5], "comparator": lambda past: past}
    raises(OTHER_LABELS, nj.study, {"one": learner}, zeros, NOISE, KEY, **options)


LISTS = nj.Stream([[1.0, 2.0], [0.5, -1.0], [3.0, 4.0]], [1, -1, 1])


@pytest.mark.slow
def test_a_stream_of_lists_is_one_of_arrays():
    arrays = nj.streams.from_arrays(*LISTS)
    learner = nj.learners.two_copies(radius=1.0)
    runs = [nj.rollout(learner, stream, NOISE, KEY).predictions for stream in (LISTS, arrays)]
    np.testing.assert_allclose(*runs, rtol=1e-6)
    assert nj.bounds.moments(LISTS, NOISE).x_second_moment == 25 + 2 * 0.2
    nj.comparators.l1_ball(LISTS, radius=1.0)
    nj.comparators.convex_ball(LISTS, nj.losses.huber(), radius=1.0)


def test_columns_of_different_sizes_are_a_warning_where_one_rate_serves_all():
    """Of 1,000 and 1, of which two_copies ends above the loss of predicting zero."""
    large = STREAM._replace(x=STREAM.x * jnp.array([[1000.0, 1.0]]))
    linear = nj.learners.two_copies(radius=1.0), nj.learners.exponentiated_gradient(radius=1.0)
    for learner in (*linear, nj.wrappers.averaged(linear[0]), nj.wrappers.paired(*linear)):
        ((text, filename),) = warnings_of(learner, NOISE, large)
        assert "but this learner has one radius and one rate for all of them" in text
        assert filename == __file__
    fine = [nj.learners.corrected_ftrl(nj.moments.known_covariance()), OF_LABELS["model"]]
    fine += [nj.learners.two_copies(radius=1.0, optimizer=optax.adam(0.1))]
    for learner in fine[::2]:
        assert warnings_of(learner, NOISE, large) == []
    padded = STREAM._replace(x=STREAM.x * jnp.array([[1.0, 0.0]]))
    assert warnings_of(linear[0], NOISE, padded) == []


COV = np.array([[0.3, 0.1], [0.1, 0.2]])


def built_for(noise):
    return BLIND._replace(needs=nj.Needs(noise=noise))


def columns(cov, **options):
    return nj.noise.Product([nj.noise.Gaussian(cov, **options), nj.noise.Laplace(0.1)])


def warnings_of(learner, noise, stream=STREAM):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jax.eval_shape(lambda key: nj.rollout(learner, stream, noise, key).predictions, KEY)
    return [(str(warning.message), warning.filename) for warning in caught]


@pytest.mark.parametrize(
    ("built", "runs"),
    [
        (nj.noise.Gaussian(0.2), nj.noise.Gaussian(0.3)),
        (nj.noise.Gaussian(np.array([0.3, 0.2])), nj.noise.Gaussian(COV)),
        (per_round(nj.noise.Gaussian, np.full(5, 0.02)), nj.noise.Laplace(0.1)),
        (nj.noise.StudentT(df=5.0, scale=0.1), nj.noise.StudentT(df=6.0, scale=0.1)),
        (nj.noise.Gaussian(0.2), per_round(nj.noise.Gaussian, np.linspace(0.1, 0.2, 5))),
        (columns(0.2), nj.noise.Product([nj.noise.Gaussian(0.2), nj.noise.Gaussian(0.2)])),
    ],
    ids=[
        *("variance", "diagonal", "distribution by round", "shape", "one round"),
        "kind of column",
    ],
)
def test_a_learner_built_for_other_noise_runs_with_one_warning(built, runs):
    ((message, file),) = warnings_of(built_for(built), runs)
    assert "learner was built for other noise than it runs under" in message
    assert file == __file__


@pytest.mark.parametrize(
    ("built", "runs"),
    [
        (None, nj.noise.Gaussian(0.2)),
        (nj.noise.Gaussian(0.2), nj.noise.Gaussian(np.array([0.2, 0.2]))),
        (nj.noise.Gaussian(0.2 * np.eye(2)), nj.noise.Gaussian(0.2, mean=1.0)),
        (nj.noise.Gaussian(0.2), per_round(nj.noise.Gaussian, np.full(5, 0.2))),
        (per_round(nj.noise.Gaussian, np.ones(9)), per_round(nj.noise.Gaussian, np.ones(5))),
        (nj.noise.Laplace(0.1), nj.noise.Laplace(np.array([0.1, 0.1]))),
        (columns(0.2), columns(0.2, mean=1.0)),
    ],
    ids=["none", "diagonal", "full, with a mean", "every round", "by round", "scale", "columns"],
)
def test_a_learner_built_for_this_noise_runs_without_a_warning(built, runs):
    assert not warnings_of(built_for(built), runs)


def test_noise_that_differs_on_purpose_or_is_traced_does_not_warn():
    informed = nj.learners.known_covariance(radius=1.0, learning_rate=0.1)
    assert not warnings_of(nj.wrappers.assuming(informed, 0.5), NOISE)
    assert not warnings_of(nj.wrappers.noiseless(built_for(nj.noise.Gaussian(0.0)), STREAM), NOISE)

    def traced(cov):
        return nj.rollout(built_for(nj.noise.Gaussian(0.5)), STREAM, nj.noise.Gaussian(cov), KEY)

    jax.eval_shape(traced, 0.2)  # warnings are errors


def with_room(horizon):
    kernel = nj.kernels.gaussian(length_scale=0.5**0.5)
    return nj.learners.uncorrected_kernel(kernel, horizon=horizon, radius=1.0, learning_rate=0.1)


@pytest.mark.slow
def test_a_resumed_run_with_too_many_rounds_is_an_error():
    learner = with_room(7)
    first, rest = (nj.Stream(STREAM.x[:n], STREAM.y[:n]) for n in (3, 4))
    state = nj.rollout(learner, first, NOISE, KEY).state
    given = GOOD | {"learner": learner, "state": state}
    for first_round in (0, 3):
        message = "5 rounds after 3 others, .* room for 7: .*=8"
        raises(message, nj.rollout, **given, first_round=first_round)
    continued = functools.partial(nj.rollout, learner, noise=NOISE, key=KEY, first_round=3)
    assert continued(rest, state=state).diverged_at == -1
    traced = jax.jit(lambda state: continued(STREAM, state=state).diverged_at)
    assert traced(state) == 5  # a traced state is not seen, and ends in NaN


@pytest.mark.slow
def test_first_round_numbers_keys_and_does_not_fill_the_state():
    learner = with_room(5)
    fresh = nj.rollout(learner, STREAM, NOISE, KEY, first_round=100)
    given = nj.rollout(learner, STREAM, NOISE, KEY, state=learner.init(2), first_round=100)
    chex.assert_trees_all_equal(given, fresh)
    # An array, too, has an attribute `round`, which is no count.
    rules = (lambda dim: jnp.zeros(())), (lambda s, *_: s + 1), (lambda s, x: s)
    counter = nj.Learner(*rules, nj.Needs(1, horizon=5))
    counted = nj.rollout(counter, STREAM, NOISE, KEY, state=counter.init(2), first_round=100)
    np.testing.assert_array_equal(counted.predictions, np.arange(5))


def test_a_traced_first_round_is_whole():
    with told("first_round must be a whole number"):
        jax.jit(lambda t: nj.rollout(**GOOD, first_round=t))(1.0)


def test_large_whole_numbers_are_not_cut_off():
    stream = nj.Stream(np.full((2, 2), 3_000_000_000), np.ones(2))
    assert nj.rollout(WATCHER, stream, NOISE, KEY).predictions[1, 1] == pytest.approx(3e9)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"comparator": jnp.zeros(6)}, r"comparator must be \[5\], .* got \[6\]"),
        ({"rounds": 1.5}, "rounds must be a whole number, got 1.5"),
        ({"loss": nj.losses.poisson()}, "y must be finite and >= 0"),
    ],
)
def test_wrong_arguments_of_the_final_regret_are_named(wrong, message):
    options = GOOD | {"loss": nj.losses.squared(), "comparator": jnp.zeros(5)}
    raises(message, final_regret, **options | wrong)
