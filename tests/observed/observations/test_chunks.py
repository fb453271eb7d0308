"""Chunks of data frames: the rows of the whole table, also of files larger than the memory."""

import functools
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations import chunks
from tests.errors import raises
from tests.running import outputs

N = 1000
ROWS = np.random.default_rng(0)
CLEAN = ROWS.normal(size=N)
FRAME = pd.DataFrame(
    {f"a{v}": CLEAN + 0.5 * ROWS.normal(size=N) for v in range(3)}
    | {"age": 40 + CLEAN + ROWS.normal(size=N), "y": CLEAN + 0.1 * ROWS.normal(size=N)}
)
FRAME["e"] = np.where(np.arange(N) % 2, 0.49, 0.51)
GAPS = FRAME.copy()
GAPS.loc[GAPS.index[::3], "a2"] = np.nan
KNOWN = {
    "variance": {"noise": {"a0": 0.25}, "drop": ["a1", "a2", "e"]},
    "by row": {"noise": {"a0": nj.sd(column="e")}, "drop": ["a1", "a2"]},
    "replicates": {"replicates": {"a": ["a0", "a1", "a2"]}, "drop": ["e"]},
    "a covariance": {"noise": nj.noise.Gaussian([0.25, 0.0]), "features": ["a0", "age"]},
}


def by_pandas(frame, rows):
    return pd.read_csv(io.StringIO(frame.to_csv(index=False)), chunksize=rows)


def batches(frame, rows):
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=rows)


def slices(kind, frame, rows):
    return [kind(frame[start : start + rows]) for start in range(0, len(frame), rows)]


def mapping(frame):
    return {name: frame[name].to_numpy() for name in frame}


SOURCES = {
    "pandas.read_csv": by_pandas,
    "pyarrow": batches,
    "frames": functools.partial(slices, lambda part: part),
    "mappings": functools.partial(slices, mapping),
    "polars": functools.partial(slices, lambda part: pytest.importorskip("polars").DataFrame(
        mapping(part))),
}  # fmt: skip


@pytest.mark.parametrize(
    ("known", "source"),
    [*zip(KNOWN, SOURCES, strict=False), ("variance", "polars")],
)
def test_chunks_are_the_rows_of_the_table(known, source):
    frame, rows = GAPS if known == "replicates" else FRAME, 320
    parts = list(chunks(SOURCES[source](frame, rows), target="y", **KNOWN[known]))
    assert [len(one.y) for one in parts] == [320, 320, 320, 40]
    whole = nj.table(frame, target="y", **KNOWN[known])
    for name in ("x", "y"):
        found = np.concatenate([getattr(one, name) for one in parts])
        np.testing.assert_allclose(found, getattr(whole, name), rtol=1e-12)
    assert {(one.names, one.target) for one in parts} == {(whole.names, "y")}


def test_lists_can_be_gone_through_again_and_iterators_once():
    table = chunks([FRAME, FRAME[:0], FRAME], target="y", **KNOWN["variance"])
    assert [len(list(table)) for _ in range(2)] == [2, 2]
    table = chunks(by_pandas(FRAME, 500), target="y", **KNOWN["variance"])
    nj.fit(table)
    raises("an iterator, such as .* can be gone through once", nj.fit, table)


def wrong(cell):
    """The fit of chunks, of which the third has this cell in its row 5."""
    frame = FRAME[["a0", "age", "y"]].astype(object)
    frame.loc[605, "age"] = cell
    return nj.fit(chunks(by_pandas(frame, 300), target="y", noise={"a0": 0.25}))


ONE = {"target": "y", "noise": {"a0": 0.25}}
SEXES = FRAME.assign(sex=np.where(CLEAN > 0, "f", "m"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wrong(""), r"^chunk 2: column 'age' must be finite, but column 'age'\[5\] is nan"),
        (lambda: nj.fit(chunks([SEXES], **ONE)), r"chunk 0 has the categories 'sex\[f\]', of wh"),
        (lambda: nj.fit(chunks([FRAME[:0]], **ONE)), "must be at least one chunk, got none"),
        (lambda: nj.fit(chunks([FRAME, FRAME[["a0", "y"]]], **ONE)), "all chunks must have the co"),
        (lambda: chunks("rows.csv", **ONE), r"the path 'rows.csv': chunks\(pandas.read_csv\(path,"),
        (lambda: chunks(FRAME, **ONE), "one data frame is for nj.table"),
        (lambda: chunks(CLEAN, **ONE), "arrays are for nj.observations.from_arrays"),
        (lambda: chunks([FRAME], noise={"a0": 0.25}), "name y's column by target="),
        (lambda: chunks([FRAME], target="y", noise={"a0": nj.reliability(0.5)}), "read the table"),
        (lambda: chunks([FRAME], target="y", subject="e", replicates=["a0"]), "rows of one sub"),
        (lambda: chunks([FRAME], target="y", noise=nj.sd(np.ones((N, 2)))), "for one a row, pass"),
        (lambda: chunks([FRAME], cross_cov=np.ones((N, 2)), **ONE), "the same in all rows"),
    ],
)
def test_wrong_arguments_and_chunks_give_one_clear_line(call, message):
    raises(message, call)


STREAM = """
import re
import sys
from pathlib import Path

import jax
import pandas

import noisy_jax as nj

frames = pandas.read_csv("table.csv", chunksize=10_000)
table = nj.observations.chunks(frames, target="y", noise=0.25)
if sys.argv[1] == "fit":
    print(nj.fit(table).num_rows)
else:
    learner = nj.learners.corrected_ftrl(nj.moments.known_covariance(), solve_every=64)
    print(nj.learn(learner, table, jax.random.key(0)).num_rows)
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's /proc")
@pytest.mark.parametrize("kind", ["fit", "learn"])
def test_peak_memory_does_not_grow_with_the_number_of_rows(tmp_path, start, kind):
    peaks = []
    for rows in (50_000, 500_000):
        folder = tmp_path / str(rows)
        folder.mkdir()
        x = np.random.default_rng(0).normal(size=(rows, 5))
        frame = pd.DataFrame(x, columns=list("abcde")).assign(y=x @ [1.0, -2.0, 0.5, 0.0, 3.0])
        frame.to_csv(folder / "table.csv", index=False, float_format="%.9g")
        (printed,) = outputs(start(STREAM, folder, kind, shared=False))
        peaks.append(int(re.findall(r"\d+", printed)[-1]))
    print(f"{kind}: {peaks[0]:,} kB for 50,000 rows, {peaks[1]:,} kB for 500,000")
    assert peaks[1] < 1.1 * peaks[0] + 5_000
