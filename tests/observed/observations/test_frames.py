"""Tables from frames: as `from_arrays` where it can say the same, wide and long, what is wrong."""

import dataclasses
import warnings
from decimal import Decimal

import jax
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises

N = 60
ROWS = np.random.default_rng(0)
CLEAN = ROWS.normal(size=(N, 2))
A = CLEAN[:, :1] + 0.3 * ROWS.normal(size=(N, 3))
B = CLEAN[:, 1:] + 0.4 * ROWS.normal(size=(N, 3))
AGE, ERRORS = ROWS.uniform(20, 60, size=N), ROWS.uniform(0.1, 0.4, size=N)
Y = CLEAN @ [1.0, -0.5] + 0.02 * AGE + 0.1 * ROWS.normal(size=N)
WIDE = {f"a{v}": A[:, v] for v in range(3)} | {f"b{v}": B[:, v] for v in range(3)}
WIDE |= {"age": AGE, "y": Y}
COPIES = {name: [f"{name}{v}" for v in range(3)] for name in "ab"}
GAPS = WIDE | {"a2": np.where(ROWS.uniform(size=N) < 0.5, np.nan, A[:, 2])}
GAPS |= {"b0": np.where(ROWS.uniform(size=N) < 0.3, np.nan, B[:, 0])}
COUNTS = [np.sum([~np.isnan(GAPS[c]) for c in COPIES[name]], axis=0) for name in "ab"]


def assert_same(table, other, **tolerance):
    assert (table.names, table.target) == (other.names, other.target)
    assert table.each_row == other.each_row
    for name in ("x", "y", "cov", "cross_cov", "target_cov"):
        one, two = getattr(table, name), getattr(other, name)
        assert (one is None) == (two is None)
        if one is not None:
            np.testing.assert_allclose(one, two, **{"rtol": 1e-12, "atol": 1e-14} | tolerance)


def test_what_from_arrays_can_say():
    replicated = np.stack([A, B, np.repeat(AGE[:, None], 3, axis=1)], axis=2)
    names = ["a", "b", "age"]
    one = np.column_stack([A[:, 0], B[:, 0], AGE])
    frame = {"a": A[:, 0], "b": B[:, 0], "age": AGE, "y": Y}
    cases = [
        (WIDE, {"replicates": COPIES}, replicated, None),
        (WIDE, {"replicates": COPIES, "noise": {"a": 0.09, "b": nj.sd(0.4)}}, replicated,
         [0.09, 0.16, 0]),
        (frame, {"noise": {"a": 0.09, "b": nj.sd(0.4)}}, one, [0.09, 0.16, 0]),
        (frame, {"noise": {}}, one, 0.0),
        (frame, {"noise": nj.noise.Gaussian([0.1, 0.2, 0.3])}, one, [0.1, 0.2, 0.3]),
        (frame, {"noise": {"a": 0.1}, "cross_cov": {"a": 0.02}}, one, [0.1, 0, 0]),
    ]  # fmt: skip
    for given, options, x, noise in cases:
        table = nj.table(given, target="y", **options)
        cross = [0.02, 0, 0] if "cross_cov" in options else None
        assert_same(table, from_arrays(x, Y, noise=noise, names=names, target="y", cross_cov=cross))


def test_replicates_of_some_columns_beside_known_errors_of_others():
    """The means of `from_arrays`, and the sum of both covariances."""
    known = {"b": nj.sd(column="e"), "age": 4.0}
    frame = {name: WIDE[name] for name in (*COPIES["a"], "age", "y")} | {"b": B[:, 0], "e": ERRORS}
    table = nj.table(frame, target="y", replicates={"a": COPIES["a"]}, noise=known)
    assert table.names == ("a", "age", "b")
    assert not table.each_row
    mean, cov = from_arrays(A[:, :, None], Y).means()[:3:2]
    np.testing.assert_allclose(table.x[:, 0], np.column_stack([mean, AGE, B[:, 0]]))
    wanted = np.zeros((N, 3, 3))
    wanted[:, 0, 0], wanted[:, 1, 1], wanted[:, 2, 2] = cov[:, 0, 0], 4.0, ERRORS**2
    np.testing.assert_allclose(table.cov, wanted, rtol=1e-9, atol=1e-15)


def test_known_errors_of_incomplete_replicates():
    """Their variances are divided by the number of copies of a row; nothing is estimated."""
    noise = {"a": nj.noise.Laplace(0.3, mean=1.0), "b": 0.16}
    table = nj.table(GAPS, target="y", replicates=COPIES, noise=noise)
    np.testing.assert_allclose(table.cov[:, 0, 0], 0.18 / COUNTS[0])
    np.testing.assert_allclose(table.cov[:, 1, 1], 0.16 / COUNTS[1])
    assert not np.any(table.cov[:, 2])
    assert table.each_row
    means = [np.nanmean([GAPS[c] for c in COPIES[name]], axis=0) for name in "ab"]
    np.testing.assert_allclose(table.x[:, 0], np.column_stack([means[0] - 1, means[1], AGE]))
    assert np.isfinite(nj.fit(table).std_error).all()


def test_the_error_in_y_covaries_with_the_first_copy():
    cross = {"a": 0.02, "b": 0.04, "age": 0.0}
    table = nj.table(GAPS, target="y", replicates=COPIES, cross_cov=cross)
    first = [~np.isnan(GAPS["a0"]), ~np.isnan(GAPS["b0"])]
    wanted = np.column_stack([0.02 * first[0] / COUNTS[0], 0.04 * first[1] / COUNTS[1], 0 * AGE])
    np.testing.assert_allclose(table.means().cross, wanted)


@pytest.mark.parametrize(
    ("wide", "kind"), [(WIDE, dict), (GAPS, pd.DataFrame)], ids=["complete", "incomplete"]
)
def test_long_and_wide_tables_are_the_same(wide, kind):
    """Rows of a subject need not be neighbours; subjects are in the order in which they appear."""
    place, subject = np.tile(np.arange(3), N), np.repeat(np.arange(N), 3)
    long = {"who": np.array([f"p{k}" for k in subject])}
    long |= {name: np.column_stack([wide[one] for one in COPIES[name]]).ravel() for name in "ab"}
    long |= {"age": AGE[subject], "e": ERRORS[subject], "y": Y[subject]}
    long = kind({name: values[np.argsort(place, kind="stable")] for name, values in long.items()})
    options = {"target": "y", "noise": {"age": nj.sd(column="e")}}
    one = nj.table(long, subject="who", replicates=["a", "b"], **options)
    other = nj.table(wide | {"e": ERRORS}, replicates=COPIES, **options)
    who = dict.fromkeys(np.asarray(long["who"]))
    assert one.index is None if kind is dict else list(one.index) == list(who)
    assert_same(one, other)


def test_subjects_with_one_row_each():
    """Known errors need no replicates; unknown ones do."""
    frame = {"who": np.arange(N), "a": A[:, 0], "b": B[:, 0], "y": Y}
    options = {"target": "y", "subject": "who", "replicates": "a"}
    table = nj.table(frame, noise={"a": 0.09, "b": nj.sd(0.4)}, **options)
    assert_same(table, from_arrays(np.column_stack([A[:, 0], B[:, 0]]), Y, noise=[0.09, 0.16],
                                   names=["a", "b"], target="y"))  # fmt: skip
    assert table.x.shape == (N, 1, 2)
    nj.fit(table)
    raises("noise is unknown", nj.table, frame, noise={}, **options)


SEX, KIND = np.array(["m", "f"])[ROWS.integers(0, 2, N)], ROWS.integers(1, 4, N)


@pytest.mark.parametrize("kind", ["dict", "pandas", "lazy", "pyarrow"])
def test_categories_are_indicators_of_all_but_the_first(kind):
    """In every frame that narwhals knows; the fit names the others."""
    columns = {"a": A[:, 0], "sex": SEX, "age": AGE, "y": Y, "old": AGE > 40}
    if kind == "dict":
        frame = columns
    elif kind == "pandas":
        frame = pd.DataFrame(columns)
    elif kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(columns)
    else:
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame(columns).lazy()
        frame = frame.with_columns(polars.col("sex").cast(polars.Categorical))
    table = nj.table(frame, target="y", noise={"a": 0.09})
    assert table.names == ("a", "sex[m]", "age", "old")
    x = np.column_stack([A[:, 0], SEX == "m", AGE, AGE > 40])
    np.testing.assert_allclose(table.x[:, 0], x)
    fit = nj.fit(table)
    assert "categories are compared with sex[f]" in str(fit)
    np.testing.assert_array_equal(fit.predict(frame), fit.predict(x))


@pytest.mark.parametrize(
    "method",
    [nj.methods.Linear(), nj.methods.Fourier(length_scale=1.0, num_features=8), None],
    ids=["linear", "fourier", "learned"],
)
def test_predictions_at_categories(method, tmp_path):
    """They are encoded as in the fit, also in one that was saved; an unknown one is an error."""
    frame = pd.DataFrame({"sex": pd.Categorical(SEX), "a": pd.array(A[:, 0], "Float64")})
    table = nj.table(frame.assign(y=Y), target="y", noise={"a": nj.noise.Gaussian(0.09)})
    learner, path = nj.learners.known_covariance(radius=1.0), tmp_path / "fit.json"
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        fit = nj.fit(table, method) if method else nj.learn(learner, table, jax.random.key(0))
    fit.save(path)
    again = nj.load_fit(path) if method else nj.load_learned(path, learner)
    for one in (fit, getattr(fit, "uncorrected", fit), again):
        wanted = one.predict(np.column_stack([SEX == "m", A[:, 0]]))
        np.testing.assert_allclose(one.predict(frame), wanted)
        np.testing.assert_allclose(one.predict(frame.iloc[5]), wanted[5], rtol=1e-6)
        other = frame.assign(sex=["m", "x"] * (N // 2))
        raises("'sex' of x has the category 'x' in row 1, .* 'f', 'm'", one.predict, other)
        gap = frame.assign(sex=["m", "f", None] * (N // 3))
        raises("column 'sex' of x has no category in row 2", one.predict, gap)
        lost = "column 'sex' of categories is missing in x, which has 'a'$"
        raises(lost, one.predict, frame[["a"]])
        bare = dataclasses.replace(one, references=())  # as in a file of before
        raises(r"column 'sex\[m\]' that is 1 where 'sex' is 'm', and 0", bare.predict, frame)


def test_pandas_keeps_the_order_of_categories():
    kinds = pd.Categorical(KIND, categories=[4, 3, 1, 2])
    frame = pd.DataFrame({"a": A[:, 0], "kind": kinds, "y": Y})
    table = nj.table(frame, target="y", noise={"a": 0.09})
    assert (table.names, table.references) == (("a", "kind[1]", "kind[2]"), ("kind[3]",))
    np.testing.assert_array_equal(table.x[:, 0, 1:], np.stack([KIND == 1, KIND == 2], axis=1))
    long = pd.concat([frame.assign(who=range(N)), frame.assign(who=range(N), a=A[:, 1])])
    table = nj.table(long, target="y", subject="who", replicates="a")
    np.testing.assert_array_equal(table.x[:, 0, 1:], np.stack([KIND == 1, KIND == 2], axis=1))


def test_names_that_are_numbers_and_frames_that_are_wrapped():
    frame = pd.DataFrame({0: A[:, 0], 1: AGE, 2: Y})
    table = nj.table(frame, target=2, noise={0: 0.1})
    assert (table.names, table.target) == (("0", "1"), "2")
    narwhals = pytest.importorskip("narwhals")
    named = frame.set_axis(["a", "b", "y"], axis=1).set_index(frame.index[::-1])
    table = nj.table(narwhals.from_native(named), target="y", noise={"a": 0.1})
    assert table.index.equals(named.index)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"y": [1.0, 1, 2, 2.5]}, "column 'y' differs between rows 2 and 3 of subject 8"),
        ({"a": [1.0, 2, np.nan, np.nan]}, "'a' has no value in 1 of 2 rows, first in subject 8"),
        ({"who": [7, 7, None, 8]}, r"row 2 of 'who' names no subject"),
        ({"who": np.ma.array([7, 7, 8, 8], mask=[0, 0, 1, 0])}, r"row 2 of 'who' names no subject"),
    ],
)
def test_wrong_columns_of_subjects(columns, message):
    frame = {"who": [7, 7, 8, 8], "a": [1.0, 2, 3, 4], "y": [1.0, 1, 2, 2]} | columns
    raises(message, nj.table, frame, target="y", subject="who", replicates="a")


def test_the_error_of_the_target():
    frame = {"a": A[:, 0], "e": ERRORS, "y": Y}
    cases = [(0.25, 0.25, 0.0), (nj.sd(0.5), 0.25, 0.0), (nj.sd(column="e"), ERRORS**2, 0.0)]
    for known, wanted, mean in [*cases, (nj.noise.Gaussian(0.25, mean=2.0), 0.25, 2.0)]:
        noise = {"a": 0.09, "y": known}
        drop = () if getattr(known, "column", None) else ["e"]
        table = nj.table(frame, target="y", noise=noise, drop=drop)
        np.testing.assert_allclose(table.target_cov, np.broadcast_to(wanted, N))
        np.testing.assert_allclose(table.y, Y - mean)
    one = nj.table(frame | {"y": 1.0 * (Y.mean() < Y)}, target="y", noise=noise, drop=["e"])
    raises("is for .* without error: leave out the noise of 'y'", nj.fit, one, model="logistic")


def test_fits_that_need_the_covariance_of_each_row_say_so():
    labels = GAPS | {"y": 1.0 * (Y.mean() < Y)}
    frame = {"a": A[:, 0], "age": AGE, "y": labels["y"]}
    share = nj.table(frame, target="y", noise={"a": nj.reliability(0.8)})
    for estimated in (nj.table(labels, target="y", replicates=COPIES), share):
        assert "estimated covariance" in repr(estimated)
        give = "is known on average over" if estimated is share else "rows have different numbers"
        need = rf"needs each row's error variance, .*{give}.* one measurement: noise=.'a': 0\.25"
        instead = "RegressionCalibration.'logistic'., approximate"
        raises(f"model='logistic' {need}.*{instead}", nj.fit, estimated, model="logistic")
        nj.fit(estimated, nj.methods.RegressionCalibration("logistic"))
        learner = nj.learners.known_covariance(radius=1.0)
        raises(f"a learner {need}", nj.learn, learner, estimated, jax.random.key(0))
    # Kernel fits take incomplete replicates, unless there is other noise beside them.
    beside = nj.table(labels, target="y", replicates=COPIES, noise={"b": nj.noise.Gaussian(0.1)})
    message, kernel = (
        "a kernel fit needs each row's error variance",
        nj.methods.Fourier(length_scale=1.0),
    )
    for table in (beside, estimated):
        raises(message, nj.fit, table, kernel)


def test_labels_of_rows_are_kept():
    options = {"target": "y", "replicates": COPIES}
    frame = pd.DataFrame(WIDE, index=[f"p{k}" for k in range(N)])
    assert nj.table(frame, **options).index.equals(frame.index)
    columns = {name: frame[name] for name in frame.columns}
    assert nj.table(columns, **options).index.equals(frame.index)
    columns["b0"] = columns["b0"][::-1]
    message = r"indices of frame\['a0'\] and frame\['b0'\] are not"
    raises(message, nj.table, columns, **options)


HALF, LACKING = {"c": np.tile([1.0, np.nan], N // 2)}, {c: [np.nan, *AGE[1:]] for c in "fg"}
UNNAMED = {"noise": [0.1, 0.0], "replicates": {"b": ["a", "c"]}}


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"a": [Decimal(1)] * N}, {}, r"column 'a'\[0\] must be a number, got Decimal: convert"),
        ({"age": AGE[1:]}, {}, r"column '\w+' must have one number a row, as other columns"),
        ({"e": -ERRORS}, {}, "column 'e' of the frame must be finite and >= 0"),
        ({"e": [*ERRORS[1:], np.nan]}, {}, r"column 'e'\[59\] is nan .*: drop such rows, as by"),
        ({}, {"noise": None, "subject": "a"}, r"each row of a subject, as replicates=\['x1'\]"),
        ({}, {"noise": None}, "nj.csv need what is known of the errors: noise={'x1': 0.25}"),
        (HALF, UNNAMED, "incomplete replicates need noise by their names, such as noise="),
        (LACKING, {"replicates": {"b": ["f", "g"]}}, "'b' has no value in 1 .* row 0: drop such"),
    ],
)
def test_wrong_frames_give_one_clear_line(change, options, message):
    frame = {"a": A[:, 0], "age": AGE, "e": ERRORS, "y": Y} | change
    raises(message, nj.table, frame, target="y", **{"noise": {"a": nj.sd(column="e")}} | options)


def test_pandas_columns_that_are_no_numbers():
    frame = pd.DataFrame({"a": A[:, 0], "kind": pd.Categorical([1, 2] * (N // 2)), "y": Y})
    message = "column 'kind' is categorical, and codes are not am"
    raises(message, nj.table, frame, target="y", noise={"kind": 0.1})
    dated = frame.assign(kind=pd.date_range("2020-01-01", periods=N))
    raises("column 'kind' must be numbers, got dates or", nj.table, dated, target="y", noise={})
    twice = pd.DataFrame(np.ones((5, 3)), columns=["a", "a", "y"])
    raises("the frame has more than one column named 'a'", nj.table, twice, target="y", noise={})
    for other in (np.ones((5, 2)), "table.csv"):
        raises("must be a pandas DataFrame or a mapping", nj.table, other, target="y", noise={})
