import numpy as np
import pytest

from tests.files import config_of, rows_of
from tests.papers import printed_by

LOWEST = (1 - 5**-0.5) ** 2
LEARNERS = ["uncorrected", "hedged", "known_covariance", "two_copies"]


@pytest.mark.slow
@pytest.mark.claim("NK-Thm3")
def test_one_copy_stays_above_the_lower_bound_and_two_fall_below(tmp_path):
    arguments = ["--horizons", "32", "1024", "--seeds", "6", "--out", str(tmp_path)]
    assert "for one copy of unknown noise: 0.3056" in printed_by("one_copy", *arguments)
    assert config_of(tmp_path)["lower_bound"]["weight"] == pytest.approx(5**-0.5)

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
