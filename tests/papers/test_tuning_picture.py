import numpy as np

from tuning import draw_rates


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
    corners = first.collections[0].get_paths()[0].vertices
    ends = corners[corners[:, 0] == 0.3, 1]
    np.testing.assert_allclose([ends.min(), ends.max()], [4.429418, 9.570582], rtol=1e-6)
    found = [(line.get_label(), *line.get_ydata()) for line in first.lines[1:]]
    assert found == [("adaptive", 3.0, 3.0)]
    np.testing.assert_array_equal(second.lines[0].get_xydata(), [[0.3, 50.0]])
    assert [line.get_label() for line in second.lines] == ["fixed rate", "mixture"]
    assert [ax.get_title() for ax in (first, second)] == ["table, a", "table, b"]
    assert first.get_ylabel() == "regret in 64 rounds"
