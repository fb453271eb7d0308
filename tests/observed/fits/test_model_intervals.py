"""Fits of any model in simulated tables: too few rows, coverage, and `odrpack` beside it."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from odrpack import odr_fit

import noisy_jax as nj
from noisy_jax.observed.fits.result import percent
from noisy_jax.observed.observations import from_arrays
from tests.keys import key
from tests.observed.fits.curves import START, drawn, growth, wave
from tests.observed.rows import answered, covered

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
    """`odrpack` knows the variances of both errors, which are all there is: the best case for it.

    On the example of odrpack's guide, 12 rows of b1 + b2 (exp(b3 x) − 1)², its published
    coefficients are 1264.65, −54.02 and −0.08785. With the noise in x that it finds, 2.38, this
    method gives 1265.16, −55.13 and −0.0847, and least squares 1264.84, −55.00 and −0.0830.
    """
    days = np.array([0, 0, 5, 7, 7.5, 10, 16, 26, 30, 34, 34.5, 100])
    part = [1265, 1263.6, 1258, 1254, 1253, 1249.8, 1237, 1218, 1220.6, 1213.8, 1215.5, 1212]
    exact = np.isin(days, [0, 100]) & (np.arange(12) != 1)
    start = [1500.0, -50.0, -0.1]

    def plain_decay(x, b):
        return b[0] + b[1] * (np.exp(b[2] * x) - 1) ** 2

    odr = odr_fit(plain_decay, days, np.array(part), start, fix_x=exact)
    np.testing.assert_allclose(odr.beta, [1264.65481, -54.01838, -0.08785], rtol=1e-3)
    variances = np.where(exact, 0, odr.res_var)
    table = from_arrays(days[:, None], part, noise=nj.sd(np.sqrt(variances)[:, None]))

    def decay(b, x):
        return b[0] + b[1] * (jnp.exp(b[2] * x[0]) - 1) ** 2

    fit = nj.fit(table, nj.methods.Model(decay, start))
    assert np.all(np.abs(fit.coefficients - odr.beta) < 1.5 * fit.std_error)
    np.testing.assert_allclose(fit.coefficients, [1265.163, -55.129, -0.0847], rtol=3e-2)

    for variance, sizes in {0.0625: (1.0, 1.07, 0.935), 0.25: (1.0, 1.39, 0.79)}.items():
        x = rng.normal(size=6000)
        y = 0.5 + np.sin(1.5 * x) + 0.3 * rng.normal(size=6000)
        noisy = x + variance**0.5 * rng.normal(size=6000)
        table = from_arrays(noisy[:, None], y, noise=variance)
        fit = nj.fit(table, nj.methods.Model(wave, {"level": 0.5, "rate": 1.4, "size": 1.0}))
        known = {"weight_x": 1 / variance, "weight_y": 1 / 0.09}
        odr = odr_fit(lambda x, b: b[0] + b[2] * np.sin(b[1] * x), noisy, y, [0.5, 1.4, 1], **known)
        every = np.stack([fit.coefficients, odr.beta, fit.uncorrected.coefficients])
        apart = np.abs(every - [0.5, 1.5, 1.0]) / fit.std_error
        assert apart[0].max() < 5
        assert apart[1, 2] > 4
        np.testing.assert_allclose(every[:, 2], sizes, atol=0.09)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("curve", "n", "runs"),
    [(wave, 400, 400), (growth, 300, 100)],
)
def test_intervals_cover_the_truth_where_uncorrected_ones_do_not(curve, n, runs):
    """From known noise; and from 1 to 3 copies of each row, by `nj.unbiased.pair`."""
    rng = np.random.default_rng(int(jax.random.bits(key(71))))
    truth = np.array([0.5, 1.5 if curve is wave else 0.6, 1.0])
    estimate = functools.partial(nj.unbiased.gaussian, draws=4)
    if curve is growth:
        estimate = nj.unbiased.pair
    start = {"level": 0.5, "rate": truth[1] - 0.1, "size": 1.0}
    method = nj.methods.Model(curve, start, estimate=estimate)
    fits = []
    for _ in range(runs):
        x = rng.normal(size=n)
        clean = np.sin(1.5 * x) if curve is wave else np.exp(0.6 * x)
        y = 0.5 + clean + 0.2 * rng.normal(size=n)
        if curve is wave:
            table = from_arrays((x + 0.25 * rng.normal(size=n))[:, None], y, noise=0.0625)
        else:
            copies = x[:, None] + 0.3 * rng.normal(size=(n, 3))
            copies[rng.integers(1, 4, (n, 1)) <= np.arange(3)] = np.nan
            columns = dict(zip("abcy", [*copies.T, y], strict=True))
            table = nj.table(columns, target="y", replicates={"x": ["a", "b", "c"]})
        fits.append(answered(table, method)[0])
    coverage, plain = covered(fits, truth)
    assert sum(fit.share == 1 for fit in fits) > 0.9 * runs
    assert np.all(np.abs(coverage - 0.95) < 5 * (0.95 * 0.05 / runs) ** 0.5)
    rates = np.array([fit.uncorrected.coefficients[1] for fit in fits])
    assert np.abs(rates.mean() - truth[1]) > 3 * rates.std() / runs**0.5
    assert plain[1] < (0.5 if curve is wave else 0.97)
