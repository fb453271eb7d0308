import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from tests.errors import raises
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


@pytest.mark.slow
@pytest.mark.claim("EXT-Cloning")
def test_clones_of_a_round_are_those_of_its_own_covariance(x64):
    """Those of one covariance are independent copies (test_kernel_descent.py), V Σ is told."""
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


def test_a_learner_for_noise_of_another_kind_raises_for_a_traced_covariance_too():
    learner = watcher(2)._replace(needs=nj.Needs(2, noise=nj.noise.Laplace(0.3)))

    def clone(cov):
        nj.wrappers.cloned(learner, nj.noise.Gaussian(cov))
        return cov

    for call in (clone, jax.jit(clone)):
        raises("but the learner was built for Laplace", call, 0.1)


def test_what_cannot_be_cloned_round_by_round_raises():
    noise = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(np.linspace(0.0, 0.2, T)))
    world = nj.worlds.gaussian(dim=DIM, length_scale=1.0, noise=nj.noise.Gaussian(0.4))
    fixed = nj.learners.parallel_worlds(world, horizon=T, radius=1.0)
    raises("built for no noise in particular", nj.wrappers.cloned, fixed, noise)
    laplace = nj.noise.PerRound(jax.vmap(nj.noise.Laplace)(np.ones(T)))
    raises("cloned needs Gaussian noise, got Laplace", nj.wrappers.cloned, watcher(2), laplace)
    learner, sample = nj.wrappers.cloned(watcher(2), noise), Sample(jnp.zeros((1, DIM)), 0.0)
    message = r"sample\.cov must be the covariance of the round"
    raises(message, learner.step, (), sample, jax.random.key(0))
    stream = nj.streams.linear(jax.random.key(0), T, DIM)
    with pytest.raises(ValueError, match="noiseless needs a learner that is right on clean data"):
        nj.wrappers.noiseless(learner, stream)
