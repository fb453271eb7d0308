"""Linear fits in one pass: what is kept of a table is its moments, by groups of rows.

The rows are in one table, in chunks, or in parts that are elsewhere. The fit without a group, for
intervals by the jackknife, follows from the moments of the other groups.

Rows of chunks are dealt to 32 groups by random numbers that depend on their place alone. So groups
do not follow the order of the rows, and chunks of any size have the same groups.

Each part has moments in units of its own. With x' = a ∘ x + b and y' = αy + β, the moments of
(x', y') follow from the moments of (x, y) (`LinearMoments.moved`), so that parts are merged without
their rows.
"""

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.fits.assumptions import doubts
from noisy_jax.observed.fits.doubts import Doubt
from noisy_jax.observed.fits.groups import (
    GROUPS,
    LEAST_GROUPS,
    grouped,
    jackknifed,
    streamed_labels,
)
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.linear_moments import LinearMoments, linear_moments
from noisy_jax.observed.fits.normal_equations import NormalEquations
from noisy_jax.observed.fits.units import Rows, Units, check_varies, reduced
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.chunks import check_no_categories
from noisy_jax.observed.observations.partitions import Partitions
from noisy_jax.observed.observations.passes import Pass, check_alike
from noisy_jax.validation import instance, listed


class GroupSums(NamedTuple):
    """What is kept of the rows seen so far."""

    rows: int
    ends: np.ndarray  # [2, d + 1]: −(least value) and largest value of the columns and y
    groups: tuple[np.ndarray, ...]  # `LinearMoments`, with a leading axis of groups

    @classmethod
    def empty(cls, dim: int) -> "GroupSums":
        """No rows of d columns."""
        shapes = linear_moments(np.zeros((0, dim)), np.zeros(0), np.zeros((dim, dim)))
        groups = tuple(np.zeros((GROUPS, *np.shape(leaf))) for leaf in shapes)
        return cls(0, np.full((2, dim + 1), -np.inf), groups)


def jackknife_fit(
    table: Pass,
    weights: np.ndarray | None = None,
    labels: np.ndarray | None = None,
) -> LinearFit:
    """See `nj.methods.Linear`: intervals by the jackknife, from one pass over chunks.

    The first chunk's means and standard deviations are the units for all of them; a column that is
    constant in it has the unit 1. Weights, and the groups `labels`, are for one chunk alone.
    """
    first = table.first
    check_without_products(first)
    units, sums = Units.of_some(first.averaged()[0], first.y), GroupSums.empty(first.x.shape[2])
    for chunk in table:
        sums = added(sums, units, chunk, weights, labels)
    return solved(sums, units, first)


def check_without_products(table: Observations) -> None:
    """Raises ValueError if the table has products of columns, which the jackknife does not take."""
    if table.products is not None:
        raise ValueError(
            "products are for one whole table, not for chunks, moments of parts, or "
            "errors='jackknife': read it whole, by nj.csv"
        )


def solved(sums: GroupSums, units: Units, first: Observations) -> LinearFit:
    """The fit to sums in these units; names and the uncertainty of the noise are of `first`."""
    parts = [
        LinearMoments._make(leaf[group] for leaf in sums.groups)
        for group in np.flatnonzero(sums.groups[0])
    ]
    rows, dim = sums.rows, len(units.scale)
    if len(parts) < LEAST_GROUPS or rows - rows // LEAST_GROUPS < dim + 2:
        raise ValueError(f"{rows} rows are too few for the jackknife; use errors='sandwich'")
    ends = sums.ends * [[-1], [1]]
    check_varies(ends[:, :-1], ends[:, -1], first)
    solver = NormalEquations(parts, units, first, rows)

    def spread(corrected):
        left = solver.without(corrected)
        return jackknifed(np.array([[a + beta @ solver.at, *beta] for a, beta in left]))

    return solver.fit(spread)


def added(sums: GroupSums, units: Units, chunk: Observations, weights, labels) -> GroupSums:
    """The sums with the rows of one more chunk."""
    if chunk.beside and weights is None and labels is None:
        raise ValueError(
            f"chunks and parts of a table take no {listed([*chunk.beside])}: these are for one "
            "table, read whole"
        )
    table = Rows.of(chunk, weights)
    rows = sums.rows + len(chunk.y)
    low, high = (
        np.append(reduced(end, table.x), end.reduce(chunk.y)) for end in (np.minimum, np.maximum)
    )
    labels = streamed_labels(sums.rows, len(chunk.y)) if labels is None else labels
    groups = tuple(leaf.copy() for leaf in sums.groups)
    order, slices = grouped(labels)
    for group in slices:
        part = units.moments(table.some(order[group]))
        for total, value in zip(groups, part, strict=True):
            total[labels[order[group][0]]] += value
    return GroupSums(rows, np.maximum(sums.ends, [-low, high]), groups)


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
    _turn: int

    def __repr__(self) -> str:
        """The number of rows, and the columns."""
        return f"TableMoments({self.rows:,} rows of {', '.join(self.table.names)})"

    def plus(self, other: "TableMoments") -> "TableMoments":
        """The moments of both parts, with the units of this one.

        The groups of the other part are rotated, so that many small parts fill all groups.
        """
        instance("other", other, TableMoments, "nj.fits.moments(table) makes one")
        check_alike(self.table, other.table)
        rows, own, new = self.rows + other.rows, self._units, other._units
        scale, y_scale = new.scale / own.scale, new.y_scale / own.y_scale
        center = (new.center - own.center) / own.scale
        y_center = (new.y_center - own.y_center) / own.y_scale
        moved = LinearMoments._make(other._groups).moved(scale, center, y_scale, y_center)
        pairs = zip(self._groups, moved, strict=True)
        return dataclasses.replace(
            self,
            rows=rows,
            doubts=(*self.doubts, *(one for one in other.doubts if one not in self.doubts)),
            _ends=np.maximum(self._ends, other._ends),
            _groups=tuple(a + np.roll(b, self._turn, axis=0) for a, b in pairs),
            _turn=self._turn + other._turn,
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
    units = Units.of_some(table.averaged()[0], table.y)
    sums = added(GroupSums.empty(table.x.shape[2]), units, table, None, None)
    return TableMoments(
        rows=sums.rows,
        table=table.rows(np.arange(0)),
        doubts=tuple(doubts(table)),
        _units=units,
        _ends=sums.ends,
        _groups=sums.groups,
        _turn=int(streamed_labels(sums.rows, 1)[0]),
    )


def merged(parts: Iterable[Any]) -> TableMoments | None:
    """The moments of all parts, from partitions or a list of moments; `None` from chunks."""
    many = isinstance(parts, list | tuple) and parts and isinstance(parts[0], TableMoments)
    if not many and not isinstance(parts, Partitions):
        return None
    if isinstance(parts, Partitions):
        return parts.reduced(moments, TableMoments.plus)
    return functools.reduce(TableMoments.plus, parts)
