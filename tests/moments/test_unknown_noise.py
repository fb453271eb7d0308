"""Moments under unknown noise are the transformations of the products of the features."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.unbiased import gaussian, multilevel, pair, replicates
from tests.errors import raises

pytestmark = pytest.mark.usefixtures("x64")

ESTIMATES = {
    "replicates": functools.partial(replicates, order=2),
    "multilevel": functools.partial(multilevel, levels=2),
    "pair": pair,
    "gaussian": functools.partial(gaussian, draws=3),
}
ROWS = 40


def waves(x):
    frequencies = np.array([[0.9, -0.4], [0.2, 0.8], [-0.5, 1.1]])
    return jnp.concatenate([jnp.cos(x @ frequencies.T), jnp.sin(x @ frequencies.T)], axis=-1)


def products(weights, x, y):
    """What moments and readings estimate, as functions of one clean row."""
    z = waves(x)
    return jnp.outer(z, z), y * z, (weights @ z, (weights @ z) ** 2)


@pytest.mark.slow
@pytest.mark.claim("EXT-MomentsOfFeatures")
@pytest.mark.parametrize("name", ESTIMATES)
def test_they_are_the_estimates_of_the_products_in_each_row(name, rng):
    """Sums over two halves, some rows of which do not count; tests/unbiased shows the estimates."""
    estimate = ESTIMATES[name]
    moments = nj.moments.unbiased(waves, estimate)
    keys = jax.random.split(jax.random.key(1), ROWS)
    copies, y = rng.normal(size=(ROWS, moments.copies, 2)), jnp.asarray(rng.normal(size=ROWS))
    weights, kept = rng.normal(size=6), rng.integers(0, 2, ROWS).astype(float)
    if name == "multilevel":
        needed = np.asarray(jax.vmap(estimate(waves).copies_needed)(keys))
        assert {*needed} == {1, 2, 4}
        copies[np.arange(4) >= needed[:, None]] = np.nan  # not measured
    samples = Sample(jnp.asarray(copies), y)
    if name == "gaussian":
        samples = samples._replace(cov=jnp.linspace(0.1, 0.5, ROWS))

    def of_a_row(sample, key):
        own = {"noise": sample.cov} if name == "gaussian" else {}
        return estimate(products, argnum=1, **own)(weights, sample.x, sample.y, key=key)

    gram, cross, readings = jax.jit(jax.vmap(of_a_row))(samples, keys)
    more = (keys,) if moments.random else ()
    parts, sums_of = (samples, jnp.asarray(kept), *more), jax.jit(moments.sums)
    halves = slice(0, 15), slice(15, ROWS)
    each = [sums_of(*jax.tree.map(lambda leaf, own=own: leaf[own], parts)) for own in halves]
    whole = jax.tree.map(jnp.add, *each)
    assert whole.count == kept.sum()
    found = moments.corrected(whole)
    np.testing.assert_allclose(found[0], np.tensordot(kept, gram, 1), atol=1e-10)
    np.testing.assert_allclose(found[1], np.tensordot(kept, cross, 1), atol=1e-10)
    read = jax.jit(jax.vmap(functools.partial(moments.clean_estimates, weights)))(samples, *more)
    np.testing.assert_allclose(read, readings, atol=1e-10)


@pytest.mark.slow
def test_features_need_not_be_finite_at_zero():
    """The last block is filled with rows that do not count."""
    x = np.random.default_rng(0).uniform(2, 3, size=(10, 2, 1))
    learner = nj.learners.corrected_ftrl(nj.moments.unbiased(jnp.log, replicates), solve_every=4)
    state = learner.init(1)
    samples, keys = Sample(jnp.asarray(x), jnp.ones(10)), jax.random.split(jax.random.key(0), 10)
    together = jax.jit(learner.unroll)(state, samples, samples.x[:, 0], keys)[0]
    step = jax.jit(learner.step)
    for t in range(10):
        state = step(state, jax.tree.map(lambda leaf, t=t: leaf[t], samples), keys[t])
    found, expected = learner.finish(together).weights, learner.finish(state).weights
    assert np.isfinite(expected).all()
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_too_few_copies_raise():
    learner = nj.learners.corrected_ftrl(nj.moments.unbiased(jnp.sin))
    state, key = learner.init(1), jax.random.key(0)
    message = r"reads 4 independent noisy copies .* has "
    for call in (learner.step, learner.clean_estimates):
        raises(message + "2", call, state, Sample(jnp.ones((2, 1)), jnp.ones(())), key)
    samples = Sample(jnp.ones((3, 1, 1)), jnp.ones(3))
    raises(message + "1", learner.unroll, state, samples, jnp.ones((3, 1)), key)


def test_what_cannot_be_right_raises():
    def read(features, estimate, copies, *key):
        sample = Sample(jnp.zeros((copies, 2)), jnp.zeros(()))
        return unbiased(features, estimate).clean_estimates(jnp.ones(6), sample, *key)

    unbiased = nj.moments.unbiased
    raises("features must be a function, got 'rbf'", unbiased, "rbf", pair)
    raises("'tanh'", read, jnp.tanh, pair, 2)
    raises("pass a key", read, waves, multilevel, 32)
    raises("needs sample.cov, but the covariance", read, waves, gaussian, 1, jax.random.key(0))
    for wrong in (lambda x: x[..., 0], lambda x: jnp.outer(x, x)):
        message = r"features must map \[\.\.\., 2\] to \[\.\.\., D\]"
        raises(message, unbiased(wrong).num_features, 2)
    assert unbiased(waves).num_features(2) == 6


@pytest.mark.slow
@pytest.mark.claim("EXT-MomentsOfFeatures")
def test_replicates_of_linear_features_are_two_copies(rng):
    copies = 3
    x, y = rng.normal(size=(20, copies, 3)), rng.normal(size=20)
    samples, kept = Sample(jnp.asarray(x), jnp.asarray(y)), jnp.asarray(rng.uniform(size=20))
    estimate = functools.partial(replicates, copies=copies)
    both = nj.moments.unbiased(lambda x: x, estimate), nj.moments.two_copies(copies)
    for a, b in zip(*(jax.jit(m.sums)(samples, kept)[:3] for m in both), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    one, w = jax.tree.map(lambda leaf: leaf[0], samples), jnp.array([0.3, -0.8, 1.0])
    np.testing.assert_allclose(*(m.clean_estimates(w, one) for m in both), atol=1e-12)
