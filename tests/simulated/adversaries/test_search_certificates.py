"""Streams that were found by `adversaries.worst`, on which bounds as printed are false."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.adversaries import clean_regret
from tests.keys import key
from tests.simulated.adversaries.certificates.make import CERTIFICATES, FOLDER


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
