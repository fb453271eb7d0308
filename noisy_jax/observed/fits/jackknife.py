"""Linear fits in one pass over chunks of a table, with intervals by the jackknife.

Moments of groups of rows are kept instead of the rows. The fit without a group follows from the
moments of the other groups.

A group consists of blocks of 64 consecutive rows, since neighbouring rows may depend on each other.
Below 512 rows, blocks have the largest power of two of rows that leaves 8 groups, so that only rows
which are nearer to each other may depend on each other.
"""

import os
from typing import NamedTuple

import numpy as np

from noisy_jax.checkpoints import resumed
from noisy_jax.observed.fits.groups import BLOCK, GROUPS, LEAST_GROUPS, grouped, jackknifed
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.linear_moments import LinearMoments, linear_moments
from noisy_jax.observed.fits.normal_equations import NormalEquations
from noisy_jax.observed.fits.units import Rows, Units, check_varies, reduced
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.passes import Pass


class GroupSums(NamedTuple):
    """What is kept of the rows seen so far, and stored in checkpoints."""

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
    clusters: np.ndarray | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
) -> LinearFit:
    """See `nj.methods.Linear`: intervals by the jackknife, from one pass over chunks.

    The first chunk's means and standard deviations are the units for all of them; a column that is
    constant in it has the unit 1. Weights and clusters are for one chunk alone.
    """
    first = table.first
    check_without_products(first)
    units, empty = Units.of_some(first.averaged()[0], first.y), GroupSums.empty(first.x.shape[2])
    identity = "" if checkpoint is None else f"fit {table.digest()}"
    with resumed(checkpoint, identity, empty, "table or its noise") as (sums, save):
        for chunk in table.after(int(sums.rows)):
            sums = added(sums, units, chunk, weights, clusters)
            save(sums)
    if clusters is not None and np.count_nonzero(sums.groups[0]) < LEAST_GROUPS:
        raise ValueError(
            f"the jackknife needs at least {LEAST_GROUPS} clusters; use errors='sandwich'"
        )
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
    rows, dim = int(sums.rows), len(units.scale)
    least = max(LEAST_GROUPS, dim + 2 + block_of(rows))  # d + 2 without one block
    if rows < least:
        raise ValueError(f"the jackknife needs at least {least} rows; use errors='sandwich'")
    ends = sums.ends * [[-1], [1]]
    check_varies(ends[:, :-1], ends[:, -1], first)
    solver = NormalEquations(parts, units, first, rows)

    def spread(corrected):
        left = solver.without(corrected)
        return jackknifed(np.array([[a + beta @ solver.at, *beta] for a, beta in left]))

    return solver.fit(spread)


def added(sums: GroupSums, units: Units, chunk: Observations, weights, labels) -> GroupSums:
    """The sums with the rows of one more chunk."""
    table = Rows.of(chunk, weights)
    rows = int(sums.rows) + len(chunk.y)
    low, high = (
        np.append(reduced(end, table.x), end.reduce(chunk.y)) for end in (np.minimum, np.maximum)
    )
    block = block_of(rows)
    labels = np.arange(sums.rows, rows) // block if labels is None else labels
    groups = coarser(sums.groups, block // block_of(int(sums.rows)))
    order, slices = grouped(labels, GROUPS)
    for group in slices:
        part = units.moments(table.some(order[group]))
        for total, value in zip(groups, part, strict=True):
            total[labels[order[group][0]] % GROUPS] += value
    return GroupSums(rows, np.maximum(sums.ends, [-low, high]), groups)


def block_of(rows: int) -> int:
    """How many consecutive rows of a table stay together: a power of two."""
    return min(BLOCK, 1 << max(0, (rows // LEAST_GROUPS).bit_length() - 1))


def coarser(groups: tuple[np.ndarray, ...], factor: int) -> tuple[np.ndarray, ...]:
    """The groups for blocks that are `factor` times as long, which are few so far."""
    if factor == 1:
        return groups
    made = tuple(np.zeros_like(leaf) for leaf in groups)
    for total, leaf in zip(made, groups, strict=True):
        np.add.at(total, np.arange(GROUPS) // factor, leaf)
    return made
