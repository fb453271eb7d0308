import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from tests import keys
from tests.errors import raises


class State(NamedTuple):
    """State of a learner that plays a table of weights."""

    weights: jax.Array
    t: jax.Array


@pytest.mark.slow
@pytest.mark.claim("NORMA-Cor5")
def test_predicts_with_the_mean_of_played_iterates():
    stream = nj.streams.linear(jax.random.key(0), 40, 3)
    noise, key = nj.noise.Gaussian(0.2), jax.random.key(1)
    inner = nj.learners.two_copies(radius=1.0, learning_rate=0.1)
    watched = inner._replace(predict=lambda state, x: state.weights)
    iterates = nj.rollout(watched, stream, noise, key).predictions  # w_1, ..., w_40
    result = nj.rollout(nj.wrappers.averaged(inner), stream, noise, key)
    np.testing.assert_allclose(result.state.mean_weights, iterates.mean(axis=0), atol=1e-6)
    expected = [0.0] + [iterates[:t].mean(axis=0) @ stream.x[t] for t in range(1, 40)]
    np.testing.assert_allclose(result.predictions, expected, atol=1e-6)
    assert int(result.state.count) == 40


@pytest.mark.slow
@pytest.mark.statistical
def test_average_is_better_than_the_last_iterate_on_independent_examples():
    """Online-to-batch: the risk of the average is below 3/4 of that of the last iterate."""
    noise, rate, seeds = nj.noise.Gaussian(0.5), 0.05, 256
    stream = nj.streams.linear(keys.key(0), 4000, 4)
    inner = nj.learners.known_covariance(radius=1.0, learning_rate=rate)
    learner = nj.wrappers.paired(inner, nj.wrappers.averaged(inner))

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(None, 0))
    def risk(stream, key):
        state = nj.rollout(learner, stream, noise, key).state
        return jnp.mean((learner.predict(state, stream.x) - stream.y[:, None]) ** 2, axis=0)

    last, average = np.asarray(risk(stream, jax.random.split(keys.key(1), seeds))).T
    excess = average - 0.75 * last
    assert excess.mean() < -5 * excess.std() / np.sqrt(seeds)


def test_the_mean_keeps_its_digits_over_ten_million_rounds():
    """Relative error at most 1e-6, against float64; without compensation it is above 1e-5."""
    rounds, mean = 10_000_000, 0.7
    noise = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    noise -= noise.astype(np.float64).mean()  # each thousand rounds has the same mean
    played = jnp.asarray(mean + 0.3 * noise, jnp.float32)
    expected = np.asarray(played, np.float64).mean()

    def step(state, sample, key):  # plays w_1, w_2, … of the table, in turn
        t = state.t + 1
        return State(played[t % 1000], t)

    inner = nj.learners.uncorrected(radius=1.0, learning_rate=0.1)
    inner = inner._replace(init=lambda dim: State(played[0], jnp.int32(0)), step=step)
    learner = nj.wrappers.averaged(inner)

    @jax.jit
    def run():
        after = jax.lax.fori_loop(
            0, rounds, lambda _, state: learner.step(state, None, None), learner.init(1)
        )
        return after.mean_weights

    assert abs(run() - expected) < 1e-6 * expected


@pytest.mark.slow
def test_norma_is_averaged_where_its_memory_keeps_all():
    """Corollary 5's f̄, against the mean of the predictions of f_1, …, f_T; a ring is rejected."""
    stream = nj.streams.linear(jax.random.key(0), 12, 3)

    def learner(buffer):
        kernel, loss = nj.kernels.gaussian(length_scale=0.5**0.5), nj.losses.epsilon_insensitive()
        return nj.learners.norma(kernel, loss, learning_rate=0.5, regularization=0.1, buffer=buffer)

    inner = learner(nj.engine.everything(12))
    average, noise, key = (nj.wrappers.averaged(inner), nj.noise.Gaussian(0.0), jax.random.key(1))
    state = nj.rollout(average, stream, noise, key).state
    z, values, played = jnp.ones(3) / 3, [], inner.init(3)
    step = jax.jit(inner.step)
    for x, y in zip(stream.x, stream.y, strict=True):
        values.append(inner.predict(played, z))
        played = step(played, nj.Sample(x[None], y), key)
    np.testing.assert_allclose(average.predict(state, z), np.mean(values), rtol=1e-5)
    assert abs(inner.predict(state.inner, z) - np.mean(values)) > 0.01
    raises(r"hold all of f.*engine\.everything", nj.wrappers.averaged, learner(5))


def test_rejects_a_state_without_weights():
    blind = nj.learners.uncorrected(radius=1.0, learning_rate=0.1)
    pair = nj.wrappers.paired(blind, blind)
    raises(r"Learner\.weights", nj.wrappers.averaged, pair)
