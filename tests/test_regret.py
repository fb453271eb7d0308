import math

import chex
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.regret import against, cumulative, growth


def test_cumulative_and_against(rng):
    loss = nj.losses.squared()
    p, q, y = (jnp.asarray(rng.normal(size=50), jnp.float32) for _ in range(3))
    expected = np.cumsum((np.asarray(p) - np.asarray(y)) ** 2)
    np.testing.assert_allclose(cumulative(loss, p, y), expected, rtol=1e-5)
    regret = np.cumsum((np.asarray(p - y)) ** 2 - np.asarray(q - y) ** 2)
    np.testing.assert_allclose(against(loss, p, q, y), regret, atol=1e-4)
    np.testing.assert_allclose(against(loss, p, p, y), 0)


def test_forgotten_vmap_fails_at_once():
    with pytest.raises(AssertionError, match="rank"):
        cumulative(nj.losses.squared(), jnp.zeros((2, 5)), jnp.zeros((2, 5)))
    chex.assert_shape(cumulative(nj.losses.squared(), jnp.zeros(5), jnp.zeros(5)), (5,))


def test_growth_uses_the_upper_half():
    horizons = [2**k for k in range(8)]
    regret = [1e6] * 4 + [3.0 * t**0.7 for t in horizons[4:]]  # a wild transient
    fit = growth(horizons, regret, [0.0] * 8)
    assert fit == pytest.approx((0.7, 0.7, 0.7))


def test_growth_interval_covers_as_often_as_it_says(rng):
    horizons, relative = [100, 400, 1600, 6400], 0.02
    means = np.array([t**0.5 for t in horizons])
    hits = 0
    for _ in range(2000):
        noisy = means * (1 + relative * rng.normal(size=4))
        fit = growth(horizons, noisy, relative * means)
        hits += fit.low <= 0.5 <= fit.high
    assert 0.93 < hits / 2000 < 0.97


@pytest.mark.parametrize(("horizons", "regret"), [([10], [1.0]), ([10, 20], [1.0, -1.0])])
def test_growth_that_cannot_be_had_is_nan(horizons, regret):
    assert math.isnan(growth(horizons, regret, [0.1] * len(regret)).exponent)
