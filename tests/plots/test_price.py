import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.simulated.results import Row, Study


def study(*names):
    rows = [
        Row(name, t, 8, 2.0 * t, 0.1, 1.5 * t, 3.0 * t, 1.0, 1.0, 0.0, 0.0, 0.1, 0.0)
        for name in names
        for t in (100, 1000)
    ]
    return Study(tuple(rows), {}, {})


def test_price_draws_regret_against_the_copies_paid_for_it():
    studies = {"polynomial": study("a", "b", "clean"), "gaussian": study("c", "b")}
    copies = {"polynomial": {"a": 1.5, "b": 1.0}, "gaussian": {"c": 2.0, "b": 1.0}}
    axes = nj.plots.price(studies, copies)
    assert all(ax.get_xscale() == ax.get_yscale() == "log" for ax in axes)
    assert "noisy copies" in axes[0].get_xlabel()
    labels = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in axes]
    assert labels == [["a, 1.5 a round", "b, 1 a round"], ["c, 2 a round", "b, 1 a round"]]
    np.testing.assert_allclose(axes[0].lines[0].get_xdata(), [150, 1500])
    np.testing.assert_allclose(axes[0].lines[0].get_ydata(), [200, 2000])
    colours = [[line.get_color() for line in ax.lines] for ax in axes]
    assert colours[0][1] == colours[1][1]
    assert len({*colours[0], *colours[1]}) == 3


def test_every_study_needs_its_copies():
    with pytest.raises(ValueError, match="an entry for each study, but has none for gaussian"):
        nj.plots.price({"gaussian": study("a")}, {"polynomial": {"a": 1.5}})
