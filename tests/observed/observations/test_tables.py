"""Noisy tables from arrays, DataFrames and CSV files, and what is wrong with bad ones."""

import re

import jax
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises
from tests.observed.rows import gaussians

ROWS = np.random.default_rng(0)
X, Y = ROWS.normal(size=(20, 3)), ROWS.normal(size=20)
ESTIMATE = nj.noise.CovarianceEstimate(np.eye(3), np.eye(2))


def test_it_prints_its_shape_and_what_is_known_of_the_noise():
    shown = "Observations(20 rows, 3 features, 1 copy, noise: known covariance)"
    assert str(from_arrays(X, Y, noise=0.1)) == shown
    copies = from_arrays(np.zeros((1200, 2, 3)), np.zeros(1200))
    assert "1,200 rows, 3 features, 2 copies, noise: estimated from replicates" in str(copies)
    assert "noise: Laplace" in str(from_arrays(X, Y, noise=nj.noise.Laplace(0.3)))


def test_a_data_frame_keeps_its_names_which_must_be_different():
    frame = pd.DataFrame(X, columns=["size", "age", "rooms"])
    table = from_arrays(frame, pd.Series(Y, name="price"), noise=0.1)
    assert (table.names, table.target) == (("size", "age", "rooms"), "price")
    with pytest.raises(ValueError, match="row 0 of column 'age' must be a number, got 'old'"):
        from_arrays(frame.assign(age="old"), Y, noise=0.1)
    message, names = "names must be 3 different names, got 'a', 'a', 'b'", ["a", "a", "b"]
    raises(message, from_arrays, X, Y, noise=0.1, names=names)


def test_units_are_kept_in_float64():
    """Years as seconds since 1970 with an error of a second: float32 cannot tell them apart."""
    seconds = 1.7e9 + np.arange(20.0)[:, None]
    np.testing.assert_array_equal(from_arrays(seconds, Y, noise=1.0).x[:, 0], seconds)


def test_replicates_are_averaged_and_their_spread_is_the_error_of_the_mean():
    copies = np.random.default_rng(1).normal(size=(20, 4, 3))
    mean, cov = from_arrays(copies, Y).means()[:3:2]
    np.testing.assert_allclose(mean, copies.mean(axis=1))
    np.testing.assert_allclose(cov[5], np.cov(copies[5].T) / 4)
    known = from_arrays(copies, Y, noise=0.4).means().cov
    np.testing.assert_allclose(known, 0.1 * np.eye(3))
    correlated = from_arrays(copies, Y, noise=0.4, cross_cov=[0.1, 0.2, 0.3])
    np.testing.assert_allclose(correlated.means().cross, [0.025, 0.05, 0.075])


@pytest.mark.parametrize(
    ("x", "y", "noise", "message"),
    [
        (X, Y[:-1], 0.1, r"x has 20 rows, but y has shape \[19\]"),
        (np.zeros((2, 20, 3)), Y, None, r"replicates belong on the second axis: np.swapaxes"),
        (X[0], Y, 0.1, r"x must be \[n, d\], or .* got \[3\]; one feature is x\[:, None\]"),
        ([["a", "b"]], [1.0], 0.0, r"x\[0, 0\] must be a number, got 'a'"),
        (np.where(np.arange(20)[:, None] == 4, np.nan, X), Y, 0.1, r"x\[4, 0\] is nan \(3 in"),
        (X, np.where(np.arange(20) == 2, np.inf, Y), 0.1, r"y\[2\] is inf \(1 in all\): drop"),
        (X, Y, None, r"noise is unknown: give .* or replicates as x \[n"),
        (X, Y, -0.1, "noise must be finite and >= 0, got -0.1: it holds variances"),
        (X, Y, [0.1, 0.2], r"noise of shape \[2\] does not fit data of dimension 3"),
        (X, Y, np.full((20, 3), 0.1), r"got \[20, 3\]; for noise .* noise\.PerRound"),
        (X, Y, [[1, 2, 0], [2, 1, 0], [0, 0, 1]], "positive semi-definite"),
        (X, Y, [[1, 2, 0], [0, 9, 0], [0, 0, 1]], "noise must be symmetric"),
        (X, Y, "laplace", "noise must be numbers, got 'laplace'"),
        (X, Y, gaussians([0.1] * 19), "every parameter stacked along the 20 rounds, got shapes"),
        (X, Y, ESTIMATE, r"std_error must be \[3, 3\], one number for each .*, got \[2, 2\]"),
        (X, Y, pd.Series([0.1] * 3, ["x1", "x2", "z"]), "'x3' is missing in noise, which has"),
    ],
)
def test_wrong_arrays_give_one_clear_line(x, y, noise, message):
    raises(message, from_arrays, x, y, noise=noise)


def test_errors_of_x_and_y_that_covary_are_taken_from_the_moments(rng):
    """The fit by NumPy: n − 1 times the covariances of the errors are subtracted."""
    x, cross = rng.normal(size=(400, 2)), np.array([0.05, -0.1])
    y, cov = 2 * x[:, 0] - x[:, 1] + rng.normal(size=400), np.array([[0.2, 0.1], [0.1, 0.3]])
    fit = nj.fit(from_arrays(x, y, noise=cov, cross_cov=cross))
    apart = x - x.mean(axis=0)
    wanted = np.linalg.solve(apart.T @ apart - 399 * cov, apart.T @ y - 399 * cross)
    np.testing.assert_allclose(fit.coefficients, wanted, rtol=1e-9)


@pytest.mark.parametrize(
    ("x", "y", "noise", "message"),
    [
        (X[:3], Y[:3], 0.0, r"more than d \+ 1 = 4 rows, got 3"),
        (np.where([True, False, True], X, 2.0), Y, 0.0, "column 'x2' is constant: drop it"),
        (X, np.ones(20), 0.0, "'y' takes one value only, 1"),
    ],
)
def test_tables_that_cannot_be_fitted_give_one_clear_line(x, y, noise, message):
    raises(message, nj.fit, from_arrays(x, y, noise=noise))


def test_some_rows_keep_what_belongs_to_them(rng):
    """A covariance a row, and one of all rows, in any order."""
    x, y, own = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=(5, 2))
    which = np.array([3, 0])
    some = from_arrays(x, y, noise=gaussians(np.arange(1.0, 6.0)), cross_cov=own).rows(which)
    np.testing.assert_array_equal(some.x[:, 0], x[which])
    np.testing.assert_array_equal(some.cross_cov, own[which])
    np.testing.assert_allclose(some.cov, np.array([4.0, 1.0])[:, None, None] * np.eye(2))
    shared = from_arrays(x, y, noise=0.3, cross_cov=own[0]).rows(which)
    np.testing.assert_array_equal(shared.cross_cov, own[0])
    np.testing.assert_allclose(shared.cov, 0.3 * np.eye(2))


def test_rows_are_chosen_by_their_numbers_or_a_mask():
    table = from_arrays(np.arange(4.0)[:, None], np.arange(4.0), noise=0.1)
    for which in [1, 3], (1, -1), iter([1, 3]), np.array([False, True] * 2), slice(1, 4, 2):
        assert table.rows(which).y.tolist() == [1, 3]
    for which in None, "a", 1, [4], [0.5], np.ones(3, bool), np.ma.array([0, 1], mask=[0, 1]):
        raises("which must be", table.rows, which)


def test_replicates_on_the_last_axis_are_found(rng):
    """By names, by the noise, and by the means of what would be replicates."""
    x = np.array([5.0, 0.0]) + rng.normal(size=(300, 2))
    y = x @ [1.0, -0.5] + 0.1 * rng.normal(size=300)
    swapped = x[:, :, None] + 0.1 * rng.normal(size=(len(x), 2, 3))
    swap = r"np\.swapaxes\(x, 1, 2\)"
    for known in ({"names": ["a", "b"]}, {"noise": [0.01, 0.01]}, {"noise": 0.01 * np.eye(2)}):
        with pytest.warns(UserWarning, match=swap), pytest.raises(ValueError, match=swap):
            from_arrays(swapped, y, **known)
    with pytest.warns(UserWarning, match="different means.*" + swap):
        from_arrays(swapped, y)
    from_arrays(np.swapaxes(swapped, 1, 2), y)  # no warning


HOLE = np.where(np.arange(60).reshape(20, 3) == 13, np.nan, X)
NAMED = dict(zip("abc", HOLE.T, strict=True)) | {"y": Y}


@pytest.mark.parametrize("noise", [0.1, nj.noise.Multiplicative(0.1)])
def test_a_row_with_a_missing_value_says_how_to_drop_it(noise):
    drop = "is nan (1 in all): drop such rows, as by frame.dropna("
    frame = pd.DataFrame(HOLE, columns=["a", "b", "c"])
    copies = np.stack([X, HOLE], axis=1)
    for x, place in ((HOLE, "x[4, 1]"), (frame, "row 4 of column 'b'"), (copies, "x[4, 1, 1]")):
        raises(re.escape(f"{place} {drop}), or impute them"), from_arrays, x, Y, noise=noise)
    for rows in (NAMED, pd.DataFrame(NAMED)):
        message = re.escape(f"'b'[4] {drop}subset=['b']), or impute")
        raises(message, nj.table, rows, target="y", noise=noise)
        complete = pd.DataFrame(rows).dropna(subset=["b"])
        assert len(nj.table(complete, target="y", noise=noise).y) == 19
    no_y = NAMED | {"b": X[:, 1], "y": np.where(Y[2] == Y, np.nan, Y)}
    raises(r"'y'\[2\] is nan .*dropna\(subset=\['y'\]\)", nj.table, no_y, target="y", noise=noise)


def test_what_left_in_version_0_4_says_what_to_write(tmp_path):
    table = from_arrays(X, Y, noise=0.1)
    with pytest.raises(AttributeError, match=r"Observations.only_sums left in .* table\.each_row"):
        table.only_sums  # noqa: B018
    pd.DataFrame(NAMED).to_csv(tmp_path / "rows.csv", index=False)
    message = r"gaps left in version 0\.4\.0.*frame\.dropna\(\), or impute"
    for make, source in ((nj.table, NAMED), (nj.csv, tmp_path / "rows.csv")):
        raises(message, make, source, target="y", noise=None, gaps="random")
    raises(message, from_arrays, HOLE, Y, noise=None, gaps="random")


@pytest.mark.parametrize("hidden", [nj.noise.Missing(0.9), nj.noise.Attributes(2)])
def test_noise_that_hides_values_is_for_streams(hidden):
    message = r"noise(\['b'\])? hides values, which is for streams, but tables take complete rows"
    by_row = nj.noise.PerRound(jax.tree.map(lambda leaf: np.full(20, leaf), hidden))
    for noise in (hidden, {"b": hidden}, by_row):
        raises(message, from_arrays, X, Y, noise=noise, names=["a", "b", "c"])
        raises(message, nj.table, NAMED | {"b": X[:, 1]}, target="y", noise=noise)
