"""Errors of measurement: one object for each way of knowing the errors of some columns.

All of them answer the same questions, so that no other module asks of their kind. Errors of
different objects are independent, and columns in none of them are exact.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import jax
import numpy as np

from noisy_jax.noise import (
    Gaussian,
    Laplace,
    Noise,
    PerRound,
    Product,
    Rademacher,
    StudentT,
    Uniform,
)
from noisy_jax.noise.dependent import Dependent
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.observations.categories import Categories
from noisy_jax.observed.observations.pooled import covariances_of_means, share_of_means, unshown
from noisy_jax.tabular.columns import ROUNDING

_OF_COLUMNS = tuple | Gaussian | Laplace | Rademacher | StudentT | Uniform | Product | Dependent
"""Laws whose columns are independent, or Gaussian."""


@dataclasses.dataclass(frozen=True, eq=False)
class Errors:
    """The errors of some columns.

    Attributes:
        places: places of the k columns among the d columns of the table.
        each_row: whether the covariance is right in each row; otherwise it is in sums over rows.
        of_parts: whether parts of a table show the errors, so that moments of parts are added.
        of_copies: whether they are errors of single copies; columns may have several.
        estimated: whether the copies alone show them.
        categories: of a misclassified column, or `None`.
        cov: covariance `[k, k]` or `[n, k, k]` of the error in one copy, or `None` if unknown.
    """

    places: tuple[int, ...]

    each_row = True
    of_parts = True
    of_copies = True
    estimated = False
    categories: ClassVar[Categories | None] = None
    cov: ClassVar[np.ndarray | None] = None

    def noisy(self) -> tuple[int, ...]:
        """Returns the places of columns whose errors are not all zero."""
        return self.places

    def of_means(self, table: Any, weights: np.ndarray | None = None) -> np.ndarray:
        """Returns the covariance `[k, k]` or `[n, k, k]` of the error of the means of copies.

        Args:
            table: the `Observations`, whose `copies_of` gives the copies of these columns.
            weights: `[n]` of the rows, in whose weighted sums the covariances are right.
        """
        raise NotImplementedError

    def joint(self, dim: int) -> Noise | PerRound | None:
        """Returns the law of errors of all d columns if the further ones are exact, or `None`."""
        return None

    def not_gaussian(self) -> str | None:
        """Returns the name of a stated distribution that is not Gaussian, if there is one."""
        return None

    def excess_kurtosis(self) -> np.ndarray:
        """Returns the excess kurtosis of the error in one copy, `[k]`; NaN if it is unknown."""
        return np.zeros(len(self.places))

    def uncertainty(self, table: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Returns standard errors and `deviations` of a covariance `[k, k]` of errors of means."""
        return None, None

    def averaged(self, table: Any) -> Errors:
        """Returns the errors of the means of copies."""
        raise NotImplementedError

    def settled(self, table: Any) -> Errors:
        """Returns the errors as known ones, the same in all rows, where rows estimate them."""
        return self

    def rows(self, which: np.ndarray) -> Self:
        """Returns the errors of some rows, by their numbers or a mask `[n]`."""
        return self

    def shown(self, table: Any) -> bool:
        """Returns True if the table has rows enough to estimate the errors, or they are known."""
        return True

    def joined(self, others: list[Any], counts: list[int]) -> Self:
        """Returns the errors of the rows of several tables: of this one, then of the further ones.

        Args:
            others: the errors of the same columns in each further table.
            counts: the rows of all tables, the first among them.
        """
        return self

    def columns(self, own: np.ndarray, places: tuple[int, ...]) -> Self:
        """Returns the errors of some of these columns, which get new places in the table.

        Args:
            own: numbers of the columns, from 0 to k − 1.
            places: their new places.
        """
        return dataclasses.replace(self, places=places)

    def scaled(self, scale: np.ndarray) -> Self:
        """Returns the errors of columns that are divided by `scale` `[k]`."""
        raise NotImplementedError(f"{type(self).__name__} errors change with their column's units")

    def times(self, factors: np.ndarray) -> Self:
        """Returns the errors of rows that are multiplied by the roots of `factors` `[n]`."""
        raise NotImplementedError(f"{type(self).__name__} errors follow from the rows as they are")


@dataclasses.dataclass(frozen=True, eq=False)
class Known(Errors):
    """Errors of known covariance.

    Attributes:
        cov: `[k, k]` of the error in one copy, the same in all rows; or `[n, k, k]`, one a row.
        law: the distribution of the error in one copy of all columns of the table, which are then
            these k; a `noise.PerRound` of n rows if it changes. Or of independent errors a tuple of
            k scalar distributions, whose parameters are `[]`, or `[n]` for one a row: `None` where
            it is not known, and the name where it was known of copies, but not of their means.
        std_error: `[k, k]`, standard error of each entry of an estimated `cov`; or `None`.
        deviations: `[m, k, k]`, how the errors of different entries of `cov` depend on each other,
            as in `noise.CovarianceEstimate`; `None` takes them as independent.
        each_row: false if `cov` `[n, k, k]` are estimates from the rows, as of errors that are in
            proportion to the value, which are right in sums over rows but not in a row alone.
    """

    cov: np.ndarray = dataclasses.field()
    law: Any = None
    std_error: np.ndarray | None = None
    deviations: np.ndarray | None = None
    each_row: bool = dataclasses.field(default=True, kw_only=True)

    def noisy(self) -> tuple[int, ...]:
        """Returns the places of columns whose errors are not all zero."""
        vary = np.diagonal(self.cov, axis1=-2, axis2=-1).reshape(-1, len(self.places)).any(axis=0)
        return tuple(np.array(self.places)[vary].tolist())

    def of_means(self, table, weights=None) -> np.ndarray:
        """Returns C_jk m_jk/(n_j n_k), for n_j copies of column j, m_jk of them in places of k."""
        if table.copies.shape[1] == 1:
            return self.cov
        if table.even:
            return self.cov * table.even_share(self.places)
        return self.cov * share_of_means(~np.isnan(table.copies_of(self.places)))

    def _laws(self) -> tuple[Any, ...]:
        """The distributions of single columns, as in `law`; a joint one of several is in each."""
        law = by_round(self.law)[0]
        law = law.columns if isinstance(law, Product) else law
        return law if isinstance(law, tuple) else len(self.places) * (law,)

    def joint(self, dim) -> Noise | PerRound | None:
        """Returns the law of errors of all d columns if the further ones are exact, or `None`."""
        if not isinstance(self.law, tuple):
            return self.law
        if not all(isinstance(law, Noise) and not law.depends_on_x for law in self.law):
            return None
        parts: list[Any] = [Gaussian(0.0)] * dim
        variances = np.zeros((*self.cov.shape[:-2], dim))
        variances[..., self.places] = np.diagonal(self.cov, axis1=-2, axis2=-1)
        for place, law in zip(self.places, self.law, strict=True):
            parts[place] = law
        gaussian = all(isinstance(law, Gaussian) for law in parts)
        if variances.ndim == 2:
            if gaussian:
                return PerRound(jax.vmap(lambda parameters: Gaussian(parameters))(variances))
            rows = jax.tree.map(lambda leaf: np.broadcast_to(leaf, len(variances)), tuple(parts))
            return PerRound(jax.vmap(lambda *parameters: Product(parameters))(*rows))
        mean = np.array([law.mean for law in parts])
        return Gaussian(variances, mean) if gaussian else Product(tuple(parts))

    def not_gaussian(self) -> str | None:
        """Returns the name of a stated distribution that is not Gaussian, if there is one."""
        named = [law for law in self._laws() if not isinstance(law, Gaussian | None)]
        return next((law if isinstance(law, str) else type(law).__name__ for law in named), None)

    def excess_kurtosis(self) -> np.ndarray:
        """Returns the excess kurtosis of the error in one copy, `[k]`; 0 if no law is stated."""
        law, by_row = by_round(self.law)
        if not isinstance(law, _OF_COLUMNS | None) or (
            by_row == 0 and not isinstance(law, Gaussian)
        ):
            raise ValueError(
                "products need Gaussian errors of known covariance, or independent ones of known "
                f"distributions, got {type(self.law).__name__}"
            )
        laws = self._laws()
        return np.array([float(column.excess_kurtosis) if column else 0.0 for column in laws])

    def uncertainty(self, table) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Returns standard errors and `deviations` of a covariance `[k, k]` of errors of means."""
        share, both = table.even_share(self.places), (self.std_error, self.deviations)
        error, moves = (None if values is None else values * share for values in both)
        return error, moves

    def averaged(self, table) -> Known:
        """Returns the errors of the means of copies; the law of several is known if Gaussian."""
        cov, gaussian = self.of_means(table), jax.vmap(Gaussian)
        laws = []
        for k, law in enumerate(self._laws()):
            if isinstance(law, Gaussian):
                law = (gaussian if cov.ndim == 3 else Gaussian)(cov[..., k, k])
            elif table.replicated[self.places[k]] and isinstance(law, Noise):
                law = type(law).__name__
            laws.append(law)
        return dataclasses.replace(self, cov=cov, law=tuple(laws))

    def rows(self, which) -> Known:
        """Returns the errors of some rows."""
        law, cov = self.law, self.cov if self.cov.ndim == 2 else self.cov[which]
        if isinstance(law, PerRound | tuple):
            law = jax.tree.map(lambda leaf: leaf[which] if np.ndim(leaf) else leaf, law)
        return dataclasses.replace(self, cov=cov, law=law)

    def joined(self, others, counts) -> Known:
        """Returns the errors of the rows of tables; laws of single columns are joined as well."""
        cov, law = stacked([self.cov, *(error.cov for error in others)], counts, 2), None
        laws = [self.law, *(error.law for error in others)]
        if isinstance(self.law, tuple) and len({*map(jax.tree.structure, laws)}) == 1:
            law = jax.tree.map(lambda *leaves: stacked(leaves, counts, 0), *laws)
        return dataclasses.replace(self, cov=cov, law=law)

    def columns(self, own, places) -> Known:
        """Returns the errors of some of these columns."""
        error, moves, law = self.std_error, self.deviations, self.law
        pairs = own[:, None], own
        return dataclasses.replace(
            self,
            places=places,
            cov=self.cov[..., *pairs],
            law=tuple(law[k] for k in own) if isinstance(law, tuple) else _of_some(law, own),
            std_error=None if error is None else error[pairs],
            deviations=None if moves is None else moves[:, *pairs],
        )

    def scaled(self, scale) -> Known:
        """Returns the errors of columns that are divided by `scale`, without their law."""
        parts = {name: getattr(self, name) for name in ("cov", "std_error", "deviations")}
        units = np.outer(scale, scale)
        parts = {name: None if part is None else part / units for name, part in parts.items()}
        return dataclasses.replace(self, law=None, **parts)

    def times(self, factors) -> Known:
        """Returns the errors of rows that are multiplied, without their law."""
        cov = self.cov if self.cov.ndim == 3 else self.cov[None]
        return dataclasses.replace(self, cov=factors[:, None, None] * cov, law=None)


@dataclasses.dataclass(frozen=True, eq=False)
class Replicates(Errors):
    """Errors whose covariance is estimated from the copies, which may be of unequal numbers.

    Copies in the same place v, of different columns, have errors that may depend on each other.
    """

    each_row = False
    estimated = True

    def of_means(self, table, weights=None) -> np.ndarray:
        """Returns Ĉ of `covariances_of_means`."""
        names = [table.names[j] for j in self.places]
        return covariances_of_means(table.copies_of(self.places), names, weights)

    def shown(self, table) -> bool:
        """Returns True if some row has two copies of each column, and of each pair of columns."""
        return table.even or not unshown(~np.isnan(table.copies_of(self.places)))

    def settled(self, table) -> Known:
        """Returns the pooled covariance of the error in one copy."""
        places = np.array(self.places)
        cov = table.means().cov[:, places[:, None], places].mean(axis=0)
        share = share_of_means(~np.isnan(table.copies_of(self.places)))
        share = share.mean(axis=0) if share.ndim == 3 else share
        return Known(self.places, np.divide(cov, share, out=np.zeros_like(cov), where=share > 0))

    def scaled(self, scale) -> Replicates:
        """Returns the same, as the copies are in the new units."""
        return self

    def times(self, factors) -> Replicates:
        """Returns the same, as the copies are multiplied."""
        return self


@dataclasses.dataclass(frozen=True, eq=False)
class Unreliable(Errors):
    """Errors that have a known share of the variance of their column.

    With the share s of a column, its mean x̄ and the sum W of the weights, s(x̃_i − x̄)²/(1 − w_i/W)
    is the variance in row i, so that the corrected moments of the column are 1 − s times the
    uncorrected ones. The mean and the sum are of the rows at hand.

    Attributes:
        share: `[k]`.
    """

    share: np.ndarray

    each_row = False
    of_parts = False
    of_copies = False

    def of_means(self, table, weights=None) -> np.ndarray:
        """Returns the variances, in diagonal matrices."""
        x = table.copies_of(self.places)[:, 0]
        shares = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
        square = self.share * (x - shares @ x) ** 2 / np.maximum(1 - shares, ROUNDING)[:, None]
        return square[:, :, None] * np.eye(len(self.share))

    def settled(self, table) -> Known:
        """Returns the shares of the variances of the columns."""
        variances = table.copies_of(self.places)[:, 0].var(axis=0)
        return Known(self.places, np.diag(self.share * variances))

    def columns(self, own, places) -> Unreliable:
        """Returns the errors of some of these columns."""
        return Unreliable(places, self.share[own])


@dataclasses.dataclass(frozen=True, eq=False)
class Recoded(Errors):
    """Errors of the recodings u of a misclassified column, in place of K − 1 indicators.

    The covariance of u is unknown, as the true category is, and in its place is the unbiased
    estimate u uᵀ − diag(u), which need not be positive semidefinite.

    Attributes:
        categories: with the matrix.
    """

    categories: Categories = dataclasses.field()

    of_copies = False

    def excess_kurtosis(self) -> np.ndarray:
        """Returns NaN, as errors of indicators depend on the category."""
        return np.full(len(self.places), np.nan)

    def of_means(self, table, weights=None) -> np.ndarray:
        """Returns u uᵀ − diag(u)."""
        u = table.copies_of(self.places)[:, 0]
        return u[:, :, None] * (u[:, None] - np.eye(u.shape[1]))

    def columns(self, own, places) -> Recoded:
        """Returns the errors with new places; all of the indicators stay together."""
        return Recoded(places, self.categories._replace(places=places))


def stacked(values: Sequence[Any], counts: Sequence[int], rank: int) -> Any:
    """Stacks known values of the rows of tables, by row unless they are the same for all.

    Args:
        values: the value of each table, `[...]` of this rank for all of its rows or `[n, ...]` by
            row; or `None`.
        counts: the rows of each table.
        rank: rank of the value of a row.
    """
    first = values[0]
    if first is None or all(np.ndim(v) == rank and np.array_equal(v, first) for v in values):
        return first
    parts = zip(values, counts, strict=True)
    return np.concatenate(
        [np.broadcast_to(v, (rows, *np.shape(v)[np.ndim(v) - rank :])) for v, rows in parts]
    )


def _of_some(law: Any, own: np.ndarray) -> Any:
    """The joint distribution of the errors of some columns."""
    if isinstance(law, PerRound):
        return PerRound(jax.vmap(lambda row: _of_some(row, own))(law.distribution))
    if isinstance(law, Product):
        return Product(tuple(law.columns[k] for k in own))

    def some(values):  # [], [k] or [k, k]
        return values[np.ix_(*[own] * np.ndim(values))] if np.ndim(values) else values

    return jax.tree.map(some, law)
