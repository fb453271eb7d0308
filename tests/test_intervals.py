import numpy as np
import pytest
import scipy.stats

from noisy_jax.intervals import half_width
from tests.keys import SHIFT


@pytest.mark.parametrize("freedom", [1, 3.5, 15, 1e6])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_it_is_students_quantile(freedom, level):
    expected = 2.0 * scipy.stats.t(freedom).ppf((1 + level) / 2)
    np.testing.assert_allclose(half_width(2.0, freedom, level=level), expected, rtol=1e-9)


def test_a_known_error_has_the_normal_quantile_and_one_draw_has_no_interval():
    np.testing.assert_allclose(half_width([1.0, 3.0]), [1.959963984540054, 3 * 1.959963984540054])
    widths = half_width(1.0, [np.inf, 4, 0, np.nan])
    np.testing.assert_allclose(widths[:2], [1.959963984540054, scipy.stats.t(4).ppf(0.975)])
    assert np.isnan(widths[2:]).all()


@pytest.mark.statistical
def test_coverage_with_six_draws_alone_and_of_five_together():
    draws = np.random.default_rng(SHIFT).normal(size=(40_000, 5, 6))
    mean, error = draws.mean(axis=2), draws.std(axis=2, ddof=1) / 6**0.5
    assert abs((abs(mean) < half_width(error, 5)).mean() - 0.95) < 0.003
    together = (abs(mean) < half_width(error, 5, comparisons=5)).all(axis=1).mean()
    assert 0.95 - 0.006 < together < 0.97
    assert (abs(mean) < half_width(error)).mean() < 0.9  # the normal quantile is too short
