"""Errors of measurement: one object for each way of knowing the errors of some columns.

All of them answer the same questions, so that nothing else asks what kind they are. Errors of
different objects are independent, and columns in none of them are exact.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Self

import jax
import numpy as np

from noisy_jax.columns import ROUNDING
from noisy_jax.noise import Gaussian, Noise, PerRound, Product
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.observations.categories import Categories


@dataclasses.dataclass(frozen=True, eq=False)
class Errors:
    """The errors of some columns.

    Attributes:
        places: of the k columns among the d columns of the table.
    """

    places: tuple[int, ...]

    @property
    def each_row(self) -> bool:
        """Whether the covariance is right in each row; otherwise it is in sums over rows only."""
        return True

    @property
    def of_parts(self) -> bool:
        """Whether parts of a table show the errors, of which the moments are added."""
        return True

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

    def settled(self, table: Any) -> "Errors":
        """Returns the errors as known ones, the same in all rows, where rows estimate them."""
        return self

    def rows(self, which: np.ndarray) -> Self:
        """Returns the errors of some rows, by their numbers or a mask `[n]`."""
        return self

    def shown(self, table: Any) -> bool:
        """Whether the rows of the table suffice to estimate the errors, if they are estimated."""
        return True

    def joined(self, other: Any, rows: int, more: int) -> Self:
        """Returns the errors of `rows` rows, and of `more` rows with errors `other` behind them."""
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
        return self

    def times(self, factors: np.ndarray) -> Self:
        """Returns the errors of rows that are multiplied by the roots of `factors` `[n]`."""
        return self


@dataclasses.dataclass(frozen=True, eq=False)
class Known(Errors):
    """Errors of known covariance.

    Attributes:
        cov: `[k, k]` of the error in one copy, the same in all rows; or `[n, k, k]`, one a row.
        law: the distribution of the error in one copy of all columns of the table, which are then
            these k, if it is known: a `noise.PerRound` of n rows if it changes.
        stated: name of a distribution that is not Gaussian, where one is stated for some of the
            columns and `law` is `None` because the laws of others are unknown.
        std_error: `[k, k]`, standard error of each entry of an estimated `cov`; or `None`.
        deviations: `[m, k, k]`, how the errors of different entries of `cov` depend on each other,
            as in `noise.CovarianceEstimate`; `None` takes them as independent.
        in_sums: whether `cov` `[n, k, k]` are estimates from the rows, as of errors that are in
            proportion to the value, which are right in sums over rows but not in a row alone.
    """

    cov: np.ndarray
    law: Any = None
    stated: str | None = None
    std_error: np.ndarray | None = None
    deviations: np.ndarray | None = None
    in_sums: bool = False

    @property
    def each_row(self) -> bool:
        """Whether the covariance is right in each row."""
        return not self.in_sums

    def noisy(self) -> tuple[int, ...]:
        """Returns the places of columns whose errors are not all zero."""
        variances = np.diagonal(self.cov, axis1=-2, axis2=-1).reshape(-1, len(self.places))
        return tuple(np.array(self.places)[variances.any(axis=0)].tolist())

    def of_means(self, table, weights=None) -> np.ndarray:
        """Returns C_jk m_jk/(n_j n_k), for n_j copies of column j, m_jk of them in places of k."""
        if table.copies.shape[1] == 1:
            return self.cov
        if table.even:
            return self.cov * table.even_share(self.places)
        return self.cov * share_of_means(~np.isnan(table.copies_of(self.places)))

    def not_gaussian(self) -> str | None:
        """Returns the name of a stated distribution that is not Gaussian, if there is one."""
        law = by_round(self.law)[0]
        parts = law.columns if isinstance(law, Product) else (law,)
        named = [type(one).__name__ for one in parts if not isinstance(one, Gaussian | None)]
        return named[0] if named else self.stated

    def averaged(self, table: Any) -> "Known":
        """Returns the errors of the means of copies; the law of several is known if Gaussian."""
        cov, law, count = self.of_means(table), by_round(self.law)[0], len(self.places)
        parts = law.columns if isinstance(law, Product) else count * (law,)
        variances = np.moveaxis(np.diagonal(cov, axis1=-2, axis2=-1), -1, 0)
        triples = zip(parts, variances, table.replicated[list(self.places)], strict=True)
        gaussian = jax.vmap(Gaussian) if cov.ndim == 3 else Gaussian
        kept = [
            gaussian(own) if isinstance(one, Gaussian) else None if several else one
            for one, own, several in triples
        ]
        return dataclasses.replace(
            self, cov=cov, law=joint_law(kept, cov, np.zeros(count)), stated=self.not_gaussian()
        )

    def rows(self, which) -> "Known":
        """Returns the errors of some rows."""
        law, cov = self.law, self.cov if self.cov.ndim == 2 else self.cov[which]
        if isinstance(law, PerRound):
            law = jax.tree.map(lambda leaf: leaf[which], law)
        return dataclasses.replace(self, cov=cov, law=law)

    def joined(self, other, rows, more) -> "Known":
        """Returns the errors of both parts; laws that differ by row are joined."""
        law, cov, behind = self.law, self.cov, other.cov
        if isinstance(law, PerRound):
            law = jax.tree.map(lambda *leaves: np.concatenate(leaves), law, other.law)
        if cov.ndim == 3 or behind.ndim == 3 or not np.array_equal(cov, behind):
            shape = cov.shape[-2:]
            parts = np.broadcast_to(cov, (rows, *shape)), np.broadcast_to(behind, (more, *shape))
            cov = np.concatenate(parts)
        return dataclasses.replace(self, cov=cov, law=law)

    def columns(self, own, places) -> "Known":
        """Returns the errors of some of these columns."""
        error, moves = self.std_error, self.deviations
        pairs = own[:, None], own
        return dataclasses.replace(
            self,
            places=places,
            cov=self.cov[..., *pairs],
            law=_law_of_some(self.law, own),
            std_error=None if error is None else error[pairs],
            deviations=None if moves is None else moves[:, *pairs],
        )

    def scaled(self, scale) -> "Known":
        """Returns the errors of columns that are divided by `scale`, without their law."""
        units = np.outer(scale, scale)
        error, moves = (
            None if one is None else one / units for one in (self.std_error, self.deviations)
        )
        return dataclasses.replace(
            self, cov=self.cov / units, law=None, std_error=error, deviations=moves
        )

    def times(self, factors) -> "Known":
        """Returns the errors of rows that are multiplied, without their law."""
        cov = self.cov if self.cov.ndim == 3 else self.cov[None]
        return dataclasses.replace(self, cov=factors[:, None, None] * cov, law=None)


@dataclasses.dataclass(frozen=True, eq=False)
class Replicates(Errors):
    """Errors whose covariance is estimated from the copies, which may be of unequal numbers.

    Copies in the same place v, of different columns, have errors that may depend on each other.
    """

    @property
    def each_row(self) -> bool:
        """Whether the covariance is right in each row."""
        return False

    def of_means(self, table, weights=None) -> np.ndarray:
        """Returns Ĉ of `means_of_copies`."""
        names = [table.names[j] for j in self.places]
        return means_of_copies(table.copies_of(self.places), names, weights)[2]

    def shown(self, table) -> bool:
        """Whether some row has two copies of each column, and of each pair of columns."""
        return table.even or not unshown(~np.isnan(table.copies_of(self.places)))

    def settled(self, table) -> Known:
        """Returns the pooled covariance of the error in one copy."""
        places = np.array(self.places)
        cov = table.means().cov[:, places[:, None], places].mean(axis=0)
        share = share_of_means(~np.isnan(table.copies_of(self.places)))
        share = share.mean(axis=0) if share.ndim == 3 else share
        return Known(self.places, np.divide(cov, share, out=np.zeros_like(cov), where=share > 0))


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

    @property
    def each_row(self) -> bool:
        """Whether the covariance is right in each row."""
        return False

    @property
    def of_parts(self) -> bool:
        """Whether parts of a table show the errors."""
        return False

    def of_means(self, table, weights=None) -> np.ndarray:
        """Returns the variances, in diagonal matrices."""
        x = table.copies_of(self.places)[:, 0]
        own = np.full(len(x), 1 / len(x)) if weights is None else weights / weights.sum()
        square = self.share * (x - own @ x) ** 2 / np.maximum(1 - own, ROUNDING)[:, None]
        return square[:, :, None] * np.eye(len(self.share))

    def settled(self, table) -> Known:
        """Returns the shares of the variances of the columns."""
        variances = table.copies_of(self.places)[:, 0].var(axis=0)
        return Known(self.places, np.diag(self.share * variances))

    def columns(self, own, places) -> "Unreliable":
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

    categories: Categories

    def of_means(self, table, weights=None) -> np.ndarray:
        """Returns u uᵀ − diag(u)."""
        u = table.copies_of(self.places)[:, 0]
        return u[:, :, None] * (u[:, None] - np.eye(u.shape[1]))

    def columns(self, own, places) -> "Recoded":
        """Returns the errors with new places; all of the indicators stay together."""
        return Recoded(places, self.categories._replace(places=places))


def share_of_means(seen: np.ndarray) -> np.ndarray:
    """Returns f, by which the errors of means of copies have a smaller covariance than of a copy.

    Columns j and k with n_j and n_k copies, m_jk of them in the same places, have
    f_jk = m_jk/(n_j n_k).

    Args:
        seen: `[n, V, k]`, where there is a copy.

    Returns:
        `[k, k]` if rows have the same copies, else `[n, k, k]`.
    """
    share = _shares(seen[:1] if (seen == seen[:1]).all() else seen)[0]
    return share[0] if len(share) == 1 else share


def means_of_copies(
    copies: np.ndarray, names: Sequence[str], weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means `[n, d]` of copies `[n, V, d]` with NaN, their numbers `[n, d]`, and Ĉ `[n, d, d]`.

    Row i has the copies x̃_ijv of feature j in n_ij of the places v, where the errors of one place
    have the covariance Σ. With m_ijk places in which both j and k are seen, the errors of the means
    of the copies have the covariances C_ijk = f_ijk Σ_jk, f_ijk = m_ijk/(n_ij n_ik). The products
    of residuals

        S_ijk = Σ_v (x̃_ijv − x̄_ij)(x̃_ikv − x̄_ik)    have the mean    g_ijk Σ_jk,
        g_ijk = m_ijk (1 − 1/n_ij − 1/n_ik + m_ijk/(n_ij n_ik)),

    so that with weights w_i of the rows Σ̂_jk = Σ_i w_i S_ijk / Σ_i w_i g_ijk is unbiased, as is

        Ĉ_ijk = f_ijk Σ̂_jk + (S_ijk − g_ijk Σ̂_jk) Σ_i w_i f_ijk / Σ_i w_i g_ijk

    for C_ijk in any row, and the weighted sum over rows, Σ̂_jk Σ_i w_i f_ijk, consists of what each
    row adds to it. With n_ij = V in all rows this is Ĉ_i = S_i/(V(V − 1)), for any weights.

    Raises:
        ValueError: no two copies show the errors of a column, or of two columns together.
    """
    places = copies.shape[1]
    if places > 1 and not np.isnan(copies.sum()):
        means = copies.mean(axis=1)
        residuals = copies - means[:, None]
        cov = np.einsum("nvi,nvj->nij", residuals, residuals) / (places * (places - 1))
        return means, np.full(means.shape, places), cov
    own = np.ones(len(copies)) if weights is None else weights
    seen = ~np.isnan(copies)
    counts = seen.sum(axis=1)
    means = np.where(seen, copies, 0.0).sum(axis=1) / counts
    residuals = np.where(seen, copies - means[:, None], 0.0)
    share, freedom = _shares(seen)
    products = np.einsum("nvi,nvj->nij", residuals, residuals)
    shares, freedoms, total = (
        np.tensordot(own, values, axes=1) for values in (share, freedom, products)
    )
    which = (shares > 0) & (freedom.max(axis=0, initial=0.0) < 0.1)
    for i, j in np.argwhere(which)[:1].tolist():
        which = f"{names[i]!r} and {names[j]!r}" if i != j else f"{names[i]!r}"
        raise ValueError(
            f"no row has two copies of {which}, from which the errors could be estimated: give "
            f"the variance of one copy as noise={{{names[i]!r}: …}}; or take larger chunks, or "
            "fewer folds"
        )
    freedoms = np.where(freedoms > 0, freedoms, 1.0)
    pooled = total / freedoms
    cov = share * pooled + (products - freedom * pooled) * (shares / freedoms)
    return means, counts, cov


def _shares(seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f and g `[n, k, k]` of `means_of_copies`, where there is a copy or not `[n, V, k]`."""
    both = np.einsum("nvi,nvj->nij", seen, seen, dtype=np.float64)
    counts = seen.sum(axis=1)
    one, other = (1 / counts)[:, :, None], (1 / counts)[:, None]
    share = both * one * other
    return share, both * (1 - one - other + share)


def unshown(seen: np.ndarray) -> list[list[int]]:
    """Pairs of columns, or columns twice, of whose errors no row has two copies `[n, V, k]`."""
    share, freedom = _shares(seen)
    which = share.any(axis=0) & (freedom.max(axis=0, initial=0.0) < 0.1)
    return np.argwhere(which).tolist()


def joint_law(
    parts: Sequence[Noise | None], cov: np.ndarray, mean: np.ndarray
) -> Noise | PerRound | None:
    """Returns the law of independent errors of k columns, `None` if one of them is unknown.

    Args:
        parts: scalar distributions, whose parameters are `[]`, or `[n]` for one a row.
        cov: `[k, k]` or `[n, k, k]`, of the errors.
        mean: `[k]`, of the errors.
    """
    known = tuple(one for one in parts if one is not None)
    if len(known) < len(parts):
        return None
    variances, shared = np.diagonal(cov, axis1=-2, axis2=-1), cov.ndim == 2
    if all(isinstance(one, Gaussian) for one in known):
        if shared:
            return Gaussian(variances, mean)
        return PerRound(jax.vmap(lambda own: Gaussian(own))(variances))
    if shared:
        return Product(known)
    rows = jax.tree.map(lambda leaf: np.broadcast_to(leaf, len(cov)), known)
    return PerRound(jax.vmap(lambda *own: Product(own))(*rows))


def _law_of_some(law: Any, own: np.ndarray) -> Any:
    """The distribution of the errors of some columns."""
    if law is None:
        return None
    if isinstance(law, PerRound):
        return PerRound(jax.vmap(lambda one: _law_of_some(one, own))(law.distribution))
    if isinstance(law, Product):
        return Product(tuple(law.columns[k] for k in own))

    def some(values):  # [], [k] or [k, k]
        return values[np.ix_(*[own] * np.ndim(values))] if np.ndim(values) else values

    return jax.tree.map(some, law)
