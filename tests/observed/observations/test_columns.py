"""Columns by their names, in files and frames: features, labels of rows, missing values."""

import warnings

import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import chunks, csv, from_arrays
from tests.errors import raises
from tests.observed.rows import agree

ROWS = np.random.default_rng(0)
X = ROWS.normal(size=(40, 2))
SD = np.where(np.arange(40) % 2, 0.2, 0.4)
Y = X @ [2.0, -1.0]
LABELS = ROWS.permutation(40) + 1000


def written(path, columns):
    """A file of columns by name."""
    cells = [map(str, column) for column in columns.values()]
    lines = [",".join(columns), *map(",".join, zip(*cells, strict=True))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table.csv"


PLAIN = {"x1": X[:, 0], "x2": X[:, 1], "y": Y}
WITH_LABELS = {"id": np.arange(40), "name": [f"p{i}" for i in range(40)], **PLAIN}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"features": ["x1", "x2"]}, ("x1", "x2")),
        ({"features": ["x2", "x1"]}, ("x2", "x1")),
        ({"features": "x1"}, ("x1",)),
        ({"features": ["x1", "id"]}, ("x1", "id")),
        ({"drop": ["name", "id"]}, ("x1", "x2")),
    ],
)
def test_features_are_those_that_are_named(path, options, names):
    written(path, WITH_LABELS)
    table = csv(path, target="y", noise={"x1": 0.1}, **options)
    assert table.names == names
    for name, column, variance in zip(names, table.x[:, 0].T, np.diag(table.cov), strict=True):
        np.testing.assert_allclose(column, WITH_LABELS[name], rtol=1e-12)
        assert variance == 0.1 * (name == "x1")
    frames = pd.read_csv(path, chunksize=25)
    parts = list(chunks(frames, target="y", noise={"x1": 0.1}, **options))
    np.testing.assert_array_equal(np.concatenate([part.x for part in parts]), table.x)


def test_a_column_without_a_name_can_be_left_out(path):
    """As pandas and R write row names."""
    written(path, {"": np.arange(40), **PLAIN})
    assert csv(path, target="y", noise=0.1, features=["x1", "x2"]).names == ("x1", "x2")
    assert csv(path, target="y", noise=0.1, drop="Unnamed: 0").names == ("x1", "x2")
    assert csv(path, target="y", noise=0.1, index_col=0).names == ("x1", "x2")
    raises("no name for its column 'Unnamed: 0': name it, or", csv, path, target="y", noise=0.1)


LABELLED = {"id": np.arange(40), "z": np.arange(40)[::-1] * 10, "patient_ID": LABELS, "No": LABELS}
LABELLED["year"] = np.delete(np.arange(60), np.arange(20) * 2)


@pytest.mark.parametrize("name", LABELLED)
def test_a_label_of_rows_is_no_feature_unless_it_is_named(path, name):
    written(path, {name: LABELLED[name], **PLAIN})
    message = rf"column '{name}' of .*table\.csv numbers or labels the rows: leave it out \(the op"
    options = {"target": "y", "noise": {"x1": 0.1}}
    raises(message, csv, path, **options)
    parts = chunks([pd.read_csv(path)], **options)
    raises(f"column '{name}' of chunk 0 numbers or labels the rows", list, parts)
    assert csv(path, target="y", noise=0.1, features=[name, "x1"]).names == (name, "x1")
    assert csv(path, target="y", noise={name: 0.1}).names == (name, "x1", "x2")


@pytest.mark.parametrize(
    "column",
    [{"price": LABELS * 1000}, {"id": np.arange(40) % 39}, {"grid": np.arange(40) / 10}],
    ids=lambda column: next(iter(column)),
)
def test_other_columns_are_features(path, column):
    assert len(csv(written(path, {**column, **PLAIN}), target="y", noise=0.1).names) == 3


@pytest.mark.parametrize("codes", [["-999"], -999, ["-999.0", "?"]])
def test_rows_with_missing_values_are_left_out(path, codes):
    cells = {name: list(column) for name, column in PLAIN.items()}
    cells["x1"][3], cells["x1"][4], cells["x2"][4], cells["y"][7] = "-999", "NA", "", "-999.00"
    written(path, {"note": ["a"] * 40, **cells})
    options = {"target": "y", "noise": 0.1, "drop": ["note"]}
    raises(r"lacks values of 'x1', 'x2' in 1 of .* missing=\[\]", csv, path, **options)
    with pytest.warns(UserWarning, match=r"3 of 40 rows are left out, .* of 'x1', 'x2', 'y'$"):
        table = csv(path, missing=codes, **options)
    np.testing.assert_allclose(table.x[:, 0], np.delete(X, [3, 4, 7], axis=0), rtol=1e-12)
    np.testing.assert_allclose(table.y, np.delete(Y, [3, 4, 7]), rtol=1e-12)
    assert [*table.index] == [k for k in range(40) if k not in (3, 4, 7)]


@pytest.mark.parametrize(("code", "found"), [(-999, True), (99, True), (-998, False), (3, False)])
def test_a_code_of_missing_values_does_not_pass_for_a_number_in_silence(path, code, found):
    values = X[:, 0].copy()
    values[[3, 5]] = code
    written(path, PLAIN | {"x1": values})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        csv(path, target="y", noise=0.1)
    assert [f"has {code} far from all" in str(w.message) for w in caught] == [True] * found


def test_standard_deviations_by_row(path):
    written(path, {"x1": X[:, 0], "sd": SD, "x2": X[:, 1], "y": Y})
    wanted = from_arrays(X, Y, noise=nj.sd(np.stack([SD, 0 * SD], axis=1)))
    options = {"target": "y", "noise": {"x1": nj.sd(column="sd")}}
    table = csv(path, **options)
    assert table.names == ("x1", "x2")
    np.testing.assert_allclose(table.cov, wanted.cov, rtol=1e-6)
    part = next(iter(chunks([pd.read_csv(path)[:30]], **options)))
    np.testing.assert_array_equal(part.cov, table.cov[:30])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 0.1, "features": ["x9"]}, "has no column named 'x9'; it has 'x1', 'sd', 'x2'"),
        ({"noise": 0.1, "drop": ["x1", "x2", "sd"]}, "has no feature beside the target 'y'"),
        ({"noise": {"x2": 0.1}, "features": ["x1"]}, "has no feature 'x2'; it has 'x1'"),
        ({"noise": {"x1": nj.sd(column="x9")}}, "has no column named 'x9'"),
        ({"noise": {"x9": nj.sd(column="sd")}}, "has no feature 'x9'"),
        ({"replicates": {"x1": "sd"}, "noise": 0.1}, "column 'x2' has noise but no rep"),
        ({"noise": {"x1": nj.sd(column="x2")}}, r"column 'x2' of .*csv must be finite and >= 0"),
    ],
)
def test_contradictions_give_one_clear_line(path, options, message):
    written(path, {"x1": X[:, 0], "sd": SD, "x2": X[:, 1], "y": Y})
    raises(message, csv, path, target="y", **options)


TABLE = "x1,x2,y,x1b\n1,2,3,1.5\n2,1,4,2.5\n3,5,6,2.5\n"


def test_a_csv_file_with_replicates(path):
    """A feature that has none is exact: its copies are equal."""
    path.write_text(TABLE)
    table = csv(path, target="y", replicates={"x1": "x1b"})
    assert table.names == ("x1", "x2")
    np.testing.assert_array_equal(table.x[0], [[1, 2], [1.5, 2]])
    assert table.means().cov[0].tolist() == [[0.0625, 0], [0, 0]]
    known = csv(path, target="y", replicates={"x1": "x1b"}, noise={"x1": 0.2})
    np.testing.assert_allclose(known.means().cov, [[0.1, 0], [0, 0]])


def test_a_csv_file_of_incomplete_replicates(path):
    """Empty cells of replicates are used as they are, also in chunks; other rows are left out."""
    copies = X[:, :1] + 0.1 * ROWS.normal(size=(40, 3))
    cells = {f"a{k}": list(copies[:, k]) for k in range(3)} | {"x2": list(X[:, 1]), "y": list(Y)}
    frame = {name: np.array(column) for name, column in cells.items()}
    for k in range(0, 40, 3):
        cells["a2"][k], frame["a2"][k] = "NA", np.nan
    written(path, cells)
    options = {"target": "y", "replicates": {"a": ["a0", "a1", "a2"]}}
    table = csv(path, **options)
    wanted = nj.table(frame, **options)
    assert table.names == wanted.names == ("a", "x2")
    agree(table, wanted, "x", "y", "cov", rtol=1e-12, atol=1e-15)
    chosen = csv(path, features=["x2", "a"], **options)
    assert chosen.names == ("x2", "a")
    np.testing.assert_array_equal(chosen.x[:, 0], table.x[:, 0, ::-1])
    parts = list(chunks(pd.read_csv(path, chunksize=25), **options))
    np.testing.assert_array_equal(np.concatenate([part.x for part in parts]), table.x)
    cells["x2"][5], cells["a0"][7], cells["a1"][9] = "", "", ""
    cells["a1"][9] = cells["a0"][9] = "-999"
    written(path, cells)
    raises(r"lacks values of 'x2' in 1 of 40 rows, first in row 5", csv, path, **options)
    with pytest.warns(UserWarning, match="2 of 40 rows are left out"):
        table = csv(path, missing=["-999"], **options)
    np.testing.assert_allclose(table.x[:, 0, 1], np.delete(X[:, 1], [5, 9]), rtol=1e-12)
    np.testing.assert_allclose(table.x[6, 0, 0], copies[7, 1:].mean())


def test_a_csv_file_of_subjects(path):
    """Their labels may be texts or numbers, and rows without a label are left out, or an error."""
    who = np.array([f"P{k // 2:03d}" for k in range(40)])
    columns = {"who": who, **PLAIN, "y": Y[np.arange(40) // 2 * 2]}
    options = {"target": "y", "replicates": ["x1", "x2"], "subject": "who"}
    wanted = from_arrays(X.reshape(20, 2, 2), Y[::2], names=["x1", "x2"])
    for labels in (who, np.arange(40) // 2 + 0.5):
        table = csv(written(path, columns | {"who": labels}), **options)
        agree(table, wanted, "x", "y", rtol=1e-12)
        assert [*table.index] == [*labels[::2]]
    written(path, columns | {"who": [*who[:39], ""]})
    raises("lacks values of 'who' in 1 of 40 rows, first in row 39", csv, path, **options)
    with pytest.warns(UserWarning, match="1 of 40 rows are left out"):
        table = csv(path, missing=[], **options)
    assert table.x.shape == (20, 1, 2)
    written(path, columns | {"y": Y})
    raises("'y' differs between rows 0 and 1 of subject 'P000'", csv, path, **options)


def test_a_deviation_of_the_mean_is_that_of_a_row_whose_first_copy_is_missing():
    """A missing copy has none where each copy has its own; of a feature, each row has one."""
    x = np.r_[np.nan, np.arange(11.0) ** 1.3]
    frame = {"y": np.arange(12.0) % 5, "x": x, "x2": np.r_[3.0, x[1:] + 0.1], "s": np.full(12, 0.2)}
    options = {"target": "y", "replicates": {"x": ["x2"]}, "noise": {"x": nj.sd(column="s")}}
    cov = nj.table(frame, **options).means().cov[:, 0, 0]
    np.testing.assert_allclose(cov, np.r_[0.04, np.full(11, 0.02)])
    frame["s"] = np.r_[np.nan, frame["s"][1:]]
    raises("column 's'", nj.table, frame, **options)
    options["noise"] = {"x": nj.sd(column="s"), "x2": nj.sd(column="t")}
    cov = nj.table(frame | {"t": np.full(12, 0.2)}, **options).means().cov[:, 0, 0]
    np.testing.assert_allclose(cov, np.r_[0.04, np.full(11, 0.02)])


def test_two_features_share_a_column_of_deviations_that_differ_within_a_subject():
    rng = np.random.default_rng(0)
    q = rng.normal(size=40)
    frame = {"id": np.repeat(np.arange(20), 2), "q": q, "r": q + 1, "y": np.repeat(q[::2], 2)}
    frame["s"] = rng.uniform(0.1, 0.3, 40)
    noise = {name: nj.sd(column="s") for name in "qr"}
    options = {"target": "y", "subject": "id", "replicates": ["q", "r"]}
    found = nj.table(frame, noise=noise, **options).means().cov
    variances = 1 / (1 / frame["s"].reshape(20, 2) ** 2).sum(axis=1)
    np.testing.assert_allclose(found[:, 0, 0], variances)
    np.testing.assert_allclose(found[:, 1, 1], variances)


def test_misclassification_of_one_of_several_recordings_is_refused():
    frame = {"y": np.arange(4.0), "a": list("xyxy"), "b": list("xxyy")}
    noise = {name: nj.noise.Misclassified([[0.9, 0.1], [0.1, 0.9]]) for name in "ab"}
    options = {"target": "y", "replicates": {"o": ["a", "b"]}, "noise": noise}
    raises("name the feature, whose replicates", nj.table, frame, **options)
