"""What stands for a table in `fit`: one table, chunks, or parts that are elsewhere, by moments.

Something else gives a message with the right call.

Each part has moments in units of its own. With x' = a ∘ x + b and y' = αy + β, the moments of
(x', y') follow from the moments of (x, y) (`LinearMoments.moved`), so that parts are merged without
their rows.
"""

import dataclasses
import functools
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from noisy_jax.observed.fits.assumptions import doubts
from noisy_jax.observed.fits.doubts import Doubt
from noisy_jax.observed.fits.jackknife import (
    GroupSums,
    added,
    block_of,
    check_without_products,
    coarser,
    solved,
)
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.linear_moments import LinearMoments
from noisy_jax.observed.fits.normal_equations import check_known_matrix
from noisy_jax.observed.fits.units import Units
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.files import check_no_categories
from noisy_jax.observed.observations.partitions import Partitions
from noisy_jax.observed.observations.passes import check_alike
from noisy_jax.validation import given, instance


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TableMoments:
    """What a linear fit takes from a part of a table: its moments, by groups of rows.

    `moments` makes it, `nj.fit` takes one or a list of them. It can be pickled, and has the same
    size for any number of rows.

    Attributes:
        rows: number of rows.
        table: the names and the noise of the part, without its rows.
        doubts: what the rows show against the assumptions of the fit.
    """

    rows: int
    table: Observations
    doubts: tuple[Doubt, ...]
    _units: Units
    _ends: np.ndarray
    _groups: tuple[np.ndarray, ...]
    _blocks: int

    def __repr__(self) -> str:
        """The number of rows, and the columns."""
        return f"TableMoments({self.rows:,} rows of {', '.join(self.table.names)})"

    def plus(self, other: "TableMoments") -> "TableMoments":
        """The moments of both parts, with the units of this one.

        Groups of the other part go on behind the last block of rows of this one.
        """
        instance("other", other, TableMoments, "nj.fits.moments(table) makes one")
        check_alike(self.table, other.table)
        rows, own, new = self.rows + other.rows, self._units, other._units
        scale, y_scale = new.scale / own.scale, new.y_scale / own.y_scale
        center = (new.center - own.center) / own.scale
        y_center = (new.y_center - own.y_center) / own.y_scale
        moved = LinearMoments._make(other._groups).moved(scale, center, y_scale, y_center)
        block = block_of(rows)
        factors = [block // block_of(part.rows) for part in (self, other)]
        both: Any = self._groups, tuple(moved)
        first, second = map(coarser, both, factors)
        counts = (self._blocks, other._blocks)
        blocks, more = (-(-count // factor) for count, factor in zip(counts, factors, strict=True))
        groups = [a + np.roll(b, blocks, axis=0) for a, b in zip(first, second, strict=True)]
        return dataclasses.replace(
            self,
            rows=rows,
            doubts=(*self.doubts, *(one for one in other.doubts if one not in self.doubts)),
            _ends=np.maximum(self._ends, other._ends),
            _groups=tuple(groups),
            _blocks=blocks + more,
        )

    def fit(self) -> LinearFit:
        """The fit to these rows, by the jackknife."""
        return solved(GroupSums(self.rows, self._ends, self._groups), self._units, self.table)


def moments(table: Observations) -> TableMoments:
    """What a linear fit takes from a part of a table, computed where the part is.

    The parts may have any number of rows, which must be independent of rows in other parts. They
    agree in columns, copies and knowledge of the noise, which must not be a reliability. A list of
    the moments of all parts, such as workers send them, gives the fit to the whole table:
    `nj.fit([moments(part) for part in parts])`, with intervals by the jackknife. Coefficients do
    not depend on the order of the list; intervals do a little, because the groups that the
    jackknife leaves out do.

    All rows have the same weight, also where their known errors differ; the fit to a whole table
    weights them by these errors.

    Args:
        table: the part, by `nj.table`, `nj.csv` or `nj.observations.from_arrays`.

    Returns:
        `TableMoments`; `one.plus(other)` merges two of them.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng, parts = np.random.default_rng(0), []
        >>> for _ in range(4):  # each may be on another machine
        ...     x = rng.normal(size=(10_000, 1))
        ...     noisy = x + rng.normal(size=x.shape)
        ...     part = nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=1.0)
        ...     parts.append(nj.fits.moments(part))
        >>> print(nj.fit(parts).coefficients.round(1))
        [2.]
    """
    instance("table", table, Observations, "nj.table makes one")
    check_without_products(table)
    check_no_categories(table, "a part of a table")
    check_known_matrix(table)
    units = Units.of_some(table.averaged()[0], table.y)
    sums = added(GroupSums.empty(table.x.shape[2]), units, table, None, None)
    plain = dataclasses.replace(table, noise=None, pooled=None, unreliability=None)
    known = {"pooled": table.pooled, "unreliability": table.unreliability}
    return TableMoments(
        rows=sums.rows,
        table=dataclasses.replace(plain.rows(np.arange(0)), **known),
        doubts=tuple(doubts(table)),
        _units=units,
        _ends=sums.ends,
        _groups=sums.groups,
        _blocks=-(-sums.rows // block_of(sums.rows)),
    )


def merged(parts: Iterable[Any], checkpoint: Any) -> TableMoments | None:
    """The moments of all parts, from partitions or a list of moments; `None` from chunks."""
    many = isinstance(parts, list | tuple) and parts and isinstance(parts[0], TableMoments)
    if not many and not isinstance(parts, Partitions):
        return None
    if checkpoint is not None:
        raise ValueError("checkpoint is for chunks: partitions and moments are merged at once")
    if isinstance(parts, Partitions):
        return parts.reduced(moments, TableMoments.plus)
    return functools.reduce(TableMoments.plus, parts)


def one_table(method: Any, observations: Any) -> Observations:
    """The table of a method that takes no chunks."""
    if isinstance(checked_table(observations), Iterable):
        name = type(method).__name__
        raise ValueError(f"chunks are for nj.methods.Linear; nj.methods.{name} takes one table")
    return observations


def checked_table(observations: Any) -> Any:
    """A table or chunks; ValueError with the right call if x, or a file's name, stands for one."""
    if isinstance(observations, str | os.PathLike):
        name = os.fspath(observations)
        call = f"nj.fit(nj.csv({name!r}, target=…, noise=…))"
        raise ValueError(f"fit takes a table, got the path {name!r}; read the file: {call}")
    call = "nj.fit(nj.observations.from_arrays(x, y, noise=…))"
    # A list may hold chunks; a list of rows, an array and a data frame are features alone.
    listed = observations[:1] if isinstance(observations, list | tuple) else []
    features = any(not isinstance(one, Observations | TableMoments) for one in listed)
    if features or hasattr(observations, "shape"):
        raise ValueError(
            "fit takes one table of x, y and what is known of the noise, got "
            f"{given(observations)}: {call}"
        )
    if isinstance(observations, Iterable):
        return observations
    return instance("observations", observations, Observations, f"as in {call}")
