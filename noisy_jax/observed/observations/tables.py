"""Tables of measured features and targets, with the known measurement error."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from noisy_jax.gone import refuse_attribute
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.observations.beside import Beside
from noisy_jax.observed.observations.categories import Categories
from noisy_jax.observed.observations.errors import Errors, Known, Replicates, stacked
from noisy_jax.observed.observations.products import Products
from noisy_jax.observed.observations.rows import Rows, row_numbers


@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """A table: n rows of noisy features x̃ = x + error with their targets, and what is known of it.

    `nj.table`, `nj.csv` and `nj.observations.from_arrays` make it; `nj.fit`, `nj.learn` and
    `nj.select` take it. It is in float64 and original units. To look at it, use `x`, `y`, `cov`,
    `noise`, `means()` and `rows(which)`; the other methods serve the fits.

    `x`, `cov` and `noise` belong together: the noisy copies and the error in one of them. If rows
    have different numbers of copies, or the errors are known in different ways, `x` holds means
    `[n, 1, d]` and `cov` is the covariance of their error.

    Attributes:
        copies: `[n, V, d]`, V noisy copies (replicates) of the d features of each row; V = 1
            without replicates. The known mean of the noise is subtracted. NaN where a row has fewer
            copies. A column without replicates has the same value in all V places. A misclassified
            column holds recoded indicators, whose mean is right (`noise.Misclassified`).
        y: `[n]` targets, which may contain noise of mean zero.
        errors: what is known of the errors, an object for each group of columns. Columns in none of
            them are exact.
        names: d names of the columns.
        target: name of y.
        replicated: `[d]`, bool, which columns have copies of their own in the V places.
        even: whether all columns with errors have equally many copies in a row, and errors of known
            covariance do not stand beside errors that are estimated from copies.
        cross_cov: `[d]` or `[n, d]`, covariance of the errors in y and in the first copy (errors in
            other copies are independent of the error in y); `None` if they are independent.
        index: pandas labels of the rows, or `None`. A pandas Series of weights or clusters that is
            given to a fit must have the same.
        target_cov: `[n]`, variance of the error in y, where it was stated; else `None`. Linear fits
            weight rows by it, and subtract it in `LinearFit.scatter`.
        references: the category of each indicated column that has no indicator, such as `sex[f]`.
        products: products of columns, which linear fits take as further columns; or `None`.
        beside: a mapping from "weights", "clusters" and "exposure" to the name and the values of
            their columns, which are no features.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> frame = {"dose": [1.0, 2.5, 3.0], "y": [2.0, 5.0, 6.5]}
        >>> table = nj.table(frame, target="y", noise={"dose": 0.25})
        >>> print(table, table.x.shape, table.cov)
        Observations(3 rows, 1 features, 1 copy, noise: known covariance) (3, 1, 1) [[0.25]]
    """

    copies: np.ndarray
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
        """Returns the shape, and the kind of knowledge of the noise."""
        rows, places, dim = self.copies.shape
        copies = places if self.even else 1
        knowledge = "known covariance" if self.each_row else "estimated covariance"
        knowledge = "estimated from replicates" if self.even and self.copied else knowledge
        knowledge = knowledge if self.noise is None else type(by_round(self.noise)[0]).__name__
        copies = "1 copy" if copies == 1 else f"{copies} copies"
        return f"Observations({rows:,} rows, {dim} features, {copies}, noise: {knowledge})"

    def means(self, weights: np.ndarray | None = None) -> Rows:
        """Returns the means of the copies of all rows, with the covariances of their errors.

        The result has `x` `[n, d]` (row i is x̄_i), `y` `[n]`, and `cov`, the covariance of the
        error in x̄_i, `[d, d]` or `[n, d, d]`. With replicates alone it is row i's own unbiased
        estimate from its V copies, Σ_v (x̃_iv − x̄_i)(x̃_iv − x̄_i)ᵀ/(V(V − 1)). If covariances are
        right in sums over rows only (`each_row` is False), these are sums with the weights `[n]`,
        by default 1.
        """
        return self._unweighted if weights is None and not self.even else self._means(weights)

    @functools.cached_property
    def _unweighted(self) -> Rows:
        return self._means(None)

    def _means(self, weights: np.ndarray | None) -> Rows:
        places, dim = self.copies.shape[1:]
        x, cross = self.copies[:, 0], self.cross_cov
        if places > 1:
            x = self.copies.mean(axis=1) if self.even else np.nanmean(self.copies, axis=1)
            x[:, ~self.replicated] = self.copies[:, 0, ~self.replicated]
        if cross is not None and self.even:
            cross = cross / places
        elif cross is not None:
            copies = self.copies_of(range(dim))
            cross = cross * ~np.isnan(copies[:, 0]) / np.sum(~np.isnan(copies), axis=1)
        covs = [error.of_means(self, weights) for error in self.errors]
        return Rows(x, self.y, self._placed(self.errors, covs), weights, cross)

    @functools.cached_property
    def x(self) -> np.ndarray:
        """`copies`; or, if `even` is False, the means of each row's copies, `[n, 1, d]`."""
        return self.copies if self.even else self.means().x[:, None]

    @functools.cached_property
    def cov(self) -> np.ndarray | None:
        """Covariance of the error in one copy of `x`, `[d, d]` or by row `[n, d, d]`.

        `None` if it is unknown, and must be estimated from the copies.
        """
        if not self.even or self.copies.shape[1] == 1:
            return self.means().cov
        stated = [error for error in self.errors if error.cov is not None]
        covs: Any = [error.cov for error in stated]
        return self._placed(stated, covs) if stated or not self.copied else None

    @functools.cached_property
    def noise(self) -> Any:
        """Distribution of the error in one copy of `x`, of all columns, or `None` if unknown."""
        errors = self.evened().errors
        return errors[0].joint(len(self.names)) if len(errors) == 1 else None

    def not_gaussian(self) -> str | None:
        """Returns the name of a stated distribution that is not Gaussian; `None` without one."""
        return next(filter(None, (error.not_gaussian() for error in self.errors)), None)

    def uncertainty(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Returns the standard errors `[d, d]` of the stated covariance of the error of means.

        They are 0 unless it was stated by a `noise.CovarianceEstimate`. The second result, m
        matrices `[m, d, d]`, says how the errors of its entries depend on each other
        (`CovarianceEstimate.deviations`); with `None` they are independent.
        """
        dim, deviations = len(self.names), None
        std_error = np.zeros((dim, dim))
        for error in self.errors:
            entries, (some, moves) = np.ix_(error.places, error.places), error.uncertainty(self)
            if some is not None:
                std_error[entries] = some
            if moves is not None:  # of one error at most: the covariance given by position
                deviations = np.zeros((len(moves), dim, dim))
                deviations[:, *entries] = moves
        return std_error, deviations

    def even_share(self, places: Sequence[int]) -> np.ndarray:
        """Returns `[k, k]`, the covariance of errors of means of V copies divided by one copy's."""
        counts = np.where(self.replicated[list(places)], self.copies.shape[1], 1)
        return 1 / np.maximum(counts[:, None], counts)

    @property
    def each_row(self) -> bool:
        """True if the covariances of `means()` are right in each row, not only in sums over rows.

        It is False where errors are estimated from the table, from replicates or a reliability, or
        where the noise of a column depends on its value, as under `noise.Multiplicative`.
        """
        return all(error.each_row for error in self.errors)

    @property
    def copied(self) -> bool:
        """True if errors of some columns are estimated from their copies."""
        return any(error.estimated for error in self.errors)

    @property
    def categories(self) -> tuple[Categories, ...]:
        """Categories of misclassified columns, in whose place are recoded indicators."""
        return tuple(error.categories for error in self.errors if error.categories is not None)

    def exact(self, places: Sequence[int]) -> bool:
        """Returns True if the columns at these places have no errors, and no copies that differ."""
        known = {j for error in self.errors if not error.estimated for j in error.noisy()}
        apart = np.ptp(self.copies[:, :, list(places)], axis=1)
        return known.isdisjoint(places) and not np.any(apart)

    def copies_of(self, places: Sequence[int]) -> np.ndarray:
        """Returns copies `[n, V, k]` of some columns.

        Of a column without replicates all but the first are NaN.
        """
        columns = list(places)
        copies = self.copies if columns == [*range(len(self.names))] else self.copies[:, :, columns]
        single = ~self.replicated[columns]
        if single.any() and copies.shape[1] > 1:
            copies = copies.copy()
            copies[:, 1:, single] = np.nan
        return copies

    def num_copies(self) -> np.ndarray:
        """Returns `[n]`, the number of copies that each row of `x` has.

        It is V for all rows, but in a table that `evened` returns.
        """
        return np.sum(~np.isnan(self.x[:, :, 0]), axis=1)

    def rows(self, which: np.ndarray) -> Observations:
        """Returns a table of some of the rows: `which` has their numbers, or is a mask or slice.

        A mask is `[n]`; numbers `[m]` below 0 count from the end. Errors that are estimated from
        the rows are then estimated from these rows.
        """
        which = row_numbers(which, len(self.y))

        def of_rows(values, rank):
            return values if values is None or values.ndim == rank else values[which]

        return dataclasses.replace(
            self,
            copies=self.copies[which],
            y=self.y[which],
            errors=tuple(error.rows(which) for error in self.errors),
            cross_cov=of_rows(self.cross_cov, 1),
            index=of_rows(self.index, 0),
            target_cov=of_rows(self.target_cov, 0),
            beside={role: column.rows(which) for role, column in self.beside.items()},
        )

    def shown(self) -> bool:
        """Returns True if the rows suffice to estimate errors from copies, where that is needed."""
        return all(error.shown(self) for error in self.errors)

    def joined(self, others: Sequence[Observations]) -> Observations:
        """Returns the rows of this and other tables as one table.

        They have no products, the same columns, and errors that are known in the same ways.
        """
        tables = [self, *others]
        counts = [len(table.y) for table in tables]
        errors = [
            error.joined([table.errors[k] for table in others], counts)
            for k, error in enumerate(self.errors)
        ]
        index = self.index
        if index is not None and all(table.index is not None for table in others):
            index = index.append([table.index for table in others])
        return dataclasses.replace(
            self,
            copies=np.concatenate([table.copies for table in tables]),
            y=np.concatenate([table.y for table in tables]),
            errors=tuple(errors),
            cross_cov=stacked([table.cross_cov for table in tables], counts, 1),
            index=index,
            target_cov=stacked([table.target_cov for table in tables], counts, 0),
            even=all(table.even for table in tables),
        )

    def columns(self, kept: np.ndarray) -> Observations:
        """Returns a table of some of the columns, by their numbers in increasing order."""
        errors = []
        for error in self.errors:
            chosen = np.flatnonzero(np.isin(error.places, kept))
            if chosen.size:
                places = np.searchsorted(kept, np.array(error.places)[chosen])
                errors.append(error.columns(chosen, tuple(places.tolist())))
        return dataclasses.replace(
            self,
            copies=self.copies[:, :, kept],
            errors=tuple(errors),
            names=tuple(self.names[k] for k in kept),
            replicated=self.replicated[kept],
            cross_cov=None if self.cross_cov is None else self.cross_cov[..., kept],
        )

    def scaled(
        self, units: Any, x: np.ndarray | None = None, y: np.ndarray | None = None
    ) -> Observations:
        """Returns the table in other units, as an object with their centers and scales has them.

        Distributions are dropped, and covariances stay. x `[n, V, d]` (with the copies of `evened`)
        and y `[n]` replace the table's, if they are given.
        """
        table = self if x is None else self.evened()
        scale, cross, target_cov = units.scale, table.cross_cov, table.target_cov
        return dataclasses.replace(
            table,
            copies=(table.copies - units.center) / scale if x is None else x,
            y=(table.y - units.y_center) / units.y_scale if y is None else y,
            errors=tuple(error.scaled(scale[list(error.places)]) for error in table.errors),
            cross_cov=None if cross is None else cross / (scale * units.y_scale),
            target_cov=None if target_cov is None else target_cov / units.y_scale**2,
        )

    def times(self, factors: np.ndarray) -> Observations:
        """Returns the rows (x̃, ỹ) times the roots of `factors` `[n]`, without distributions."""
        root, cross = np.sqrt(factors), self.cross_cov
        if cross is not None:
            cross = factors[:, None] * (cross if cross.ndim == 2 else cross[None])
        return dataclasses.replace(
            self,
            copies=(root[:, None, None] * self.copies).astype(self.copies.dtype),
            y=(root * self.y).astype(self.y.dtype),
            errors=tuple(error.times(factors) for error in self.errors),
            cross_cov=cross,
        )

    def with_law(self, law: Any) -> Observations:
        """Returns the table with `law` as the joint distribution of errors of known covariance."""
        places = tuple(range(len(self.names)))
        return dataclasses.replace(self, errors=(Known(places, np.asarray(self.cov), law),))

    def evened(self, *, known: bool = False) -> Observations:
        """Returns a table where all columns with errors have equally many copies in a row.

        Copies of known errors in unequal numbers are replaced by their means (V = 1). Where the
        errors are estimated from copies alone, copies are kept if all columns with replicates were
        measured in them, with NaN behind the last one of a row; with `known`, further columns may
        have errors of known covariance. Other tables are left as they are.
        """
        copied = [error for error in self.errors if error.estimated]
        mixed = len(self.errors) > 1 and bool(copied) and not known
        not_of_copies = not all(error.of_copies for error in self.errors)
        if self.even or self.products is not None or not_of_copies or mixed:
            return self
        if not copied:
            rows = self.means()
            errors = tuple(error.averaged(self) for error in self.errors)
            single = np.zeros(len(self.names), bool)
            changes = {"errors": errors, "replicated": single, "cross_cov": rows.cross}
            return dataclasses.replace(self, copies=rows.x[:, None], even=True, **changes)
        places = list(copied[0].places)
        whole = ~np.isnan(self.copies[:, :, places]).any(axis=2)
        if (most := whole.sum(axis=1).max(initial=0)) < 2:
            raise ValueError(
                "no row has two copies in which all columns with replicates were measured: give "
                f"the variance of one copy of each, as noise={{{self.names[places[0]]!r}: 0.25}}"
            )
        order = np.argsort(~whole, axis=1, kind="stable")[:, :most]
        x = np.take_along_axis(self.copies, order[:, :, None], axis=1)
        x[~np.take_along_axis(whole, order, axis=1)] = np.nan
        return dataclasses.replace(self, copies=x, even=True)

    def settled(self) -> Observations:
        """Returns the table with errors as known ones, where all rows together estimate them.

        Equal numbers of replicates of unknown errors stay as they are.
        """
        if self.even and self.copied:
            return self
        errors = tuple(error.settled(self) for error in self.errors)
        return dataclasses.replace(self, errors=errors)

    def of_unknown_errors(self, x: np.ndarray) -> Observations:
        """Returns the table of the copies x `[n, V, d]`, from which all errors are estimated."""
        dim = len(self.names)
        changes = {"errors": (Replicates(tuple(range(dim))),), "replicated": np.ones(dim, bool)}
        return dataclasses.replace(self, copies=x, even=True, **changes)

    def check_each_row(self, user: str, *, categories: bool = False, instead: str = "") -> None:
        """Raises ValueError if a fit of the name `user` cannot take this table.

        It cannot take `products`, covariances that are right in sums over rows only (`each_row`),
        and misclassified columns, unless `categories` is true. `instead` ends the message.
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
        if self.each_row or (self.even and self.copied):
            return
        copied = [error for error in self.errors if error.estimated]
        inexact = copied or [error for error in self.errors if error.categories is None]
        first = self.names[min(inexact[0].places)]
        if self.categories:
            raise ValueError(
                f"{user} needs each row's error variance: beside a misclassified column state the "
                f"variance of one measurement, noise={{{first!r}: 0.25}}"
            )
        if copied:
            measured = ~np.isnan(self.copies)
            replicated = list(copied[0].places)
            if (measured != measured[:1]).any():
                why = "rows have different numbers of replicates. Keep complete rows, or"
            elif np.ptp(measured[0][:, replicated].sum(axis=0)):
                why = "columns have different numbers of replicates. Name equally many of each, or"
            else:
                why = "its columns with replicates stand beside other noisy columns:"
            raise ValueError(
                f"{user} needs each row's error variance, but in this table {why} state the "
                f"variance of one measurement: noise={{{first!r}: 0.25}} beside the "
                f"replicates{instead}"
            )
        raise ValueError(
            f"{user} needs each row's error variance, which is known on average over the table, "
            "not for single rows. Only methods that use averages, such as nj.methods.Linear(), can "
            f"work with it; or state the variance of one measurement: noise={{{first!r}: 0.25}}"
            f"{instead}"
        )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raises an AttributeError that names the replacement of an attribute that is gone."""
            refuse_attribute(self, name)

    def _placed(self, errors: Sequence[Errors], covs: Sequence[np.ndarray]) -> np.ndarray:
        """Covariances of the errors as one, `[d, d]`, or `[n, d, d]` if one of them is by row."""
        rows, _, dim = self.copies.shape
        if len(errors) == 1 and errors[0].places == tuple(range(dim)):
            return covs[0]
        by_row = any(cov.ndim == 3 for cov in covs)
        whole = np.zeros((rows, dim, dim) if by_row else (dim, dim))
        for error, cov in zip(errors, covs, strict=True):
            places = np.array(error.places)
            whole[..., places[:, None], places] = cov
        return whole
