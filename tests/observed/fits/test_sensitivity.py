"""Fits under multiples of the noise: the same as fits of tables that state that noise."""

import dataclasses

import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.fits.test_coefficients import COV, METHODS, table
from tests.observed.rows import gaussians


def agree(one, other, **tolerance):
    np.testing.assert_allclose(one.coefficients, other.coefficients, **tolerance)
    np.testing.assert_allclose(one.interval(), other.interval(), **tolerance)


@pytest.mark.parametrize("model", METHODS)
def test_each_is_the_fit_of_a_table_with_that_noise(rng, model):
    data, method = table(rng, model), METHODS[model]
    found = nj.fits.sensitivity(data, method, multiples=[1.5, 0, 1, 0.5])
    assert found.multiples == (0.0, 0.5, 1.0, 1.5)
    fit = nj.fit(data, method)
    agree(found.fits[0], fit.uncorrected, rtol=1e-6)
    agree(found.fits[2], fit, rtol=0)
    for multiple, one in zip(found.multiples, found.fits, strict=True):
        stated = from_arrays(data.x[:, 0], data.y, noise=multiple * COV)
        agree(one, nj.fit(stated, method), rtol=1e-6)
    middle, low, high = found.paths(0.8)
    np.testing.assert_array_equal(middle[1], found.fits[1].coefficients)
    np.testing.assert_array_equal([low[1], high[1]], found.fits[1].interval(0.8))


def test_linear_coefficients_follow_from_moments(rng):
    """β(m) = (S − m (1 − 1/n) C)⁻¹ s, and with errors in y too (S − m κC)⁻¹ (s − m κc)."""
    data, cross = table(rng, "linear"), np.array([0.1, -0.02])
    x, n = data.x[:, 0] - data.x[:, 0].mean(axis=0), len(data.y)
    S, s = x.T @ x / n, x.T @ (data.y - data.y.mean()) / n
    for one, c in ((data, 0 * cross), (dataclasses.replace(data, cross_cov=cross), cross)):
        found = nj.fits.sensitivity(one, multiples=[0, 0.7, 1, 1.3])
        shares = np.array(found.multiples) * (1 - 1 / n)
        expected = [np.linalg.solve(S - share * COV, s - share * c) for share in shares]
        np.testing.assert_allclose(found.paths()[0], expected, rtol=1e-9)


@pytest.mark.parametrize("model", METHODS)
def test_replicates_have_a_multiple_of_the_covariance_that_they_show(rng, model):
    data = table(rng, model, noise=0 * COV)
    copies = data.x + rng.normal(size=(600, 3, 2)) * [0.5, 0.3]
    data = from_arrays(copies, data.y)
    (one,) = nj.fits.sensitivity(data, METHODS[model], multiples=[0.6]).fits
    mean = copies.mean(axis=1)
    apart = (copies - mean[:, None]).reshape(-1, 2)
    pooled = 0.6 * apart.T @ apart / (600 * 2 * 3)  # of the mean of three copies
    expected = nj.fit(from_arrays(mean, data.y, noise=pooled), METHODS[model])
    np.testing.assert_allclose(one.coefficients, expected.coefficients, rtol=1e-7)


def test_standard_errors_and_covariances_of_rows_are_multiplied_too(rng):
    data = table(rng, "linear")
    x, y = data.x[:, 0], data.y
    rows = np.linspace(0.5, 1.5, 600)[:, None, None] * COV
    for make in (
        lambda m: nj.noise.CovarianceEstimate(m * COV, m * np.full((2, 2), 0.05)),
        lambda m: gaussians(m * rows),
        lambda m: nj.noise.Laplace(np.sqrt(m * np.diag(COV) / 2)),
    ):
        (one,) = nj.fits.sensitivity(from_arrays(x, y, noise=make(1.0)), multiples=[0.5]).fits
        agree(one, nj.fit(from_arrays(x, y, noise=make(0.5))), rtol=1e-5)


@pytest.mark.parametrize("model", METHODS)
def test_there_is_no_fit_where_clean_moments_are_not_positive_definite(rng, model):
    data = table(rng, model)
    limit = data.x[:, 0, 0].var() / 0.3
    near = [0.99 * limit, 1.01 * limit, 3 * limit]
    found = nj.fits.sensitivity(data, METHODS[model], multiples=near)
    assert found.fits[1] is found.fits[2] is None
    assert np.isnan(found.paths()[:, 1:]).all()
    text = str(found)
    assert "none" in text
    assert f"At {near[1]:g}, {near[2]:g}: no fit, since " in " ".join(text.split())
    if model == "linear":  # by Fuller's modification there is one just below
        assert found.fits[0] is not None
        assert found.shares[0] < 1
        assert "Where the share is below 1, less than that multiple" in text
    assert found.to_frame()["estimate"].isna().sum() >= 4


def test_the_table_has_a_row_for_each_column_and_multiple(rng):
    found = nj.fits.sensitivity(table(rng, "linear"), multiples=[0, 1])
    lines = str(found).splitlines()
    assert lines[0] == "sick on 2 features, 600 noisy rows"
    assert [line.split()[0] for line in lines[3:]] == ["dose", "1", "age", "1"]
    assert "share" not in lines[2]
    frame = found.to_frame()
    assert [*frame["name"]] == ["dose", "dose", "age", "age"]
    np.testing.assert_array_equal(frame["estimate"], found.paths()[0].T.ravel())
    assert "<table>" in found._repr_html_()


def test_of_many_columns_some_are_printed(rng):
    x = rng.normal(size=(200, 12))
    data = from_arrays(x, x[:, 0] + rng.normal(size=200), noise=0.1)
    found = nj.fits.sensitivity(data, multiples=[0, 1])
    assert len(found.summary().rows) == 24
    lines = str(found).splitlines()
    assert lines[-3].startswith("x9 ")
    assert lines[-1] == "… and 3 more columns"


def test_a_doubt_about_the_table_is_one_warning(rng):
    x = rng.integers(0, 2, size=(300, 1)) * 1.0
    with pytest.warns(nj.fits.AssumptionWarning) as caught:
        found = nj.fits.sensitivity(from_arrays(x, x[:, 0] + rng.normal(size=300), noise=0.01))
    assert len(caught) == 1
    assert found.reasons == ("",) * 5


def test_what_has_no_sensitivity_raises(rng):
    x = rng.normal(size=(100, 1))
    data = from_arrays(x, x[:, 0], noise=0.1)
    gaps = np.where(rng.random((100, 1)) < 0.1, np.nan, x)
    missing = from_arrays(gaps, x[:, 0], noise=nj.noise.Missing(0.9))
    gaussian = from_arrays(x, x[:, 0], noise=nj.noise.Gaussian(0.1))
    kernel = nj.fourier(length_scale=2.0, num_features=8)
    for message, rows, *method, options in (
        ("sensitivity takes one table, no chunks", [data], {}),
        ("multiples must be finite and >= 0", data, {"multiples": [-1.0]}),
        ("multiples must be at least one number", data, {"multiples": []}),
        ("cannot multiply Missing, noise that depends on the values", missing, {}),
        ("which a FourierFit does not have", gaussian, kernel, {}),
    ):
        raises(message, nj.fits.sensitivity, rows, *method, **options)


def test_parameters_of_a_model_are_compared(rng):
    x = rng.normal(size=(300, 1))
    table = from_arrays(x, x[:, 0] + rng.normal(size=300), noise=0.1)
    method = nj.methods.Model(lambda p, x: p["a"] + p["b"] * x[0], {"a": 0.0, "b": 1.0})
    found = nj.fits.sensitivity(table, method, multiples=[0, 1])
    fit = nj.fit(table, method)
    assert found.names == ("a", "b")
    paths = found.paths()
    np.testing.assert_allclose(paths[0], [fit.uncorrected.coefficients, fit.coefficients])
    np.testing.assert_allclose(paths[1:, 1], fit.interval())
