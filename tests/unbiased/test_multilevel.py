"""A random number of copies of any noise: exact, by enumeration."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.unbiased.cases import SKEWED, enumerated, levels_of, mean_at, wave

pytestmark = pytest.mark.usefixtures("x64")


def mean_over_levels(g, levels, q, r, sigma):
    """The exact mean over levels and skewed noise, and the probabilities of the levels."""
    probabilities, keys = levels_of(g, levels, q, r)
    each = enumerated(lambda copies, key: g(copies, key=key), SKEWED, g.copies, sigma, keys)
    return probabilities @ each, probabilities


@pytest.mark.slow
@pytest.mark.claim("EXT-Multilevel")
@pytest.mark.parametrize(
    ("levels", "base", "q", "r"), [(3, 1, 0.5, 2**-1.5), (2, 2, 1.0, 0.4), (1, 3, 0.3, 0.5)]
)
def test_multilevel_telescopes(levels, base, q, r):
    """Its mean over levels and noise is F_0 + Σ_N (F_N − F_{N−1}), with the last one twice."""
    g = nj.unbiased.multilevel(wave, levels=levels, base=base, continue_with=q, ratio=r)
    found, probabilities = mean_over_levels(g, levels, q, r, 0.8)
    sizes = base * 2 ** np.arange(levels + 1)
    before, last = (mean_at(SKEWED, size, 0.8) for size in sizes[-2:].tolist())
    np.testing.assert_allclose(found, 2 * last - before, rtol=1e-9)
    assert abs(found - wave(0.7)) < 0.5 * abs(last - wave(0.7))
    np.testing.assert_allclose(g.mean_copies, np.dot(probabilities, sizes), rtol=1e-12)


@pytest.mark.claim("EXT-Multilevel")
@pytest.mark.parametrize("levels", [1, 2])
def test_multilevel_of_a_quadratic_is_exact_at_every_cap(levels):
    g = nj.unbiased.multilevel(lambda x: 3 * x**2 - x, levels=levels)
    found, _ = mean_over_levels(g, levels, 0.5, 2**-1.5, 0.9)
    np.testing.assert_allclose(found, 3 * 0.7**2 - 0.7, rtol=1e-9)


def test_the_frequency_of_levels_is_that_of_the_weights():
    """The draw of the level and the weight 1/p_N must agree: 100,000 keys."""
    g = nj.unbiased.multilevel(wave, levels=3, continue_with=0.6, ratio=0.4)
    needed = jax.jit(jax.vmap(g.copies_needed))(jax.random.split(jax.random.key(1), 100_000))
    shares = np.bincount(np.log2(np.asarray(needed)).astype(int)) / 100_000
    expected = np.array([0.4, 0.36, 0.144, 0.096])
    error = np.sqrt(expected * (1 - expected) / 100_000)
    assert (np.abs(shares - expected) < 5 * error).all()
