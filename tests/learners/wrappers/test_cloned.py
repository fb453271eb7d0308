import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from tests.keys import key
from tests.learners import references
from tests.residuals import signs
from tests.rounds import observations

DIM, T = 2, 12
FULL = np.array([[0.3, 0.1], [0.1, 0.2]])


def watcher(copies):
    """A learner whose prediction is the last sample that it saw."""
    return nj.Learner(
        init=lambda dim: (jnp.zeros((copies, dim)), jnp.zeros((dim, dim))),
        step=lambda state, sample, key: (sample.x, nj.noise.Gaussian(sample.cov).covariance(DIM)),
        predict=lambda state, x: jnp.concatenate([leaf.ravel() for leaf in state]),
        needs=nj.Needs(copies),
    )


@pytest.mark.statistical
@pytest.mark.slow
@pytest.mark.claim("EXT-Cloning")
def test_clones_are_independent_copies_of_the_stated_noise(x64):
    copies, rounds, noise = 3, 20_000, nj.noise.Gaussian(FULL)
    learner = nj.wrappers.cloned(watcher(copies), noise)

    def clones(key):
        noise_key, clone_key = jax.random.split(key)
        sample = Sample(noise.sample(noise_key, jnp.ones((1, DIM))), jnp.zeros(()), noise.cov)
        return learner.step((), sample, clone_key)

    made, cov = jax.vmap(clones)(jax.random.split(key(0), rounds))
    np.testing.assert_allclose(cov[0], copies * FULL)
    flat = np.asarray(made).reshape(rounds, -1) - 1
    products = flat[:, :, None] * flat[:, None]
    error = products.std(axis=0) / np.sqrt(rounds)
    expected = np.kron(np.eye(copies), copies * FULL)
    assert np.all(np.abs(products.mean(axis=0) - expected) < 5 * error)
    assert np.all(error < 0.1 * copies * FULL.max())


@pytest.mark.claim("EXT-Cloning")
def test_clones_average_to_the_gradient_of_one_copy(rng):
    """E_ξ 2(⟨w, x̃ + ξ⟩ − y)(x̃ − ξ) = 2(⟨w, x̃⟩ − y)x̃ − 2Σw, and not −Σw."""
    w, x, y = *rng.normal(size=(2, 2)), 0.3
    root = rng.normal(size=(2, 2))
    xi = signs(2) @ root.T
    mean = np.mean(2 * ((x + xi) @ w - y)[:, None] * (x - xi), axis=0)
    given = w, x[None], y, root @ root.T
    np.testing.assert_allclose(mean, references.gradient("known_covariance", *given), atol=1e-12)
    assert np.abs(mean - references.gradient("as_printed", *given)).max() > 0.1


@pytest.mark.slow
@pytest.mark.claim("EXT-Cloning")
def test_clones_of_a_round_are_those_of_its_own_covariance(x64):
    copies, covs, key = 3, jnp.linspace(0.0 * FULL, FULL, T), jax.random.key(1)
    stream = nj.streams.linear(jax.random.key(0), T, DIM)
    noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(covs))
    shown = nj.rollout(nj.wrappers.cloned(watcher(copies), noise), stream, noise, key).predictions

    def by_itself(sample, step_key, cov):
        fixed = nj.wrappers.cloned(watcher(copies), nj.noise.Gaussian(cov))
        x, cov = fixed.step((), sample, step_key)
        return jnp.concatenate([x.ravel(), cov.ravel()]), sample.x[0]

    expected, singles = jax.vmap(by_itself)(*observations(stream, noise, key, copies=1), covs)
    np.testing.assert_allclose(shown[1:], expected[:-1], rtol=1e-9)
    clones, cov = np.split(shown[1:], [copies * DIM], axis=1)
    np.testing.assert_allclose(clones.reshape(-1, copies, DIM).mean(axis=1), singles[:-1])
    largest = cov[-1].reshape(DIM, DIM)  # of the last round but one
    np.testing.assert_allclose(largest, copies * covs[-2])


def test_clones_and_the_learner_have_keys_of_their_own():
    learner = watcher(2)._replace(step=lambda state, sample, key: jax.random.normal(key, (2, DIM)))
    cloned = nj.wrappers.cloned(learner, nj.noise.Gaussian(0.1))
    sample = Sample(jnp.zeros((1, DIM)), jnp.zeros(()), jnp.float32(0.1))
    with jax.debug_key_reuse(True):
        jax.eval_shape(lambda key: cloned.step((), sample, key), jax.random.key(0))
