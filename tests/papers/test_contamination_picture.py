import numpy as np
from matplotlib.figure import Figure

from contamination_picture import draw_errors

SHARES = [0.0, 0.1]
CURVES = {"ridge": [(0.1, 1e-6, 0.11), (2.0, 1.9, 2.1)], "oracle": [(0.1, 0.09, 0.11)] * 2}


def test_new_axes_say_once_what_they_share():
    axes = draw_errors(SHARES, {f"adversary {i}": CURVES for i in range(7)})
    assert [ax.get_title() for ax in axes] == [f"adversary {i}" for i in range(7)]
    assert axes[0].get_yscale() == "log"
    figure = axes[0].figure
    assert list(figure.axes) == list(axes)  # no empty frames for the three that are not there
    figure.draw_without_rendering()
    of_x = [ax.get_xlabel() for ax in axes if ax.xaxis.label.get_visible()]
    of_y = [ax.get_ylabel() for ax in axes if ax.yaxis.label.get_visible()]
    assert of_x == ["share ε of corrupted rows"] * 5  # above the three as well
    assert of_y == ["error on clean data (RMSE)"] * 2
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ridge", "oracle"]
    ridge, oracle = axes[6].lines
    assert (ridge.get_linestyle(), oracle.get_linestyle()) == ("-", "--")
    np.testing.assert_array_equal(ridge.get_xydata(), [[0.0, 0.1], [0.1, 2.0]])


def test_given_axes_keep_the_rest_of_their_figure_as_it_is():
    figure = Figure()
    *given, other = figure.subplots(1, 3)
    draw_errors(SHARES, {"gross": CURVES, "shift": CURVES}, axes=given, label="error")
    assert [ax.get_ylabel() for ax in figure.axes] == ["error", "error", ""]
    assert given[0].get_legend() is not None
    assert not figure.legends
    assert not other.lines
    # An interval that reaches below zero is cut off, and the curves are seen.
    assert 0.01 < given[0].get_ylim()[0] < 0.1
