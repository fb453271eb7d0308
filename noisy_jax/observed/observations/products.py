"""Squares and products of noisy columns, with unbiased moments of all columns together.

A product of columns f is a monomial of a clean row x, and so is the product of two columns in a
linear fit, f_j f_k. With unbiased estimates T(m) of all these monomials m, E[T(m) | x] = m(x), the
column of f is z = T(f), and z_j z_k − T(f_j f_k) is an unbiased estimate of the covariance of the
errors of two columns in this row, which need not be positive semidefinite.

With a known covariance C of the error in a row, T is the monomial of Hermite's (Appell's) kind: for
a column a and a monomial m

    T(a m) = x̃_a T(m) − Σ_b C_ab T(m/b) − κ_a C_aa² T(m/a³),

summed over the factors b of m. Beside independent columns, or Gaussian errors with any C, this is
exact: κ_a is the excess kurtosis of the error, 0 if it is Gaussian, and third moments are 0.

With replicates alone, T is the mean over all choices of different copies, one for each factor with
noise: as many copies are needed as there are such factors, twice as many as in the product.

Source: Stefanski, Communications in Statistics A 18 (1989); for polynomial regression Cheng and
Schneeweiss, JRSS B 60 (1998).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from noisy_jax.observed.observations.categories import recorded_means
from noisy_jax.observed.observations.errors import Errors, Known
from noisy_jax.validation.messages import given, listed

_Table = TypeVar("_Table")


class Products(NamedTuple):
    """Products of columns, which stand behind the columns in linear fits."""

    factors: tuple[tuple[int, int], ...]  # places of the two factors of each product
    excess_kurtosis: np.ndarray  # [d], of the error in one copy; NaN if it is not known

    def names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Such as `x1 * x2` and `x1²`."""
        pairs = [(columns[a], columns[b]) for a, b in self.factors]
        return tuple(f"{a}²" if a == b else f"{a} * {b}" for a, b in pairs)


_FARTHEST = 1000
"""Largest mean of a factor over its standard deviation: fourth powers are subtracted."""


def any_products(pairs: Any) -> bool:
    """Returns True if there are pairs of names; raises ValueError if something else is given."""
    several = isinstance(pairs, Iterable) and not isinstance(pairs, str)
    if not several or any(np.shape(pair) != (2,) for pair in pairs):
        wanted = "pairs of names, such as [('x1', 'x2'), ('x1', 'x1')]"
        raise ValueError(f"products must be {wanted}, got {given(pairs)}")
    return len(list(pairs)) > 0


def with_products(table: _Table, pairs: Sequence[tuple[str, str]]) -> _Table:
    """The table with products of two of its columns each."""
    if not any_products(pairs):
        return table
    old: Any = table
    for name in [name for pair in pairs for name in pair if name not in old.names]:
        raise ValueError(f"products name {given(name)}, but the columns are {listed(old.names)}")
    factors = tuple((old.names.index(one), old.names.index(other)) for one, other in pairs)
    kurtosis = np.zeros(len(old.names))
    for one in old.errors:
        kurtosis[list(one.places)] = one.excess_kurtosis()
    products = Products(factors, kurtosis)
    names = (*old.names, *products.names(old.names))
    for name in [name for name in names[len(old.names) :] if name in old.names]:
        raise ValueError(
            f"a product would have the name {name!r} of a column: drop that column, or rename it"
        )
    if len({frozenset(pair) for pair in pairs}) < len(pairs):
        raise ValueError(f"products must be different ones, got {listed(names[len(old.names) :])}")
    if old.cross_cov is not None and np.any(old.cross_cov):
        raise ValueError(
            "products need errors in y that are independent of those in x: leave out cross_cov"
        )
    if old.uncertainty()[0].any():
        raise ValueError(
            "products need known variances of errors: give the variance, not a "
            "noise.CovarianceEstimate"
        )
    shares = {place for one in old.errors if not one.of_parts for place in one.places}
    for a, b in products.factors:
        for place in shares & {a, b}:
            raise ValueError(
                f"{old.names[place]!r} has a reliability, which is right on average over rows "
                "only: products need the variance of its error, or replicates"
            )
        if a == b and any(a in one.places for one in old.categories):
            raise ValueError(
                f"{old.names[a]!r} is an indicator, which is its own square: leave out its square"
            )
        if a == b and not np.isfinite(products.excess_kurtosis[a]):
            raise ValueError(
                f"the square of {old.names[a]!r} needs errors of a known law: Gaussian "
                "(also by a variance or nj.sd), Laplace or uniform ones, or four replicates"
            )
    for place in {place for pair in products.factors for place in pair}:
        values = old.copies[:, :, place]
        if np.nanmax(values) > np.nanmin(values) and abs(
            np.nanmean(values)
        ) > _FARTHEST * np.nanstd(values):
            raise ValueError(
                f"products of {old.names[place]!r} would lose their digits, since its mean is more "
                f"than {_FARTHEST} times its standard deviation: subtract a number near the mean"
            )
    table_with_products = dataclasses.replace(old, products=products)
    expanded(table_with_products)  # raises ValueError where there are too few replicates
    return table_with_products


def measured(table: _Table) -> _Table:
    """The table with products of the columns as they were recorded, as if there were no noise."""
    old: Any = table
    x = recorded_means(old)
    x = np.column_stack([x, *(x[:, a] * x[:, b] for a, b in old.products.factors)])
    return _replaced(old, x, ())


def expanded(table: _Table, weights: np.ndarray | None = None) -> _Table:
    """The table with unbiased products, and covariances by row, right in sums, of all columns.

    Sums of covariances are right with the weights `[n]` of the rows.
    """
    old: Any = table
    x, _, cov, *_ = old.means(weights)
    unbiased, dim = monomials(old, x, cov), x.shape[1]
    columns = [*((j,) for j in range(dim)), *old.products.factors]
    x = np.column_stack([x, *map(unbiased, columns[dim:])])
    full = np.empty((len(x), len(columns), len(columns)))
    full[:, :dim, :dim] = cov
    for j, own in enumerate(columns[dim:], start=dim):
        for k, other in enumerate(columns[: j + 1]):
            full[:, j, k] = full[:, k, j] = x[:, j] * x[:, k] - unbiased((*own, *other))
    every = tuple(range(len(columns)))
    return _replaced(old, x, (Known(every, full, each_row=False),))


def _replaced(old: Any, x: np.ndarray, errors: tuple[Errors, ...]) -> Any:
    names = (*old.names, *old.products.names(old.names))
    single = np.zeros(len(names), bool)
    changes = {"names": names, "replicated": single, "even": True, "cross_cov": None}
    return dataclasses.replace(old, copies=x[:, None], errors=errors, **changes)


def monomials(
    table: Any, x: np.ndarray, cov: np.ndarray
) -> Callable[[tuple[int, ...]], np.ndarray]:
    """T: from places of the factors of a monomial, at most four, to unbiased estimates `[n]`.

    x `[n, d]` are the means of the copies, and `cov` is the covariance of their errors.
    """
    copies = np.array(table.copies_of(range(len(table.names))))
    several = (np.nanmax(copies, axis=1) > np.nanmin(copies, axis=1)).any(axis=0)
    copies[:, 1:, ~several] = np.nan  # repeats the first
    measured = ~np.isnan(copies)
    copies = np.where(measured, copies, 0.0)
    unknown = np.zeros(len(table.names), bool)
    for error in [error for error in table.errors if error.estimated]:
        unknown[list(error.places)] = several[list(error.places)]
    kurtosis = table.products.excess_kurtosis / measured.sum(axis=1)
    noisy = np.any(cov != 0, axis=tuple(range(cov.ndim - 2)))

    def hermite(factors):
        if not factors:
            return np.ones(len(x))
        a, *rest = factors
        total = x[:, a] * hermite(rest)
        for k, b in enumerate(rest):
            if noisy[a, b]:
                total -= cov[..., a, b] * hermite(rest[:k] + rest[k + 1 :])
        if noisy[a, a] and rest == 3 * [a]:
            total -= kurtosis[:, a] * cov[..., a, a] ** 2
        return total

    def choices_of(unseen):
        choices = _of_different(measured.astype(np.float64), unseen)
        for row in np.flatnonzero(choices < 0.5)[:1].tolist():
            names = [table.names[place] for place in unseen]
            raise ValueError(
                f"{' · '.join(names)} needs {len(unseen)} replicates, a different one for each "
                f"factor, but row {row} has fewer: drop such rows, or give the variance of one "
                f"replicate, as noise={{{names[0]!r}: 0.25}}, whose error then counts as Gaussian "
                "and independent of others"
            )
        return choices

    def unbiased(factors):
        unseen = [place for place in factors if unknown[place]]
        total = hermite([place for place in factors if not unknown[place]])
        return total * _of_different(copies, unseen) / choices_of(unseen) if unseen else total

    pairs = itertools.combinations_with_replacement(table.products.factors, 2)
    every = [[place for place in (*first, *second) if unknown[place]] for first, second in pairs]
    for unseen in sorted(every, key=len, reverse=True):  # tell the largest need
        choices_of(unseen)

    return unbiased


def _of_different(values: np.ndarray, factors: list[int]) -> np.ndarray:
    """Returns `[n]`, the sum of products of `values` `[n, V, d]` over choices of different copies.

    It is a recursion on blocks of factors that share a copy: the first block may have any copy,
    less the choices where it has the copy of another block.
    """

    def over(blocks):
        if not blocks:
            return np.ones(len(values))
        first, *rest = blocks
        total = np.prod(values[:, :, first], axis=2).sum(axis=1) * over(rest)
        for k, other in enumerate(rest):
            total = total - over([*rest[:k], first + other, *rest[k + 1 :]])
        return total

    return over([[factor] for factor in factors])
