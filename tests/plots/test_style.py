"""What all pictures have in common, also where names are odd: those are shown letter by letter."""

import io
import sys
from functools import partial
from typing import Any

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.plots import style
from tests.plots import checks
from tests.plots.cases import study
from tests.plots.checks import ODD

ROWS = np.random.default_rng(0).normal(size=(64, 3))
NOISY = ROWS[:, :2]


def table(y, noise, *names):
    return nj.observations.from_arrays(NOISY, y, noise=noise, names=names, target=ODD)


TABLE = table(ROWS.sum(axis=1), 0.1, ODD, "b")
EXACT = table(NOISY[:, 0], 0.0, ODD, f"{ODD}2")
CURVED: Any = nj.methods.Fourier(length_scale=2.0, num_features=4)
STUDY = study({ODD: 0.5, "blind": 1.0})
CANDIDATES = {ODD: nj.fit, "uncorrected": lambda rows: nj.fit(rows).uncorrected}
PICTURES = {  # panels that each draws, 0 where it returns no array; how often it has the odd name;
    # and what it is called with
    "coefficients": (0, 2, lambda: (nj.fit(TABLE),)),
    "function": (0, 3, lambda: (nj.fit(EXACT, CURVED), EXACT)),
    "regret": (0, 1, lambda: (STUDY,)),
    "risks": (0, 1, lambda: (nj.select(CANDIDATES, TABLE, jax.random.key(0)),)),
}


def test_all_are_looked_at():
    assert {*PICTURES} == {*nj.plots.__all__}


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES)
def test_draws_on_the_axes_it_is_given_or_on_new_ones(name):
    picture, (panels, count, made) = getattr(nj.plots, name), PICTURES[name]
    draw = partial(picture, *made(), **({"at": {f"{ODD}2": 1.0}} if name == "function" else {}))
    checks.check_signature(picture)
    checks.check_draws_on_given_axes(draw, panels)
    checks.check_curves_differ_in_more_than_colour(draw, panels, legend=name != "risks")
    checks.check_shows_odd_names(draw(), count)


@pytest.mark.parametrize("name", ["plain", r"a\$b", "$", "$$", r"\alpha$", "a_b", "", " _"])
def test_matplotlib_shows_the_letters_of_a_name(name):
    """Also beside a formula of ours."""
    figure = style.panels(None, 1, width=2, height=2)[0].figure
    for text in (style.plain(name), f"{style.plain(name)} ~ $T$"):
        figure.text(0.5, 0.5, text)
    figure.savefig(io.BytesIO(), format="png")
    assert style.plain(name).replace(r"\$", "$") == name


def test_looks_repeat_only_after_fifty_six():
    assert len({tuple(style.look(i).items()) for i in range(56)}) == 56


def test_axes_of_another_kind_are_an_error():
    with pytest.raises(ValueError, match="axes must be matplotlib axes, got 3"):
        style.single(3, width=1.0, height=1.0)


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match="pictures need matplotlib: pip install matplotlib"):
        nj.fit(TABLE).plot()
