"""Corrected fits: their numbers beside uncorrected ones, and the lines below the table."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from noisy_jax.observed.fits.estimates import COLUMNS, Estimates
from noisy_jax.observed.fits.judged import Comparison
from noisy_jax.observed.fits.saved import Saved
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.categories import recorded_means
from noisy_jax.plots.coefficients import coefficients
from noisy_jax.plots.function import function
from noisy_jax.reports.intervals import LEVEL
from noisy_jax.reports.tables import Summarized, Table
from noisy_jax.validation.objects import check_columns

_WIDTH = 88
_MOST = 11  # rows of a printed table


def percent(share: float) -> str:
    """A share of the noise that is below 1, such as 99.6%: it is never rounded up to 100%."""
    return f"{np.floor(1000 * share) / 10:g}%"


def counted_features(count: int) -> str:
    """The words `1 feature` or `2 features`."""
    return f"{count} feature{'s' if count > 1 else ''}"


def lines_of(remarks: Sequence[str]) -> list[str]:
    """The remarks of a fit, in lines as wide as its table."""
    return [textwrap.fill(f"Note: {remark}.", _WIDTH) for remark in remarks]


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Result(Saved, Summarized):
    """A corrected fit of any kind, `Fit` or `FourierFit`, which describe the attributes."""

    names: tuple[str, ...]
    uncorrected: Any
    target: str
    num_rows: int
    num_copies: int
    risk: Comparison | None = None
    remarks: tuple[str, ...] = ()
    about: str = ""
    exposed: bool = False  # predictions are of counts in a unit of the exposure

    def predict(self, x: Any, **options: Any) -> Any:
        """Predictions `[...]` of y at clean features `[..., d]` in original units."""
        raise NotImplementedError

    def residuals(self, table: Observations) -> np.ndarray:
        """Returns residuals `[n]`: y minus the prediction at the mean of each row's copies.

        The rows are noisy: a residual contains the error in y and, times the slope, the error of
        measurement in x. So residuals vary more than at clean features, and are correlated with the
        noisy x. Misclassified columns are taken as they were recorded. The exposure of a Poisson
        fit multiplies the prediction.

        Args:
            table: the noisy rows, with the columns of the fit, such as the table that was fitted.

        Raises:
            ValueError: columns differ from the fit's, or only one of the table and the fit has an
                exposure.
        """
        check_columns(table, self.names)
        predictions = np.asarray(self.predict(recorded_means(table)), np.float64)
        if self.exposed != ("exposure" in table.beside):
            raise ValueError(
                "the fit has an exposure: make the table with it, as nj.table(…, exposure='days')"
                if self.exposed
                else "the fit has no exposure: make the table without it"
            )
        if self.exposed:
            predictions = predictions * table.beside["exposure"].values
        return table.y - predictions

    def plot(self: Any, table: Any = None, *args: Any, **options: Any) -> Any:
        """Draws the coefficients (`nj.plots.coefficients`), and returns the matplotlib axes.

        For a curve, by `nj.methods.Fourier` or `nj.methods.Model`, it draws y as a function of one
        column (`nj.plots.function`): `fit.plot(table)`.

        Args:
            table: for a curve the table that was fitted, or one like it; else leave it out.
            *args: for a curve the name of the column; by default the first one.
            **options: options of these functions, such as `axes` to draw on; new axes by default.
        """
        if self.form == "curve":
            if table is None:
                raise ValueError("the picture of a curve needs its table: fit.plot(table)")
            return function(self, table, *args, **options)
        if table is not None or args:
            raise ValueError("the picture of coefficients needs no table: fit.plot()")
        return coefficients(self, **options)

    def _below(self, first: Sequence[str], subject: str) -> str:
        """All lines below the printed table: `first`, estimated errors, the method, remarks.

        `subject` names the predictor at clean features, or is "" for fits without predictions.
        """
        noisy = "features" if self.num_copies == 1 else f"means of {self.num_copies} copies"
        predicts = (
            f"{subject} for clean features. To predict from {noisy} that are as noisy as these, "
            "use the uncorrected fit (fit.uncorrected)."
        )
        about = (self.about, predicts if subject else "")
        return "\n".join(
            [
                *first,
                "",
                *([] if self.risk is None else [str(self.risk)]),
                *(textwrap.fill(text, _WIDTH) for text in about if text),
                *lines_of(self.remarks),
            ]
        )


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Fit(Estimates, Result):
    """The result of `nj.fit`: corrected estimates beside uncorrected ones; print it for the table.

    Logistic and Poisson regression, regression calibration and curves of your own return it; linear
    fits return a `LinearFit` and SIMEX a `SimexFit`, with more attributes. Its own `labels`,
    `values`, `covariance`, `coefficients`, `std_error`, `interval()`, `predict()` and `summary()`
    (see `Estimates`) are of the corrected fit.

    Attributes:
        uncorrected: `Estimates` of the same method from the noisy rows as if they were clean, with
            replicates from their means. Use it to predict from equally noisy features.
        reliability: `[d]`, the share of each column's variance that is not noise; `None` for curves
            and for numbers of a function, which are not coefficients of columns.
        scale: `[d]`, standard deviations of the noisy columns (of the means of their copies);
            `None` where `reliability` is.
        share: the share of the noise's covariance that is taken away: 1, or less where the clean
            columns hardly vary (`LinearFit.strength`), or where the equations with all of it have
            no solution. Estimates are then still biased.
        target: name of y.
        num_rows: n, number of rows of positive weight.
        num_copies: V, number of noisy copies of each row.
        risk: estimated mean squared errors of both fits on clean data, of linear fits (`LinearFit`
            describes it); else `None`.
        remarks: texts: evidence in the rows against the assumptions of the correction, cautions
            about the intervals, and notes on categories, which are no doubts; () if there are none.
        about: sentences about the method, which stand below the printed table.
        exposed: whether the fit has an exposure (`nj.methods.Poisson`).

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(20_000, 1))
        >>> y = (rng.random(20_000) < 1 / (1 + np.exp(-x[:, 0]))) * 1.0
        >>> noisy = x + 0.7 * rng.normal(size=x.shape)
        >>> fit = nj.fit(nj.observations.from_arrays(noisy, y, noise=0.49), nj.methods.Logistic())
        >>> print(fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        [1.] [0.6]
    """

    kind: ClassVar[str] = "fit"

    uncorrected: Estimates
    reliability: np.ndarray | None = None
    scale: np.ndarray | None = None
    share: float = 1.0

    @classmethod
    def of(
        cls, corrected: Estimates, uncorrected: Estimates, table: Observations, **more: Any
    ) -> Self:
        """Returns the fit of these estimates to the rows of a table, with `more` attributes.

        `nj.fit` calls it.
        """
        of_table = {
            "target": table.target,
            "num_rows": len(table.y),
            "num_copies": table.x.shape[1],
        }
        return cls(**vars(corrected), uncorrected=uncorrected, **(of_table | more))

    @property
    def title(self) -> str:
        """Returns the line above the table: the method and the form of the fit."""
        count, on = len(self.names), "by a model of"
        if self._form.line:
            count, on = len(self.coefficients), "on"
        features = counted_features(count)
        return f"{self.target} {on} {features}, {self.num_rows:,} noisy rows"

    def _rows(self, level: float) -> list[dict[str, Any]]:
        rows = super()._rows(level)
        for row, plain in zip(rows, self.uncorrected.values.tolist(), strict=True):
            row["uncorrected"] = plain
        if self.reliability is not None:  # an intercept has none
            shares = [*[np.nan] * (len(rows) - len(self.reliability)), *self.reliability.tolist()]
            for row, share in zip(rows, shares, strict=True):
                row["reliability"] = share
        return rows

    def _shown(self) -> Table:
        """Estimates, intervals, uncorrected estimates, and reliabilities."""
        rows = self._rows(LEVEL)
        printed = rows if len(rows) <= _MOST else rows[: _MOST - 1]
        more = len(rows) - len(printed)
        what = "columns" if self._form.line else "estimates"
        first = [*([f"… and {more} more {what}"] if more else []), *self._known()]
        columns = COLUMNS if self.reliability is None else (*COLUMNS, ("reliability", _reliability))
        below = self._below(first, self._subject())
        return Table(rows, columns, self.title, printed, below)

    def _subject(self) -> str:
        if self._form.mean is not None:
            return "These coefficients are for interpretation and"
        return "These parameters are" if self.form == "curve" else ""

    def _known(self) -> list[str]:
        """Returns lines on the identification, below the table; none but for linear fits."""
        return []

    def _doubts(self) -> list[str]:
        return [*self._known(), *lines_of(self.remarks)]


def _reliability(row) -> str:
    return "" if np.isnan(row["reliability"]) else f"{row['reliability']:.3f}"
