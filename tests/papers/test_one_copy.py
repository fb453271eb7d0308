import json

import jax
import numpy as np
import pytest

import noisy_jax as nj
from one_copy import tuned
from tests.files import names_in, rows_of
from tests.papers import main

LOWEST = (1 - 5**-0.5) ** 2
LEARNERS = ["uncorrected", "hedged", "known_covariance", "two_copies"]


@pytest.mark.slow
@pytest.mark.claim("NK-Thm3")
def test_one_copy_stays_above_the_lower_bound_and_two_fall_below(tmp_path, capsys):
    arguments = ["--horizons", "32", "1024", "--seeds", "6", "--out", str(tmp_path)]
    assert main("one_copy", *arguments) == 0
    printed = capsys.readouterr().out
    assert "for one copy of unknown noise: 0.3056" in printed
    assert names_in(tmp_path) == {"one_copy.csv", "config.json", "one_copy.png"}
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["command"]["seeds"] == 6
    assert config["lower_bound"]["weight"] == pytest.approx(5**-0.5)

    rows = rows_of(tmp_path / "one_copy.csv")
    assert [row["learner"] for row in rows] == np.repeat(LEARNERS, 2).tolist()
    assert [row["horizon"] for row in rows] == ["32", "1024"] * 4
    for row in rows:
        numbers = {name: float(text) for name, text in row.items() if name != "learner"}
        means = np.array([numbers["noiseless"], numbers["noisy"]])
        ends = 2.570582 * np.array([numbers["noiseless_std_error"], numbers["noisy_std_error"]])
        expected = [(means - ends).max(), means.max(), (means + ends).max(), LOWEST]
        ours = [numbers[name] for name in ("low", "maximum", "high", "lower_bound")]
        np.testing.assert_allclose(ours, expected, rtol=1e-4)
        assert numbers["low"] < numbers["maximum"] < numbers["high"]
    last = {row["learner"]: row for row in rows if row["horizon"] == "1024"}
    highest = {name: float(row["maximum"]) for name, row in last.items()}
    assert highest["uncorrected"] > 2 * LOWEST
    assert 0.8 * LOWEST < highest["hedged"] < 1.4 * LOWEST  # the best that one copy can do
    assert highest["known_covariance"] < 0.7 * LOWEST
    assert highest["two_copies"] < 0.7 * LOWEST
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
