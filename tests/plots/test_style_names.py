"""Names of learners and columns are shown letter by letter, whatever they are."""

import io
from typing import Any

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.plots import style
from noisy_jax.simulated.regrets import Growth
from noisy_jax.simulated.results import Study
from tests.plots.cases import row
from tests.plots.checks import ODD, check_shows_odd_names

STUDY = Study((row(ODD, 16, 4.0), row(ODD, 64, 8.0)), {ODD: Growth(0.5, 0.4, 0.6)}, {})
NOISY = np.random.default_rng(0).normal(size=(64, 2))


def table(y, noise, *names):
    return nj.observations.from_arrays(NOISY, y, noise=noise, names=names, target=ODD)


TABLE = table(NOISY.sum(axis=1), 0.1, ODD, "b")
EXACT = table(NOISY[:, 0], 0.0, ODD, f"{ODD}2")
CURVED: Any = nj.fourier(length_scale=2.0, num_features=4)
DRAWN = {  # the picture, and how often the name is in it
    "coefficients": (lambda: nj.plots.coefficients(nj.fit(TABLE)), 2),
    "extrapolation": (lambda: nj.plots.extrapolation(nj.fit(TABLE, nj.methods.SIMEX())), 1),
    "function": (lambda: nj.plots.function(nj.fit(EXACT, CURVED), EXACT, at={f"{ODD}2": 1.0}), 3),
    "price": (lambda: nj.plots.price({ODD: STUDY}, {ODD: {ODD: 1.0}}), 2),
    "regret": (lambda: nj.plots.regret(STUDY), 1),
    "risks": (lambda: nj.plots.risks(nj.select({ODD: nj.fit}, TABLE, jax.random.key(0))), 1),
    "sensitivity": (lambda: nj.plots.sensitivity(nj.fits.sensitivity(TABLE)), 1),
}


@pytest.mark.parametrize("name", DRAWN)
def test_odd_names_are_shown_letter_by_letter(name):
    draw, count = DRAWN[name]
    check_shows_odd_names(draw(), count)


def test_all_pictures_with_names_are_looked_at():
    without = {"profile", "worlds"}  # the titles of worlds may contain formulas
    assert {*DRAWN} == {*nj.plots.__all__} - without


@pytest.mark.parametrize("name", ["plain", r"a\$b", "$", "$$", r"\alpha$", "a_b", "", " _"])
def test_matplotlib_shows_the_letters_of_a_name(name):
    """Also beside a formula of ours."""
    figure = style.panels(None, 1, width=2, height=2)[0].figure
    for text in (style.plain(name), f"{style.plain(name)} ~ $T$"):
        figure.text(0.5, 0.5, text)
    figure.savefig(io.BytesIO(), format="png")
    assert style.plain(name).replace(r"\$", "$") == name
