"""The engine against plain loops: every memory, every way through the rounds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learners import references

import noisy_jax as nj
from noisy_jax.base import Sample, unrolled
from noisy_jax.expansion import Round, Rule, Update, expansion, squared_loss
from noisy_jax.memory import Space, everything, ring, weight_vector

KERNEL = nj.kernels.gaussian(squared_width=1.5)
SPACE = Space(KERNEL.gram, KERNEL.gram, KERNEL.diagonal)
T, DIM = 75, 2
RATE, DECAY, MARGIN = 0.3, 0.05, 0.4


def soft_margin_rule():
    """Decay, an offset of its own, and a test for a margin: what later learners are made of."""

    def update(offset, values, y, t):
        step = RATE * y * (y * (values[0] + offset) <= MARGIN)
        return Update(step, 1 - DECAY, offset + step)

    return Rule(lambda: jnp.zeros(()), update)


def itself(sample, key):
    return Round(sample.x[0], None, sample.y)


def labelled(rng, rounds=T):
    x = rng.normal(size=(rounds, DIM))
    return x, np.where(x[:, 0] + 0.5 * rng.normal(size=rounds) > 0, 1.0, -1.0)


def both_ways(learner, x, y):
    """(state, predictions) by `unroll` and by a scan over `step`."""
    x, y = jnp.asarray(x), jnp.asarray(y)
    samples = Sample(x[:, None], y, jnp.zeros(len(y)))
    keys = jax.random.split(jax.random.key(0), len(y))
    return [
        jax.jit(unrolled(way))(way.init(DIM), samples, x, keys)
        for way in (learner, learner._replace(unroll=None))
    ]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("size", "block"), [(T, 16), (20, 16), (20, 20), (7, 5), (300, 80)])
def test_decay_offset_and_ring_equal_the_loop(rng, size, block):
    x, y = labelled(rng)
    memory = ring(SPACE, size)
    learner = expansion(read=itself, rule=soft_margin_rule(), memory=memory, views=1, block=block)
    predictions, alpha, offset = references.soft_margin(
        references.gaussian_kernel(1.5), x, y, RATE, DECAY, MARGIN, size
    )
    assert 0 < np.sum(alpha != 0) < min(size, T)  # both branches of the rule were taken
    for state, made in both_ways(learner, x, y):
        np.testing.assert_allclose(made, predictions, atol=1e-12)
        np.testing.assert_allclose(state.rule, offset, atol=1e-12)
        kept = np.zeros(size)
        kept[np.arange(max(0, T - size), T) % size] = alpha[max(0, T - size) :]
        np.testing.assert_allclose(state.weights[:size], kept, atol=1e-12)


@pytest.mark.usefixtures("x64")
def test_everything_kept_equals_the_loop_and_the_norm_the_double_sum(rng):
    x, y = labelled(rng, rounds=300)  # more than one chunk of stored elements
    memory = everything(SPACE, 300)
    learner = expansion(read=itself, rule=soft_margin_rule(), memory=memory, views=1, block=64)
    kernel = references.gaussian_kernel(1.5)
    predictions, alpha, _ = references.soft_margin(kernel, x, y, RATE, DECAY, MARGIN, 300)
    squared_norm = alpha @ kernel(x[:, None], x[None]) @ alpha
    for state, made in both_ways(learner, x, y):
        np.testing.assert_allclose(made, predictions, atol=1e-12)
        np.testing.assert_allclose(state.squared_norm, squared_norm, rtol=1e-12)
        assert state.round == 300


@pytest.mark.usefixtures("x64")
def test_weight_vector_equals_the_expansion_of_the_linear_kernel(rng):
    x, y = labelled(rng)
    linear = nj.kernels.linear()
    space = Space(linear.gram, linear.gram, linear.diagonal)
    options = {"read": itself, "rule": soft_margin_rule(), "views": 1, "block": 8}
    free, _ = both_ways(expansion(memory=everything(space, T), **options), x, y)
    options["radius"] = 0.3
    kept, _ = both_ways(expansion(memory=everything(space, T), **options), x, y)
    assert np.abs(kept[1] - free[1]).max() > 0.1  # the projection is at work
    for state, predictions in both_ways(expansion(memory=weight_vector(), **options), x, y):
        np.testing.assert_allclose(predictions, kept[1], atol=1e-12)
        np.testing.assert_allclose(state.weights, kept[0].weights[:T] @ x, atol=1e-12)


def test_the_norm_holds_over_long_runs_in_float32(rng):
    rounds = 4096
    x = rng.normal(size=(rounds, DIM)).astype(np.float32)
    y = np.sin(2 * x[:, 0]) + rng.normal(size=rounds).astype(np.float32)
    learner = expansion(
        read=itself, rule=squared_loss(0.05), memory=everything(SPACE, rounds), views=1
    )
    state, _ = both_ways(learner, x, y)[0]
    alpha = np.asarray(state.weights, np.float64)[:rounds]
    gram = references.gaussian_kernel(1.5)(x[:, None].astype(np.float64), x[None])
    np.testing.assert_allclose(state.squared_norm, alpha @ gram @ alpha, rtol=1e-5)


def test_rounds_beyond_the_horizon_are_reported():
    learner = nj.learners.noise_blind_kernel(KERNEL, horizon=10, radius=1.0, learning_rate=0.1)
    stream = nj.streams.linear(jax.random.key(0), 16, DIM)
    noise, key = nj.noise.Gaussian(0.1), jax.random.key(1)
    with pytest.raises(ValueError, match="16 rounds, but the learner has room for 10"):
        nj.rollout(learner, stream, noise, key)
    begun = nj.rollout(learner, nj.Stream(stream.x[:8], stream.y[:8]), noise, key).state
    more = nj.Stream(stream.x[8:], stream.y[8:])
    assert nj.rollout(learner, more, noise, key, state=begun).diverged_at == 3
    with pytest.raises(ValueError, match="16 rounds, but the learner has room for 10"):
        nj.rollout(learner, stream, noise, key, state=begun)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block": 0}, "block must be a whole number of at least 1, got 0"),
        ({"radius": -1.0}, "radius must be positive"),
        ({"memory": ring(SPACE, 5), "radius": 1.0}, "a memory that forgets has no known norm"),
    ],
)
def test_refuses_bad_arguments(options, message):
    valid = {"read": itself, "rule": soft_margin_rule(), "memory": everything(SPACE, 9), "views": 1}
    with pytest.raises(ValueError, match=message):
        expansion(**{**valid, **options})


def test_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match="horizon must be a whole number of at least 1"):
        everything(SPACE, 0)
    with pytest.raises(ValueError, match="size must be a whole number of at least 1"):
        ring(SPACE, 0)
    with pytest.raises(ValueError, match="learning_rate must be positive"):
        squared_loss(0.0)
    learner = expansion(
        read=itself, rule=soft_margin_rule(), memory=ring(SPACE, 5), views=1, block=6
    )
    with pytest.raises(ValueError, match="a ring of 5 elements takes blocks of at most"):
        both_ways(learner, np.zeros((12, DIM)), np.ones(12))
