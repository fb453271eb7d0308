"""What a fit found: coefficients with standard errors, tests and intervals."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from noisy_jax.columns import check_not_categorical, in_order, index_of, is_missing, numeric
from noisy_jax.intervals import LEVEL
from noisy_jax.observed.fits.estimates import COLUMNS, Estimates, lines_of
from noisy_jax.observed.fits.saved import Saved
from noisy_jax.observed.observations.frames import columns_of
from noisy_jax.tables import Table
from noisy_jax.validation import collected, given, listed, real_numbers, unmasked


@dataclasses.dataclass(frozen=True, eq=False)
class Coefficients(Estimates):
    """A linear predictor with its uncertainty, in original units.

    `names`, `coefficients`, `std_error` and both ends of `interval()` have one entry a column. The
    intercept has `intercept`, `intercept_std_error` and `intercept_interval()`.

    Attributes:
        intercept: the constant term.
        coefficients: `[d]`.
        covariance: `[1 + d, 1 + d]`, of the intercept and, behind it, the coefficients.
        degrees_of_freedom: of Student's t in intervals, one number or `[1 + d]`.
        names: d names of the columns.
        products: places of the two factors of each of the last columns, if these are products.
        references: categories of columns with indicators of the others, as `sex[f]`.
    """

    intercept: float
    coefficients: np.ndarray
    covariance: np.ndarray
    degrees_of_freedom: float | np.ndarray
    names: tuple[str, ...]
    products: tuple[tuple[int, ...], ...] = ()
    references: tuple[str, ...] = ()

    @property
    def std_error(self) -> np.ndarray:
        """`[d]` standard errors of the coefficients."""
        return self._errors()[1:]

    @property
    def intercept_std_error(self) -> float:
        """The standard error of the intercept."""
        return float(self._errors()[0])

    def interval(self, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the intervals of the coefficients, `[d]` each.

        They are estimate ± t · standard error, with Student's t for a `level` between 0 and 1.
        """
        low, high = self._ends(level)
        return low[1:], high[1:]

    def intercept_interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Lower and upper end of the interval of the intercept, as in `interval`."""
        low, high = self._ends(level)
        return float(low[0]), float(high[0])

    @property
    def _labels(self) -> tuple[str, ...]:
        return ("intercept", *self.names)

    @property
    def _values(self) -> np.ndarray:
        return np.append(self.intercept, self.coefficients)

    @jax.default_matmul_precision("highest")
    def predict(self, x: Any) -> Any:
        """Predictions `[...]` at features `[..., d]` in original units.

        Columns of a DataFrame, or of a mapping, are taken by their names, and categories become the
        fit's indicators. Products are computed from the features. It works under `jit`, `vmap` and
        `grad`.
        """
        dim = len(self.names) - len(self.products)
        x = features_of(x, self.names[:dim], self.references)
        found = x @ self.coefficients[:dim] + self.intercept
        for (a, b), slope in zip(self.products, self.coefficients[dim:], strict=True):
            found = found + slope * x[..., a] * x[..., b]
        return found


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Corrected(Coefficients, Saved):
    """Corrected coefficients, beside uncorrected ones.

    Attributes:
        uncorrected: the fit to the noisy rows, with replicates to their means.
        reliability: `[d]`, the share of each column's variance that is not noise.
        target: name of y.
        num_rows: n, rows of positive weight.
        num_copies: V, the noisy copies of each row whose mean is taken.
        share: of the noise that is taken away: 1, or less where the identification is weak, or the
            equations with all of it have no root.
        remarks: what the rows show against the assumptions of the correction.
    """

    uncorrected: Coefficients
    reliability: np.ndarray
    target: str
    num_rows: int
    num_copies: int
    share: float = 1.0
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What was fitted: the line above the table."""
        features = counted_features(len(self.names))
        return f"{self.target} on {features}, {self.num_rows:,} noisy rows"

    def _rows(self, level: float) -> list[dict[str, Any]]:
        plain = np.append(self.uncorrected.intercept, self.uncorrected.coefficients).tolist()
        more = zip(super()._rows(level), plain, [np.nan, *self.reliability.tolist()], strict=True)
        return [row | {"uncorrected": b, "reliability": share} for row, b, share in more]

    def _printed(self, lines: Sequence[str]) -> Table:
        """The coefficients beside the uncorrected ones, and some lines below them."""
        rows = self._rows(LEVEL)
        shown = rows if len(rows) <= 11 else rows[:10]
        hidden = [f"… and {len(rows) - 10} more columns"] if len(rows) > 11 else []
        below = "\n".join([*hidden, *lines, *lines_of(self.remarks)])
        return Table(rows, [*COLUMNS, ("reliability", _reliability)], self.title, shown, below)

    @property
    def _noisy(self) -> str:
        return "features" if self.num_copies == 1 else f"means of {self.num_copies} copies"


def _reliability(row) -> str:
    return "" if np.isnan(row["reliability"]) else f"{row['reliability']:.3f}"


def counted_features(count: int) -> str:
    """The words `1 feature` or `2 features`."""
    return f"{count} feature{'s' if count > 1 else ''}"


def features_of(x: Any, names: tuple[str, ...], references: tuple[str, ...] = ()) -> Any:
    """Features `[..., d]` in the order of a fit's names.

    Columns of a data frame, of a row of it or of a mapping are found by name. Categories become
    indicators against `references`. In NumPy's float64, or traced in JAX's default precision.
    """
    x = collected(x)
    index = index_of(x)
    labelled = isinstance(x, Mapping) or hasattr(type(x), "columns")
    if not labelled and index is not None:  # a row of a DataFrame
        labelled = len(index) == len(names) or any(name in index for name in names)
    if labelled:
        x = _by_name(x, names, references)
    traced = isinstance(x, Tracer)
    x = jnp.asarray(x, float) if traced else np.asarray(real_numbers("x", x), np.float64)
    if x.shape[-1:] != (len(names),):
        raise ValueError(
            f"x must be [..., {len(names)}], got {list(x.shape)}: one column a feature, in the "
            "order of the fit"
        )
    return x


def _by_name(x: Any, names: tuple[str, ...], references: tuple[str, ...]) -> Any:
    """The columns of these names `[..., d]`; indicators that x lacks come from its categories."""
    index = index_of(x)
    if index is None and not isinstance(x, Mapping):
        labels, column, _ = columns_of(x)
        x = {label: column(label) for label in labels}
    labels = list(x if index is None or hasattr(x, "columns") else index)
    texts = [str(label) for label in labels]
    columns = {*texts}
    known = {one: _source(one, columns) for one in (*references, *names)}
    sources = {one: known[one] for one in names if one not in columns and known[one]}
    own = [name for name in names if name not in sources]
    try:
        taken = dict(zip(own, [labels[k] for k in in_order("x", labels, own)], strict=True))
    except ValueError as error:
        lost = [name for name in own if name not in texts]
        if not lost:
            raise
        hint = "if it was measured several times, the mean of the copies is meant, as frame"
        raise ValueError(f"{error}: {hint}[[…]].mean(axis=1)") from None
    if hasattr(x, "columns"):
        check_not_categorical("x", x[list(taken.values())])
    values = {
        name: numeric(f"column {given(name)} of x", x[label], np.float64, missing=True)
        for name, label in taken.items()
    }
    for source in dict.fromkeys(sources.values()):
        made = [name for name in sources if sources[name] == source]
        every = [one for one in known if known[one] == source]
        if every[0] not in references:
            raise ValueError(
                f"x has the column {source!r}, but the fit has indicators of its categories: add "
                f"a column {made[0]!r} that is 1 where {source!r} is "
                f"{made[0][len(source) + 1 : -1]!r}, and 0 elsewhere"
            )
        levels = [one[len(source) + 1 : -1] for one in every]
        own_level = _levels(source, x[labels[texts.index(source)]], levels)
        values |= {name: (own_level == every.index(name)) * 1.0 for name in made}
    arrays = [values[name] for name in names]
    if any(isinstance(one, Tracer) for one in arrays):
        arrays = jnp.broadcast_arrays(*[jnp.asarray(one, float) for one in arrays])
        return jnp.stack(arrays, axis=-1)
    return np.stack(np.broadcast_arrays(*arrays), axis=-1)


def _source(name: str, columns: Collection[str]) -> str:
    """The column of which `name` is an indicator, as `sex` of `sex[m]`, or "" if there is none."""
    ends = [k for k, letter in enumerate(name) if letter == "[" and name[-1] == "]"]
    return next((name[:k] for k in reversed(ends) if name[:k] in columns), "")


def _levels(name: str, values: Any, levels: Sequence[str]) -> np.ndarray:
    """The number of each cell's category among the levels of a fit."""
    cells = np.asarray(unmasked(values), object)
    numbers = np.empty(cells.shape, int)
    for place, one in np.ndenumerate(cells):
        where = f" in row {place[0]}" if place else ""
        if is_missing(one):
            raise ValueError(f"column {name!r} of x has no category{where}")
        texts = [str(one), f"{one:g}"] if isinstance(one, float) else [str(one)]
        known = [levels.index(text) for text in texts if text in levels]
        if not known:
            raise ValueError(
                f"column {name!r} of x has the category {given(one)}{where}, but those of the fit "
                f"are {listed(levels)}"
            )
        numbers[place] = known[0]
    return numbers
