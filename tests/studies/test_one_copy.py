import csv
import json

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.__main__ import main
from noisy_jax.commands.one_copy import Row, conclusion, tuned

FLOOR = (1 - 5**-0.5) ** 2
LEARNERS = ["uncorrected", "hedged", "known_covariance", "two_copies"]


@pytest.mark.claim("NK-Thm3")
def test_one_copy_stays_above_the_floor_and_two_fall_below(tmp_path, capsys):
    arguments = ["--horizons", "32", "1024", "--seeds", "6", "--out", str(tmp_path)]
    assert main(["one-copy", *arguments]) == 0
    printed = capsys.readouterr().out
    assert "for one copy of unknown noise: 0.3056" in printed
    assert "After 1,024 rounds the average regret under the worse" in printed
    assert {path.name for path in tmp_path.iterdir()} == {
        "one_copy.csv",
        "config.json",
        "one_copy.png",
    }
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["command"]["seeds"] == 6
    assert config["floor"]["weight"] == pytest.approx(5**-0.5)

    with open(tmp_path / "one_copy.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["learner"] for row in rows] == np.repeat(LEARNERS, 2).tolist()
    assert [row["horizon"] for row in rows] == ["32", "1024"] * 4
    for row in rows:
        numbers = {name: float(text) for name, text in row.items() if name != "learner"}
        means = np.array([numbers["noiseless"], numbers["noisy"]])
        ends = 1.96 * np.array([numbers["noiseless_std_error"], numbers["noisy_std_error"]])
        expected = [(means - ends).max(), means.max(), (means + ends).max(), FLOOR]
        ours = [numbers[name] for name in ("low", "maximum", "high", "floor")]
        np.testing.assert_allclose(ours, expected, rtol=1e-4)
        assert numbers["low"] < numbers["maximum"] < numbers["high"]
    last = {row["learner"]: row for row in rows if row["horizon"] == "1024"}
    highest = {name: float(row["maximum"]) for name, row in last.items()}
    assert highest["uncorrected"] > 2 * FLOOR
    assert 0.8 * FLOOR < highest["hedged"] < 1.4 * FLOOR  # the best that one copy can do
    assert highest["known_covariance"] < 0.7 * FLOOR
    assert highest["two_copies"] < 0.7 * FLOOR
    assert float(last["uncorrected"]["noiseless"]) < 0.02  # in one world it is right


def test_what_learners_from_one_copy_are_told():
    adversary = nj.streams.one_copy_adversaries(jax.random.key(0), 40).noisy
    learners = tuned(40)
    informed = learners["known_covariance"]

    @jax.jit
    def predictions(key):
        every = nj.wrappers.paired(
            learners["uncorrected"],
            nj.wrappers.assuming(informed, 0.0),
            informed,
            nj.wrappers.assuming(informed, 4.0),
            learners["hedged"],
        )
        return nj.rollout(every, *adversary, key).predictions

    blind, zero, truth, four, hedged = predictions(jax.random.key(1)).T
    np.testing.assert_allclose(zero, blind, atol=1e-6)
    np.testing.assert_allclose(four, truth, atol=1e-6)
    assert np.abs(blind - truth).max() > 0.05
    assert np.abs(hedged - truth).max() > 0.01


def test_conclusion_says_what_the_table_shows():
    def row(name, horizon, low, high):
        return Row(name, horizon, 0, 0, 0, 0, (low + high) / 2, low, high, 0.3056)

    rows = [row("blind", 10, 0.1, 0.2), row("blind", 90, 0.5, 0.7), row("two", 90, 0.1, 0.2)]
    assert conclusion(rows) == (
        "After 90 rounds the average regret under the worse of the two adversaries is below "
        "0.3056, the floor for one copy of unknown noise, for two (0.150); not for blind (0.600)."
    )
    assert "for no learner; not for two (0.300)" in conclusion([row("two", 90, 0.2, 0.4)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "1"], "--seeds must be a whole number of at least 2, got 1"),
        (["--horizons", "0"], "each of --horizons must be a whole number of at least 1, got 0"),
        (["--horizons", "64", "32"], "horizons must be at least one and increasing, got [64, 32]"),
        (["--out", f"{__file__}/below"], "cannot write to the folder"),
    ],
)
def test_bad_input_is_one_clear_line(tmp_path, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert main(["one-copy", *arguments]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert message in error
