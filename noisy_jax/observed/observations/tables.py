"""Tables of measured features and targets, with what is known of the measurement error."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.observations.beside import Beside
from noisy_jax.observed.observations.categories import Categories
from noisy_jax.observed.observations.errors import (
    Errors,
    Known,
    Recoded,
    Replicates,
    Unreliable,
)
from noisy_jax.observed.observations.products import Products
from noisy_jax.observed.observations.rows import Rows

_Kind = TypeVar("_Kind", bound=Errors)


@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """n rows of noisy features with their targets, in float64 and original units.

    Attributes:
        values: `[n, V, d]`, V noisy copies of the features of each row (V = 1 without replicates),
            less the known mean of the noise; NaN where a row has fewer. A column without replicates
            has the same value in all places, and a misclassified one its mean recoding.
        y: `[n]` targets, which may contain noise of mean zero.
        errors: what is known of the errors of columns. Columns in none of them are exact.
        names: d names of the columns.
        target: name of y.
        replicated: `[d]`, which columns have copies of their own in the V places.
        even: whether all columns with errors have equally many copies in a row, and these are all
            known, or all estimated from the copies.
        cross_cov: `[d]` or `[n, d]`, covariance of the errors in y and in the first copy (the
            errors in other copies are independent of the error in y); `None` if it is zero.
        index: pandas labels of the rows, or `None`; weights and clusters must have the same.
        target_cov: `[n]`, variance of the error in y, where it was given; `None` otherwise. Linear
            fits weight rows by it, and take it from the scatter; intervals are from the residuals.
        references: categories of columns with indicators of the others, as `sex[f]`.
        products: of columns, which linear fits take behind the columns; or `None`.
        beside: columns that are no features: "weights", "clusters" and "exposure" of the rows, with
            the names of their columns.
    """

    values: np.ndarray
    y: np.ndarray
    errors: tuple[Errors, ...]
    names: tuple[str, ...]
    target: str
    replicated: np.ndarray
    even: bool = True
    cross_cov: np.ndarray | None = None
    index: Any = None
    target_cov: np.ndarray | None = None
    references: tuple[str, ...] = ()
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

    def of_kind(self, kind: type[_Kind]) -> list[_Kind]:
        """Returns the errors of one kind."""
        return [one for one in self.errors if isinstance(one, kind)]

    @property
    def copied(self) -> bool:
        """Whether errors of some columns are estimated from their copies."""
        return bool(self.of_kind(Replicates))

    def exact(self, places: Sequence[int]) -> bool:
        """Whether some columns have no errors, and no copies that differ."""
        known = {j for one in self.errors if not isinstance(one, Replicates) for j in one.noisy()}
        apart = np.ptp(self.values[:, :, list(places)], axis=1)
        return known.isdisjoint(places) and not np.any(apart)

    def copies_of(self, places: Any) -> np.ndarray:
        """`[n, V, k]`, copies of some columns; NaN behind the first of one without replicates."""
        every = np.array_equal(places, np.arange(len(self.names)))
        found = self.values if every else self.values[:, :, list(places)]
        single = ~self.replicated[list(places)]
        if single.any() and found.shape[1] > 1:
            found = found.copy()
            found[:, 1:, single] = np.nan
        return found

    def counts(self) -> np.ndarray:
        """`[n, d]`, how many copies each row has of each column."""
        return np.sum(~np.isnan(self.copies_of(range(len(self.names)))), axis=1)

    def means(self, weights: np.ndarray | None = None) -> Rows:
        """Returns the means of the copies of all rows, with the covariances of their errors.

        Where covariances are right in sums over rows only, these are sums with the weights `[n]`.
        With replicates alone row i uses its own estimate from its V copies,
        Σ_v (x̃_iv − x̄_i)(x̃_iv − x̄_i)ᵀ/(V(V − 1)). It is unbiased, so that sums over rows are too.
        """
        if weights is None and not self.even:
            return self._means
        return self._averaged(weights)

    @functools.cached_property
    def _means(self) -> Rows:
        return self._averaged(None)

    def _averaged(self, weights: np.ndarray | None) -> Rows:
        rows, copies, dim = self.values.shape
        x, cross = self.values[:, 0], self.cross_cov
        if copies > 1:
            x = self.values.mean(axis=1) if self.even else np.nanmean(self.values, axis=1)
            x[:, ~self.replicated] = self.values[:, 0, ~self.replicated]
        if cross is not None and self.even:
            cross = cross / copies
        elif cross is not None:
            every = self.copies_of(range(dim))
            cross = cross * ~np.isnan(every[:, 0]) / np.sum(~np.isnan(every), axis=1)
        found = []
        for one in self.errors:
            names = [self.names[j] for j in one.places]
            found.append((one.places, one.of_means(self.copies_of(one.places), names, weights)))
        return Rows(x, self.y, in_places(found, rows, dim), weights, cross)

    def uncertainty(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Returns the standard errors `[d, d]` of a known covariance of the error of means.

        And `[m, d, d]`, how the errors of its entries depend on each other, as in
        `noise.CovarianceEstimate`; `None` takes them as independent.
        """
        dim = len(self.names)
        copies = np.where(self.replicated, self.values.shape[1], 1)
        share = 1 / np.maximum(copies[:, None], copies)
        error, deviations = np.zeros((dim, dim)), None
        for one in self.of_kind(Known):
            own = np.array(one.places)[:, None], np.array(one.places)
            if one.std_error is not None:
                error[own] = one.std_error * share[own]
            if one.deviations is not None:
                deviations = np.zeros((len(one.deviations), dim, dim))
                deviations[:, *own] = one.deviations * share[own]
        return error, deviations

    def rows(self, which: np.ndarray) -> "Observations":
        """Some of the rows: `which` holds their numbers, or is a mask `[n]`.

        What errors take from the rows is then of these.
        """
        beside = {role: one._replace(values=one.values[which]) for role, one in self.beside.items()}
        cross, index, target_cov = self.cross_cov, self.index, self.target_cov
        return dataclasses.replace(
            self,
            values=self.values[which],
            y=self.y[which],
            errors=tuple(one.rows(which) for one in self.errors),
            cross_cov=cross if cross is None or cross.ndim == 1 else cross[which],
            index=index if index is None else index[which],
            target_cov=target_cov if target_cov is None else target_cov[which],
            beside=beside,
        )

    def columns(self, kept: np.ndarray) -> "Observations":
        """Some of the columns, by their numbers in increasing order."""
        errors = []
        for one in self.errors:
            own = np.flatnonzero(np.isin(one.places, kept))
            if own.size:
                errors.append(one.columns(own, np.searchsorted(kept, np.array(one.places)[own])))
        return dataclasses.replace(
            self,
            values=self.values[:, :, kept],
            errors=tuple(errors),
            names=tuple(self.names[k] for k in kept),
            replicated=self.replicated[kept],
            cross_cov=None if self.cross_cov is None else self.cross_cov[..., kept],
        )

    def scaled(
        self, units: Any, x: np.ndarray | None = None, y: np.ndarray | None = None
    ) -> "Observations":
        """The table in `units` (`fits.units.Units`), without laws; x and y if they are given."""
        scale, cross, target_cov = units.scale, self.cross_cov, self.target_cov
        return dataclasses.replace(
            self,
            values=(self.values - units.center) / scale if x is None else x,
            y=(self.y - units.y_center) / units.y_scale if y is None else y,
            errors=tuple(one.scaled(scale[list(one.places)]) for one in self.errors),
            cross_cov=None if cross is None else cross / (scale * units.y_scale),
            target_cov=None if target_cov is None else target_cov / units.y_scale**2,
        )

    def times(self, factors: np.ndarray) -> "Observations":
        """The rows (x̃, ỹ) times the roots of `factors` `[n]`, without laws."""
        root, cross = np.sqrt(factors), self.cross_cov
        if cross is not None:
            cross = factors[:, None] * (cross if cross.ndim == 2 else cross[None])
        return dataclasses.replace(
            self,
            values=(root[:, None, None] * self.values).astype(self.values.dtype),
            y=(root * self.y).astype(self.y.dtype),
            errors=tuple(one.times(factors) for one in self.errors),
            cross_cov=cross,
        )

    def with_law(self, law: Any) -> "Observations":
        """The table of known errors with their joint distribution."""
        cov, dim = np.asarray(self.cov), len(self.names)
        return dataclasses.replace(self, errors=(Known(tuple(range(dim)), cov, law),))

    def evened(self, *, known: bool = False) -> "Observations":
        """The table in which all columns with errors have equally many copies in a row.

        Copies of known errors in unequal numbers are replaced by their means (V = 1). Where the
        errors are estimated from copies alone, the copies are kept in which all columns with
        replicates were measured, with NaN behind the last one of a row; with `known`, further
        columns may have errors of known covariance. Other tables are left as they are.
        """
        copied, others = self.of_kind(Replicates), self.of_kind(Known)
        kinds = len(copied) + len(others) == len(self.errors)
        if self.even or self.products is not None or not kinds or (copied and others and not known):
            return self
        if not copied:
            rows = self.means()
            errors = tuple(one.averaged(self.copies_of(one.places)) for one in others)
            single = np.zeros(len(self.names), bool)
            changes = {"errors": errors, "replicated": single, "cross_cov": rows.cross}
            return dataclasses.replace(self, values=rows.x[:, None], even=True, **changes)
        places = list(copied[0].places)
        whole = ~np.isnan(self.values[:, :, places]).any(axis=2)
        if (most := whole.sum(axis=1).max(initial=0)) < 2:
            raise ValueError(
                "no row has two copies in which all columns with replicates were measured: give "
                f"the variance of one copy of each, as noise={{{self.names[places[0]]!r}: 0.25}}"
            )
        order = np.argsort(~whole, axis=1, kind="stable")[:, :most]
        x = np.take_along_axis(self.values, order[:, :, None], axis=1)
        x[~np.take_along_axis(whole, order, axis=1)] = np.nan
        return dataclasses.replace(self, values=x, even=True)

    def settled(self) -> "Observations":
        """The table whose errors count as known, where all rows together estimate them.

        Equal numbers of replicates of unknown errors stay as they are.
        """
        if self.even and self.of_kind(Replicates):
            return self
        errors = []
        for one in self.errors:
            names = [self.names[j] for j in one.places]
            errors.append(one.settled(self.copies_of(one.places), names))
        return dataclasses.replace(self, errors=tuple(errors))

    def of_unknown_errors(self, x: np.ndarray) -> "Observations":
        """The table of these copies `[n, V, d]`, with errors that only they show."""
        every = np.arange(len(self.names))
        changes = {"errors": (Replicates(tuple(every.tolist())),), "replicated": every >= 0}
        return dataclasses.replace(self, values=x, even=True, **changes)

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
        if not self.only_sums:
            return
        copied = self.of_kind(Replicates)
        inexact = [one for one in self.errors if not isinstance(one, Recoded)]
        first = self.names[min((copied or inexact)[0].places)]
        if self.categories:
            raise ValueError(
                f"{user} needs the covariance of the error in each row: beside a misclassified "
                f"column give the variance of one replicate, as noise={{{first!r}: 0.25}}"
            )
        by_copies = "as many replicates in each row (drop incomplete ones), or " if copied else ""
        raise ValueError(
            f"{user} needs the covariance of the error in each row, but in this table it is an "
            "estimate that is right only in sums over rows, which linear fits take: give "
            f"{by_copies}a known variance, as noise={{{first!r}: 0.25}}{instead}"
        )

    def not_gaussian(self) -> str | None:
        """The name of a stated distribution that is not Gaussian, if there is one."""
        found = [name for one in self.of_kind(Known) if (name := one.not_gaussian())]
        return found[0] if found else None

    def num_copies(self) -> np.ndarray:
        """`[n]`, how many copies each row has; only `evened` leaves incomplete ones."""
        return np.sum(~np.isnan(self.x[:, :, 0]), axis=1)

    @property
    def categories(self) -> tuple[Categories, ...]:
        """Categories of misclassified columns, in whose place are recoded indicators."""
        return tuple(one.categories for one in self.of_kind(Recoded))

    @property
    def noise(self) -> Any:
        """Distribution of the errors in one copy of all columns, if that is known, or `None`."""
        table = self.evened()
        known = table.errors[0] if len(table.errors) == 1 else None
        return known.law if isinstance(known, Known) else None

    @functools.cached_property
    def cov(self) -> np.ndarray | None:
        """Covariance of the error in one copy, `[d, d]` or `[n, d, d]`; `None` if it is unknown.

        Where columns have unequal numbers of copies, it is of the error in their means.
        """
        copied, known = self.of_kind(Replicates), self.of_kind(Known)
        if not self.even or len(copied) + len(known) < len(self.errors):
            return self.means().cov
        if copied and not known:
            return None
        rows, _, dim = self.values.shape
        return in_places([(one.places, one.cov) for one in known], rows, dim)

    # Names of before, until all fits ask the table.

    @functools.cached_property
    def x(self) -> np.ndarray:
        """The copies, or their means `[n, 1, d]` where columns have unequal numbers of them."""
        return self.values if self.even else self.means().x[:, None]

    @property
    def only_sums(self) -> bool:
        """Whether covariances are right in sums over rows only."""
        own = [one for one in self.errors if not (self.even and isinstance(one, Replicates))]
        return not all(one.each_row for one in own)

    @property
    def copies(self) -> np.ndarray | None:
        """`values`, where `x` has their means."""
        return None if self.even else self.values

    @property
    def pooled(self) -> np.ndarray | None:
        """`[d]`, whether the error of a column is estimated from copies beside other errors."""
        copied = self.of_kind(Replicates)
        if not copied or (self.even and len(self.errors) == 1):
            return None
        return np.isin(np.arange(len(self.names)), copied[0].places)

    @property
    def unreliability(self) -> np.ndarray | None:
        """`[d]`, the share of a column's variance that is error."""
        found = np.zeros(len(self.names))
        for one in self.of_kind(Unreliable):
            found[list(one.places)] = one.share
        return found if found.any() else None

    @property
    def law(self) -> str | None:
        """`not_gaussian`, where `noise` is unknown."""
        return self.not_gaussian() if self.noise is None else None

    @property
    def cov_std_error(self) -> np.ndarray:
        """Standard errors of `cov`."""
        return self.uncertainty()[0] * self.x.shape[1]

    @property
    def cov_deviations(self) -> np.ndarray | None:
        """How they depend on each other."""
        deviations = self.uncertainty()[1]
        return None if deviations is None else deviations * self.x.shape[1]

    def averaged(self, weights: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """`x` and `cov` of `means`."""
        rows = self.means(weights)
        return rows.x, rows.cov

    def averaged_cross(self) -> np.ndarray | None:
        """`cross` of `means`."""
        return self.means().cross


def in_places(found: list[tuple[tuple[int, ...], np.ndarray]], rows: int, dim: int) -> np.ndarray:
    """Covariances of some columns, in their places of `[d, d]`, or `[n, d, d]` if one is by row."""
    if len(found) == 1 and found[0][0] == tuple(range(dim)):
        return found[0][1]
    by_row = any(cov.ndim == 3 for _, cov in found)
    whole = np.zeros((rows, dim, dim) if by_row else (dim, dim))
    for places, cov in found:
        own = np.array(places)
        whole[..., own[:, None], own] = cov
    return whole
