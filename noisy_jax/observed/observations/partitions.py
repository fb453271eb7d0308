"""Tables whose rows are on other machines, or are computed when they are needed, by dask."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from noisy_jax.observed.observations.chunks import of_part, said_of_parts
from noisy_jax.observed.observations.roles import Columns
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation.messages import given
from noisy_jax.validation.values import collected

_AT_ONCE = 16  # results that one task merges


def partitions(frame: Any, **columns: Any) -> Partitions:
    """Makes a table whose partitions stay where they are, on the workers of dask.

    `nj.fit` computes the sums that a linear fit needs (`nj.fits.moments`) of each partition on the
    worker that has it, and merges them. Intervals are by the jackknife. Only linear fits take
    partitions. Iteration yields the tables of the partitions, one after another, and so `nj.learn`
    takes them like chunks. Rows that may depend on each other should be in one partition.

    Args:
        frame: a `dask.dataframe.DataFrame`, or a list of `dask.delayed` data frames, of any kind
            that `nj.table` takes. Needs dask, `pip install "noisy_jax[dask]"`.
        **columns: the arguments of `nj.table` on the columns: `target`, `noise`, `replicates`,
            `features`, `drop` and `cross_cov`; `subject`, `products`, `weights`, `clusters` and
            `exposure` are only for one table, read whole. The noise must be the same in all rows,
            or standard deviations in a column (`nj.sd(column=…)`); it cannot be an
            `nj.reliability`. Make indicators of categories before, since a partition may lack some:
            texts raise ValueError. Name the columns to `drop`: unlike `nj.table`, it does not
            notice a column that numbers or labels the rows.

    Returns:
        `Partitions`, for `nj.fit` and `nj.learn`.

    Raises:
        ValueError: an argument is not for partitions, `frame` is not dask's, or dask is not
            installed. Errors in the columns are raised when a partition is read, and name its
            number, from 0. So is a partition where no row has two replicates, if these alone show
            the error.

    Example:
        >>> import numpy as np, pandas, noisy_jax as nj
        >>> import dask.dataframe
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=40_000)
        >>> rows = pandas.DataFrame({"x": x + rng.normal(size=40_000), "y": 2 * x})
        >>> frame = dask.dataframe.from_pandas(rows, npartitions=4)
        >>> table = nj.observations.partitions(frame, target="y", noise={"x": 1.0})
        >>> print(nj.fit(table).coefficients.round(1))
        [2.]
    """
    try:
        kind = importlib.import_module("dask.delayed").Delayed
    except ImportError:
        raise ValueError("partitions are read by dask: install noisy_jax[dask]") from None
    parts = frame.to_delayed() if hasattr(frame, "to_delayed") else collected(frame)
    parts = list(parts) if isinstance(parts, Sequence) and not isinstance(parts, str) else []
    if not parts or not all(isinstance(part, kind) for part in parts):
        raise ValueError(
            "partitions takes a dask DataFrame, or a list of delayed data frames, got "
            f"{given(frame)}; a data frame in memory is for nj.table"
        )
    return Partitions(parts, said_of_parts(columns))


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Partitions:
    """The result of `partitions`: delayed data frames, and the known errors of their columns."""

    parts: Sequence[Any]
    columns: Columns

    def __repr__(self) -> str:
        """The number of partitions."""
        return f"Partitions({len(self.parts)} partitions)"

    def __iter__(self) -> Iterator[Observations]:
        """The table of each partition that has rows, computed one after another."""
        for number, part in enumerate(self.parts):
            table = _of_part(None, self.columns, number, part.compute())
            if table is not None:
                yield table

    def reduced(self, function: Callable[[Observations], Any], merge: Callable[..., Any]) -> Any:
        """`function` of each partition's table, merged in their order, all of it on the workers.

        Args:
            function: function of a table.
            merge: function of two results of `function`.
        """
        delayed = importlib.import_module("dask").delayed
        pure, merged = (delayed(one, pure=True) for one in (_of_part, _merged))
        results = [
            pure(function, self.columns, number, part) for number, part in enumerate(self.parts)
        ]
        while len(results) > 1:
            starts = range(0, len(results), _AT_ONCE)
            results = [merged(merge, results[start : start + _AT_ONCE]) for start in starts]
        total = results[0].compute()
        if total is None:
            raise ValueError(f"no partition of {len(self.parts)} has a row")
        return total


def _of_part(function: Callable[..., Any] | None, columns: Columns, number: int, frame: Any) -> Any:
    """The function of the table of a data frame, or the table; `None` without rows."""
    table = of_part(columns, frame, f"partition {number}", whole=False)
    if function is None or table is None:
        return table
    if not table.shown():
        raise ValueError(
            f"partition {number}: no row has two copies of a column with replicates, which show "
            "its error: make larger partitions, as frame.repartition(npartitions=4), or give the "
            f"variance of one copy, as noise={{{table.names[0]!r}: 0.25}}"
        )
    return function(table)


def _merged(merge: Callable[..., Any], results: Sequence[Any]) -> Any:
    results = [result for result in results if result is not None]
    return functools.reduce(merge, results) if results else None
