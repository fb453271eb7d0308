"""The study of tuning, and the regret that adaptive rates are meant to reach."""

import numpy as np
import pytest

from tests.files import rows_of
from tests.papers import ends_at, main
from tuning import draw_rates


@pytest.mark.long
def test_adaptive_rates_and_mixtures_are_near_the_best_rate(tmp_path):
    """On the diabetes stream at T = 1,024, without a rate that is chosen by hand."""
    options = ["--data", "diabetes", "--horizons", "1024", "--seeds", "4", "--factors", "1", "3"]
    options += ["10", "30", "--learners", "two_copies", "parallel_worlds"]
    assert main("tuning", *options, "--out", str(tmp_path)) == 0
    rows = {row["learner"]: row for row in rows_of(tmp_path / "summary.csv")}
    assert set(rows) == {"two_copies", "parallel_worlds"}
    for row in rows.values():
        best = float(row["best"])
        assert float(row["ratio"]) < 1.35
        assert float(row["mixture of rates"]) < 1.35 * best
        assert float(row["theorem"]) > 1.8 * best
        assert float(row["corrected leader"]) < 1.1 * best


def row(rate, regret, horizon=64, learner="a", **numbers):
    numbers = {"std_error": 0.0, "num_seeds": 8} | numbers
    shared = {"data": "table", "learner": learner, "horizon": horizon}
    return {**shared, "rate": rate, "regret": regret, **numbers}


def test_fixed_rates_are_a_curve_with_its_interval_and_others_are_lines():
    """At the last horizon; Student's t has 2.571 for six seeds."""
    rows = [row(0.3, 7.0, std_error=1.0, num_seeds=6), row("adaptive", 3.0), row(1.0, 2.0)]
    rows += [row(0.3, 99.0, horizon=8), row("adaptive", 98.0, horizon=8), row(3.0, 6.0)]
    rows += [row(0.3, 50.0, learner="b"), row("mixture", 40.0, learner="b")]
    first, second = draw_rates(rows)
    np.testing.assert_array_equal(first.lines[0].get_xydata(), [[0.3, 7.0], [1.0, 2.0], [3.0, 6.0]])
    np.testing.assert_allclose(ends_at(first, 0, 0.3), [4.429418, 9.570582], rtol=1e-6)
    found = [(line.get_label(), *line.get_ydata()) for line in first.lines[1:]]
    assert found == [("adaptive", 3.0, 3.0)]
    np.testing.assert_array_equal(second.lines[0].get_xydata(), [[0.3, 50.0]])
    assert [line.get_label() for line in second.lines] == ["fixed rate", "mixture"]
    assert [ax.get_title() for ax in (first, second)] == ["table, a", "table, b"]
    assert first.get_ylabel() == "regret in 64 rounds"
