"""The search for worst streams, and stored streams on which printed bounds are false."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import noisy_jax as nj
from noisy_jax.simulated.adversaries import ascend, clean_regret, search, structured_starts, worst
from tests.errors import raises
from tests.keys import key
from tests.simulated.adversaries.certificates.make import CERTIFICATES, FOLDER

QUIET, NOISY = nj.noise.Gaussian(0.0), nj.noise.Gaussian(0.5)
RATE = 0.2


def learner(radius=1.0, rate=RATE):
    return nj.learners.two_copies(radius=radius, learning_rate=rate)


def exact_regret(x, y, radius=1.0, rate=RATE):
    """Descent on one feature without noise in NumPy float64, over leading axes of x and y `[T]`."""
    x, y = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    w, total = np.zeros(x.shape[:-1]), 0.0
    for t in range(x.shape[-1]):
        miss = w * x[..., t] - y[..., t]
        total = total + miss**2
        w = np.clip(w - rate * 2 * miss * x[..., t], -radius, radius)
    square = np.sum(x**2, axis=-1)
    best = np.clip(np.sum(x * y, axis=-1) / np.maximum(square, 1e-12), -radius, radius)
    return total - np.sum((best[..., None] * x - y) ** 2, axis=-1)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-WorstStream")
def test_the_worst_of_three_rounds_is_that_of_a_grid():
    grid = np.linspace(-1, 1, 13)
    x = np.stack(np.meshgrid(1.0, *[grid] * 5, indexing="ij"), -1).reshape(-1, 6)
    on_grid = exact_regret(x[:, :3], x[:, 3:]).max()
    own = nj.Stream(jnp.array([[0.6], [1.0], [1.0]]), jnp.array([1.0, 1.0, -1.0]))
    found = worst(learner(), QUIET, 3, key=key(), radius=1.0, held_out=2, starts={"own": own})
    exact = exact_regret(found.stream.x[:, 0], found.stream.y)
    np.testing.assert_allclose(found.regret, exact, rtol=1e-5)
    assert on_grid - 1e-4 < exact < 1.1 * on_grid
    assert max(found.starts.values()) < 0.95 * exact
    starts = [found.starts[name] for name in ("own", "constant", "alternating")]
    x, y = [[0.6, 1, 1], [1, 1, 1], [1, 1, 1]], [[1, 1, -1], [1, 1, 1], [1, -1, 1]]
    np.testing.assert_allclose(starts, exact_regret(x, y), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.claim("EXT-WorstStream")
@pytest.mark.parametrize("kernel", [None, nj.kernels.gaussian(length_scale=0.7)])
def test_the_gradient_of_the_regret_is_that_of_finite_differences(x64, rng, kernel):
    """The comparator is solved again at each point, and not differentiated."""
    stream = nj.Stream(jnp.asarray(rng.normal(size=(5, 2))), jnp.asarray(rng.normal(size=5)))
    direction = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), stream)
    fixed = jax.random.key(0)

    @jax.jit
    def along(step):
        moved = jax.tree.map(lambda a, b: a + step * b, stream, direction)
        return clean_regret(learner(), moved, NOISY, fixed, radius=0.3, kernel=kernel)

    slope = (along(1e-5) - along(-1e-5)) / 2e-5
    np.testing.assert_allclose(jax.jit(jax.grad(along))(0.0), slope, rtol=1e-6)


@pytest.mark.statistical
@pytest.mark.claim("EXT-WorstStream")
@pytest.mark.slow
def test_the_ascent_is_above_all_its_starts_and_its_interval_holds():
    bound = nj.bounds.Guarantee(jnp.ones(()), jnp.array(2.0), jnp.ones(()))
    options = {"radius": 1.0, "dim": 2, "x_norm": 0.9, "steps": 40, "held_out": 256}
    found = worst(learner(), NOISY, 16, key=key(1), guarantee=bound, **options)
    assert found.regret > 1.1 * max(found.starts.values())
    assert 0.8 < np.linalg.norm(found.stream.x, axis=1).max() < 0.9 + 1e-5
    assert np.abs(found.stream.y).max() <= 1
    assert found.interval[0] < found.regret < found.interval[1]
    np.testing.assert_allclose(found.excess, np.array(found.interval) - 2, rtol=1e-4)
    assert found.ratio == pytest.approx(found.regret / 2)
    keys = jax.random.split(key(2), 4096)
    run = jax.vmap(lambda k: clean_regret(learner(), found.stream, NOISY, k, radius=1.0))
    again = jax.jit(run)(keys)
    error = np.hypot(np.diff(found.interval)[0] / 2 / 2.7, again.std() / 64)
    assert abs(again.mean() - found.regret) < 5 * error
    assert found.starts.keys() == structured_starts(key(), 2, 1).keys()
    assert found.start in found.starts


@pytest.mark.slow
@pytest.mark.claim("EXT-WorstStream")
def test_draws_that_select_do_not_judge():
    """Of y z with z ~ N(0, 1), the sign of the mean of z decides which of two streams is chosen."""
    draws, keys = 64, search.four_keys(key(3))[2:]
    select, hold = (jax.vmap(jax.random.normal)(jax.random.split(k, draws)) for k in keys)
    start = nj.Stream(jnp.zeros((1, 1, 1)), jnp.ones((1, 1)))
    streams, _, (means, errors) = search.chosen(
        lambda stream, k: stream.y[0] * jax.random.normal(k), start, start._replace(y=-start.y),
        key(3), draws,
    )  # fmt: skip
    chosen = np.sign(select.mean())
    np.testing.assert_array_equal(streams.y[:, 0], [1, chosen])
    np.testing.assert_allclose(means, [hold.mean(), chosen * hold.mean()], rtol=1e-4)
    np.testing.assert_allclose(errors, [np.std(hold, ddof=1) / draws**0.5] * 2, rtol=1e-5)


@pytest.mark.slow
def test_late_targets_alternate_until_the_last_root_of_the_rounds():
    late = structured_starts(key(), 9, 1, y_size=2.0)["late"]
    np.testing.assert_array_equal(late.y, 2 * np.array([1, -1, 1, -1, 1, -1, 1, 1, 1]))
    np.testing.assert_array_equal(late.x, np.ones((9, 1)))


@pytest.mark.slow
def test_each_draw_of_the_noise_is_used_once(monkeypatch):
    """Those of the held-out regret select no stream and move none."""
    used = []

    def regret(learner, stream, noise, key, **options):
        jax.debug.callback(lambda data: used.append(tuple(data.tolist())), jax.random.key_data(key))
        return jnp.sum(stream.x) - jnp.sum(stream.y)

    monkeypatch.setattr(search, "clean_regret", regret)
    worst(learner(), QUIET, 2, key=key(), radius=1.0, steps=4, draws=3, held_out=5)
    jax.effects_barrier()
    assert len(set(used)) == 4 * 3 + 2 * 5


@pytest.mark.slow
def test_rounds_that_do_not_count_have_no_effect_on_the_comparator(rng):
    """Six rounds, of which three are padding, with a kernel: the regret of the three."""
    x, y = rng.uniform(-1, 1, (3, 1)), rng.uniform(0.5, 1, 3)
    short = nj.Stream(jnp.asarray(x, jnp.float32), jnp.asarray(y, jnp.float32))
    padded = jax.tree.map(lambda a: jnp.concatenate([a, 0 * a]), short)
    options = {"radius": 0.5, "kernel": nj.kernels.gaussian(length_scale=0.7)}
    run = functools.partial(clean_regret, learner(), noise=QUIET, key=key(), **options)
    regret = jax.jit(lambda stream, rounds: run(stream, rounds=rounds))
    np.testing.assert_allclose(regret(short, 3), regret(padded, 3), rtol=1e-5)


@pytest.mark.statistical
@pytest.mark.slow
def test_a_stream_of_its_own_for_each_learner_in_a_batch():
    starts = search.stack(structured_starts(key(), 8, 1).values())

    def found(rate):
        def regret(stream, key):
            return clean_regret(learner(rate=rate), stream, QUIET, key, radius=1.0)

        return ascend(regret, starts, key(), draws=1)[0]

    streams = jax.jit(jax.vmap(found))(jnp.array([0.05, RATE]))
    values = [exact_regret(x[..., 0], y, rate=rate).max()
              for x, y, rate in zip(*streams, (0.05, RATE), strict=True)]  # fmt: skip
    from_starts = [exact_regret(starts.x[..., 0], starts.y, rate=r).max() for r in (0.05, RATE)]
    assert np.all(np.array(values) > 0.9999 * np.array(from_starts))
    assert values[0] > 1.01 * from_starts[0]


def test_a_gradient_that_is_not_finite_counts_as_zero_and_is_said():
    """√0 has no derivative."""

    def regret(stream, key):
        wrong = jnp.sqrt(0 * stream.x).sum()
        return jnp.sum(stream.x) + jnp.sum(stream.y) + wrong

    starts = nj.Stream(jnp.full((1, 2, 1), 0.5), jnp.full((1, 2), 0.5))
    found, sound = ascend(regret, starts, key(), draws=1)
    assert not sound
    np.testing.assert_allclose(found.x, 0.5, atol=1e-5)
    np.testing.assert_allclose(found.y, 1.0, atol=1e-5)
    assert ascend(lambda stream, key: jnp.sum(stream.x), starts, key(), draws=1)[1]


@pytest.mark.slow
def test_a_guarantee_may_be_known_after_the_run_of_the_finished_state():
    def doubled(state):
        return jax.tree.map(lambda leaf: 2 * leaf, state)

    adaptive = nj.learners.two_copies(radius=1.0)._replace(finish=doubled)
    after = functools.partial(nj.bounds.adaptive_rate, radius=1.0)
    options = {"radius": 1.0, "steps": 1, "held_out": 2, "guarantee": after}
    found = worst(adaptive, QUIET, 4, key=key(), **options)
    run = nj.rollout(adaptive, found.stream, QUIET, key())
    assert found.guarantee == pytest.approx(float(after(doubled(run.state))), rel=1e-4)
    np.testing.assert_allclose(found.excess, 2 * [found.regret - found.guarantee], rtol=1e-4)


def test_the_excess_of_a_guarantee_that_varies_has_the_spread_of_the_difference(rng):
    """A regret of 3, and bounds of mean 3: no guarantee is false, though the mean may be below."""
    limits = 3 + rng.normal(size=(2, 8))
    limits[0] -= limits[0].mean() - 2.9
    means, halves = search.bound_and_half_width(limits, np.full((2, 8), 3.0), 5)
    np.testing.assert_allclose(means, limits.mean(axis=1))
    expected = stats.t.ppf(1 - 0.025 / 5, 7) * limits.std(axis=1, ddof=1) / 8**0.5
    np.testing.assert_allclose(halves, expected)
    assert means[0] < 3 < means[0] + halves[0]


def root(weights, sample):
    return jnp.sqrt(0 * sample.x[0]) - sample.y * sample.x[0]


def looping(weights, sample):
    slope = jax.lax.while_loop(lambda a: a < 1, lambda a: 2 * a, weights @ sample.x[0])
    return (slope - sample.y) * sample.x[0]


ROOT = nj.learners.gradient_descent(root, copies=1, radius=1.0, learning_rate=0.1)
LOOPING = nj.learners.gradient_descent(looping, copies=1, radius=1.0, learning_rate=0.1)
STEEP = nj.Stream(2 * jnp.ones((4, 1)), jnp.ones(4))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"learner": LOOPING}, "learner cannot be differentiated in reverse mode: "),
        ({"learner": ROOT}, "its gradient is not finite, or it takes labels ±1 only"),
        ({"learner": nj.wrappers.paired(learner(), learner())}, "learner predicts several columns"),
        ({"held_out": 1}, "held_out must be a whole number of at least 2, got 1: one draw has no"),
        ({"y_size": -1.0}, "y_size must be positive"),
        ({"guarantee": lambda state: state.weights}, r"guarantee.state. must be \[\], one number"),
        ({"kernel": lambda x, z: 1.0}, r"kernel.x, z. must be \[4, 4\], for x and z of"),
        ({"starts": [STEEP]}, "starts must be a Mapping, got list: streams by name"),
        ({"starts": {"random": STEEP}}, "starts must have names .* does not use, got 'random'"),
        ({"starts": {"mine": STEEP._replace(y=jnp.ones(3))}}, r"starts\['mine'\] must be \[4, 1\]"),
        ({"starts": {"mine": STEEP}}, r"starts\['mine'\] must have ‖x_t‖ <= x_norm"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(wrong, message):
    options = {"learner": learner(), "noise": QUIET, "horizon": 4, "key": key(), "radius": 1.0}
    raises(message, worst, **{**options, "steps": 2, "held_out": 2, **wrong})


@pytest.mark.slow
def test_searches_that_are_too_large_are_refused_with_the_number(monkeypatch):
    monkeypatch.setattr(search, "memory", lambda: 1.0)
    message = r"horizon = 8, dim = 1 and 16 draws need \d+\.\d GiB"
    raises(message, worst, learner(), NOISY, 8, key=key(), radius=1.0)
    monkeypatch.undo()
    assert 2**28 < search.memory() < 2**50


def regrets(learner, name, noise, draws, radius):
    """The stored stream, and its regret over some draws of the noise."""
    with np.load(FOLDER / f"{name}.npz") as file:
        stream = nj.Stream(*(file[part].astype(np.float32) for part in ("x", "y")))
    run = jax.vmap(lambda k: clean_regret(learner, stream, noise, k, radius=radius))
    return stream, jax.jit(run)(jax.random.split(key(), draws))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-WorstStream")
@pytest.mark.parametrize(
    ("name", "excess", "draws"), [("one_copy", 1.7, 128), ("noisy_kernel", 1.4, 1024)]
)
def test_a_stored_stream_beats_the_printed_bound(name, excess, draws):
    learner, noise, bound, options, horizon = CERTIFICATES[name]()
    stream, values = regrets(learner, name, noise, draws, options["radius"])
    assert stream.x.shape == (horizon, 1)
    assert np.abs(stream.x).max() <= 1
    assert np.abs(stream.y).max() <= options["y_size"]
    assert values.mean() - 5 * values.std() / draws**0.5 > excess * bound.regret


@pytest.mark.statistical
@pytest.mark.claim("EXT-WorstStream")
def test_the_right_rule_keeps_its_bound_on_the_stream_that_breaks_the_printed_one():
    _, noise, *_, horizon = CERTIFICATES["one_copy"]()
    largest = nj.Stream(np.ones((1, 1), np.float32), np.full(1, 2.0, np.float32))
    moments = nj.bounds.moments(largest, noise)
    bound = nj.bounds.known_covariance(moments, horizon=horizon, radius=1.0)
    learner = nj.learners.known_covariance(radius=1.0, learning_rate=bound.learning_rate)
    _, values = regrets(learner, "one_copy", noise, 64, 1.0)
    assert values.mean() < 0.6 * bound.regret


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"regret": 1.0}, "regret must be a function"),
        ({"regret": lambda stream, key: stream.y}, "regret.stream, key. must be one number"),
        ({"starts": (1.0, 2.0)}, "starts must be a Stream"),
        ({"starts": nj.Stream(jnp.ones((2, 1)), jnp.ones(2))}, r"starts.x must be \[R, T, d\]"),
        ({"starts": nj.Stream(np.full((1, 4, 2), np.nan), np.ones((1, 4)))}, "starts.x must be"),
        ({"x_norm": 0.0}, "x_norm must be positive"),
        ({"learning_rate": -0.1}, "learning_rate must be positive"),
        ({"steps": 0}, "steps must be a whole number of at least 1"),
        ({"key": 0}, "key must be a key such as"),
    ],
)
def test_arguments_of_the_ascent_are_checked(options, message):
    starts = nj.Stream(np.ones((1, 4, 2)), np.ones((1, 4)))
    right = {"regret": lambda stream, key: jnp.sum(stream.x), "starts": starts, "key": key(0)}
    raises(message, ascend, **right | {"steps": 1, "draws": 1} | options)
    raises("stream must be a Stream, got list", clean_regret, learner(), [], NOISY, key(), radius=1)
