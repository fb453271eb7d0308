import pytest

import noisy_jax as nj
from noisy_jax.simulated.results import Growth, Study
from tests.plots.cases import row, study


def test_regret_draws_what_the_study_holds():
    axes = nj.plots.regret(study({"corrected": 0.5, "blind": 1.0}))
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert "rounds" in axes.get_xlabel()
    assert "regret on clean data" in axes.get_ylabel()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == [
        "corrected: $a$ = 0.50 [0.40, 0.60]",
        "blind: $a$ = 1.00 [0.90, 1.10]",
        "guaranteed or claimed bound",
    ]
    regret, bound, blind, blind_bound, _ = axes.lines
    assert list(regret.get_ydata()) == [4.0, 8.0, 16.0]
    assert list(bound.get_ydata()) == [20.0, 40.0, 80.0]
    assert bound.get_marker() == regret.get_marker() != blind.get_marker()
    assert bound.get_linestyle() == blind_bound.get_linestyle() == ":"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["16", "64", "256"]


@pytest.mark.parametrize("exponent", [float("nan"), 0.5])
def test_regret_shows_no_exponent_without_an_interval(exponent):
    known = Growth(exponent, exponent, exponent)  # one horizon, or no noise
    axes = nj.plots.regret(Study((row("a", 2**20, 60.0),), {"a": known}, {}))
    assert axes.get_legend().get_texts()[0].get_text() == "a"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1,048,576"]
