"""Chunks of Parquet and Arrow files give the same tables and fits as those of a CSV file."""

import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.observed.observations.files import FORMATS
from tests.errors import raises
from tests.observed.rows import agree

pyarrow = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

N = 1000
ROWS = np.random.default_rng(0)
CLEAN = ROWS.normal(size=N)
FRAME = pd.DataFrame(
    {f"a{v}": CLEAN + 0.5 * ROWS.normal(size=N) for v in range(3)}
    | {"age": 40 + CLEAN + ROWS.normal(size=N), "y": CLEAN + 0.1 * ROWS.normal(size=N)}
)
FRAME.loc[FRAME.index[::3], "a2"] = np.nan
OPTIONS = {"target": "y", "replicates": {"a": ["a0", "a1", "a2"]}, "rows": 300}


def written(folder, end, frame=FRAME):
    """A file of groups of 70 rows, which are not the rows of a chunk."""
    path, table = folder / f"rows{end}", pyarrow.Table.from_pandas(frame, preserve_index=False)
    if end == ".parquet":
        parquet.write_table(table, path, row_group_size=70)
        return path
    with pyarrow.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    return path


@pytest.mark.parametrize("end", FORMATS)
def test_chunks_are_those_of_the_same_csv_file(tmp_path, end):
    FRAME.to_csv(tmp_path / "rows.csv", index=False)
    files = written(tmp_path, end), tmp_path / "rows.csv"
    tables = [list(nj.observations.chunks(path, **OPTIONS)) for path in files]
    assert [len(one.y) for one in tables[0]] == [300, 300, 300, 100]
    for one, other in zip(*tables, strict=True):
        assert (one.names, one.target) == (other.names, other.target)
        agree(one, other, "x", "cov", rtol=0)
    fits = [nj.fit(nj.observations.chunks(path, **OPTIONS)) for path in files]
    np.testing.assert_array_equal(fits[0].std_error, fits[1].std_error)


def test_wrong_files_give_one_clear_line(tmp_path):
    path = written(tmp_path, ".parquet")
    with pytest.raises(ValueError, match="sep, decimal and missing are for CSV files"):
        nj.observations.chunks(path, sep=";", **OPTIONS)
    with pytest.raises(ValueError, match=r"a \.parquet file holds y: name its column by target="):
        nj.observations.chunks(path, noise=0.1)
    path = written(tmp_path, ".parquet", FRAME.assign(sex=np.where(CLEAN > 0, "f", "m")))
    message = r"has the categories 'sex\[f\]', of which a chunk may lack"
    raises(message, nj.fit, nj.observations.chunks(path, **OPTIONS))
    path.write_bytes(b"no parquet")
    raises(r"rows\.parquet is not such a file", nj.fit, nj.observations.chunks(path, **OPTIONS))
