"""Linear fits in one pass: only the moments of a table are kept, by groups of rows.

The rows are in chunks, or in parts that are elsewhere. The fit without a group, for intervals by
the jackknife, follows from the moments of the other groups.

Rows of chunks are dealt to 32 groups by random numbers that depend on their place alone. So groups
do not follow the order of the rows, and chunks of any size have the same groups.

Each part has moments in units of its own. With x' = a ∘ x + b and y' = αy + β, the moments of
(x', y') follow from the moments of (x, y) (`LinearMoments.moved`), so that parts are merged without
their rows.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from noisy_jax.observed.fits.assumptions import doubts
from noisy_jax.observed.fits.doubts import Doubt
from noisy_jax.observed.fits.groups import grouped, streamed_labels
from noisy_jax.observed.fits.linear_moments import LinearMoments, moments_by_group
from noisy_jax.observed.fits.units import Units, reduced
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.chunks import check_no_categories
from noisy_jax.observed.observations.partitions import Partitions
from noisy_jax.observed.observations.passes import Pass, check_alike
from noisy_jax.validation.messages import listed
from noisy_jax.validation.objects import instance


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TableMoments:
    """The moments of a part of a table, by groups of rows: all that a linear fit needs of it.

    `moments` makes it, `nj.fit` takes one or a list of them. It can be pickled, and has the same
    size for any number of rows.

    Attributes:
        table: the names and the noise of the part.
        doubts: evidence in the rows against the assumptions of the fit.
        units: means and standard deviations of the part: units of the moments.
        rows: the number of rows.
        ends: `[2, d + 1]`, −(least value) and largest value of the columns and y.
        groups: the moments of each of 32 groups of rows; some may be empty.
        turn: number of the group of the next row.
    """

    table: Observations
    doubts: tuple[Doubt, ...]
    units: Units
    rows: int
    ends: np.ndarray
    groups: LinearMoments
    turn: int

    def __repr__(self) -> str:
        """The number of rows, and the columns."""
        return f"TableMoments({self.rows:,} rows of {', '.join(self.table.names)})"

    def plus(self, other: TableMoments) -> TableMoments:
        """The moments of both parts, with the units of this one.

        The groups of the other part are rotated, so that many small parts fill all groups.
        """
        instance("other", other, TableMoments, "nj.fits.moments(table) makes one")
        check_alike(self.table, other.table)
        mine, theirs = self.units, other.units
        scale, y_scale = theirs.scale / mine.scale, theirs.y_scale / mine.y_scale
        center = (theirs.center - mine.center) / mine.scale
        y_center = (theirs.y_center - mine.y_center) / mine.y_scale
        moved = other.groups.moved(scale, center, y_scale, y_center)
        turned = LinearMoments._make(np.roll(leaf, self.turn, axis=0) for leaf in moved)
        return dataclasses.replace(
            self,
            doubts=(*self.doubts, *(doubt for doubt in other.doubts if doubt not in self.doubts)),
            rows=self.rows + other.rows,
            ends=np.maximum(self.ends, other.ends),
            groups=self.groups.plus(turned),
            turn=self.turn + other.turn,
        )


def moments(table: Observations) -> TableMoments:
    """Computes the sums over a part of a table that are all that a linear fit needs of the part.

    They are counts, means and second moments of x̃ and y, and of the errors, for up to 32 groups of
    rows. `nj.fit([nj.fits.moments(part) for part in parts])` is the linear fit to the whole table,
    with intervals by the jackknife; each part may be on another machine. Coefficients do not depend
    on the order of the list. Intervals do a little, because the groups of rows that the jackknife
    leaves out depend on it.

    Parts may have any number of rows, which must be independent of rows in other parts. All parts
    must have the same columns, the same number of copies, and noise that is known in the same way,
    but not by a reliability. All rows have the same weight, whereas the fit to a whole table
    weights them by their errors where these are known and differ.

    Args:
        table: the part, by `nj.table`, `nj.csv` or `nj.observations.from_arrays`.

    Returns:
        `TableMoments`, which can be pickled; `one.plus(other)` merges two of them.

    Raises:
        ValueError: the part has products, indicators of categories, or columns of weights, clusters
            or exposures, which only a whole table takes.

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
    check_no_categories(table, "a part of a table")
    of_part = _of_chunks([table])
    return dataclasses.replace(of_part, table=table.rows(np.arange(0)))


def moments_of_parts(parts: Iterable[Any]) -> TableMoments:
    """The moments of a table in parts: in partitions, as a list of moments, or in chunks."""
    if isinstance(parts, Partitions):
        return parts.reduced(moments, TableMoments.plus)
    if isinstance(parts, list | tuple) and parts and isinstance(parts[0], TableMoments):
        return functools.reduce(TableMoments.plus, parts)
    return _of_chunks(parts)


def _of_chunks(chunks: Iterable[Observations]) -> TableMoments:
    """The moments of chunks, which are gone through once.

    The first chunk's means and standard deviations are the units for all of them; a column that is
    constant in it has the unit 1.
    """
    table = Pass(chunks)
    first = table.first
    if first.products is not None:
        raise ValueError(
            "products are for one whole table, not for chunks or moments of parts: read it whole, "
            "by nj.csv"
        )
    units, rows = Units.of(first.means().x, first.y), 0
    ends: Any = -np.inf
    groups: Any = None
    for chunk in table:
        if chunk.beside:
            raise ValueError(
                f"chunks and parts of a table take no {listed([*chunk.beside])}: these are for one "
                "table, read whole"
            )
        means = chunk.means()
        low, high = (
            np.append(reduced(end, means.x), end.reduce(means.y))
            for end in (np.minimum, np.maximum)
        )
        order, slices = grouped(streamed_labels(rows, len(means.y)))
        added = moments_by_group(units.standardized(means, order), slices)
        rows += len(means.y)
        ends = np.maximum(ends, [-low, high])
        groups = added if groups is None else groups.plus(added)
    turn = int(streamed_labels(rows, 1)[0])
    return TableMoments(first, tuple(doubts(first)), units, rows, ends, groups, turn)
