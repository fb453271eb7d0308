import numpy as np

import noisy_jax as nj
from tests.errors import raises
from tests.plots.cases import study


def test_price_draws_regret_against_the_copies_paid_for_it():
    first, second = {"a": 0.5, "b": 1.0, "clean": 0.5}, {"c": 0.5, "b": 1.0}
    studies = {"polynomial": study(first), "gaussian": study(second)}
    copies = {"polynomial": {"a": 1.5, "b": 1.0}, "gaussian": {"c": 2.0, "b": 1.0}}
    axes = nj.plots.price(studies, copies)
    assert all(ax.get_xscale() == ax.get_yscale() == "log" for ax in axes)
    assert "noisy copies" in axes[0].get_xlabel()
    labels = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in axes]
    assert labels == [["a, 1.5 a round", "b, 1 a round"], ["c, 2 a round", "b, 1 a round"]]
    np.testing.assert_allclose(axes[0].lines[0].get_xdata(), [24, 96, 384])
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), [4, 8, 16])
    colours = [[line.get_color() for line in ax.lines] for ax in axes]
    assert colours[0][1] == colours[1][1]
    assert len({*colours[0], *colours[1]}) == 3


def test_every_study_needs_its_copies():
    message = "an entry for each study, but has none for gaussian"
    raises(message, nj.plots.price, {"gaussian": study({"a": 0.5})}, {"polynomial": {"a": 1.5}})
