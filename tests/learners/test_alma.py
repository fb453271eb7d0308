"""Kernel ALMA₂ against its pseudo-code, and what it promises."""

import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.engine import weight_vector
from noisy_jax.learners import alma
from tests.learners import references
from tests.learners.runs import unrolled

KERNEL = nj.kernels.polynomial(degree=2)  # k(x, x) is not 1


def plain(x, z):
    return (np.sum(x * z, axis=-1) + 1) ** 2


def labelled(rng, rounds=80):
    x = rng.normal(size=(rounds, 2))
    return x, np.where(x[:, 0] * x[:, 1] + 0.2 > 0, 1.0, -1.0)


@pytest.mark.slow
@pytest.mark.claim("NORMA-ALMA_2")
@pytest.mark.parametrize(("theta", "c"), [(1.5, 3.0), (0.0, 2**0.5)])
def test_equals_the_pseudo_code(x64, rng, theta, c):
    x, y = labelled(rng)
    predictions, coefficients, norms, updates = references.alma(plain, x, y, theta, c)
    state, made = unrolled(alma(KERNEL, threshold=theta, scale=c, buffer=100, block=16), x, y)
    np.testing.assert_allclose(made, predictions, atol=1e-12)
    roots = np.sqrt(plain(x, x))  # ours belong to instances of norm one
    alpha = np.asarray(state.weights)[:80] / roots
    np.testing.assert_allclose(alpha, coefficients, atol=1e-12)
    np.testing.assert_allclose(state.rule.squared_norm, norms[-1], atol=1e-12)
    assert state.rule.updates == updates < 80
    gram = plain(x[:, None], x[None])
    np.testing.assert_allclose(alpha @ gram @ alpha, norms[-1], atol=1e-12)
    assert norms.max() <= 1 + 1e-12
    assert np.sum(norms > 1 - 1e-9) > 20  # the ball is felt
    assert (updates == np.sum(y * np.asarray(made) <= 0)) == (theta == 0)


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.claim("NORMA-ALMA_2")
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_ends_in_the_margin_that_it_approximates(rng, alpha):
    gamma, epochs = 0.1, 600
    angle = rng.uniform(0, 2 * np.pi, size=300)
    angle = angle[np.abs(np.sin(angle)) >= gamma]
    x = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    y = np.sign(x[:, 1])
    learner = alma(
        nj.kernels.linear(), threshold=8**0.5 * (1 - alpha) / alpha,
        buffer=weight_vector(),  # the instances have norm one as they are
    )  # fmt: skip
    state, made = unrolled(learner, np.tile(x, (epochs, 1)), np.tile(y, epochs))
    margin = np.min(y * np.asarray(learner.predict(state, jnp.asarray(x))))
    assert margin >= (1 - alpha) * gamma
    assert margin <= 1.1 * np.min(np.abs(x[:, 1]))
    last = np.asarray(made)[-len(y) :] * y
    k = state.rule.updates + 1
    assert np.all(last > 8**0.5 * (1 - alpha) / alpha / np.sqrt(k))  # an epoch without updates
    bound = 2 * (2 / alpha - 1) ** 2 / gamma**2 + 8 / alpha - 4
    assert 0 < state.rule.updates <= bound


def test_an_instance_of_norm_zero_counts_for_nothing():
    x, y = np.array([[1.0], [0.0], [1.0]]), np.array([1.0, -1.0, 1.0])
    state, made = unrolled(alma(nj.kernels.linear(), threshold=1.0, buffer=5, block=3), x, y)
    assert np.all(np.isfinite(made))
    assert state.rule.updates == 1
