"""Chunks of CSV and NumPy files: the rows of the whole table, also a million of them."""

from pathlib import Path

import jax
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import chunks
from tests.errors import raises
from tests.observed.rows import written as saved
from tests.running import outputs

ROWS = np.random.default_rng(0)
X, Y = ROWS.normal(size=(23, 3)), ROWS.normal(size=23)


def joined(parts):
    """The arrays of chunks, one after another, and their lengths."""
    parts = list(parts)
    x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y"))
    return x, y, [len(part.y) for part in parts]


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
    saved(tmp_path, X, Y)
    return tmp_path / "x.npy", tmp_path / "y.npy"


@pytest.mark.parametrize("rows", [1, 10, 23, 100])
def test_chunks_of_files_hold_the_rows_of_the_table(path, arrays, rows):
    noise = nj.noise.Gaussian([0.1, 0.2, 0.0], mean=1.0)
    whole = nj.observations.csv(path, target="y", noise=noise)
    options = {"noise": noise, "rows": rows}
    for table in (chunks(path, target="y", **options), chunks(*arrays, **options)):
        for _ in range(2):  # they can be gone through again
            x, y, found = joined(table)
            np.testing.assert_array_equal(x, whole.x)
            np.testing.assert_array_equal(y, whole.y)
            assert found == [rows] * (23 // rows) + [23 % rows] * (23 % rows > 0)
    first = next(iter(chunks(path, target="y", noise={"x3": 0.5})))
    assert first.names == ("x\n1", "x2", "x3")
    np.testing.assert_array_equal(first.cov, np.diag([0, 0, 0.5]))


def test_replicates(path, arrays):
    whole = nj.observations.csv(path, target="y", replicates={"x2": "x3"})
    np.save(arrays[0], whole.x)
    table = chunks(path, target="y", replicates={"x2": "x3"}, rows=10)
    for one in (table, chunks(*arrays, rows=10)):
        np.testing.assert_array_equal(joined(one)[0], whole.x)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", [np.float32, np.int16, ">f8"])
def test_numpy_files_of_other_types(tmp_path, order, kind):
    x, y = (100 * X).astype(kind, order=order), Y.astype(kind)
    found = joined(saved(tmp_path, x, y, noise=0.0, rows=9))
    np.testing.assert_array_equal(found[0][:, 0], x.astype(np.float64))
    np.testing.assert_array_equal(found[1], y.astype(np.float64))


def test_a_wrong_cell_in_a_later_chunk_is_named_by_file_and_place(path, arrays):
    """The name of a column has two lines, and there are two blank ones."""
    path.write_text(path.read_text("utf-8").replace(str(X[17, 1]), "tall"), encoding="utf-8")
    np.save(arrays[0], np.where(X[17, 1] == X, np.nan, X))
    options = {"noise": 0.1, "rows": 10}
    for table, message in (
        (chunks(path, target="y", **options), r"\.csv, line 22, column 'x2': 'tall' is not a fin"),
        (chunks(*arrays, **options), r"x\.npy, rows from 10 on: x must be .* x\[7, 1\] is nan"),
    ):
        parts = iter(table)
        next(parts)
        raises(message, next, parts)


def test_lengths_must_match(arrays):
    np.save(arrays[1], Y[:-1])
    message = r"x\.npy has shape \[23, 3\], but .*y\.npy has \[22\]: "
    raises(message, list, chunks(*arrays, noise=0.1))


@pytest.mark.parametrize("content", [b"", b"x1,x2\n1,2\n", "truncated"])
def test_other_files_are_named(arrays, content):
    content = arrays[0].read_bytes()[:-8] if content == "truncated" else content
    arrays[0].write_bytes(content)
    raises(r"x\.npy is not a NumPy file of an array of numbers: ", list, chunks(*arrays, noise=0.1))


BY_ROW = nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(np.ones(23, np.float32)))


@pytest.mark.parametrize(
    ("names", "arguments", "error", "message"),
    [
        (("none.csv",), {"target": "y"}, FileNotFoundError, "No such file.*none.csv"),
        (("x.npy", "none.npy"), {}, FileNotFoundError, "No such file.*none.npy"),
        (("x.txt",), {}, ValueError, "end of the file's name must be '.csv', .* got '.txt'"),
        (("table.csv",), {}, ValueError, "name its column by target="),
        (("table.csv", "y.npy"), {"target": "y"}, ValueError, "give no other file"),
        (("x.npy",), {}, ValueError, r'two, such as chunks\("x.npy", "y.npy"\)'),
        (("x.npy", "y.npy"), {"rows": 0}, ValueError, "rows must be a whole number of at least 1"),
        (("x.npy", "y.npy"), {"noise": BY_ROW}, ValueError, "for one a row, pass a list of tables"),
        ((X, Y), {}, ValueError, "path must be a file's path, got .*; see from_arrays"),
        (("x.npy", Y), {}, ValueError, "y must be a file's path, got .*; see from_arrays"),
        (("x.npy", "y.npy"), {"drop": ["x1"]}, ValueError, "are for CSV files: leave them out"),
        (("x.npy", "y.npy"), {"cross_cov": np.ones((23, 3))}, ValueError, "the same in all rows"),
    ],
)
def test_wrong_arguments_give_one_clear_line(path, arrays, names, arguments, error, message):
    files = (path.parent / one if isinstance(one, str) else one for one in names)
    with pytest.raises(error, match=message) as caught:
        chunks(*files, **{"noise": 0.1} | arguments)
    assert "\n" not in str(caught.value)


def test_a_table_of_no_rows_is_an_error(tmp_path, path):
    path.write_text("x1,x2,y\n")
    for table in (saved(tmp_path, X[:0], Y[:0]), chunks(path, target="y", noise=0.1)):
        raises(r"has a header but no rows|at least one chunk", nj.fit, table)


STREAM = """
import hashlib
import re
import sys
from pathlib import Path

import jax
import numpy as np

import noisy_jax as nj

kind, form, rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {"noise": 0.25, "rows": rows}
if form == "csv":
    table = nj.observations.chunks("table.csv", target="y", **options)
else:
    table = nj.observations.chunks("x.npy", "y.npy", **options)
if kind == "fit":
    result = nj.fit(table)
    kept = vars(result) | {"uncorrected": vars(result.uncorrected), "risk": vars(result.risk)}
else:
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    result = nj.learn(learner, table, jax.random.key(0))
    kept = [result.state, result.risk, result.risk_std_error, result.variance, result.scale]
digest = hashlib.sha256()
for leaf in jax.tree.leaves(kept):
    leaf = np.asarray(leaf)
    digest.update(leaf.tobytes() if leaf.dtype.kind in "fi" else str(leaf).encode())
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(digest.hexdigest())
"""


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1_000_000, 5))
    y = x @ [1.0, -2.0, 0.5, 0.0, 3.0] + 0.1 * rng.normal(size=len(x))
    return x + 0.5 * rng.normal(size=x.shape), y


def written(folder, x, y, form):
    folder.mkdir()
    if form == "csv":
        options = {"delimiter": ",", "comments": "", "header": "a,b,c,d,e,y", "fmt": "%.9g"}
        np.savetxt(folder / "table.csv", np.column_stack([x, y]), **options)
    else:
        np.save(folder / "x.npy", x)
        np.save(folder / "y.npy", y)
    return folder


SCALE = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")


@SCALE
@pytest.mark.long
@pytest.mark.parametrize("form", ["npy", "csv"])
def test_peak_memory_does_not_grow_with_the_number_of_rows(tmp_path, start, rows, form):
    x, y = rows
    few = written(tmp_path / "few", x[:50_000], y[:50_000], form)
    count = {"npy": 1_000_000, "csv": 250_000}[form]
    many = written(tmp_path / "many", x[:count], y[:count], form)
    for kind in ("fit", "learn"):
        words = kind, form, 10_000
        running = (start(STREAM, folder, *words, shared=False) for folder in (few, many))
        peaks = [int(outputs(process)[0].splitlines()[-2]) for process in running]
        print(f"{kind}, {form}: {peaks[0]:,} kB for 50,000 rows, {peaks[1]:,} kB for {count:,}")
        assert peaks[1] < 1.1 * peaks[0] + 5_000
