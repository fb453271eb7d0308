"""What all pictures have in common, and those of regret and of worlds."""

import math
from functools import partial

import matplotlib
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.plots import style
from noisy_jax.simulated.regrets import Growth
from noisy_jax.simulated.results import Row, Study
from tests.plots import checks

matplotlib.use("agg")


def row(name, horizon, regret):
    of_regret = (regret, 0.1, regret - 0.2, regret + 0.2)
    return Row(name, horizon, 8, *of_regret, 5 * horizon**0.5, 5.0, 0.0, 0.0, 0.1, 0.0)


POWERS = {"corrected": 0.5, "blind": 1.0}
STUDY = Study(
    tuple(row(name, t, t**a) for name, a in POWERS.items() for t in (16, 64, 256)),
    {name: Growth(a, a - 0.1, a + 0.1) for name, a in POWERS.items()},
    {},
)
WORLD = nj.worlds.rational(dim=4, noise=nj.noise.Gaussian(0.36), cutoff=0.5)
RATES = np.array([[0.1, 0.2, 0.4]]) * [[1.0], [0.9], [1.1]]
NOISY = np.random.default_rng(0).normal(size=(50, 2))
FIT = nj.fit(nj.observations.from_arrays(NOISY, NOISY.sum(axis=1), noise=0.1))
OF_RATES = [
    {"data": "table", "learner": "a", "horizon": 8, "rate": rate, **numbers}
    for rate, numbers in {
        1.0: {"regret": 2.0, "std_error": 0.1, "num_seeds": 8},
        3.0: {"regret": 5.0, "std_error": 0.3, "num_seeds": 2},
        "adaptive": {"regret": 3.0, "std_error": 0.1, "num_seeds": 8},
    }.items()
]
PANELS = {  # how many each draws; 0 where it draws on one pair of axes, and returns no array
    "coefficients": 0,
    "price": 1,
    "rates": 1,
    "regret": 0,
    "worlds": 1,
}
ARGUMENTS = {
    "coefficients": (FIT,),
    "price": ({"study": STUDY}, {"study": {"blind": 1.0, "corrected": 2.0}}),
    "rates": (OF_RATES,),
    "regret": (STUDY,),
    "worlds": ({"world": WORLD}, nj.kernels.rational(length_scale=2**0.5)),
}


def draw(name, **options):
    return getattr(nj.plots, name)(*ARGUMENTS[name], **options)


def test_all_are_looked_at():
    assert {*PANELS, "profile"} == {*nj.plots.__all__}  # which draws nothing


@pytest.mark.parametrize(("name", "panels"), PANELS.items())
def test_draws_on_the_axes_it_is_given_or_on_new_ones(name, panels):
    checks.check_signature(getattr(nj.plots, name))
    checks.check_draws_on_given_axes(partial(draw, name), panels)
    checks.check_curves_differ_in_more_than_colour(partial(draw, name), panels)


def test_looks_repeat_only_after_fifty_six():
    assert len({tuple(style.look(i).items()) for i in range(56)}) == 56


def test_regret_draws_what_the_study_holds():
    axes = nj.plots.regret(STUDY)
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert "rounds" in axes.get_xlabel()
    assert "regret on clean data" in axes.get_ylabel()
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["corrected ~ $T^{0.50}$", "blind ~ $T^{1.00}$", "guaranteed or claimed bound"]
    regret, bound, blind, blind_bound, _ = axes.lines
    assert list(regret.get_ydata()) == [4.0, 8.0, 16.0]
    assert list(bound.get_ydata()) == [20.0, 40.0, 80.0]
    assert bound.get_marker() == regret.get_marker() != blind.get_marker()
    assert bound.get_linestyle() == blind_bound.get_linestyle() == ":"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["16", "64", "256"]


def test_regret_of_one_horizon_has_no_exponent():
    unknown = Growth(math.nan, math.nan, math.nan)
    axes = nj.plots.regret(Study((row("a", 2**20, 60.0),), {"a": unknown}, {}))
    assert axes.get_legend().get_texts()[0].get_text() == "a"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1,048,576"]


def test_worlds_draws_the_three_kernels_of_each():
    made = {
        f"c = {c}": nj.worlds.rational(dim=4, noise=nj.noise.Gaussian(0.36), cutoff=c / 4)
        for c in (1.0, 2.0)
    }
    axes = nj.plots.worlds(
        made, nj.kernels.rational(length_scale=2**0.5), distances=np.array([0, 1.25**0.5])
    )
    assert [ax.get_title() for ax in axes] == ["c = 1.0", "c = 2.0"]
    assert axes[0].get_ylabel() == "value of the kernel"
    assert all("distance" in ax.get_xlabel() for ax in axes)
    labels = [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert labels == ["asked for, $g$", "clean, $k$", r"surrogate, $\hat{k}$"]
    assert [line.get_linestyle() for line in axes[0].lines] == ["-", "--", "-."]
    g, k, surrogate = (line.get_ydata() for line in axes[1].lines)
    np.testing.assert_allclose(g, [1, 1 / 1.3125], rtol=1e-6)
    np.testing.assert_allclose(k, [1 - np.exp(-2), 0.7067125660691417], rtol=1e-5)
    np.testing.assert_allclose(surrogate, [1.1714357833666746, 0.8698979821417705], rtol=1e-5)
