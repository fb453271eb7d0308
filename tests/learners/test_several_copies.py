"""Descent by all pairs of several copies."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

import noisy_jax as nj
from noisy_jax.learners.several_copies import gradient_estimate
from tests.errors import raises

W, X, Y = np.array([0.3, -0.8]), np.array([1.0, 0.5]), 0.7


def test_the_estimate_is_unbiased_and_varies_less_than_that_of_two_copies():
    """Exact means over noise of ±0.5 on each coordinate of three copies."""
    copies = X + 0.5 * np.array([*itertools.product([-1.0, 1.0], repeat=6)]).reshape(-1, 3, 2)
    samples = nj.Sample(jnp.asarray(copies), jnp.full(len(copies), Y))
    found = jax.vmap(gradient_estimate, (None, 0))(jnp.asarray(W), samples)
    pairs = [
        2 * (copies[:, i] @ W - Y)[:, None] * copies[:, j]
        for i, j in itertools.permutations(range(3), 2)
    ]
    np.testing.assert_allclose(found, np.mean(pairs, axis=0), atol=1e-5)
    assert found.var(axis=0).sum() < 0.5 * pairs[0].var(axis=0).sum()
    np.testing.assert_allclose(found.mean(axis=0), 2 * (W @ X - Y) * X, atol=1e-5)


def test_one_copy_is_an_error():
    raises("copies must be .* at least 2", nj.learners.several_copies, copies=1, radius=1.0)
