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

NOISY = np.random.default_rng(0).normal(size=(50, 2))
TABLE = nj.observations.from_arrays(NOISY, NOISY.sum(axis=1), noise=0.1)
EXACT = nj.observations.from_arrays(np.repeat(NOISY, 2, axis=0), np.arange(100.0), noise=0.0)


def curve(rows):
    """A fit that is not affine: its error is approximate."""
    return SimpleNamespace(predict=lambda x: np.tanh(x.sum(axis=-1)))


def kernels():
    noise, asked_for = nj.noise.Gaussian(0.36), nj.kernels.rational(length_scale=2**0.5)
    return {"world": nj.worlds.rational(dim=4, noise=noise, cutoff=0.5)}, asked_for


PRICE = {"study": STUDY}, {"study": {"blind": 1.0, "corrected": 2.0}}
KERNEL = nj.fourier(length_scale=2.0, num_features=4)
CANDIDATES = {"line": nj.fit, "curve": curve}
PICTURES = {  # how many panels each draws, 0 where it returns no array; and what it is called with
    "coefficients": (0, lambda: (nj.fit(TABLE),)),
    "extrapolation": (2, lambda: (nj.fit(TABLE, nj.methods.SIMEX()),)),
    "function": (0, lambda: (nj.fit(EXACT, KERNEL), EXACT)),
    "price": (1, lambda: PRICE),
    "regret": (0, lambda: (STUDY,)),
    "risks": (0, lambda: (nj.select(CANDIDATES, TABLE, jax.random.key(0)),)),
    "sensitivity": (2, lambda: (nj.fits.sensitivity(TABLE),)),
    "worlds": (1, kernels),
}


def test_all_are_looked_at():
    assert {*PICTURES, "profile"} == {*nj.plots.__all__}  # which draws nothing


@pytest.mark.parametrize("name", PICTURES)
def test_draws_on_the_axes_it_is_given_or_on_new_ones(name):
    picture, (panels, made) = getattr(nj.plots, name), PICTURES[name]
    draw = partial(picture, *made())
    checks.check_signature(picture)
    checks.check_draws_on_given_axes(draw, panels)
    checks.check_curves_differ_in_more_than_colour(draw, panels)


def test_looks_repeat_only_after_fifty_six():
    assert len({tuple(style.look(i).items()) for i in range(56)}) == 56
