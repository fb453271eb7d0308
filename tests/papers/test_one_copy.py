import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

import noisy_jax as nj
from noisy_jax import losses
from one_copy import draw_one_copy, tuned
from tests.errors import raises
from tests.files import config_of, rows_of
from tests.papers import legend_of, printed_by

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


@pytest.mark.slow
def test_what_learners_from_one_copy_are_told():
    adversary = nj.streams.one_copy_adversaries(jax.random.key(0), 40).noisy
    blind, informed, hedged = map(tuned(40).get, ("uncorrected", "known_covariance", "hedged"))
    told = [nj.wrappers.assuming(informed, variance) for variance in (0.0, 4.0)]
    every = nj.wrappers.paired(blind, informed, hedged, *told)
    run = jax.jit(lambda key: nj.rollout(every, *adversary, key).predictions)
    blind, truth, hedged, zero, four = run(jax.random.key(1)).T
    np.testing.assert_allclose([zero, four], [blind, truth], atol=1e-6)
    assert np.abs(blind - truth).max() > 0.05
    assert np.abs(hedged - truth).max() > 0.01


ROWS = [
    {"learner": name, "horizon": t, "maximum": v, "low": v - 0.02, "high": v + 0.02}
    for name, v in {"blind": 0.6, "two": 0.1}.items()
    for t in (16, 64)
]
LOSSES = {"squared": losses.squared(), "hinge": losses.hinge()}


def test_draws_regrets_lower_bound_and_excesses():
    left, right = draw_one_copy(ROWS, LOSSES, radius=1.5)
    assert left.get_ylim() == right.get_ylim()  # the lower bound stands at one height in both
    assert left.get_ylim()[1] > 0.62
    blind, two, lowest = left.lines
    np.testing.assert_allclose(blind.get_ydata(), [0.6, 0.6])
    np.testing.assert_allclose(two.get_xdata(), [16, 64])
    np.testing.assert_allclose(lowest.get_ydata(), 0.305572809, rtol=1e-8)
    assert left.get_xscale() == "log"
    assert "rounds" in left.get_xlabel()
    assert "regret on clean data" in left.get_ylabel()
    assert legend_of(left) == ["blind", "two", "lower bound for one copy: 0.306"]

    of_a, of_b, point = right.lines[:3]
    w = of_a.get_xdata()
    np.testing.assert_allclose(of_a.get_ydata(), 5 * (w - 0.2) ** 2, atol=1e-14)
    np.testing.assert_allclose(of_b.get_ydata(), (w - 1) ** 2, atol=1e-14)
    np.testing.assert_allclose([*point.get_xdata(), *point.get_ydata()], [5**-0.5, 0.305572809])
    assert legend_of(right)[1] == "hinge: 0.222 at $w$ = 0.778"


def test_wants_a_ball_and_reads_grids_of_axes_row_by_row():
    raises("radius must be positive", draw_one_copy, ROWS, LOSSES, radius=0.0)
    grid = Figure().subplots(2, 1, squeeze=False)
    assert list(draw_one_copy(ROWS, LOSSES, radius=1.5, axes=grid)) == list(grid[:, 0])
    message = "axes must be 2, one for each panel, got 1"
    raises(message, draw_one_copy, ROWS, LOSSES, radius=1.5, axes=grid[0])
