"""What all pictures have in common."""

from functools import partial
from types import SimpleNamespace

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.plots import style
from tests.plots import checks
from tests.plots.cases import STUDY

WORLD = nj.worlds.rational(dim=4, noise=nj.noise.Gaussian(0.36), cutoff=0.5)
NOISY = np.random.default_rng(0).normal(size=(50, 2))
TABLE = nj.observations.from_arrays(NOISY, NOISY.sum(axis=1), noise=0.1)
EXACT = nj.observations.from_arrays(np.repeat(NOISY, 2, axis=0), np.arange(100.0), noise=0.0)


def curve(rows):
    """A fit that is not affine: its error is approximate."""
    return SimpleNamespace(predict=lambda x: np.tanh(x.sum(axis=-1)))


PANELS = {  # how many each draws; 0 where it draws on one pair of axes, and returns no array
    "coefficients": 0,
    "extrapolation": 2,
    "function": 0,
    "price": 1,
    "regret": 0,
    "risks": 0,
    "sensitivity": 2,
    "worlds": 1,
}
ARGUMENTS = {
    "coefficients": (nj.fit(TABLE),),
    "extrapolation": (nj.fit(TABLE, nj.methods.SIMEX()),),
    "function": (nj.fit(EXACT, nj.fourier(length_scale=2.0, num_features=4)), EXACT),
    "price": ({"study": STUDY}, {"study": {"blind": 1.0, "corrected": 2.0}}),
    "regret": (STUDY,),
    "risks": (nj.select({"line": nj.fit, "curve": curve}, TABLE, jax.random.key(0)),),
    "sensitivity": (nj.fits.sensitivity(TABLE),),
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
