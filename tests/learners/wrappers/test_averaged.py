import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj


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


def test_average_is_better_than_the_last_iterate_on_independent_examples():
    """Online-to-batch: excess risk of the average, against that of the last iterate."""
    noise, rate = nj.noise.Gaussian(0.5), 0.05
    stream = nj.streams.linear(jax.random.key(0), 4000, 4)
    inner = nj.learners.known_covariance(radius=1.0, learning_rate=rate)
    learner = nj.wrappers.paired(inner, nj.wrappers.averaged(inner))

    def risk(key):
        state = nj.rollout(learner, stream, noise, key).state
        return jnp.mean((learner.predict(state, stream.x) - stream.y[:, None]) ** 2, axis=0)

    last, average = nj.monte_carlo(risk, jax.random.key(1), 8).mean
    assert average < last / 2


def test_norma_is_averaged_where_its_memory_keeps_all():
    """Corollary 5's f̄, against the mean of the predictions of f_1, …, f_T; a ring is refused."""
    stream = nj.streams.linear(jax.random.key(0), 12, 3)

    def learner(buffer):
        kernel, loss = nj.kernels.gaussian(length_scale=0.5**0.5), nj.losses.epsilon_insensitive()
        return nj.learners.norma(kernel, loss, learning_rate=0.5, regularization=0.1, buffer=buffer)

    inner = learner(lambda space: nj.engine.everything(space, 12))
    average, noise, key = (
        nj.wrappers.averaged(inner),
        nj.noise.Gaussian(0.0),
        jax.random.key(1),
    )
    state = nj.rollout(average, stream, noise, key).state
    z, values, played = jnp.ones(3) / 3, [], inner.init(3)
    step = jax.jit(inner.step)
    for x, y in zip(stream.x, stream.y, strict=True):
        values.append(inner.predict(played, z))
        played = step(played, nj.Sample(x[None], y), key)
    np.testing.assert_allclose(average.predict(state, z), np.mean(values), rtol=1e-5)
    assert abs(inner.predict(state.inner, z) - np.mean(values)) > 0.01
    with pytest.raises(ValueError, match=r"RingState has none .* memory\.everything"):
        nj.wrappers.averaged(learner(5)).init(3)


def test_refuses_a_state_without_weights():
    blind = nj.learners.uncorrected(radius=1.0, learning_rate=0.1)
    pair = nj.wrappers.paired(blind, blind)
    with pytest.raises(ValueError, match="field 'weights'"):
        nj.wrappers.averaged(pair).init(3)
