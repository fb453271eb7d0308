"""What the columns of a CSV file are: target, features, replicates, standard deviations."""

import dataclasses
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noisy_jax.csv_files import Layout, csv_parts
from noisy_jax.noise.dependent import Dependent
from noisy_jax.observed.observations.knowledge import Known
from noisy_jax.observed.observations.tables import Observations, from_arrays
from noisy_jax.validation import given, listed, non_negative

_ID = re.compile(r"(.*[_\W])?(id|ids|index|key|uid|uuid|row|no|nr|number)", re.IGNORECASE)
_CODES = {10.0**k - 1 for k in range(1, 6)}  # 9, 99, … stand for missing values in many tables
_FEW_ROWS = 10  # whole numbers in fewer rows may differ and increase by chance


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """What is known of the columns of a file; `observations.csv` explains the attributes."""

    target: Any = None
    noise: Known | Mapping[str, float] = None
    replicates: Mapping[str, str | Sequence[str]] | None = None
    cross_cov: Any = None
    std_error: Mapping[str, str] | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    sep: str = ","
    decimal: str = "."
    missing: Sequence[str] | None = None

    @property
    def layout(self) -> Layout:
        """How the cells of a CSV file are read."""
        return Layout(self.features, self.drop, self.sep, self.decimal, self.missing)

    def tables(
        self, path: str | Path, rows: int | None = None, after: int = 0
    ) -> Iterator[Observations]:
        """The tables of parts of a file, as `csv_parts` reads them."""
        if self.std_error is not None and (self.noise is not None or self.replicates is not None):
            raise ValueError("give std_error in place of noise and replicates, not beside them")
        replicates = (self.replicates or {}).items()
        others = {k: [v] if isinstance(v, str) else list(v) for k, v in replicates}
        if len({len(names) for names in others.values()}) > 1:
            raise ValueError("replicates must name as many columns for each feature")
        repeated = [name for names in others.values() for name in names]
        options = {"missing": isinstance(self.noise, Dependent), "layout": self.layout}
        beside = [*repeated, *(self.std_error or {}).values()]
        for part in csv_parts(path, self.target, rows=rows, after=after, others=beside, **options):
            yield self._table(path, *part, others, repeated)

    def _table(self, path, header, table, others, repeated) -> Observations:
        named = {*others, *(self.std_error or ())}
        named |= {*self.noise} if isinstance(self.noise, Mapping) else set()
        deviations = {*(self.std_error or {}).values()}
        features = self.layout.checked().features
        names = header if features is None else list(features)
        names = [name for name in names if name != self.target and name not in deviations]
        known, copied = {*names}, Counter(repeated)
        for name in named | ({*repeated} & {self.target}):
            if name not in known:
                raise ValueError(f"{path} has no feature {given(name)}; it has {listed(names)}")
        for name in repeated:
            if name in others or copied[name] > 1:
                raise ValueError(
                    f"replicates must name each column once, but {given(name)} is named twice"
                )
            if isinstance(self.noise, Mapping) and name in self.noise:
                raise ValueError(
                    f"noise must name features, but {given(name)} is a replicate of one"
                )
        names = [name for name in names if name not in copied]
        if features is None:
            for name in names:
                if name not in named and _numbers_rows(name, table[:, header.index(name)]):
                    raise ValueError(
                        f"column {given(name)} of {path} numbers or labels the rows: leave it out "
                        "(the option drop), or if it is a feature, name all of them (the option "
                        "features)"
                    )
        column = dict(zip(header, self._complete(path, header, table).T, strict=True))
        for name, values in column.items():
            if (code := _code_of_missing(values)) is not None:
                warnings.warn(
                    f"column {given(name)} of {path} has {code:g} far from all other values: if it "
                    "stands for a missing value, leave such rows out (the option missing)",
                    stacklevel=2,
                )
        more = len(next(iter(others.values()), ()))
        copies = [[column[one] for one in (n, *others.get(n, more * [n]))] for n in names]
        x = np.array(copies).T.copy()
        noise = self.noise if self.std_error is None else 0.0
        options = {"names": names, "target": self.target, "cross_cov": self.cross_cov}
        found = from_arrays(x, column[self.target], noise=noise, **options)
        if others and found.cov is not None:
            variances = np.diagonal(found.cov, axis1=-2, axis2=-1).T
            for name, variance in zip(names, variances, strict=True):
                if name not in others and np.any(variance):
                    raise ValueError(
                        f"column {given(name)} has noise but no replicates: name them, or none"
                    )
        if self.std_error is None:
            return found
        cov = np.zeros((len(x), len(names), len(names)))
        for name, other in self.std_error.items():
            place = names.index(name)
            error = non_negative(f"column {given(other)} of {path}", column[other], shape=None)
            cov[:, place, place] = error**2
        return dataclasses.replace(found, cov=cov)

    def _complete(self, path, header, table) -> np.ndarray:
        """The rows without a missing value; with noise of missing values, in the target."""
        gaps = np.isnan(table)
        if isinstance(self.noise, Dependent):
            gaps[:, [name != self.target for name in header]] = False
        kept = ~gaps.any(axis=1)
        if kept.all():
            return table
        which = listed([name for name, some in zip(header, gaps.any(axis=0), strict=True) if some])
        if not kept.any():
            raise ValueError(f"{path}: in each row a value is missing, of {which}")
        warnings.warn(
            f"{path}: {len(kept) - kept.sum():,} of {len(kept):,} rows are left out, as they have "
            f"missing values, of {which}",
            stacklevel=2,
        )
        return table[kept]


def _numbers_rows(name: str, values: np.ndarray) -> bool:
    """Whether a column seems to be a label of the rows."""
    if len(values) < _FEW_ROWS or not np.array_equal(values, np.round(values)):
        return False
    steps = np.diff(values)
    in_order = bool(np.all(steps > 0) or np.all(steps < 0))
    return in_order or (bool(_ID.fullmatch(name)) and len(np.unique(values)) == len(values))


def _code_of_missing(values: np.ndarray) -> float | None:
    """A number such as -999 that seems to stand for a missing value, if there is one."""
    for code in (values.min(), values.max()) if len(values) >= _FEW_ROWS else ():
        others = values[values != code]
        several = 0 < len(others) < len(values) - 1
        if abs(code) in _CODES and several and np.abs(others - code).min() >= np.ptp(others) > 0:
            return code
    return None
