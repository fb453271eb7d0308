"""Named estimates with standard errors, tests and intervals, as a table."""

import textwrap
from typing import Any

import numpy as np

from noisy_jax.intervals import LEVEL, half_width, p_value
from noisy_jax.tables import Summarized, Table
from noisy_jax.validation import between

COLUMNS = (
    ("", "{name}"),
    ("estimate", "{estimate:.4g}"),
    ("std. error", "{std_error:.2g}"),
    ("95% interval", "[{low:.4g}, {high:.4g}]"),
    ("uncorrected", "{uncorrected:.4g}"),
)
"""Of the table that a corrected fit prints."""


def lines_of(remarks: tuple[str, ...]) -> list[str]:
    """The remarks of a fit, in lines as wide as its table."""
    return [textwrap.fill(f"Note: {remark}.", 88) for remark in remarks]


def percent(share: float) -> str:
    """A share of the noise that is below 1, such as 99.6%: it is never rounded up to 100%."""
    return f"{np.floor(1000 * share) / 10:g}%"


class Estimates(Summarized):
    """Named estimates with their covariance: what `Coefficients` and `ModelFit` share.

    Attributes:
        covariance: `[k, k]`, of all estimates.
        degrees_of_freedom: of Student's t in intervals, one number or `[k]`.
        remarks: what to know before one believes the intervals.
    """

    covariance: np.ndarray
    degrees_of_freedom: float | np.ndarray
    remarks: tuple[str, ...] = ()
    _labels: tuple[str, ...]  # k names
    _values: np.ndarray  # [k], estimates

    def summary(self, *, level: float = LEVEL, ratios: bool = False) -> Table:
        """Estimates, standard errors, tests of 0 and intervals.

        The test is t = estimate/std. error, by Student's t with the fit's degrees of freedom, as
        the interval is. So a p value is below 1 − level exactly where the interval excludes 0. No
        p value is corrected for the number of columns.

        Args:
            level: of the intervals, between 0 and 1.
            ratios: adds exp(estimate) and its interval: odds ratios of a logistic fit, rate ratios
                of a Poisson fit, for a change of the column by 1. In the row of the intercept they
                are the odds, or the rate, where all columns are 0.

        Returns:
            A table: print it; `.rows` and `.to_frame()` have the numbers, `.save(path)` writes CSV.

        Example:
            >>> from noisy_jax.observed.fits import Coefficients
            >>> fit = Coefficients(2.0, np.array([-1.0]), np.diag([0.25, 4.0]), 7, ("dose",))
            >>> print(fit.summary())
                       estimate  std. error     t        p     95% interval
            intercept         2         0.5     4  0.00519  [0.8177, 3.182]
            dose             -1           2  -0.5    0.632  [-5.729, 3.729]
            Student's t with 7 degrees of freedom; p values are two-sided.
        """
        if ratios and not self.unit:
            raise ValueError(
                "ratios are for logistic and Poisson fits, where exp(coefficient) is an odds ratio "
                "or a rate ratio; of this fit call summary()"
            )
        freedom = np.broadcast_to(np.asarray(self.degrees_of_freedom, float), self._errors().shape)
        rows, known = self._rows(level), bool(np.isfinite(freedom).any())
        interval = f"{100 * level:g}% interval"
        columns = [
            *COLUMNS[:3],
            ("t" if known else "z", "{statistic:.3g}"),
            ("p", "{p_value:.3g}"),
            (interval, "[{low:.4g}, {high:.4g}]"),
        ]
        if ratios:
            ends = {"ratio": "estimate", "ratio_low": "low", "ratio_high": "high"}
            with np.errstate(over="ignore"):
                rows = [row | {k: float(np.exp(row[v])) for k, v in ends.items()} for row in rows]
            columns.append((f"{self.unit} ratio", "{ratio:.4g}"))
            columns.append((interval, "[{ratio_low:.4g}, {ratio_high:.4g}]"))
        least, most = (f"{end:.3g}" for end in (freedom.min(), freedom.max()))
        several = least if least == most else f"{least} to {most}"
        law = f"Student's t with {several} degrees of freedom" if known else "Normal distribution"
        below = [f"{law}; p values are two-sided.", *self._doubts()]
        return Table(rows, columns, self.title, below="\n".join(below))

    def to_frame(self) -> Any:
        """The numbers of `summary()` as a pandas DataFrame, a row for each name."""
        return super().to_frame().set_index("name")

    @property
    def unit(self) -> str:
        """Of which exp(coefficient) is a ratio: "odds", "rate", or "" for a linear predictor."""
        return ""

    @property
    def title(self) -> str:
        """What was fitted: the line above the table."""
        return ""

    def _doubts(self) -> list[str]:
        """What to know before one believes the intervals, in lines."""
        return lines_of(self.remarks)

    def _rows(self, level: float) -> list[dict[str, Any]]:
        """The numbers of all estimates."""
        low, high = self._ends(level)
        errors = self._errors()
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = self._values / errors
        columns = {
            "name": self._labels,
            "estimate": self._values.tolist(),
            "std_error": errors.tolist(),
            "statistic": statistic.tolist(),
            "p_value": p_value(statistic, self.degrees_of_freedom).tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def _errors(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def _ends(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of all intervals, as many as estimates."""
        level = float(between("level", level, 0, 1))
        width = half_width(self._errors(), self.degrees_of_freedom, level=level)
        return self._values - width, self._values + width
