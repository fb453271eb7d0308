"""A random number of copies of any noise: exact, by enumeration."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.unbiased.cases import SKEWED, SYMMETRIC, enumerated, mean_at, wave

LEVELS = [(3, 1, 0.5, 2**-1.5), (2, 2, 1.0, 0.4), (1, 3, 0.3, 0.5)]

pytestmark = pytest.mark.usefixtures("x64")


def over_levels(g, function, levels, base, q, r):
    """Σ_N p_N function(a key with which g has level N), with the probabilities."""
    probabilities = [1 - q, *(q * (1 - r) * r ** (n - 1) for n in range(1, levels))]
    probabilities.append(1 - sum(probabilities))
    keys = jax.random.split(jax.random.key(0), 4000)
    needed = np.asarray(jax.vmap(g.copies_needed)(keys))
    total = 0.0
    for level, probability in enumerate(probabilities):
        if probability:
            total += probability * function(keys[np.flatnonzero(needed == base * 2**level)[0]])
    return total, probabilities


@pytest.mark.claim("EXT-Multilevel")
@pytest.mark.parametrize("noise", [SYMMETRIC, SKEWED], ids=["symmetric", "skewed"])
@pytest.mark.parametrize(("levels", "base", "q", "r"), LEVELS)
def test_multilevel_telescopes(noise, levels, base, q, r):
    """Its mean over levels and noise is F_0 + Σ_N (F_N − F_{N−1}), with the last one twice."""
    g = nj.unbiased.multilevel(wave, levels=levels, base=base, continue_with=q, ratio=r)

    def given(key):
        return enumerated(lambda copies: g(copies, key=key), noise, g.copies, 0.8)

    found, probabilities = over_levels(g, given, levels, base, q, r)
    sizes = base * 2 ** np.arange(levels + 1)
    before, last = (mean_at(wave, noise, size, 0.8) for size in sizes[-2:].tolist())
    np.testing.assert_allclose(found, 2 * last - before, rtol=1e-9)
    assert abs(found - wave(0.7)) < 0.5 * abs(last - wave(0.7))
    np.testing.assert_allclose(g.mean_copies, np.dot(probabilities, sizes), rtol=1e-12)


@pytest.mark.claim("EXT-Multilevel")
@pytest.mark.parametrize("levels", [1, 2, 3])
def test_multilevel_of_a_quadratic_is_exact_at_every_cap(levels):
    g = nj.unbiased.multilevel(lambda x: 3 * x**2 - x, levels=levels)

    def given(key):
        return enumerated(lambda copies: g(copies, key=key), SKEWED, g.copies, 0.9)

    found, _ = over_levels(g, given, levels, 1, 0.5, 2**-1.5)
    np.testing.assert_allclose(found, 3 * 0.7**2 - 0.7, rtol=1e-9)


@pytest.mark.parametrize("kind", ["rbg", "unsafe_rbg"])
def test_copies_that_are_not_needed_are_not_read_for_keys_of_any_kind(kind):
    """JAX draws other numbers from keys of these kinds inside `vmap` than outside."""
    g = nj.unbiased.multilevel(wave, levels=3)
    keys = jax.random.split(jax.random.key(0, impl=kind), 64)
    needed = np.array(list(map(jax.jit(g.copies_needed), keys)))  # as it is asked before measuring
    copies = np.where(np.arange(g.copies) < needed[:, None], 1.0 + np.arange(8), np.nan)
    estimate = jax.jit(lambda copies, key: g(copies, key=key))
    alone = [estimate(each, key) for each, key in zip(copies, keys, strict=True)]
    np.testing.assert_allclose(jax.vmap(estimate)(copies, keys), alone, rtol=1e-9)
    assert len(set(needed.tolist())) == 4


def test_the_frequency_of_levels_is_that_of_the_weights():
    """The draw of the level and the weight 1/p_N must agree: 100,000 keys."""
    g = nj.unbiased.multilevel(wave, levels=3, continue_with=0.6, ratio=0.4)
    needed = jax.vmap(g.copies_needed)(jax.random.split(jax.random.key(1), 100_000))
    shares = np.bincount(np.log2(np.asarray(needed)).astype(int)) / 100_000
    expected = np.array([0.4, 0.36, 0.144, 0.096])
    error = np.sqrt(expected * (1 - expected) / 100_000)
    assert (np.abs(shares - expected) < 5 * error).all()
