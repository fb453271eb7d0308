"""Columns by their names, in files and frames: features, labels of rows, missing values."""

import warnings

import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import chunks, csv
from tests.errors import raises
from tests.files import written

ROWS = np.random.default_rng(0)
X = ROWS.normal(size=(40, 2))
Y = X @ [2.0, -1.0]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table.csv"


PLAIN = {"x1": X[:, 0], "x2": X[:, 1], "y": Y}


def test_a_column_without_a_name_can_be_left_out(path):
    """As pandas and R write row names."""
    written(path, **{"": np.arange(40)}, **PLAIN)
    assert csv(path, target="y", noise=0.1, features=["x1", "x2"]).names == ("x1", "x2")
    assert csv(path, target="y", noise=0.1, drop="Unnamed: 0").names == ("x1", "x2")
    assert csv(path, target="y", noise=0.1, index_col=0).names == ("x1", "x2")
    raises("no name for its column 'Unnamed: 0': name it, or", csv, path, target="y", noise=0.1)


def test_a_label_of_rows_is_no_feature_unless_it_is_named(path):
    """`test_roles.py` says which columns are labels."""
    name = "year"
    written(path, year=np.delete(np.arange(60), np.arange(20) * 2), **PLAIN)
    message = r"column 'year' of .*table\.csv numbers or labels the rows: leave it out \(the op"
    options = {"target": "y", "noise": {"x1": 0.1}}
    raises(message, csv, path, **options)
    parts = chunks([pd.read_csv(path)], **options)
    raises(f"column '{name}' of chunk 0 numbers or labels the rows", list, parts)
    assert csv(path, target="y", noise=0.1, features=[name, "x1"]).names == (name, "x1")
    assert csv(path, target="y", noise={name: 0.1}).names == (name, "x1", "x2")


@pytest.mark.parametrize("codes", [-999, ["-999.0", "?"]])
def test_rows_with_missing_values_are_left_out(path, codes):
    cells = {name: list(column) for name, column in PLAIN.items()}
    cells["x1"][3], cells["x1"][4], cells["x2"][4], cells["y"][7] = "-999", "NA", "", "-999.00"
    written(path, note=["a"] * 40, **cells)
    options = {"target": "y", "noise": 0.1, "drop": ["note"]}
    raises(r"lacks values of 'x1', 'x2' in 1 of .* missing=\[\]", csv, path, **options)
    with pytest.warns(UserWarning, match=r"3 of 40 rows are left out, .* of 'x1', 'x2', 'y'$"):
        table = csv(path, missing=codes, **options)
    np.testing.assert_allclose(table.x[:, 0], np.delete(X, [3, 4, 7], axis=0), rtol=1e-12)
    np.testing.assert_allclose(table.y, np.delete(Y, [3, 4, 7]), rtol=1e-12)
    assert [*table.index] == [k for k in range(40) if k not in (3, 4, 7)]


@pytest.mark.parametrize(("code", "found"), [(-999, True), (99, True), (-998, False)])
def test_a_code_of_missing_values_does_not_pass_for_a_number_in_silence(path, code, found):
    values = X[:, 0].copy()
    values[[3, 5]] = code
    written(path, **PLAIN | {"x1": values})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        csv(path, target="y", noise=0.1)
    assert [f"has {code} far from all" in str(w.message) for w in caught] == [True] * found


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
