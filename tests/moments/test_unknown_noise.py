"""Moments under unknown noise: exact by enumeration and quadrature, and NumPy references."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.base import Sample
from noisy_jax.unbiased import gaussian, multilevel, pair, replicates
from tests.errors import raises
from tests.quadrature import gauss_hermite
from tests.unbiased.cases import COV, SKEWED, X, enumerated, levels_of

pytestmark = pytest.mark.usefixtures("x64")

TWO_LEVELS = functools.partial(multilevel, levels=2)
KERNEL = nj.kernels.gaussian(length_scale=1.1)
Y = 0.6


def waves():
    return nj.kernels.fourier_features(KERNEL, jax.random.key(0), num_features=6)


def cosines_and_sines(frequencies=np.array([[0.9, -0.4], [0.2, 0.8]])):  # noqa: B008
    def features(x):
        return jnp.concatenate([jnp.cos(x @ frequencies.T), jnp.sin(x @ frequencies.T)], axis=-1)

    return features


def powers(x):
    return jnp.concatenate([jnp.ones_like(x), x, 0.5 * x**2], axis=-1)


def one_round(moments, copies, key: Any = None):
    """Moments of one row, and the readings of a function and its square."""
    keys = () if key is None else (key[None],)
    sample = Sample(jnp.asarray(copies), jnp.asarray(Y))
    sums = moments.sums(jax.tree.map(lambda leaf: leaf[None], sample), jnp.ones(1), *keys)
    weights = jnp.cos(jnp.arange(1.0, len(sums.cross) + 1))
    readings = moments.clean_estimates(weights, sample, *(() if key is None else (key,)))
    return jnp.concatenate([jnp.ravel(leaf) for leaf in (*moments.corrected(sums), *readings)])


def clean(features, x):
    """What `one_round` estimates."""
    z = np.asarray(features(jnp.asarray(x)))
    value = np.cos(np.arange(1.0, len(z) + 1)) @ z
    return np.concatenate([np.outer(z, z).ravel(), Y * z, [value, value**2]])


def mean_over(function, copies, noise=SKEWED, sigma=0.8):
    """The exact mean of function(copies `[V, 1]`) at x = .7."""
    return enumerated(lambda rows: function(rows[:, None]), noise, copies, sigma)


@pytest.mark.claim("EXT-MomentsOfFeatures")
@pytest.mark.parametrize(
    ("copies", "order", "features"), [(2, 1, lambda x: x), (3, 1, lambda x: x), (8, 3, powers)]
)
def test_replicates_are_exact_for_polynomials_of_degree_k_plus_1(copies, order, features):
    """Under skewed noise; φφᵀ has twice the degree of φ."""
    estimate = functools.partial(replicates, copies=copies, order=order)
    moments = nj.moments.unbiased(features, estimate)
    found = mean_over(lambda rows: one_round(moments, rows), copies)
    np.testing.assert_allclose(found, clean(features, [0.7]), atol=1e-9)


def over_levels(moments, g, levels, q, sigma):
    """The exact mean over levels and noise of the moments of one row."""
    probabilities, keys = levels_of(g, levels, q, 2**-1.5)

    def one(rows, key):
        return one_round(moments, rows[:, None], key)

    return probabilities @ enumerated(one, SKEWED, g.copies, sigma, keys)


@pytest.mark.claim("EXT-MomentsOfFeatures")
def test_multilevel_is_exact_for_linear_features():
    g = TWO_LEVELS(lambda x: x)
    found = over_levels(nj.moments.unbiased(g.f, TWO_LEVELS), g, 2, 0.5, 0.8)
    np.testing.assert_allclose(found, clean(g.f, [0.7]), rtol=1e-9)


@pytest.mark.slow
@pytest.mark.claim("EXT-MomentsOfFeatures")
def test_multilevel_of_waves_is_the_extrapolation_of_the_last_two_means():
    """Its mean is 2F_L − F_{L−1}, with F_N the mean of φφᵀ at means of b 2^N copies."""
    features = waves()
    estimate = functools.partial(multilevel, base=2, levels=2, continue_with=0.7)
    moments, g = nj.moments.unbiased(features, estimate), estimate(lambda x: x)

    def at_mean(size):
        estimate = functools.partial(replicates, copies=size, order=0)
        plain = nj.moments.unbiased(features, estimate)
        return mean_over(lambda rows: one_round(plain, rows), size, sigma=0.3)

    found = over_levels(moments, g, 2, 0.7, 0.3)
    np.testing.assert_allclose(found, 2 * at_mean(8) - at_mean(4), rtol=1e-9)
    off = np.abs([found - clean(features, [0.7]), at_mean(2) - clean(features, [0.7])]).max(axis=1)
    assert off[0] < 0.1 * off[1]


@pytest.mark.slow
@pytest.mark.claim("EXT-MomentsOfFeatures")
@pytest.mark.parametrize(("factor", "make"), [(0.5, waves), (2.0, cosines_and_sines)])
def test_pair_is_exact_under_gaussian_noise_of_any_covariance(factor, make):
    features = make()
    of_mean = functools.partial(replicates, copies=2, order=0)
    errors, weights = gauss_hermite(9, np.kron(np.eye(2), factor * COV))
    copies = X + errors.reshape(-1, 2, 2)
    found, uncorrected = (
        weights @ np.asarray(jax.jit(jax.vmap(functools.partial(one_round, each)))(copies))
        for each in (nj.moments.unbiased(features, how) for how in (pair, of_mean))
    )
    np.testing.assert_allclose(found, clean(features, X), atol=1e-6)
    assert np.abs(uncorrected - clean(features, X)).max() > 1e-3


def reference(name, copies, frequencies, y, kept, levels):
    """Sums over rows in NumPy, row by row; `levels` are those of `multilevel`."""
    gram, cross = 0.0, 0.0
    for i, rows in enumerate(copies):
        m = rows.mean(axis=0)
        if name == "gaussian":
            drawn = nj.noise.Gaussian(np.linspace(0.1, 0.5, 40)[i]).centred(
                jax.random.split(jax.random.key(1), 40)[i], jnp.zeros((3, 2))
            )
            terms = [(1 / 3, m + 1j * each) for each in np.asarray(drawn)]
        elif name == "pair":
            terms = [(1, m + 0.5j * (rows[0] - rows[1]))]
        elif name == "replicates":
            halves = rows[:2].mean(axis=0), rows[2:].mean(axis=0)
            terms = [(8 / 3, m), *((-1.0, half) for half in halves), *((1 / 12, r) for r in rows)]
        else:
            used, terms = 2 ** levels[i], [(1, rows[0])]
            if used > 1:
                factor = [0, 1 / (0.5 * (1 - 2**-1.5)), 2 / (0.5 * 2**-1.5)][levels[i]]
                left, right = rows[: used // 2].mean(axis=0), rows[used // 2 : used].mean(axis=0)
                terms += [(factor, (left + right) / 2), (-factor / 2, left), (-factor / 2, right)]
        for w, p in terms:
            z = np.concatenate([np.cos(frequencies @ p), np.sin(frequencies @ p)])
            gram = gram + kept[i] * w * np.outer(z, z).real
            cross = cross + kept[i] * y[i] * w * z.real
    return gram, cross


@pytest.mark.slow
@pytest.mark.parametrize("name", ["replicates", "multilevel", "pair", "gaussian"])
def test_sums_of_two_halves_are_those_of_a_loop_in_numpy(name, rng):
    frequencies = rng.normal(size=(3, 2))
    features = cosines_and_sines(frequencies)
    estimate = {
        "replicates": functools.partial(replicates, order=2),
        "multilevel": TWO_LEVELS,
        "pair": pair,
        "gaussian": functools.partial(gaussian, draws=3),
    }[name]
    moments = nj.moments.unbiased(features, estimate)
    copies, y, kept = rng.normal(size=(40, 4, 2)), rng.normal(size=40), rng.integers(0, 2, 40)
    keys, levels, cov = jax.random.split(jax.random.key(1), 40), None, None
    if name == "multilevel":
        needed = jax.vmap(TWO_LEVELS(jnp.sum).copies_needed)(keys)
        levels = np.log2(np.asarray(needed)).astype(int)
        assert set(levels) == {0, 1, 2}
        copies[np.arange(4)[None] >= np.asarray(needed)[:, None]] = np.nan  # not measured
    if name == "gaussian":
        cov = jnp.linspace(0.1, 0.5, 40)
    samples = Sample(jnp.asarray(copies[:, : moments.copies]), jnp.asarray(y), cov)
    more = (keys,) if moments.random else ()

    parts, sums_of = (samples, jnp.asarray(kept, float), *more), jax.jit(moments.sums)
    halves = slice(0, 20), slice(20, 40)
    each = [sums_of(*jax.tree.map(lambda leaf, own=own: leaf[own], parts)) for own in halves]
    whole = jax.tree.map(jnp.add, *each)
    assert whole.count == kept.sum()
    expected = reference(name, copies[:, : moments.copies], frequencies, y, kept, levels)
    for found, value in zip(moments.corrected(whole), expected, strict=True):
        np.testing.assert_allclose(found, value, atol=1e-10)


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
    features = waves()
    unbiased = nj.moments.unbiased
    raises("features must be a function, got 'rbf'", unbiased, "rbf", pair)
    raises("'tanh'", one_round, unbiased(jnp.tanh, pair), np.zeros((2, 1)))
    raises("pass a key", one_round, unbiased(features, multilevel), np.zeros((32, 1)))
    read = unbiased(features, gaussian).clean_estimates
    sample, key = Sample(jnp.zeros((1, 1)), jnp.zeros(())), jax.random.key(0)
    raises("needs sample.cov, but the covariance", read, jnp.ones(6), sample, key)
    for wrong in (lambda x: x[..., 0], lambda x: jnp.outer(x, x)):
        message = r"features must map \[\.\.\., 2\] to \[\.\.\., D\]"
        raises(message, unbiased(wrong).num_features, 2)
    assert unbiased(features).num_features(2) == 6


@pytest.mark.slow
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
