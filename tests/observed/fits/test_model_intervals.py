"""Fits of any model in simulated tables: too few rows, coverage, and `odrpack` beside it."""

import numpy as np
import pytest
from odrpack import odr_fit

import noisy_jax as nj
from noisy_jax.observed.fits.result import percent
from noisy_jax.observed.observations import from_arrays
from tests.observed.fits.curves import START, drawn, growth, wave
from tests.observed.rows import answered

RIGHT = {"level": 0.5, "rate": 1.4, "size": 1.0}


@pytest.mark.slow
def test_too_few_rows_are_told(rng):
    """A fifth of the columns' variance is noise, in 60 rows of a curve that few rows determine."""
    told = ""
    for _ in range(8):
        x, y = drawn(rng, 60, noise=0.5)
        method = nj.methods.Model(growth, {**START, "level": 0.5})
        try:
            fit, messages = answered(from_arrays(x, y, noise=0.25), method)
        except ValueError as error:
            told += str(error)
            continue
        told += " ".join(messages)
        assert fit.remarks == tuple(messages)
        if fit.share < 1:
            assert f"{percent(fit.share)} of it is taken away" in str(fit).replace("\n", " ")
    words = (
        "does not allow to take away all",
        "not even half of the stated error",
        "too small to trust",
    )
    assert all(word in told for word in words)


@pytest.mark.slow
def test_a_start_that_leads_to_a_wrong_minimum_is_told(rng):
    """Twice the frequency, and far beyond it: the rows are not to blame."""
    x = rng.normal(size=(200, 1))
    y = 0.5 + np.sin(1.5 * x[:, 0]) + 0.2 * rng.normal(size=200)
    table = from_arrays(x + 0.1 * rng.normal(size=x.shape), y, noise=0.01)
    told = []
    for rate in (6.0, 9.0, 12.0):
        try:
            _, messages = answered(table, nj.methods.Model(wave, {**RIGHT, "rate": rate}))
        except ValueError as error:
            messages = [str(error)]
        told.append(any("start has led to a wrong minimum" in one for one in messages))
    assert all(told)
    assert not answered(table, nj.methods.Model(wave, RIGHT))[1]


@pytest.mark.slow
@pytest.mark.statistical
def test_orthogonal_distance_regression_is_right_for_small_noise_only(rng):
    """`odrpack` knows the variances of both errors, which are all there is: its best case."""
    x = rng.normal(size=6000)
    y = 0.5 + np.sin(1.5 * x) + 0.3 * rng.normal(size=6000)
    noisy = x + 0.5 * rng.normal(size=6000)
    fit = nj.fit(from_arrays(noisy[:, None], y, noise=0.25), nj.methods.Model(wave, RIGHT))
    known = {"weight_x": 1 / 0.25, "weight_y": 1 / 0.09}
    odr = odr_fit(lambda x, b: b[0] + b[2] * np.sin(b[1] * x), noisy, y, [0.5, 1.4, 1], **known)
    every = np.stack([fit.coefficients, odr.beta, fit.uncorrected.coefficients])
    apart = np.abs(every - [0.5, 1.5, 1.0]) / fit.std_error
    assert apart[0].max() < 5
    assert apart[1, 2] > 4
    np.testing.assert_allclose(every[:, 2], [1.0, 1.39, 0.79], atol=0.09)
