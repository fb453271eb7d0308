"""The study of tuning, and the regret that adaptive rates are meant to reach."""

import pytest

from tests.files import rows_of
from tests.papers import main


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
