import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj


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


def test_the_mean_keeps_its_digits_over_ten_million_rounds():
    """Relative error at most 1e-6, against float64; without compensation it is above 1e-5."""
    rounds, mean = 10_000_000, 0.7
    noise = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    noise -= noise.astype(np.float64).mean()  # each thousand rounds has the same mean
    played = jnp.asarray(mean + 0.3 * noise, jnp.float32)
    expected = np.asarray(played, np.float64).mean()

    inner = nj.learners.uncorrected(radius=1.0, learning_rate=0.1)._replace(
        init=lambda dim: jnp.int32(0),
        step=lambda t, sample, key: t + 1,
        weights=lambda t: played[t % 1000],  # w_1, w_2, … of the table, in turn
    )
    learner = nj.wrappers.averaged(inner)

    def step(_, state):
        return learner.step(state, None, None)

    run = jax.jit(lambda: jax.lax.fori_loop(0, rounds, step, learner.init(1)).mean_weights)
    assert abs(run() - expected) < 1e-6 * expected


def norma(loss, **options):
    kernel, memory = nj.kernels.gaussian(length_scale=0.7), nj.engine.everything(12)
    options |= {"learning_rate": 0.5, "regularization": 0.1}
    return nj.learners.norma(kernel, loss, buffer=memory, **options)


INNER = {
    "a learned width": lambda: norma(nj.losses.nu_huber(nu=0.3), offset=True),
    "a threshold": lambda: norma(nj.losses.novelty(nu=0.4), decay="on_update"),
    "columns": lambda: nj.wrappers.paired(
        nj.learners.two_copies(radius=1.0, learning_rate=0.3),
        nj.learners.uncorrected(radius=1.0, learning_rate=0.3),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", INNER)
def test_all_that_makes_predictions_is_averaged(name):
    """Offsets, thresholds and columns: the mean of what f_1, …, f_T predict at one point."""
    inner = INNER[name]()
    stream, z = nj.streams.linear(jax.random.key(0), 12, 3), jnp.ones(3) / 3
    stream = stream._replace(y=stream.y + 1)
    rounds = stream, nj.noise.Gaussian(0.0), jax.random.key(1)
    watched = inner._replace(predict=lambda state, x: inner.predict(state, z), unroll=None)
    values = nj.rollout(watched, *rounds).predictions
    state = nj.rollout(nj.wrappers.averaged(inner), *rounds).state
    found = nj.wrappers.averaged(inner).predict(state, z)
    np.testing.assert_allclose(found, values.mean(axis=0), rtol=1e-4)
    assert np.all(np.abs(inner.predict(state.inner, z) - found) > 0.01)
