"""Tables of measured features and targets, with what is known of the measurement error."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from noisy_jax.columns import ROUNDING
from noisy_jax.noise import Gaussian, PerRound, Product
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.observations.beside import Beside
from noisy_jax.observed.observations.categories import Categories
from noisy_jax.observed.observations.products import Products


@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """n rows of noisy features with their targets, in float64 and original units.

    Attributes:
        x: `[n, V, d]`, V noisy copies of the features of each row (V = 1 without replicates), less
            the known mean of the noise.
        y: `[n]` targets, which may contain noise of mean zero.
        cov: covariance of the error of one copy: `[d, d]`, the same in all rows; `[n, d, d]`, one a
            row; `None` if it is unknown and must come from the replicates.
        cov_std_error: `[d, d]`, standard error of each entry of `cov`; zero where `cov` is exact.
        noise: distribution of the error, for fits that need more than its covariance, or `None`;
            a `noise.PerRound` of the n rows if it changes.
        law: name of a distribution that is not Gaussian, where one is stated for some columns and
            `noise` is `None` because those of others are unknown; or `None`.
        names: d names of the columns.
        target: name of y.
        cov_deviations: `[m, d, d]`, how the errors of different entries of `cov` depend on each
            other, as in `noise.CovarianceEstimate`; `None` takes them as independent.
        cross_cov: `[d]` or `[n, d]`, covariance of the errors in y and in the first copy (the
            errors in other copies are independent of the error in y); `None` if it is zero.
        index: pandas labels of the rows, or `None`; weights and clusters must have the same.
        target_cov: `[n]`, variance of the error in y, where it was given; `None` otherwise. Linear
            fits weight rows by it, and take it from the scatter; intervals are from the residuals.
        only_sums: whether the covariances of rows in `cov` are estimates that are right in sums
            over rows, as linear fits take them, but not in a row alone.
        copies: `[n, V, d]`, the copies of which x `[n, 1, d]` are means, NaN where there is none; a
            column without replicates has V times the same; or `None`.
        pooled: `[d]`, whether the error of a column is estimated from `copies`; or `None`.
        unreliability: `[d]`, the share of a column's variance that is error, 0 where `cov` is
            known; or `None`.
        references: categories of columns with indicators of the others, as `sex[f]`.
        categories: of misclassified columns (`noise.Misclassified`), in whose place x has recoded
            indicators. `cov` has an unbiased estimate of their covariance in each row, which need
            not be positive semidefinite.
        products: of columns, which linear fits take behind the columns; or `None`.
        beside: columns that are no features: "weights", "clusters" and "exposure" of the rows, with
            the names of their columns.
    """

    x: np.ndarray
    y: np.ndarray
    cov: np.ndarray | None
    cov_std_error: np.ndarray
    noise: Any
    names: tuple[str, ...]
    target: str
    cov_deviations: np.ndarray | None = None
    cross_cov: np.ndarray | None = None
    index: Any = None
    target_cov: np.ndarray | None = None
    law: str | None = None
    only_sums: bool = False
    copies: np.ndarray | None = None
    pooled: np.ndarray | None = None
    unreliability: np.ndarray | None = None
    references: tuple[str, ...] = ()
    categories: tuple[Categories, ...] = ()
    products: Products | None = None
    beside: Mapping[str, Beside] = dataclasses.field(default_factory=dict)

    def __repr__(self) -> str:
        """The shape, and what is known of the noise."""
        rows, copies, dim = self.x.shape
        known = "estimated from replicates" if self.cov is None else "known covariance"
        known = "estimated covariance" if self.only_sums else known
        known = known if self.noise is None else type(by_round(self.noise)[0]).__name__
        copies = "1 copy" if copies == 1 else f"{copies} copies"
        return f"Observations({rows:,} rows, {dim} features, {copies}, noise: {known})"

    def not_gaussian(self) -> str | None:
        """The name of a stated distribution that is not Gaussian, if there is one."""
        noise = by_round(self.noise)[0]
        parts = noise.columns if isinstance(noise, Product) else (noise,)
        others = [type(one).__name__ for one in parts if not isinstance(one, Gaussian | None)]
        return others[0] if others else self.law

    def num_copies(self) -> np.ndarray:
        """`[n]`, how many copies each row has; only `with_copies` leaves incomplete ones in x."""
        return np.sum(~np.isnan(self.x[:, :, 0]), axis=1)

    def averaged(self, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The mean of each row's copies, and the covariance of the error of that mean.

        Where covariances are right in sums only (`only_sums`), these are sums with the weights
        `[n]` of the rows.

        With an unknown covariance, row i uses its own estimate from its V replicates,
        Σ_v (x̃_iv − x̄_i)(x̃_iv − x̄_i)ᵀ/(V(V − 1)). It is unbiased, so that sums over rows are too.

        Returns:
            `[n, d]` means, and `[d, d]` or `[n, d, d]` covariances.
        """
        copies = self.x.shape[1]
        mean = self.x[:, 0] if copies == 1 else self.x.mean(axis=1)
        if self.cov is not None:
            return mean, (self.cov if weights is None else self.estimated(weights)) / copies
        residuals = self.x - mean[:, None]
        cov = np.einsum("nvi,nvj->nij", residuals, residuals) / (copies * (copies - 1))
        return mean, cov

    def estimated(self, weights: np.ndarray | None = None) -> np.ndarray:
        """`cov`, with what is estimated from the rows of these weights `[n]`, 1 by default.

        With the reliability r of a column, its mean x̄ and the sum W of the weights,
        (1 − r)(x̃_i − x̄)²/(1 − w_i/W) is the variance in row i, so that the corrected moments of the
        column are r times the uncorrected ones.
        """
        if self.pooled is None and self.unreliability is None:
            return np.asarray(self.cov)
        rows, _, dim = self.x.shape
        cov = np.broadcast_to(np.asarray(self.cov), (rows, dim, dim)).copy()
        if self.pooled is not None:
            places = np.flatnonzero(self.pooled)
            names, copies = [self.names[j] for j in places], np.asarray(self.copies)[:, :, places]
            found = means_of_copies(copies, names, weights)[2]
            cov[:, places[:, None], places[None]] = found
        if self.unreliability is not None:
            own = np.full(rows, 1 / rows) if weights is None else weights / weights.sum()
            for j in np.flatnonzero(self.unreliability):
                square = (self.x[:, 0, j] - own @ self.x[:, 0, j]) ** 2
                cov[:, j, j] = self.unreliability[j] * square / np.maximum(1 - own, ROUNDING)
        return cov

    def averaged_cross(self) -> np.ndarray | None:
        """`cross_cov` of the mean of a row's copies in place of the first, in its shape."""
        return None if self.cross_cov is None else self.cross_cov / self.x.shape[1]

    def rows(self, which: np.ndarray) -> "Observations":
        """Some of the rows: `which` holds their numbers, or is a mask `[n]`.

        What `estimated` takes from the rows is then of these.
        """

        def some(values, rank):
            return values if values is None or values.ndim == rank else values[which]

        cov, cross = some(self.cov, 2), some(self.cross_cov, 1)
        x, y, noise, index = self.x[which], self.y[which], self.noise, some(self.index, 0)
        if isinstance(noise, PerRound):
            noise = jax.tree.map(lambda leaf: leaf[which], noise)
        changed = {"x": x, "y": y, "cov": cov, "noise": noise, "cross_cov": cross}
        changed |= {"index": index, "target_cov": some(self.target_cov, 0)}
        beside = {role: one._replace(values=one.values[which]) for role, one in self.beside.items()}
        changed |= {"beside": beside}
        made = dataclasses.replace(self, copies=some(self.copies, None), **changed)
        return made if made.cov is None else dataclasses.replace(made, cov=made.estimated())

    def check_each_row(self, user: str, *, categories: bool = False, instead: str = "") -> None:
        """Raises ValueError, in which `user` is the name of a fit, if that cannot take this table.

        It cannot take `products`, covariances that are right in sums over rows only, and
        misclassified columns, unless `categories` is true. `instead` is what else may help.
        """
        if self.products is not None:
            raise ValueError(
                f"{user} takes no products of noisy columns, which are for nj.methods.Linear(): "
                "make the table without products. For counts write them into a curve, as "
                "nj.methods.Model(lambda p, x: p[0] + p[1] * x[0] + p[2] * x[1] + p[3] * x[0] * "
                "x[1], jnp.zeros(4), loss=nj.losses.poisson()), and for labels into an estimator, "
                "as nj.methods.SIMEX(lambda x, y: LogisticRegression(C=np.inf).fit(np.column_stack("
                "[x, x[:, 0] * x[:, 1]]), y).coef_[0]); kernel fits find them by themselves"
            )
        if self.categories and not categories:
            raise ValueError(
                f"{user} takes no misclassified column, such as {self.categories[0].name!r}: "
                "linear, logistic and Poisson fits do; or take the recorded category as exact"
            )
        noisy = np.any(np.atleast_3d(0.0 if self.cov is None else self.cov), axis=(0, 1))
        places = np.flatnonzero(noisy if self.pooled is None else self.pooled)
        first = self.names[places[0] if places.size and places[0] < len(self.names) else 0]
        if self.only_sums and self.categories:
            raise ValueError(
                f"{user} needs the covariance of the error in each row: beside a misclassified "
                f"column give the variance of one replicate, as noise={{{first!r}: 0.25}}"
            )
        if self.only_sums:
            by_copies = "as many replicates in each row (drop incomplete ones), or "
            raise ValueError(
                f"{user} needs the covariance of the error in each row, but in this table it is an "
                "estimate that is right only in sums over rows, which linear fits take: give "
                f"{by_copies if self.copies is not None else ''}a known variance, as "
                f"noise={{{first!r}: 0.25}}{instead}"
            )


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
    row adds to it. With n_ij = V and w_i = 1 in all rows, Ĉ_i = S_i/(V(V − 1)), as in
    `Observations.averaged`.

    Raises:
        ValueError: no two copies show the errors of a column, or of two columns together.
    """
    own = np.ones(len(copies)) if weights is None else weights
    seen = ~np.isnan(copies)
    counts = seen.sum(axis=1)
    means = np.where(seen, copies, 0.0).sum(axis=1) / counts
    residuals = np.where(seen, copies - means[:, None], 0.0)
    both = np.einsum("nvi,nvj->nij", seen, seen, dtype=np.float64)
    one, other = (1 / counts)[:, :, None], (1 / counts)[:, None]
    share = both * one * other
    freedom = both * (1 - one - other + share)
    products = np.einsum("nvi,nvj->nij", residuals, residuals)
    shares, freedoms, total = (
        np.tensordot(own, values, axes=1) for values in (share, freedom, products)
    )
    for i, j in np.argwhere((shares > 0) & (freedom.max(axis=0) < 0.1)).tolist():
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
