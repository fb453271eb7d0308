"""Estimates over seeds: what is kept of the seeds that have run, and what follows from it."""

import functools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import jax
import numpy as np

from noisy_jax.intervals import half_width
from noisy_jax.running import Running


class Sums(NamedTuple):
    """What is kept of the seeds that have run.

    Attributes:
        moments: count, mean and Σ(value − mean)² of what the run returned.
        values: what it returned for each seed, with a leading axis; `None` without quantiles.
    """

    moments: Running
    values: Any = None

    def plus(self, other: "Sums") -> "Sums":
        """Returns the sums of both sets of seeds; the values of `other` come last."""
        values = jax.tree.map(lambda *both: np.concatenate(both), self.values, other.values)
        return Sums(self.moments.plus(other.moments), values)


class Estimate(NamedTuple):
    """Mean over seeds, with its uncertainty.

    Attributes:
        mean: the run's pytree, each leaf the float64 mean over seeds.
        std_error: the same shapes, standard error of the mean; NaN with one seed.
        num_seeds: S.
        quantiles: the same shapes with a leading axis, one entry for each of the given levels;
            `None` if no levels were given.
        levels: of the quantiles.
        seeds: the ranges of seeds, each as its first seed and the one after its last.
        sums: what `merge` adds up.
    """

    mean: Any
    std_error: Any
    num_seeds: int
    quantiles: Any
    levels: tuple[float, ...]
    seeds: tuple[tuple[int, int], ...]
    sums: Sums

    @property
    def half_width(self) -> Any:
        """The shapes of `mean`, half the widths of 95% intervals; NaN with one seed."""
        return jax.tree.map(lambda error: half_width(error, self.num_seeds - 1), self.std_error)

    @staticmethod
    def merge(estimates: Iterable["Estimate"]) -> "Estimate":
        """Returns the estimate of all seeds from estimates of disjoint ranges, in any order.

        If each range is one batch, the result is that of one call with this `batch_size`, bit for
        bit; otherwise up to rounding of float64, because sums are merged in another order.

        Args:
            estimates: of the same run, key and levels of quantiles.

        Raises:
            ValueError: if a seed is in two of them, or if they differ in more than the seeds.

        Example:
            >>> import jax, noisy_jax as nj
            >>> draw, key = jax.random.normal, jax.random.key(0)
            >>> parts = [nj.monte_carlo(draw, range(start, start + 8), key) for start in (0, 8)]
            >>> whole = nj.monte_carlo(draw, 16, key, batch_size=8)
            >>> bool(nj.Estimate.merge(parts).mean == whole.mean)
            True
        """
        parts = sorted(estimates, key=lambda part: part.seeds)
        if not parts:
            raise ValueError("merge needs at least one estimate, got none")
        shapes = [(p.levels, jax.tree.map(np.shape, p.mean)) for p in parts]
        if any(one != shapes[0] for one in shapes):
            raise ValueError("merge needs estimates of one run, with the same levels of quantiles")
        ranges = sorted(one for part in parts for one in part.seeds)
        joined = [ranges.pop(0)]
        for start, stop in ranges:
            before, end = joined[-1]
            if start < end:
                raise ValueError(f"seed {start} is in two of the estimates: take disjoint ranges")
            if start == end:
                joined[-1] = (before, stop)
            else:
                joined.append((start, stop))
        sums = functools.reduce(Sums.plus, (part.sums for part in parts))
        return estimated(sums, tuple(joined), parts[0].levels)


def estimated(
    sums: Sums, seeds: tuple[tuple[int, int], ...], levels: tuple[float, ...]
) -> Estimate:
    """Returns the estimate that follows from the sums over ranges of seeds."""
    moments = sums.moments._replace(count=int(sums.moments.count))
    quantiles = jax.tree.map(lambda leaf: _quantiles(leaf, levels), sums.values)
    whole = sums._replace(moments=moments)
    return Estimate(moments.mean, moments.std_error, moments.count, quantiles, levels, seeds, whole)


def _quantiles(values: np.ndarray, levels: tuple[float, ...]) -> np.ndarray:
    """The smallest values that at least a share q of the seeds do not exceed, `[Q, ...]`."""
    # q S may be a whole number but for rounding. Sorting puts NaN last.
    ranks = [max(math.ceil(q * len(values) * (1 - 1e-12)), 1) for q in levels]
    return np.sort(values, axis=0)[np.array(ranks) - 1]
