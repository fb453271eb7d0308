"""Linear fits in one pass over chunks of a table, with intervals by the jackknife.

Moments of G groups of rows are kept instead of the rows. The fit without group g, β_(g), follows
from the moments of the other groups, and

    Var β̂ = (G − 1)/G Σ_g (β_(g) − mean)(β_(g) − mean)ᵀ.

A group consists of blocks of consecutive rows, since neighbouring rows may depend on each other.

Source: Shao and Tu, The Jackknife and Bootstrap (1995).
"""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

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
from noisy_jax.validation import instance

_LEAST_GROUPS = 8  # fewer give standard errors that scatter by more than a quarter
_BLOCK = 64  # consecutive rows that stay together


def jackknife_fit(
    chunks: Iterable[Observations], *, weights: Any = None, clusters: Any = None
) -> LinearFit:
    """See `nj.fit`: intervals by the delete-a-group jackknife, from one pass over chunks.

    The first chunk's means and standard deviations are the units for all of them; a column that is
    constant in it has the unit 1. Weights and clusters are for one chunk alone.
    """
    first, units, parts, rows, ends = None, None, {}, 0, []
    for chunk in chunks:
        instance("observations", chunk, Observations, "nj.observations.from_arrays makes one")
        chunk, weights, labels = with_weight(chunk, weights, clusters)
        x, cov = chunk.averaged()
        if first is None or units is None:
            first, units = chunk, Units.of_some(x, chunk.y)
        _check_alike(first, chunk)
        ends += [(x.min(axis=0), chunk.y.min()), (x.max(axis=0), chunk.y.max())]
        n = len(chunk.y)
        labels = (rows + np.arange(n)) // _BLOCK if labels is None else labels
        order, slices = grouped(labels, GROUPS)
        table = units.table(x, chunk.y, cov, chunk.averaged_cross())._replace(weights=weights)
        for group in slices:
            part, name = linear_moments(*table.rows(order[group])), labels[order[group][0]] % GROUPS
            parts[name] = parts[name].plus(part) if name in parts else part
        rows += n
    if first is None or units is None:
        raise ValueError("observations must be at least one chunk, got none")
    if len(parts) < _LEAST_GROUPS:
        kind = f"{_LEAST_GROUPS * _BLOCK} rows" if clusters is None else f"{_LEAST_GROUPS} clusters"
        raise ValueError(f"the jackknife needs at least {kind}; use errors='sandwich'")
    x_ends, y_ends = (np.array(values) for values in zip(*ends, strict=True))
    check_varies(x_ends, y_ends, first)
    return _fit(list(parts.values()), units, first, rows)


def _check_alike(first: Observations, chunk: Observations) -> None:
    if (chunk.names, chunk.target) != (first.names, first.target):
        raise ValueError(
            f"all chunks must have the columns {list(first.names)} and the target "
            f"{first.target!r}, but one has {list(chunk.names)} and {chunk.target!r}"
        )
    if chunk.x.shape[1] != first.x.shape[1]:
        raise ValueError(
            f"all chunks must have as many copies of each row, but one has {first.x.shape[1]} and "
            f"another {chunk.x.shape[1]}"
        )
    if (chunk.cov is None) != (first.cov is None):
        raise ValueError("either all chunks must have a known covariance of the noise, or none")
    for name in ("cov_std_error", "cov_deviations"):
        if not np.array_equal(getattr(chunk, name), getattr(first, name)):
            raise ValueError("all chunks must have the same uncertainty of the noise's covariance")


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
