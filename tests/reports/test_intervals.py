"""Intervals: their quantiles, and that the library has no others."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.stats

import noisy_jax as nj
from noisy_jax.reports.intervals import half_width, p_value
from noisy_jax.reports.tables import plus_minus
from tests.keys import key


@pytest.mark.parametrize(
    ("freedom", "level", "comparisons"), [(1, 0.95, 1), (3.5, 0.8, 1), (5, 0.95, 5), (1e6, 0.95, 1)]
)
def test_it_is_students_quantile(freedom, level, comparisons):
    """By Bonferroni for several at once; a p value is below 1 − level where 0 is excluded."""
    law = scipy.stats.t(freedom)
    expected = 2.0 * law.ppf(1 - (1 - level) / (2 * comparisons))
    found = half_width(2.0, freedom, level=level, comparisons=comparisons)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(p_value(-0.7, freedom), 2 * law.sf(0.7), rtol=1e-8)


def test_a_known_error_has_the_normal_quantile_and_one_draw_has_no_interval():
    np.testing.assert_allclose(half_width([1.0, 3.0]), [1.959963984540054, 3 * 1.959963984540054])
    widths = half_width(1.0, [np.inf, 4, 0.5, np.nan])
    np.testing.assert_allclose(widths[:2], [1.959963984540054, scipy.stats.t(4).ppf(0.975)])
    assert np.isnan(widths[2:]).all()
    values = p_value(1.959963984540054, [np.inf, 0.5, np.nan])
    np.testing.assert_allclose(values, [0.05, np.nan, np.nan])


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
