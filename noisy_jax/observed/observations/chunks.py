"""Tables in parts: any iterable of data frames, with one at a time in memory."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from noisy_jax.noise import PerRound
from noisy_jax.observed.observations.columns import table_of
from noisy_jax.observed.observations.described import Reliability, StandardDeviation
from noisy_jax.observed.observations.frames import columns_of
from noisy_jax.observed.observations.roles import Columns
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation.messages import given, listed


def chunks(frames: Iterable[Any], **columns: Any) -> Chunks:
    """Makes a table of parts, for `nj.fit` and `nj.learn` on more rows than fit into memory.

    `nj.fit` takes chunks for linear fits alone. Both also take any iterable of tables that agree in
    their columns and noise, such as
    `(nj.observations.from_arrays(x[i : i + 9999], y[i : i + 9999], noise=0.1) for i in …)`.

    Args:
        frames: an iterable of data frames with the same columns, of any kind that `nj.table` takes,
            or of pyarrow's batches: `pandas.read_csv("big.csv", chunksize=65_536)`, or
            `pyarrow.parquet.ParquetFile("big.parquet").iter_batches(65_536)`. These are iterators
            that can be gone through once, as `fit` and `learn` do; a second call needs new ones. A
            chunk where no row has two replicates is joined to its neighbours, so spread such rows
            over the chunks.
        **columns: the arguments of `nj.table` on the columns: `target`, `noise`, `replicates`,
            `features`, `drop` and `cross_cov`; `subject`, `products`, `weights`, `clusters` and
            `exposure` are only for one table, read whole. The noise must be the same in all rows,
            or standard deviations in a column (`nj.sd(column=…)`); it cannot be an
            `nj.reliability`. Make indicators of categories before, since a chunk may lack some:
            texts raise ValueError.

    Returns:
        `Chunks`, an iterable of `Observations`, one for each frame that has rows.

    Raises:
        ValueError: an argument is not for chunks, or `frames` is one frame or a path. Errors in the
            columns of a frame are raised when it is read, and name the number of the chunk, from 0.

    Example:
        >>> import io, numpy as np, pandas, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=50_000)
        >>> rows = pandas.DataFrame({"x": x + rng.normal(size=50_000), "y": 2 * x})
        >>> file = io.StringIO(rows.to_csv(index=False))  # or the path of a file
        >>> frames = pandas.read_csv(file, chunksize=9999)
        >>> result = nj.fit(nj.observations.chunks(frames, target="y", noise={"x": 1.0}))
        >>> print(result.coefficients.round(1), result.uncorrected.coefficients.round(1))
        [2.] [1.]
    """
    if isinstance(frames, str | os.PathLike):
        raise ValueError(
            f"chunks takes data frames, got the path {os.fspath(frames)!r}: "
            "chunks(pandas.read_csv(path, chunksize=65_536), …), or of a Parquet file "
            "chunks(pyarrow.parquet.ParquetFile(path).iter_batches(65_536), …)"
        )
    whole = isinstance(frames, Mapping) or hasattr(frames, "columns") or hasattr(frames, "shape")
    if whole or not isinstance(frames, Iterable):
        raise ValueError(
            f"chunks takes an iterable of data frames, got {given(frames)}: one data frame is for "
            "nj.table, arrays are for nj.observations.from_arrays, and dask's frames for "
            "nj.observations.partitions"
        )
    return Chunks(frames, said_of_parts(columns))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Chunks:
    """The tables that `chunks` makes; `columns` holds its arguments on the columns."""

    frames: Iterable[Any]
    columns: Columns

    def __iter__(self) -> Iterator[Observations]:
        """The tables of the frames that have rows."""
        for number, frame in enumerate(self.frames):
            table = of_part(self.columns, frame, f"chunk {number}")
            if table is not None:
                yield table


def of_part(columns: Columns, frame: Any, where: str, *, whole: bool = True) -> Observations | None:
    """Returns the table of some rows, `None` without rows; ValueError says `where` they are.

    `whole` is as in `columns.table_of`.
    """
    by_name = isinstance(frame, Mapping)
    if not (any(map(np.size, frame.values())) if by_name else len(frame)):
        return None
    try:
        header, column, index = columns_of(frame)
        table = table_of(columns, columns.roles(header, where), column, where, index, whole=whole)
        check_no_categories(table, where)
    except ValueError as error:
        if where in str(error):
            raise
        raise ValueError(f"{where}: {error}") from error
    return table


def check_no_categories(table: Observations, where: str) -> None:
    """Raises ValueError if a part has indicators of categories, since it may lack a category."""
    misclassified = tuple(f"{categories.name}[" for categories in table.categories)
    plain = [indicator for indicator in table.references if not indicator.startswith(misclassified)]
    if plain:
        raise ValueError(
            f"{where} has the categories {listed(plain)}, of which a chunk may lack some: make "
            "them indicators, or drop them"
        )


def said_of_parts(columns: Mapping[str, Any]) -> Columns:
    """Returns the roles of columns; raises ValueError if a part of the rows does not show them."""
    said = Columns(**columns)
    by_name = said.noise.values() if isinstance(said.noise, Mapping) else [said.noise]
    if said.subject is not None or any(isinstance(stated, Reliability) for stated in by_name):
        raise ValueError(
            "chunks cannot hold rows of one subject apart, nor show the variance of a whole column "
            "(reliability): read the table by nj.csv, or give the variance of the error"
        )
    if said.beside:
        raise ValueError(
            f"chunks take no {listed([*said.beside])}: these are for one table, read whole"
        )
    by_row = isinstance(said.noise, StandardDeviation) and np.ndim(said.noise.value) > 1
    if by_row or isinstance(said.noise, PerRound) or np.ndim(said.cross_cov) > 1:
        raise ValueError(
            "the noise of chunks must be the same in all rows; for one a row, pass a list of "
            "tables by from_arrays"
        )
    return said
