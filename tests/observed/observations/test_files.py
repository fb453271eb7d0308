"""Chunks of CSV and NumPy files: they hold the rows of the whole table."""

import csv

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import chunks

ROWS = np.random.default_rng(0)
X, Y = ROWS.normal(size=(23, 3)), ROWS.normal(size=23)


def joined(parts):
    """The arrays of chunks, one after another, and their lengths."""
    parts = list(parts)
    names = ("x", "y")
    return *(np.concatenate([getattr(p, n) for p in parts]) for n in names), [*map(len_of, parts)]


def len_of(part):
    return len(part.y)


@pytest.fixture
def path(tmp_path):
    """Quoted cells, a quoted line break in a name, blank lines, a byte order mark."""
    lines = [f'"{a}",{b},{c},"{y}"' for (a, b, c), y in zip(X.tolist(), Y.tolist(), strict=True)]
    lines[3] += "\n\n"
    text = '"x\n1",x2,x3,y\n' + "\n".join(lines) + "\n\n"
    (tmp_path / "table.csv").write_text("\ufeff" + text, encoding="utf-8")
    return tmp_path / "table.csv"


@pytest.fixture
def arrays(tmp_path):
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    return tmp_path / "x.npy", tmp_path / "y.npy"


@pytest.mark.parametrize("rows", [1, 10, 23, 100])
def test_chunks_of_files_hold_the_rows_of_the_table(path, arrays, rows):
    noise = nj.noise.Gaussian([0.1, 0.2, 0.0], mean=1.0)
    whole = nj.observations.csv(path, target="y", noise=noise)
    lengths = [rows] * (23 // rows) + [23 % rows] * (23 % rows > 0)
    for table in (
        chunks(path, target="y", noise=noise, rows=rows),
        chunks(*arrays, noise=noise, rows=rows),
    ):
        for _ in range(2):  # they can be gone through again
            x, y, found = joined(table)
            np.testing.assert_array_equal(x, whole.x)
            np.testing.assert_array_equal(y, whole.y)
            assert found == lengths
        x, y, found = joined(table.after(3))
        np.testing.assert_array_equal(x, whole.x[3:])
        assert found[0] == min(rows, 20)
    first = next(iter(chunks(path, target="y", noise={"x3": 0.5})))
    assert first.names == ("x\n1", "x2", "x3")
    np.testing.assert_array_equal(first.cov, np.diag([0, 0, 0.5]))


def test_replicates(path, tmp_path):
    whole = nj.observations.csv(path, target="y", replicates={"x2": "x3"})
    table = chunks(path, target="y", replicates={"x2": "x3"}, rows=10)
    np.testing.assert_array_equal(joined(table)[0], whole.x)
    np.save(tmp_path / "x.npy", whole.x)
    np.save(tmp_path / "y.npy", Y)
    table = chunks(tmp_path / "x.npy", tmp_path / "y.npy", rows=10)
    np.testing.assert_array_equal(joined(table)[0], whole.x)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.int16, ">f8"])
def test_numpy_files_of_other_types(tmp_path, order, kind):
    x, y = (100 * X).astype(kind, order=order), Y.astype(kind)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    found = joined(chunks(tmp_path / "x.npy", tmp_path / "y.npy", noise=0.0, rows=9))
    np.testing.assert_array_equal(found[0][:, 0], x.astype(np.float64))
    np.testing.assert_array_equal(found[1], y.astype(np.float64))


def test_missing_values_may_be_in_any_chunk(tmp_path):
    x = np.where(ROWS.uniform(size=X.shape) < 0.3, np.nan, X)
    with open(tmp_path / "table.csv", "w", newline="") as file:
        rows = np.column_stack([x, Y]).tolist()
        csv.writer(file).writerows([["a", "b", "c", "y"], *rows])
    table = chunks(tmp_path / "table.csv", target="y", noise=nj.noise.Missing(0.7), rows=12)
    for part, raw in zip(table, (x[:12], x[12:]), strict=True):
        assert part.cov.shape == (len(raw), 3, 3)
        np.testing.assert_allclose(part.x[:, 0][np.isnan(raw[:, 0]), 0], np.nanmean(raw[:, 0]))


def test_a_text_cell_in_a_later_chunk_is_named_by_file_and_line(path):
    text = path.read_text("utf-8").replace(str(X[17, 1]), "tall")
    path.write_text(text, encoding="utf-8")
    table = iter(chunks(path, target="y", noise=0.1, rows=10))
    next(table)
    # The name has two lines, and there are two blank ones.
    with pytest.raises(ValueError, match=r"table\.csv, line 22, column 'x2': 'tall' is not a fin"):
        next(table)


def test_a_missing_value_in_a_later_chunk_is_named_by_file_and_row(arrays):
    x = X.copy()
    x[17, 1] = np.nan
    np.save(arrays[0], x)
    table = iter(chunks(*arrays, noise=0.1, rows=10))
    next(table)
    message = r"x\.npy, rows from 10 on: x must be finite, but x\[7, 1\] is nan"
    with pytest.raises(ValueError, match=message):
        next(table)


def test_lengths_must_match(arrays):
    np.save(arrays[1], Y[:-1])
    with pytest.raises(ValueError, match=r"x\.npy has shape \[23, 3\], but .*y\.npy has \[22\]: "):
        list(chunks(*arrays, noise=0.1))


@pytest.mark.parametrize("content", [b"", b"x1,x2\n1,2\n", "truncated"])
def test_other_files_are_named(arrays, content):
    content = arrays[0].read_bytes()[:-8] if content == "truncated" else content
    arrays[0].write_bytes(content)
    with pytest.raises(ValueError, match=r"x\.npy is not a NumPy file of an array of numbers: "):
        list(chunks(*arrays, noise=0.1))


def test_files_that_became_shorter_are_an_error(path, arrays):
    for table in (chunks(path, target="y", noise=0.1), chunks(*arrays, noise=0.1)):
        assert list(table.after(23)) == []
        with pytest.raises(ValueError, match="has 23 rows, but 24 were read before"):
            list(table.after(24))


@pytest.mark.parametrize(
    ("names", "arguments", "error", "message"),
    [
        (("none.csv",), {"target": "y"}, FileNotFoundError, "No such file.*none.csv"),
        (("x.npy", "none.npy"), {}, FileNotFoundError, "No such file.*none.npy"),
        (("x.txt",), {}, ValueError, "end of the file's name must be '.csv' or '.npy', got '.txt'"),
        (("table.csv",), {}, ValueError, "name its column by target="),
        (("table.csv", "y.npy"), {"target": "y"}, ValueError, "give no other file"),
        (("x.npy",), {}, ValueError, r'two, such as chunks\("x.npy", "y.npy"\)'),
        (("x.npy", "y.npy"), {"rows": 0}, ValueError, "rows must be a whole number of at least 1"),
        (
            ("x.npy", "y.npy"),
            {"noise": nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(np.ones(23, np.float32)))},
            ValueError,
            "must be the same in all rows; for one a row, pass a list of tables",
        ),
        (("x.npy", "y.npy"), {"cross_cov": np.ones((23, 3))}, ValueError, "the same in all rows"),
    ],
)
def test_wrong_arguments_give_one_clear_line(path, arrays, names, arguments, error, message):
    with pytest.raises(error, match=message) as caught:
        chunks(*(path.parent / name for name in names), **{"noise": 0.1} | arguments)
    assert "\n" not in str(caught.value)


def test_arrays_in_place_of_files_are_named(path):
    with pytest.raises(ValueError, match=r"path must be a file's path, got .*; see from_arrays"):
        chunks(X, Y, noise=0.1)
    with pytest.raises(ValueError, match=r"y must be a file's path, got .*; see from_arrays"):
        chunks(path.parent / "x.npy", Y, noise=0.1)


def test_a_table_of_no_rows_is_an_error(arrays, path):
    np.save(arrays[0], X[:0])
    np.save(arrays[1], Y[:0])
    path.write_text("x1,x2,y\n")
    for table in (chunks(*arrays, noise=0.1), chunks(path, target="y", noise=0.1)):
        with pytest.raises(ValueError, match=r"has a header but no rows|at least one chunk"):
            nj.fit(table)
