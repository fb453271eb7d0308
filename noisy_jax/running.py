"""Means and squares of numbers that come in parts, merged in float64."""

from typing import Any, NamedTuple

import jax


class Sums(NamedTuple):
    """Moments of the seeds seen so far, on the host in float64."""

    num_seeds: Any  # how many
    mean: Any  # the run's pytree, mean over seeds
    squares: Any  # the run's pytree, Σ (value − mean)² over seeds
    values: Any = None  # the run's pytree with a leading axis of seeds, if quantiles need it


def merged(a: Sums, b: Sums) -> Sums:
    """Moments of two sets of seeds together (Chan, Golub and LeVeque)."""
    if b.num_seeds == 0:
        return a
    count = a.num_seeds + b.num_seeds
    difference = jax.tree.map(lambda x, y: y - x, a.mean, b.mean)
    share, weight = b.num_seeds / count, a.num_seeds * b.num_seeds / count
    return Sums(
        count,
        jax.tree.map(lambda x, d: x + d * share, a.mean, difference),
        jax.tree.map(lambda x, y, d: x + y + d**2 * weight, a.squares, b.squares, difference),
    )
