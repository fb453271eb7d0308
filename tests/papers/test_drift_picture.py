import numpy as np

from drift_picture import draw_mistakes

ROUNDS = np.array([1, 50, 100])
CURVES = {
    "NORMA0": np.array([[1.0, 20.0, 30.0], [1.0, 18.0, 26.0], [1.0, 22.0, 34.0]]),
    "NORMA": np.array([[1.0, 10.0, 15.0], [1.0, 9.0, 13.0], [1.0, 11.0, 17.0]]),
}


def test_mistakes_draws_each_learner_with_its_interval():
    axes = draw_mistakes(ROUNDS, {"classes drift": CURVES, "classes switch": CURVES})
    assert [ax.get_title() for ax in axes] == ["classes drift", "classes switch"]
    assert all(ax.get_ylabel() == "mistakes so far" for ax in axes)
    assert all(ax.get_xlabel() == "rounds" for ax in axes)
    assert [text.get_text() for text in axes[0].get_legend().get_texts()] == ["NORMA0", "NORMA"]
    assert [line.get_linestyle() for line in axes[0].lines] == ["--", "-"]
    assert axes[0].lines[0].get_color() == axes[0].lines[1].get_color()
    np.testing.assert_array_equal(axes[0].lines[1].get_xdata(), ROUNDS)
    np.testing.assert_array_equal(axes[0].lines[1].get_ydata(), CURVES["NORMA"][0])
    corners = axes[0].collections[1].get_paths()[0].vertices
    at_the_end = corners[corners[:, 0] == 100, 1]
    np.testing.assert_allclose([at_the_end.min(), at_the_end.max()], [13, 17])


def test_one_axis_does_not_hide_the_panel_of_small_numbers():
    few = {name: curve / 100 for name, curve in CURVES.items()}
    many, small = draw_mistakes(ROUNDS, {"many": CURVES, "few": few})
    assert small.get_ylim()[1] < 0.2 * many.get_ylim()[1]
