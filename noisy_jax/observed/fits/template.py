"""The course of a fit, the same for all methods: check the table, weigh, doubt, solve, remark."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from noisy_jax.observed.fits.assumptions import remarked, warned
from noisy_jax.observed.fits.doubts import Doubt, with_warnings
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters, if_counts
from noisy_jax.observed.fits.identification import check_identified, covariances
from noisy_jax.observed.fits.linear_moments import moments_of
from noisy_jax.observed.fits.parts import TableMoments
from noisy_jax.observed.fits.units import UndeterminedError, Units
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.beside import ROLES, with_roles
from noisy_jax.observed.observations.passes import is_frame
from noisy_jax.observed.observations.rows import Rows
from noisy_jax.validation.messages import given
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import collected

_Fit = TypeVar("_Fit")
_LEFT_OUT = (
    "{} of {} rows have too few copies to be corrected, and are left out, which is right unless "
    "the number of copies depends on y: give the noise of one copy, as "
    "noise={{{!r}: nj.noise.Gaussian(0.25)}}, to use all rows"
)


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """The rows of a table that count in a fit: rows of positive weight.

    (`nj.Sample` is something else, the noisy data of one round of a stream.)

    Attributes:
        table: n rows.
        weights: `[n]`, positive; or `None`, where all are 1.
        clusters: `[n]`, whole numbers from 0 without gaps; or `None`.
        doubts: doubts about the rows, which become remarks of the fit.
    """

    table: Observations
    weights: np.ndarray | None
    clusters: np.ndarray | None
    doubts: list[Doubt]

    @property
    def exposure(self) -> np.ndarray | None:
        """`[n]`, positive, if the table has it."""
        beside = self.table.beside
        return beside["exposure"].values if "exposure" in beside else None

    @classmethod
    def of_table(cls, table: Observations) -> Sample:
        """The rows of positive weight of a table, which has weights and clusters beside it."""
        beside = {role: column.values for role, column in table.beside.items()}
        sample = cls(table, beside.get("weights"), beside.get("clusters"), [])
        all_rows = np.ones(len(table.y), bool)
        return sample.some(all_rows if sample.weights is None else sample.weights > 0)

    def of(self, table: Observations) -> Sample:
        """The same rows, in another table."""
        return dataclasses.replace(self, table=table)

    def some(self, kept: np.ndarray) -> Sample:
        """Some of the rows, `kept` `[n]`, with their clusters numbered anew."""
        table, weights, clusters = self.table, self.weights, self.clusters
        if not kept.all():
            table, weights = table.rows(kept), None if weights is None else weights[kept]
        if clusters is not None:
            clusters = np.unique(clusters[kept], return_inverse=True)[1]
        return Sample(table, weights, clusters, self.doubts)

    def with_copies(self, least: int) -> Sample:
        """Returns the rows with at least `least` copies; a warning tells if rows are left out."""
        kept = self.table.num_copies() >= least
        if not kept.all():
            few = _LEFT_OUT.format(np.sum(~kept), len(kept), self.table.names[0])
            self.tell([Doubt(few, spoils=False)])
        return self.some(kept)

    def standardized(self, rows: Rows, *, scales_y: bool = True) -> tuple[Rows, Units, np.ndarray]:
        """The sample's `rows` in units, these, and the reliability `[d]` of each column.

        Raises:
            ValueError: rows or clusters are too few for standard errors, a column is constant, or
                no more than its error.
        """
        n, dim = rows.x.shape
        if n < (least := max(dim + 2, LEAST_GROUPS)):
            few = f"fit needs at least {least} rows, got {n}"
            raise UndeterminedError(f"{few}{if_counts(self.weights)}")
        check_clusters(self.clusters)
        units = Units.of(rows.x, rows.y, self.table)
        if not scales_y:
            units = dataclasses.replace(units, y_center=0.0, y_scale=1.0)
        rows = units.standardized(rows)
        clean, noisy = covariances(moments_of(rows._replace(weights=self.weights)))
        check_identified(clean, noisy, self.table.names, units.scale)
        return rows, units, np.diag(clean) / np.diag(noisy)

    def tell(self, doubts: Sequence[Doubt]) -> None:
        """Warns of more doubts, and adds them to the remarks of the fit."""
        self.doubts.extend(with_warnings(doubts))


class Method(Generic[_Fit]):
    """Base of the methods of `nj.fit`, which are frozen dataclasses of their options.

    A method has `_solved`, and for tables in chunks `_of_chunks`. Those of its options that are
    called `weights`, `clusters` and `exposure` are arrays `[n]`, names of columns, or `None`; a
    table with one of them is refused if the method has no option for it.
    """

    def __post_init__(self) -> None:
        """Replaces options that are iterators by tuples, as a fit may be called again."""
        method: Any = self
        for field in dataclasses.fields(method):
            object.__setattr__(self, field.name, collected(getattr(self, field.name)))

    def fitted(self, observations: Any) -> _Fit:
        """Returns the fit to a table; `nj.fit(observations, method)` calls it."""
        observations = checked_table(observations)
        if isinstance(observations, Iterable):
            return self._of_chunks(observations)
        roles = {role: getattr(self, role) for role in ROLES if hasattr(self, role)}
        sample = Sample.of_table(with_roles(observations, roles, self._name))
        # Doubts: of the table here, of the method by `sample.tell`; `remarked` adds the last one.
        sample.doubts.extend(warned(sample.table, sample.clusters))
        fit = self._solved(sample)
        return remarked(fit, sample.doubts)

    def _solved(self, sample: Sample) -> _Fit:
        """The fit to rows that were looked at; `sample.tell` adds to its remarks."""
        raise NotImplementedError

    def _of_chunks(self, chunks: Iterable[Any]) -> _Fit:
        """The fit to the chunks of a table, or to moments of its parts."""
        raise ValueError(f"chunks are for nj.methods.Linear; {self._name} takes one table")

    @property
    def _name(self) -> str:
        return f"nj.methods.{type(self).__name__}"


def checked_table(observations: Any) -> Any:
    """A table or chunks; ValueError with the right call if x, or a file's name, stands for one."""
    if isinstance(observations, Observations):
        return observations
    if isinstance(observations, str | os.PathLike):
        name = os.fspath(observations)
        call = f"nj.fit(nj.csv({name!r}, target=…, noise=…))"
        raise ValueError(f"fit takes a table, got the path {name!r}; read the file: {call}")
    call = "nj.fit(nj.observations.from_arrays(x, y, noise=…))"
    frame = is_frame(observations)
    if frame:
        call = "nj.fit(nj.table(frame, target=…, noise=…))"
    # A list may hold chunks; a list of rows, an array and a data frame are features alone.
    listed = observations[:1] if isinstance(observations, list | tuple) else []
    features = any(not isinstance(part, Observations | TableMoments) for part in listed)
    if features or frame or hasattr(observations, "shape"):
        raise ValueError(
            "fit takes one table of x, y and what is known of the noise, got "
            f"{given(observations)}: {call}"
        )
    if not isinstance(observations, Iterable):
        return instance("observations", observations, Observations, f"as in {call}")
    if not isinstance(observations, Iterator):
        return observations
    first = next(observations, None)
    rest = itertools.chain([] if first is None else [first], observations)
    return tuple(rest) if isinstance(first, TableMoments) else rest
