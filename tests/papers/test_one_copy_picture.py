import numpy as np
import pytest
from matplotlib.figure import Figure

from noisy_jax import losses
from one_copy import draw_one_copy

ROWS = [
    {"learner": name, "horizon": t, "maximum": v, "low": v - 0.02, "high": v + 0.02}
    for name, v in {"blind": 0.6, "two": 0.1}.items()
    for t in (16, 64)
]
LOSSES = {"squared": losses.squared(), "hinge": losses.soft_margin()}


def test_draws_regrets_lower_bound_and_excesses():
    left, right = draw_one_copy(ROWS, LOSSES, radius=1.5)
    blind, two, lowest = left.lines
    np.testing.assert_allclose(blind.get_ydata(), [0.6, 0.6])
    np.testing.assert_allclose(two.get_xdata(), [16, 64])
    np.testing.assert_allclose(lowest.get_ydata(), 0.305572809, rtol=1e-8)
    assert left.get_xscale() == "log"
    assert "rounds" in left.get_xlabel()
    assert "regret on clean data" in left.get_ylabel()
    labels = [text.get_text() for text in left.get_legend().get_texts()]
    assert labels == ["blind", "two", "lower bound for one copy: 0.306"]

    of_a, of_b, point = right.lines[:3]
    w = of_a.get_xdata()
    np.testing.assert_allclose(of_a.get_ydata(), 5 * (w - 0.2) ** 2, atol=1e-14)
    np.testing.assert_allclose(of_b.get_ydata(), (w - 1) ** 2, atol=1e-14)
    np.testing.assert_allclose([*point.get_xdata(), *point.get_ydata()], [5**-0.5, 0.305572809])
    labels = [text.get_text() for text in right.get_legend().get_texts()]
    assert labels[1] == "hinge: 0.222 at $w$ = 0.778"


def test_no_learner_is_above_the_picture():
    far = [row | {"maximum": 5 * row["maximum"], "high": 5 * row["high"]} for row in ROWS]
    left, right = draw_one_copy(far, LOSSES, radius=1.5)
    assert left.get_ylim() == right.get_ylim()  # the lower bound stands at one height in both
    assert left.get_ylim()[1] > 5 * 0.62


def test_wants_a_ball():
    with pytest.raises(ValueError, match="radius must be positive"):
        draw_one_copy(ROWS, LOSSES, radius=0.0)


def test_grids_of_axes_are_read_row_by_row():
    grid = Figure().subplots(2, 1, squeeze=False)
    assert list(draw_one_copy(ROWS, LOSSES, radius=1.5, axes=grid)) == list(grid[:, 0])
    with pytest.raises(ValueError, match="axes must be 2, one for each panel, got 1"):
        draw_one_copy(ROWS, LOSSES, radius=1.5, axes=grid[0])
