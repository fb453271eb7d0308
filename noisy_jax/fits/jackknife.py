"""Linear fits in one pass over chunks of a table, with intervals by the jackknife.

Moments of G groups of rows are kept instead of the rows. The fit without group g, β_(g), follows
from the moments of the other groups, and

    Var β̂ = (G − 1)/G Σ_g (β_(g) − mean)(β_(g) − mean)ᵀ.

A group consists of blocks of consecutive rows, since neighbouring rows may depend on each other.

Source: Shao and Tu, The Jackknife and Bootstrap (1995).
"""

import functools
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.checkpoints import resumed
from noisy_jax.fits.assumptions import remarked, warned
from noisy_jax.fits.coefficients import LinearFit
from noisy_jax.fits.linear import (
    GROUPS,
    Units,
    assembled,
    check_moments,
    check_varies,
    grouped,
    uncertainty_of_slopes,
    with_weight,
)
from noisy_jax.moments.batch import LinearMoments, linear_moments
from noisy_jax.observations import Observations
from noisy_jax.observations.passes import Pass

_LEAST_GROUPS = 8  # fewer give standard errors that scatter by more than a quarter
_BLOCK = 64  # consecutive rows that stay together


class _Sums(NamedTuple):
    """What is kept of the rows seen so far, and stored in checkpoints."""

    rows: int
    ends: np.ndarray  # [2, d + 1]: −(least value) and largest value of the columns and y
    groups: tuple[np.ndarray, ...]  # `LinearMoments`, with a leading axis of groups


def jackknife_fit(
    chunks: Iterable[Observations],
    *,
    weights: Any = None,
    clusters: Any = None,
    checkpoint: str | os.PathLike | None = None,
) -> LinearFit:
    """See `nj.fit`: intervals by the delete-a-group jackknife, from one pass over chunks.

    The first chunk's means and standard deviations are the units for all of them; a column that is
    constant in it has the unit 1. Weights and clusters are for one chunk alone.
    """
    table = Pass(chunks)
    first, _, labels = with_weight(table.first, weights, clusters)
    found = warned(first, labels, stacklevel=3)
    units, dim = Units.of_some(first.averaged()[0], first.y), first.x.shape[2]
    shapes = linear_moments(np.zeros((0, dim)), np.zeros(0), np.zeros((dim, dim)))
    groups = tuple(np.zeros((GROUPS, *np.shape(leaf))) for leaf in shapes)
    empty = _Sums(0, np.full((2, dim + 1), -np.inf), groups)
    identity = "" if checkpoint is None else f"fit {table.digest()}"
    with resumed(checkpoint, identity, empty, "table or its noise") as (sums, save):
        for chunk in table.after(int(sums.rows)):
            sums = _added(sums, units, *with_weight(chunk, weights, clusters))
            save(sums)
    parts = [
        LinearMoments._make(leaf[group] for leaf in sums.groups)
        for group in np.flatnonzero(sums.groups[0])
    ]
    if len(parts) < _LEAST_GROUPS:
        kind = f"{_LEAST_GROUPS * _BLOCK} rows" if clusters is None else f"{_LEAST_GROUPS} clusters"
        raise ValueError(f"the jackknife needs at least {kind}; use errors='sandwich'")
    ends = sums.ends * [[-1], [1]]
    check_varies(ends[:, :-1], ends[:, -1], first)
    return remarked(_fit(parts, units, first, int(sums.rows)), found)


def _added(sums: _Sums, units: Units, chunk: Observations, weights, labels) -> _Sums:
    """The sums with the rows of one more chunk."""
    x, cov = chunk.averaged()
    rows = sums.rows + len(chunk.y)
    low, high = (np.append(end(x, axis=0), end(chunk.y)) for end in (np.min, np.max))
    labels = np.arange(sums.rows, rows) // _BLOCK if labels is None else labels
    order, slices = grouped(labels, GROUPS)
    table = units.table(x, chunk.y, cov, chunk.averaged_cross())._replace(weights=weights)
    for group in slices:
        part = linear_moments(*table.rows(order[group]))
        for total, value in zip(sums.groups, part, strict=True):
            total[labels[order[group][0]] % GROUPS] += value
    return _Sums(rows, np.maximum(sums.ends, [-low, high]), sums.groups)


def _fit(parts: list[LinearMoments], units: Units, first: Observations, rows: int) -> LinearFit:
    whole = functools.reduce(LinearMoments.plus, parts)
    check_moments(whole, rows, first.names, units)
    count, mean, found = len(parts), whole.x / whole.weight, []
    for corrected in (True, False):
        _, beta = whole.solution(corrected=corrected)
        without = [whole.plus(part, -1.0).solution(corrected=corrected) for part in parts]
        apart = np.array([[value + mean @ beta, *beta] for value, beta in without])
        apart -= apart.mean(axis=0)
        spread = apart.T @ apart * (count - 1) / count
        if corrected:
            spread[1:, 1:] += uncertainty_of_slopes(whole, beta, first, units)
        value = whole.y / whole.weight
        found.append(units.restored(value, beta, spread, mean, count - 1, first.names))
    return assembled(parts, found[0], found[1], units, first, rows)
