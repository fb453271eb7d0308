"""Masked arrays and pandas objects: what is masked is missing, and rows are matched by index."""

import jax
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from noisy_jax.tabular.columns import levels_of
from tests.errors import raises

ROWS = np.random.default_rng(0)
X = ROWS.normal(size=(60, 2))
Y = X @ [2.0, -1.0] + ROWS.normal(size=60)
FRAME = pd.DataFrame(X, columns=["dose", "age"], index=np.arange(60) + 100)
TARGET = pd.Series(Y, index=FRAME.index, name="sick")
SHUFFLED = ROWS.permutation(60)


def masked(values, where, code=-999.0):
    """The values with a code in place of those that are missing, which a mask hides."""
    return np.ma.array(np.where(where, code, values), mask=where)


GAPS = np.zeros(X.shape, bool)
GAPS[[3, 7, 7], [0, 0, 1]] = True


@pytest.mark.parametrize("form", ["integers", "rows"])
def test_what_is_masked_is_missing(form):
    x = masked(np.round(10 * X), GAPS)
    table = {"integers": x.astype(int), "rows": list(x)}[form]
    raises(r"x\[3, 0\] is nan \(3 in all\): drop such rows", from_arrays, table, Y, noise=0.1)
    raises(r"x\[3, 0\] is nan", nj.streams.from_arrays, table, Y)


def test_a_missing_integer_of_pandas_is_named():
    """It is `pandas.NA`, not NaN."""
    table = pd.DataFrame({"a": [1, None, 3], "b": [4, 5, 7]}).astype("Int64")
    raises("row 1 of column 'a' is nan", from_arrays, table, np.ones(3), noise=0.1)


def test_what_is_masked_beside_x_is_missing():
    raises(r"y\[3\] is nan", from_arrays, X, masked(Y, GAPS[:, 0]), noise=0.1)
    hidden = np.ma.array([0.1, 99.0], mask=[False, True])
    raises(r"noise\[1\] is nan", from_arrays, X, Y, noise=hidden)
    table = from_arrays(X, Y, noise=0.1)
    weights, labels = masked(np.ones(60), GAPS[:, 0], 5.0), masked(np.arange(60), GAPS[:, 0], 1)
    raises("weights must be finite", nj.fit, table, weights=weights)
    raises("clusters must be labels, got NaN in row 3", nj.fit, table, clusters=labels)
    found = nj.fit(table).predict(masked(X, GAPS))
    np.testing.assert_array_equal(np.isnan(found), GAPS.any(axis=1))
    copies = np.ma.stack([masked(X, GAPS)] * 2, axis=1)
    raises(r"copies\[3, 0, 0\] is nan", nj.noise.estimate_covariance, copies)


def others(values):
    """The values with an index of another order, and with one of other labels."""
    return values.iloc[SHUFFLED], values.set_axis(np.arange(60))


def variances(index):
    per_row = pd.Series(np.full(60, 0.1), index=index), pd.Series(np.zeros(60), index=index)
    return nj.noise.PerRound(nj.noise.Gaussian(*per_row))


@pytest.mark.parametrize("which", [0, 1], ids=["order", "labels"])
def test_rows_of_another_order_are_never_paired_by_position(which):
    y, frame = others(TARGET)[which], others(FRAME)[which]
    message = r"the indices of x and y are not the same; align them with y\.loc\[x\.index\]"
    for make in (nj.streams.from_arrays, nj.streams.scaled):
        raises(message, make, FRAME, y)
    raises(message, from_arrays, FRAME, y, noise=0.1)
    for message, x, options in (
        ("indices of x and noise are not the same", FRAME, {"noise": variances(y.index)}),
        ("indices of y and noise are not the same", X, {"noise": variances(y.index)}),
        ("of x and cross_cov are not the same", FRAME, {"noise": 0.1, "cross_cov": 0.01 * frame}),
        (r"indices of x\[0\] and x\[1\] are not the same", [FRAME, frame], {}),
    ):
        raises(message, from_arrays, x, TARGET, **options)
    table = from_arrays(X, TARGET, noise=0.1)  # the index is that of y
    for name in ("weights", "clusters"):
        message = rf"indices of observations and {name} .* {name}\.loc\[observations\.index\]"
        for errors in ("sandwich", "jackknife"):
            raises(message, nj.fit, table, errors=errors, **{name: abs(y)})
    raises(message, nj.select, {"a": nj.fit}, table, jax.random.key(0), clusters=y)


def test_rows_of_the_same_index_are_paired():
    wanted = nj.fit(from_arrays(X, Y, noise=0.1), weights=Y**2)
    table = from_arrays(FRAME, TARGET, noise=variances(FRAME.index))
    found = nj.fit(table, weights=TARGET**2)
    np.testing.assert_allclose(found.coefficients, wanted.coefficients, rtol=1e-6)
    y = others(TARGET)[0]
    table = from_arrays(FRAME.loc[y.index], y, noise=0.1)  # as the message says
    weights = (TARGET**2).loc[table.index]
    np.testing.assert_allclose(nj.fit(table, weights=weights).coefficients, wanted.coefficients)


def test_replicates_may_be_a_list_of_frames():
    second = FRAME + 0.3 * ROWS.normal(size=X.shape)
    table = from_arrays([FRAME, second], TARGET)
    np.testing.assert_array_equal(table.x, np.stack([X, second], axis=1))
    assert table.names == ("dose", "age")
    with pytest.raises(ValueError, match=r"the same columns, but x\[1\] has others"):
        from_arrays([FRAME, second[["age", "dose"]]], TARGET)


@pytest.mark.slow
def test_columns_are_taken_by_their_names():
    table = from_arrays(FRAME, TARGET, noise=0.1)
    turned = FRAME[["age", "dose"]]
    fit = nj.fit(table)
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
    for found in (fit, fit.uncorrected, nj.learn(learner, table, jax.random.key(0))):
        more = turned.assign(note="text")
        for frame, x in ((turned, X), (turned.iloc[3], X[3]), (pd.DataFrame(X), X), (more, X)):
            np.testing.assert_allclose(found.predict(frame), found.predict(x), rtol=1e-5)
        raises("column 'dose' is missing in x, which has 'age'", found.predict, turned[["age"]])
    twice = FRAME[["age", "dose", "dose"]]
    raises("x must have one label 'dose', got the labels 'age', 'dose', ", fit.predict, twice)
    row = twice.iloc[3, 1:]
    raises("x must have one label 'dose', got the labels 'dose', 'dose'", fit.predict, row)
    traced = jax.jit(fit.predict)({"age": Y.astype("f"), "dose": (Y > 0)})
    made = fit.predict({"age": Y, "dose": pd.array(Y > 0, dtype="boolean")})
    np.testing.assert_allclose(traced, made, rtol=1e-5)
    assert np.isnan(fit.predict({"age": [1.0], "dose": pd.array([None], dtype="Int64")})).all()
    table = from_arrays(FRAME, TARGET, noise=0.1, cross_cov=pd.Series({"age": 0.02, "dose": 0.01}))
    np.testing.assert_array_equal(table.cross_cov, [0.01, 0.02])
    table = from_arrays(FRAME, TARGET, noise=0.1, cross_cov=0.01 * turned)
    np.testing.assert_array_equal(table.cross_cov, 0.01 * X)


def test_codes_of_categories_are_not_amounts():
    group = pd.Categorical(np.arange(60) % 3)
    labels = pd.Categorical(np.arange(60) % 9)
    message = r"'group' of x is .* indicators with pd\.get_dummies\(x, columns=\['group'\], drop_"
    frame = FRAME.assign(group=group)
    raises(message, from_arrays, frame, TARGET, noise={"dose": 0.1})
    raises(message, nj.streams.from_arrays, frame, TARGET)
    for y in (group, pd.Series(group, FRAME.index)):
        raises(r"y is categorical, .* y\.astype\(float\) if", from_arrays, FRAME, y, noise=0.1)
    made = pd.get_dummies(frame, columns=["group"], drop_first=True, dtype=float)
    table = from_arrays(made, TARGET, noise={"dose": 0.1})
    assert table.names == ("dose", "age", "group_1", "group_2")
    fit = nj.fit(from_arrays(FRAME.assign(group=Y), TARGET, noise=0.0))
    raises("'group' of x is categorical", fit.predict, frame)
    nj.fit(table, clusters=labels)  # labels of groups may be categories


# Numbers in another writing, which are no categories, and what helps.
OTHER = {
    "1,5": r"decimal=','",
    "1,234": r"thousands=',', else decimal=','",
    "1.234,5": r"thousands='\.', decimal=','",
    "1.234.567": r"thousands='\.', decimal=','",
    "2020-01-31": "pass days, or years",
    "12:30": "pass days, or years",
    **dict.fromkeys(("1_0", "１２", "٣", "0x10", "1 2", "5%", "−5"), "write it as a plain number"),
}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        *((["a", cell, "b"], f"because of '{cell}' in row 1 .*{OTHER[cell]}") for cell in OTHER),
        ([1.5, "5%"], "because of '5%' in row 1"),
        (["+5", ".5e1"], r"because of '\+5' in row 0 .*convert texts of numbers by astype"),
        (["2", "1e999"], "because of '1e999' in row 1 .*write it as a plain number"),
        (["a", None, "b"], "has no category in row 1: name one, or drop such rows"),
        (pd.array(["a", pd.NA, "b"], dtype="string"), "has no category in row 1"),
        (["a", "a"], "has one category only, 'a': drop it"),
        ([f"p{k}" for k in range(60)] * 2, "has 60 different texts, such as 'p0': drop it, or"),
        ([f"p{k}" for k in range(20)], "has another text in each row, which labels the rows: drop"),
        (np.array([2.0, "a"], object), r"is text because of 'a' in row 1 \(counted from 0\)"),
        (["1.5", "-"], r"because of '-' in row 1 .*missing=\[…\].*; or .* a pandas Categorical"),
    ],
)
def test_texts_that_are_no_categories(values, message):
    raises(message, levels_of, "kind", values)


def test_a_text_among_numbers_is_named_where_numbers_are_needed():
    rows = pd.DataFrame({"a": ["1", "2", "-", "4"], "b": [1.0, 2.0, 3.0, 4.0]})
    message = r"row 2 of column 'a' must be a number, got '-': encode text first, or if it marks a"
    raises(message, nj.streams.from_arrays, rows, np.arange(4.0))
    raises(r"y\[1\] must be a number, got '1,5': .* decimal=','", from_arrays, X[:2], ["1", "1,5"])


def test_categories_and_numbers():
    levels, numbers = levels_of("kind", ["over 40", "18-25", "1st", "18-25"])
    assert levels == ["18-25", "1st", "over 40"]
    assert numbers.tolist() == [2, 0, 1, 0]
    for values in ([1, 2], np.array([1.0, None], object), np.array([["a"], ["b"]]), [True, False]):
        assert levels_of("kind", values) is None
