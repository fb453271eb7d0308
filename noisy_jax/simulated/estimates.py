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
from noisy_jax.validation.values import Array

_T = TypeVar("_T")

Ranges = tuple[tuple[int, int], ...]
"""Ranges of seeds, each as its first seed and the one after its last."""


@plain_signature
class Estimate(NamedTuple):
    """Mean of a random result over S seeds, with its uncertainty, as `monte_carlo` returns it.

    The run returns a pytree of arrays for each seed. `mean`, `std_error` and `half_width` have its
    structure and shapes, in NumPy's float64. A 95% interval of the mean is `mean` ± `half_width`.

    Attributes:
        sums: count S, mean and Σ(value − mean)² of the results, in float64.
        seeds: disjoint ranges of seeds, each as its first seed and the one after its last.
        levels: levels q of the quantiles, 0 < q < 1; () by default.
        values: the result for each seed, with a leading axis `[S, ...]` in the order of the seeds;
            `None` without `levels`.

    Example:
        >>> import jax, noisy_jax as nj
        >>> estimate = nj.monte_carlo(jax.random.normal, 1000, jax.random.key(0))
        >>> print(estimate.num_seeds, bool(abs(estimate.mean) < 2 * estimate.half_width))
        1000 True
    """

    sums: Running
    seeds: Ranges
    levels: tuple[float, ...] = ()
    values: Any = None

    @classmethod
    def of(cls, values: Any, start: int, levels: tuple[float, ...] = ()) -> Estimate:
        """Returns the estimate from the results `values` of S seeds, `start` to `start` + S − 1.

        Each leaf of `values` is `[S, ...]`.
        """
        sums = Running.of(values)
        return cls(sums, ((start, start + sums.count),), levels, values if levels else None)

    @property
    def mean(self) -> Any:
        """Returns the pytree of the run's results, each leaf its float64 mean over seeds."""
        return self.sums.mean

    @property
    def std_error(self) -> Any:
        """Returns standard errors of the mean, in the shapes of `mean`; NaN with one seed."""
        return self.sums.std_error

    @property
    def half_width(self) -> Any:
        """Returns half the widths of 95% intervals, in the shapes of `mean`; NaN with one seed.

        They are by Student's t with S − 1 degrees of freedom.
        """
        half = functools.partial(half_width, degrees_of_freedom=self.num_seeds - 1)
        return jax.tree.map(half, self.std_error)

    @property
    def num_seeds(self) -> int:
        """S, the number of seeds."""
        return int(self.sums.count)

    @property
    def quantiles(self) -> Any:
        """Returns quantiles over seeds, `[Q, ...]` for the Q `levels`; `None` without levels.

        The quantile is the smallest value that at least a share q of the seeds do not exceed.
        """
        return jax.tree.map(lambda leaf: _quantiles(leaf, self.levels), self.values)

    def plus(self, other: Estimate) -> Estimate:
        """Returns the estimate of the seeds of both, which must be disjoint.

        Both must be of one run, under one key. This is not checked, but for the shapes.

        Raises:
            ValueError: a seed is in both of them, or their levels or shapes differ.
        """
        instance("other", other, Estimate, "monte_carlo makes one")
        first, second = ((part.levels, jax.tree.map(np.shape, part.mean)) for part in (self, other))
        if first != second:
            raise ValueError("merge needs estimates of one run, with the same levels of quantiles")
        seeds, values = _joined(self.seeds + other.seeds), None
        if self.levels:
            order = np.argsort(
                np.concatenate([np.arange(*one) for one in self.seeds + other.seeds])
            )
            values = jax.tree.map(
                lambda *both: np.concatenate(both)[order], self.values, other.values
            )
        return Estimate(self.sums.plus(other.sums), seeds, self.levels, values)

    @staticmethod
    def merge(estimates: Iterable[Estimate]) -> Estimate:
        """Returns the estimate of all seeds from estimates of disjoint ranges, in any order.

        If each range is one batch (`batch_size` of `monte_carlo`), the result equals the result of
        one call with this batch size, bit for bit. Otherwise it equals it up to rounding of
        float64, because sums are merged in another order.

        Args:
            estimates: at least one, of the same run, key and levels of quantiles. The run and the
                key are not checked.

        Raises:
            ValueError: a seed is in two of them, their levels or shapes differ, or there are none.

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
    if isinstance(parts, kind | Array):
        raise ValueError(f"{name} must be a list of them, got one {type(parts).__name__}")
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
