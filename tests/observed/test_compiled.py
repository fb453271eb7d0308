"""A learner's runs over observed rows: every row is used once, each with its own key."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.keys import key
from tests.observed.rows import CLEAN, NOISE, X, Y


def test_no_two_rows_have_the_same_key():
    """The state of this learner holds the keys of two chunks, and the number of rows."""

    def step(state, sample, key):
        keys, count = state
        return keys.at[count].set(jax.random.key_data(key)), count + 1

    learner = nj.learners.known_covariance(radius=1.0)._replace(
        init=lambda dim: (jnp.zeros((20, 2), jnp.uint32), 0), step=step,
        predict=lambda state, x: x[..., 0], unroll=None, clean_estimates=None,
    )  # fmt: skip
    chunks = [from_arrays(X, Y, noise=NOISE).rows(np.arange(10) + start) for start in (0, 10)]
    keys, count = nj.learn(learner, chunks, jax.random.key(0)).state
    assert count == 20
    assert len(np.unique(keys, axis=0)) == 20


@pytest.mark.slow
@pytest.mark.statistical
def test_rows_after_the_last_block_are_used():
    """127 rows in blocks of 128: the learner would predict the mean."""
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=128)
    learned = nj.learn(learner, from_arrays(CLEAN[:127], Y[:127], noise=0.0), key(0))
    assert np.mean((learned.predict(CLEAN) - Y) ** 2) < 0.02
