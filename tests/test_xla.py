import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.xla import random_bits, total


@pytest.mark.parametrize("dim", [1, 8, 9, 33, 240, 241, 481, 3_001])
def test_each_number_is_added_once(dim):
    powers = np.random.default_rng(0).integers(-1000, 1000, dim).astype(np.float32)
    assert float(total(powers)) == powers.sum(dtype=np.float64)  # whole numbers: exact


def test_elsewhere_than_on_cpus_forms_are_plain(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    plain = jax.make_jaxpr(jnp.sum)(jnp.ones(64))
    assert str(jax.make_jaxpr(total)(jnp.ones(64))) == str(plain)
    bits, key = lambda key: random_bits(key, 300), jax.random.key(0)
    assert "while" not in str(jax.make_jaxpr(bits)(key))
    np.testing.assert_array_equal(bits(key), jax.random.bits(key, (300,)))


def test_gradients_and_batches_are_those_of_a_sum():
    a = np.random.default_rng(0).normal(size=(2, 50)).astype(np.float32)
    sums, gradients = jax.jit(jax.vmap(jax.value_and_grad(lambda a: total(a**2))))(a)
    np.testing.assert_allclose(sums, (a**2).sum(axis=1), rtol=1e-5)
    np.testing.assert_allclose(gradients, 2 * a, rtol=1e-5)


@pytest.mark.parametrize(("dim", "rate"), [(50, None), (500, 0.05)])
def test_wide_rounds_are_those_of_the_paper(dim, rate, x64):
    rng, weights, squares = np.random.default_rng(dim), np.zeros(dim), 0.0
    x, y = rng.normal(size=(12, 2, dim)) / dim**0.5, 5 * rng.normal(size=12)
    learner = nj.learners.two_copies(radius=0.5, learning_rate=rate)

    @jax.jit
    def run(samples):
        def one_round(state, sample):
            state = learner.step(state, sample, jax.random.key(0))
            return state, state.weights

        return jax.lax.scan(one_round, learner.init(dim), samples)[1]

    found = run(nj.Sample(jnp.asarray(x), jnp.asarray(y)))
    norms = []
    for (first, second), target, state in zip(x, y, found, strict=True):
        gradient = 2 * (weights @ first - target) * second
        squares += gradient @ gradient
        weights = weights - (rate or 2**0.5 * 0.5 / squares**0.5) * gradient
        norms.append(np.linalg.norm(weights))
        weights = weights * min(1, 0.5 / norms[-1])
        np.testing.assert_allclose(state, weights, rtol=1e-10, atol=1e-12)
    assert max(norms) > 0.5  # the ball is felt


def test_a_step_too_long_to_square_is_reported():
    learner = nj.learners.two_copies(radius=1.0, learning_rate=1.0)
    samples = [nj.Sample(jnp.ones((2, 2)), jnp.float32(y)) for y in (1e17, 1e25)]
    long, longer = (learner.step(learner.init(2), one, None).weights for one in samples)
    np.testing.assert_allclose(long, 0.5**0.5, rtol=1e-6)
    assert np.all(np.isnan(longer))
