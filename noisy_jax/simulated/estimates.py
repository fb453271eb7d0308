"""Estimates over seeds: running means that can be merged, with intervals and quantiles."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from noisy_jax.base import plain_signature
from noisy_jax.reports.intervals import half_width
from noisy_jax.running import Running
from noisy_jax.validation.objects import instance

_T = TypeVar("_T")

Ranges = tuple[tuple[int, int], ...]
"""Ranges of seeds, each as its first seed and the one after its last."""


@plain_signature
class Estimate(NamedTuple):
    """Mean over seeds, with its uncertainty.

    Attributes:
        sums: count, mean and Σ(value − mean)² of the run's results, in float64.
        seeds: the ranges of seeds, each as its first seed and the one after its last.
        levels: levels of the quantiles.
        values: the result for each seed, with a leading axis; `None` without quantiles.
    """

    sums: Running
    seeds: Ranges
    levels: tuple[float, ...] = ()
    values: Any = None

    @classmethod
    def of(cls, values: Any, start: int, levels: tuple[float, ...] = ()) -> Estimate:
        """Returns the estimate from the results of the seeds from `start` on, `[S, ...]` each."""
        sums = Running.of(values)
        return cls(sums, ((start, start + sums.count),), levels, values if levels else None)

    @property
    def mean(self) -> Any:
        """Returns the run's pytree, each leaf the float64 mean over seeds."""
        return self.sums.mean

    @property
    def std_error(self) -> Any:
        """Returns standard errors of the mean, in the shapes of `mean`; NaN with one seed."""
        return self.sums.std_error

    @property
    def half_width(self) -> Any:
        """Returns half the widths of 95% intervals, in the shapes of `mean`; NaN with one seed."""
        half = functools.partial(half_width, degrees_of_freedom=self.num_seeds - 1)
        return jax.tree.map(half, self.std_error)

    @property
    def num_seeds(self) -> int:
        """S, the number of seeds."""
        return int(self.sums.count)

    @property
    def quantiles(self) -> Any:
        """Returns quantiles, as `mean` with a leading axis of levels; `None` without levels."""
        return jax.tree.map(lambda leaf: _quantiles(leaf, self.levels), self.values)

    def plus(self, other: Estimate) -> Estimate:
        """Returns the estimate of both sets of seeds, which must be disjoint.

        Raises:
            ValueError: if a seed is in both of them, or if they differ in more than the seeds.
        """
        first, second = ((part.levels, jax.tree.map(np.shape, part.mean)) for part in (self, other))
        if first != second:
            raise ValueError("merge needs estimates of one run, with the same levels of quantiles")
        seeds = _joined(self.seeds + other.seeds)
        values = jax.tree.map(lambda *both: np.concatenate(both), self.values, other.values)
        return Estimate(self.sums.plus(other.sums), seeds, self.levels, values)

    @staticmethod
    def merge(estimates: Iterable[Estimate]) -> Estimate:
        """Returns the estimate of all seeds from estimates of disjoint ranges, in any order.

        If each range is one batch, the result equals the result of one call with this
        `batch_size`, bit for bit; otherwise up to rounding of float64, because sums are merged in
        another order.

        Args:
            estimates: estimates of the same run, key and levels of quantiles.

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
        parts = parts_of(Estimate, "estimates", estimates)
        parts = sorted(parts, key=lambda part: part.seeds)
        if not parts:
            raise ValueError("merge needs at least one estimate, got none")
        return functools.reduce(Estimate.plus, parts)


def parts_of(kind: type[_T], name: str, parts: Any) -> list[_T]:
    """Returns the results that `merge` gets; raises ValueError for one alone, or others."""
    if isinstance(parts, kind):
        raise ValueError(f"{name} must be a list of them, got one {kind.__name__}")
    instance(name, parts, Iterable, "results for disjoint ranges of seeds")
    return [instance(f"each of {name}", part, kind) for part in parts]


def _joined(ranges: Ranges) -> Ranges:
    """Returns disjoint ranges in order; ranges that touch become one."""
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if joined and start < joined[-1][1]:
            raise ValueError(f"seed {start} is in two of the estimates: take disjoint ranges")
        if joined and start == joined[-1][1]:
            start, _ = joined.pop()
        joined.append((start, stop))
    return tuple(joined)


def _quantiles(values: np.ndarray, levels: tuple[float, ...]) -> np.ndarray:
    """Returns the smallest values that a share q or more of the seeds do not exceed, `[Q, ...]`."""
    # q S may be a whole number but for rounding. Sorting puts NaN last.
    ranks = [max(math.ceil(q * len(values) * (1 - 1e-12)), 1) for q in levels]
    return np.sort(values, axis=0)[np.array(ranks) - 1]
