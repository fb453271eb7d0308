"""Intervals: their quantiles, how often they cover, and that the library has no others."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import noisy_jax as nj
from noisy_jax.reports.intervals import half_width, p_value
from noisy_jax.reports.tables import plus_minus
from tests.keys import SHIFT, key


@pytest.mark.parametrize(("freedom", "level"), [(1, 0.95), (3.5, 0.8), (1e6, 0.95)])
def test_it_is_students_quantile(freedom, level):
    law = scipy.stats.t(freedom)
    expected = 2.0 * law.ppf((1 + level) / 2)
    np.testing.assert_allclose(half_width(2.0, freedom, level=level), expected, rtol=1e-9)
    np.testing.assert_allclose(p_value(-0.7, freedom), 2 * law.sf(0.7), rtol=1e-8)


def test_a_known_error_has_the_normal_quantile_and_one_draw_has_no_interval():
    np.testing.assert_allclose(half_width([1.0, 3.0]), [1.959963984540054, 3 * 1.959963984540054])
    widths = half_width(1.0, [np.inf, 4, 0, np.nan])
    np.testing.assert_allclose(widths[:2], [1.959963984540054, scipy.stats.t(4).ppf(0.975)])
    assert np.isnan(widths[2:]).all()


def test_a_p_value_is_small_exactly_where_the_interval_excludes_zero():
    freedom = np.array([1.0, 1.5, 7.0, 300.0, np.inf])
    for level in (0.8, 0.95, 0.999):
        at = half_width(1.0, freedom, level=level)
        assert np.all(p_value(-at * (1 + 1e-9), freedom) < 1 - level)
        assert np.all(p_value(at * (1 - 1e-9), freedom) > 1 - level)
    assert np.isnan(p_value(2.0, [0.0, np.nan])).all()  # nor is there an interval


@pytest.mark.statistical
def test_coverage_with_six_draws_alone_and_of_five_together():
    draws = np.random.default_rng(1000 * SHIFT).normal(size=(40_000, 5, 6))
    mean, error = draws.mean(axis=2), draws.std(axis=2, ddof=1) / 6**0.5
    assert abs((abs(mean) < half_width(error, 5)).mean() - 0.95) < 0.003
    together = (abs(mean) < half_width(error, 5, comparisons=5)).all(axis=1).mean()
    assert 0.95 - 0.006 < together < 0.97
    assert (abs(mean) < half_width(error)).mean() < 0.9  # the normal quantile is too short


def test_one_seed_has_no_interval_and_says_so():
    estimate = nj.monte_carlo(jax.random.normal, 1, key(0))
    assert np.isnan(estimate.half_width)
    row = {"std_error": float(estimate.std_error), "num_seeds": 1}
    assert plus_minus("std_error", ".1f")(row) == "none"
    assert plus_minus("std_error", ".2f")({"std_error": 0.1, "num_seeds": 6}) == "0.26"


def test_no_other_module_has_a_quantile_of_its_own():
    quantile = re.compile(r"\b1\.96|\b0\.975|stdtr|ndtri?\b|\.ppf\(")
    package = Path(nj.__file__).parent
    others = {path for path in package.rglob("*.py") if quantile.search(path.read_text("utf-8"))}
    assert others == {package / "reports" / "intervals.py"}
