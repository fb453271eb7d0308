"""Gaps in tables: cells that are missing completely at random, beside errors of measurement."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisy_jax.noise import Misclassified
from noisy_jax.noise.dependent import Dependent
from noisy_jax.noise.hidden import Missing, check_some_seen, filled, shares_of_pairs
from noisy_jax.observed.observations.described import NoiseOfRows, Reliability
from noisy_jax.observed.observations.products import any_products
from noisy_jax.validation import choice

WAY_OUT = (
    "drop or impute them first, or if cells are missing completely at random, fit a line to a "
    "table with the option gaps='random'"
)
"""What to do about NaN among the features of a table."""


def check_gaps(gaps: Any, noise: Any, products: Sequence[Any]) -> None:
    """Raises ValueError if `gaps`, an option of `frames.table`, cannot go with the others."""
    if gaps is None:
        return
    choice("gaps", gaps, ("random",))
    if isinstance(noise, Dependent):
        raise ValueError(
            f"gaps='random' is beside errors of columns by name, or a covariance, not "
            f"{type(noise).__name__} of all columns: leave one of the two out"
        )
    by_name = noise.items() if isinstance(noise, Mapping) else ()
    for name in [name for name, one in by_name if isinstance(one, Misclassified)]:
        raise ValueError(
            f"gaps='random' takes no misclassified column, such as {name!r}: drop rows with gaps"
        )
    if any_products(products):
        raise ValueError("gaps='random' takes no products: drop rows with gaps, or the products")


def with_gaps(
    x: np.ndarray, known: NoiseOfRows, noise: Any, names: Sequence[str]
) -> tuple[np.ndarray, NoiseOfRows]:
    """The filled rows `[n, 1, d]`, and what is known of their errors, with the errors of filling.

    x is less the mean of the noise, and NaN where it is missing; `known` is of the errors in values
    that are there. Exact values are as with `noise.Missing`.
    """
    seen = ~np.isnan(x)
    if x.shape[1] > 1:
        raise ValueError(
            "gaps='random' takes one copy of a row: pass the means of replicates and the variance "
            "of their errors; nj.table and nj.csv take replicates of columns without gaps"
        )
    check_some_seen(seen, names)
    for j in np.flatnonzero(~seen.all(axis=(0, 1))).tolist():
        if isinstance(noise, Mapping) and isinstance(noise.get(names[j]), Reliability):
            raise ValueError(
                f"{names[j]!r} has gaps and a reliability: give the variance of its error"
            )
    pairs = shares_of_pairs(seen, names)
    x, cov = filled(x, pairs, np.asarray(known.cov))
    if not np.any(known.cov):
        return x, NoiseOfRows(cov, np.zeros_like(pairs), Missing(np.diag(pairs)))
    return x, known._replace(cov=cov, noise=None, only_sums=True, mean=0.0)


def unfilled(table: Any, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values `[m, d]` as measured, and covariances of errors, in a mask of rows without gaps."""
    pairs = shares_of_pairs(table.seen, table.names)
    single, center = np.diag(pairs), table.x[:, 0].mean(axis=0)
    apart = table.x[which, 0] - center
    squares = apart[:, :, None] * apart[:, None]
    cov = pairs * table.cov[which] - (pairs - np.outer(single, single)) * squares
    return center + apart * single, cov


def of_shares(mean: np.ndarray, cov: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """What estimated shares of missing values add to the covariances of rows, `[n, d, d]`.

    `mean` `[n, d]` is of the copies, `cov` `[n, d, d]` of its error if the shares are exact, and
    `seen` `[n, V, d]` says where there is a value.
    """
    copies, seen = seen.shape[1], seen.astype(np.float64)
    apart = mean - mean.mean(axis=0)
    moments = apart.T @ apart / len(mean) - cov.mean(axis=0)
    one = seen.mean(axis=1)
    one /= one.mean(axis=0)
    both = np.einsum("nvi,nvj->nij", seen, seen)
    share = both.mean(axis=0)
    both = np.divide(both, share, out=np.ones_like(both), where=share > 0)
    other = (1 - 1 / copies) * (one[:, :, None] + one[:, None] - 1)  # of two different copies
    return moments * (other + both / copies - one[:, :, None])
