"""Noisy tables from files: whole from CSV, in chunks from CSV, Parquet, Arrow and NumPy files."""

import dataclasses
import importlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noisy_jax.csv_files import Layout
from noisy_jax.noise import PerRound
from noisy_jax.observed.observations.arrays import Known, from_arrays
from noisy_jax.observed.observations.columns import Columns
from noisy_jax.observed.observations.described import Reliability, StandardDeviation, check_no_gaps
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation import choice, given, listed, whole


def csv(
    path: str | Path,
    *,
    target: str,
    noise: Known = None,
    replicates: Mapping[str, str | Sequence[str]] | str | Sequence[str] | None = None,
    subject: str | None = None,
    cross_cov: Any = None,
    std_error: Mapping[str, str] | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    sep: str = ",",
    decimal: str = ".",
    missing: Sequence[str] | None = None,
    products: Sequence[tuple[str, str]] = (),
    gaps: None = None,
) -> Observations:
    """Observations from a numeric CSV file with a header line.

    Args:
        path: the file; UTF-8, with a different name for each column.
        target: name of y's column.
        noise: as in `table`.
        replicates: as in `table`; cells of replicates may be empty, NA or NaN.
        subject: as in `table`.
        cross_cov: as in `from_arrays`, for the features in their order.
        std_error: another way to write `noise={feature: nj.sd(column=…), …}`, a mapping from
            features to these columns.
        features: names of the features; by default all columns that are not named as something
            else, in the order of the file.
        drop: in place of `features`, names of columns that are not read.
        sep: one character between cells.
        decimal: "." or ",", the decimal point.
        missing: cells that stand for missing values, such as ["-999"]; empty cells, NA and NaN then
            do too. Rows with one are left out with a warning, unless the row has another replicate.
            By default such cells are an error, except in replicates.
        products: as in `table`.
        gaps: as in `table`.

    Returns:
        `Observations`.

    Raises:
        ValueError: also if a feature without noise seems to number or label the rows, as in
            `table`.

    Example:
        >>> import tempfile, numpy as np
        >>> path = f"{tempfile.mkdtemp()}/rooms.csv"
        >>> np.savetxt(path, np.eye(4, 3), delimiter=",", header="size,age,price", comments="")
        >>> print(csv(path, target="price", noise={"size": 0.1}).cov)
        [[0.1 0. ]
         [0.  0. ]]
    """
    check_no_gaps(gaps)
    known = Columns(
        target=target,
        noise=noise,
        replicates=replicates,
        cross_cov=cross_cov,
        std_error=std_error,
        subject=subject,
        features=features,
        drop=drop,
        sep=sep,
        decimal=decimal,
        missing=missing,
        products=products,
    )
    return next(known.tables(path))


def chunks(
    path: str | Path, y: str | Path | None = None, *, rows: int = 65_536, **columns: Any
) -> "Chunks":
    """A table in files, read a chunk at a time: for `fit` and `learn` on more rows than fit memory.

    Chunks may also be any iterable of tables with the same columns and noise.

    Args:
        path: a CSV file as in `csv`; a Parquet or Arrow file (`.parquet`, `.arrow`, `.feather`;
            needs pyarrow, `pip install "noisy_jax[frames]"`); or a NumPy file (`.npy`, from
            `np.save`) of noisy features `[n, d]`, or `[n, V, d]` with replicates.
        y: NumPy file of the targets `[n]`, if `path` is one.
        rows: of a chunk; the last one may have fewer. Memory grows with it, not with the files.
        **columns: all arguments of `csv`; with Parquet and Arrow files not `sep`, `decimal` and
            `missing`, as they know which values are missing; with NumPy files only `noise`,
            `cross_cov` and `target`, a name to print. The noise must be the same in all rows.

    Returns:
        `Chunks`, which can be gone through as often as needed.

    Raises:
        ValueError: also while chunks are read, with the file and its row: a cell is not a number,
            or the two files differ in length.

    Example:
        >>> import tempfile, numpy as np, noisy_jax as nj
        >>> folder, rng = tempfile.mkdtemp(), np.random.default_rng(0)
        >>> x = rng.normal(size=(100_000, 1))
        >>> np.save(f"{folder}/x.npy", x + rng.normal(size=x.shape))
        >>> np.save(f"{folder}/y.npy", 2 * x[:, 0])
        >>> table = chunks(f"{folder}/x.npy", f"{folder}/y.npy", noise=1.0, rows=30_000)
        >>> print([len(chunk.y) for chunk in table])
        [30000, 30000, 30000, 10000]
        >>> result = nj.fit(table)
        >>> print(result.coefficients.round(1), result.uncorrected.coefficients.round(1))
        [2.] [1.]
    """
    for name, file in {"path": path, "y": y}.items():
        if not isinstance(file, str | os.PathLike | None) or path is None:
            raise ValueError(f"{name} must be a file's path, got {given(file)}; see from_arrays")
    kind = choice("the end of the file's name", Path(path).suffix, (".csv", ".npy", *FORMATS))
    whole("rows", rows)
    known = Columns(**columns)
    if kind != ".npy" and (known.target is None or y is not None):
        raise ValueError(
            f"a {kind} file holds y: name its column by target=, and give no other file"
        )
    if kind in FORMATS and known.layout != Layout(known.features, known.drop):
        raise ValueError("sep, decimal and missing are for CSV files: leave them out")
    if kind == ".npy" and (known.layout != Layout() or known.std_error is not None):
        raise ValueError(
            "std_error, features, drop, sep, decimal and missing are for CSV files: leave them out"
        )
    if kind == ".npy" and (y is None or known.replicates is not None):
        raise ValueError(
            'NumPy files are two, such as chunks("x.npy", "y.npy"), with replicates as x [n, V, d]'
        )
    check_parts(known)
    for file in (path, path if y is None else y):
        Path(file).stat()  # FileNotFoundError names it
    return Chunks(path, y, rows, known)


def table_of_part(
    known: Columns,
    header: Sequence[str],
    column: Callable[[str], Any],
    where: str,
    form: Layout | None = None,
) -> Observations:
    """As `Columns.table`, of a part of the rows; ValueError if it may lack some categories."""
    table = known.table(header, column, where, form or known.layout.checked())
    check_no_categories(table, where)
    return table


def check_no_categories(table: Observations, where: str) -> None:
    """Raises ValueError if a part has indicators of categories, of which it may lack some."""
    misclassified = tuple(f"{one.name}[" for one in table.categories)
    others = [one for one in table.references if not one.startswith(misclassified)]
    if others:
        raise ValueError(
            f"{where} has the categories {listed(others)}, of which a chunk may lack some: make "
            "them indicators, or drop them"
        )


def check_parts(known: Columns) -> None:
    """Raises ValueError if a part of the rows does not show what is known of the columns."""
    by_name = known.noise.values() if isinstance(known.noise, Mapping) else [known.noise]
    if known.subject is not None or any(isinstance(one, Reliability) for one in by_name):
        raise ValueError(
            "chunks cannot hold rows of one subject apart, nor show the variance of a whole column "
            "(reliability): read the table by nj.csv, or give the variance of the error"
        )
    if known.beside():
        raise ValueError(
            f"chunks take no {listed([*known.beside()])}: these are for one table, read whole"
        )
    by_row = isinstance(known.noise, StandardDeviation) and np.ndim(known.noise.value) > 1
    if by_row or isinstance(known.noise, PerRound) or np.ndim(known.cross_cov) > 1:
        raise ValueError(
            "the noise of chunks must be the same in all rows; for one a row, pass a list of "
            "tables by from_arrays"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Chunks:
    """The tables that `chunks` reads; `columns` holds what its arguments say of the columns."""

    path: str | Path
    y: str | Path | None
    rows: int
    columns: Columns

    def __iter__(self) -> Iterator[Observations]:
        """All chunks."""
        if self.y is not None:
            return self._of_arrays()
        if Path(self.path).suffix in FORMATS:
            parts = arrow_parts(self.path, self.rows)
            known, where = self.columns, str(self.path)
            return (table_of_part(known, p.column_names, p.__getitem__, where) for p in parts)
        return self.columns.tables(self.path, self.rows)

    def _of_arrays(self) -> Iterator[Observations]:
        shape, targets = _mapped(self.path).shape, _mapped(self.y).shape
        if len(targets) != 1 or shape[:1] != targets:
            raise ValueError(
                f"{self.path} has shape {list(shape)}, but {self.y} has {list(targets)}: there "
                "must be one target a row"
            )
        known = self.columns
        options = {"noise": known.noise, "target": known.target, "cross_cov": known.cross_cov}
        for start in range(0, targets[0], self.rows):
            part = slice(start, start + self.rows)
            x, y = (np.array(_mapped(file)[part]) for file in (self.path, self.y))
            try:
                table = from_arrays(x, y, **options)
            except ValueError as error:
                raise ValueError(f"{self.path}, rows from {start} on: {error}") from error
            yield table


def _mapped(path) -> np.ndarray:
    """The array in a NumPy file; only the parts that are used are read.

    It is opened for each chunk, since pages that were read count as memory until it is closed.
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise ValueError(f"{path} is not a NumPy file of an array of numbers: {error}") from error


FORMATS = {".parquet": "parquet", ".arrow": "ipc", ".feather": "feather"}
"""Ends of files' names, with what pyarrow calls what is in them."""


def arrow_parts(path: str | Path, rows: int) -> Iterator[Any]:
    """pyarrow tables of `rows` rows each; the last one may have fewer."""
    try:
        pyarrow, dataset = map(importlib.import_module, ("pyarrow", "pyarrow.dataset"))
    except ImportError:
        raise ValueError(
            f"{path} is read by the package pyarrow: install noisy_jax[frames]"
        ) from None
    try:
        data = dataset.dataset(path, format=FORMATS[Path(path).suffix])
        waiting = data.schema.empty_table()
        for batch in data.to_batches(batch_size=rows, batch_readahead=1, use_threads=False):
            waiting = pyarrow.concat_tables([waiting, pyarrow.Table.from_batches([batch])])
            while len(waiting) >= rows:
                yield waiting.slice(0, rows)
                waiting = waiting.slice(rows)
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} is not such a file: {' '.join(str(error).split())}") from error
    if len(waiting):
        yield waiting
