import itertools

import numpy as np
import pytest

from noisy_jax import losses
from noisy_jax.simulated.bounds import one_copy_excess, one_copy_lower_bound

SQUARED_BOUND = (1 - 5**-0.5) ** 2
ABSOLUTE = losses.epsilon_insensitive(epsilon=0.0)


@pytest.mark.claim("NK-Thm3", "EXT-FloorNumbers")
def test_closed_forms():
    for loss, *expected in (
        (losses.squared(), 5**-0.5, SQUARED_BOUND),
        (losses.hinge(), 7 / 9, 2 / 9),
        (ABSOLUTE, 5 / 9, 4 / 9),
    ):
        found = one_copy_lower_bound(loss, radius=1.5)
        np.testing.assert_allclose(found, expected, rtol=1e-14)


@pytest.mark.slow
@pytest.mark.claim("EXT-FloorNumbers")
def test_lower_bounds_of_analytic_losses():
    for loss, *expected in (
        (losses.logistic(), 0.0488, 0.2122),
        (losses.exponential(), 0.1531, 0.3877),
        (losses.smoothed_hinge(), 0.1081, 0.2431),
    ):
        found = [one_copy_lower_bound(loss, radius=radius).lower_bound for radius in (1.0, 4.0)]
        np.testing.assert_allclose(found, expected, atol=5e-5)


@pytest.mark.claim("EXT-FloorNumbers")
@pytest.mark.parametrize(
    ("loss", "radius", "profile"),
    [
        (losses.huber(width=0.5), 0.5, lambda p: _huber(p - 1, 0.5)),
        (losses.epsilon_insensitive(epsilon=0.3), 3, lambda p: np.maximum(0, np.abs(p - 1) - 0.3)),
        (losses.hinge(margin=2.0), 3.0, lambda p: np.maximum(0, 2 - p)),
    ],
)
def test_equals_a_search_over_a_grid(loss, radius, profile):
    w = np.linspace(-radius, radius, 12_001)
    risks = np.stack([(profile(3 * w) + profile(-w)) / 2, profile(w)])
    excess = risks - risks.min(axis=1, keepdims=True)
    np.testing.assert_allclose(one_copy_excess(loss, w, radius=radius), excess, atol=2e-3)
    found = one_copy_lower_bound(loss, radius=radius)
    assert found.lower_bound == pytest.approx(excess.max(axis=0).min(), abs=2e-3)
    assert one_copy_excess(loss, found.weight, radius=radius).max() == found.lower_bound


def _huber(a, width):
    return np.where(np.abs(a) <= width, a**2 / (2 * width), np.abs(a) - width / 2)


@pytest.mark.claim("NK-Thm3")
def test_the_lower_bound_is_zero_if_the_best_weight_is_the_same():
    # As printed, Theorem 3 has every compact convex set; but [−0.1, 0.1] has the lower bound 0.
    assert one_copy_lower_bound(losses.squared(), radius=0.1) == (0.1, 0.0)
    assert one_copy_lower_bound(ABSOLUTE, radius=1 / 3).lower_bound == pytest.approx(0, abs=1e-14)


@pytest.mark.claim("EXT-FloorNumbers")
def test_a_fair_coin_between_the_adversaries_takes_less():
    w = np.linspace(-1.5, 1.5, 9_001)
    by_coin = one_copy_excess(losses.squared(), w, radius=1.5).mean(axis=0)
    assert w[by_coin.argmin()] == pytest.approx(1 / 3, abs=1e-10)
    assert by_coin.min() == pytest.approx(4 / 15, rel=1e-12)
    assert by_coin.min() < SQUARED_BOUND


@pytest.mark.claim("NK-Thm5")
def test_lower_bound_holds_for_every_table_of_weights_exactly(rng):
    """Expected regret in hindsight, by enumeration of all copies, of learners that are tables."""
    horizon, x = 4, np.array([3.0, -1.0])
    copies = list(itertools.product((0, 1), repeat=horizon))

    def average_regrets(noiseless_play, noisy_play):
        totals = np.zeros(2)
        for history in copies:
            seen = x[list(history)]
            best = np.clip(seen.sum() / (seen @ seen), -1.5, 1.5)
            played = [(noiseless_play(history[:t]), noisy_play(history[:t])) for t in range(4)]
            in_a, in_b = np.array(played).T
            totals += np.sum([(in_a * seen - 1) ** 2 - (best * seen - 1) ** 2, (in_b - 1) ** 2], 1)
        return totals / (len(copies) * horizon)

    for _ in range(30):
        plays = {h[:t]: rng.uniform(0, 1) for h in copies for t in range(horizon)}
        assert average_regrets(plays.get, plays.get).max() >= SQUARED_BOUND
    # One that knows which it is has less.
    assert average_regrets(lambda _: 0.2, lambda _: 1.0).max() < SQUARED_BOUND
    hedged = average_regrets(lambda _: 5**-0.5, lambda _: 5**-0.5)
    np.testing.assert_allclose(hedged[1], SQUARED_BOUND, rtol=1e-12)
