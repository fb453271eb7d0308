import matplotlib
import pytest
from matplotlib.figure import Figure

import noisy_jax as nj
from noisy_jax.regret import Growth
from noisy_jax.results import Row, Study

matplotlib.use("agg")


@pytest.fixture
def study():
    rows = [
        Row(
            name,
            t,
            t**power,
            0.1,
            t**power - 0.2,
            t**power + 0.2,
            5 * t**0.5,
            5.0,
            0.0,
            0.0,
            0.1,
            0.0,
        )
        for name, power in {"corrected": 0.5, "blind": 1.0}.items()
        for t in (16, 64, 256)
    ]
    return Study(tuple(rows), {"corrected": Growth(0.5, 0.4, 0.6), "blind": Growth(1, 1, 1)}, {})


def test_regret_draws_what_the_study_holds(study):
    ax = nj.plots.regret(study)
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert "rounds" in ax.get_xlabel()
    assert "regret on clean data" in ax.get_ylabel()
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["corrected ~ $T^{0.50}$", "blind ~ $T^{1.00}$", "guaranteed or claimed bound"]
    assert list(ax.lines[0].get_ydata()) == [4.0, 8.0, 16.0]
    assert list(ax.lines[1].get_ydata()) == [20.0, 40.0, 80.0]


def test_regret_draws_on_given_axes(study):
    ax = Figure().add_subplot()
    assert nj.plots.regret(study, ax) is ax
