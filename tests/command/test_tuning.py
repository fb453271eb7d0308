"""The study of tuning, and the regret that adaptive rates are meant to reach."""

import csv

import pytest

from noisy_jax.__main__ import main


@pytest.mark.slow
def test_the_study_saves_tables_and_a_picture(tmp_path, capsys):
    quick = ["--horizons", "32", "--seeds", "2", "--factors", "1", "10"]
    quick += ["--data", "houses", "drifting", "--learners", "two_copies", "cloned"]
    assert main(["tuning", *quick, "--out", str(tmp_path)]) == 0
    assert "mixture of rates" in capsys.readouterr().out
    saved = {path.name for path in tmp_path.iterdir()}
    assert saved == {"results.csv", "summary.csv", "config.json", "rates.png"}
    with open(tmp_path / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 6  # data, learners; two rates and four ways


@pytest.mark.slow
def test_adaptive_rates_and_mixtures_are_near_the_best_rate(tmp_path):
    """On the diabetes stream at T = 1,024, without a rate that is chosen by hand."""
    options = ["--data", "diabetes", "--horizons", "1024", "--seeds", "4", "--factors", "1", "3"]
    options += ["10", "30", "--learners", "two_copies", "parallel_worlds"]
    assert main(["tuning", *options, "--out", str(tmp_path)]) == 0
    with open(tmp_path / "summary.csv", newline="") as file:
        rows = {row["learner"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"two_copies", "parallel_worlds"}
    for row in rows.values():
        best = float(row["best"])
        assert float(row["ratio"]) < 1.35
        assert float(row["mixture of rates"]) < 1.35 * best
        assert float(row["theorem"]) > 1.8 * best
        assert float(row["corrected leader"]) < 1.1 * best
