"""What a linear fit found: coefficients with intervals, and their estimated error on clean data."""

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # comes with JAX; scipy.special is imported when it is used
from jax.core import Tracer

from noisy_jax.fits.identification import SINGULAR, smallest_eigenvalue
from noisy_jax.streams.columns import in_order
from noisy_jax.validation import between


@dataclasses.dataclass(frozen=True, eq=False)
class Coefficients:
    """A linear predictor with its uncertainty, in original units.

    Attributes:
        intercept: the constant term.
        coefficients: `[d]`.
        covariance: `[1 + d, 1 + d]`, of the intercept and the coefficients.
        degrees_of_freedom: of Student's t in intervals.
        names: d names of the columns.
    """

    intercept: float
    coefficients: np.ndarray
    covariance: np.ndarray
    degrees_of_freedom: int
    names: tuple[str, ...]

    @property
    def std_error(self) -> np.ndarray:
        """`[1 + d]` standard errors of the intercept and the coefficients."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def interval(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the intervals of intercept and coefficients, `[1 + d]` each."""
        share = (1 + between("level", level, 0, 1)) / 2
        width = scipy.special.stdtrit(self.degrees_of_freedom, share) * self.std_error
        middle = np.append(self.intercept, self.coefficients)
        return middle - width, middle + width

    @jax.default_matmul_precision("highest")
    def predict(self, x: Any) -> Any:
        """Predictions `[...]` at features `[..., d]` in original units.

        A DataFrame's columns are taken by their names. It works under `jit`, `vmap` and `grad`, in
        JAX's default precision.
        """
        return features_of(x, self.names) @ self.coefficients + self.intercept


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Mean squared errors on clean data, estimated from noisy rows that the fit did not see.

    Each contains the variance of the noise in y. Standard errors contain the uncertainty of the
    noise's covariance, if it is an estimate.

    Attributes:
        corrected: of the corrected coefficients.
        corrected_std_error: its standard error.
        uncorrected: of the uncorrected coefficients.
        uncorrected_std_error: its standard error.
        difference: corrected − uncorrected, paired by row.
        difference_std_error: its standard error.
        variance: of y, for R² = 1 − error/variance.
        degrees_of_freedom: of Student's t in the interval of the difference.
    """

    corrected: float
    corrected_std_error: float
    uncorrected: float
    uncorrected_std_error: float
    difference: float
    difference_std_error: float
    variance: float
    degrees_of_freedom: float = math.inf

    def interval(self) -> tuple[float, float]:
        """Lower and upper end of the 95% interval of the difference."""
        half = (
            float(scipy.special.stdtrit(self.degrees_of_freedom, 0.975)) * self.difference_std_error
        )
        return self.difference - half, self.difference + half

    def __str__(self) -> str:
        """Two lines: both errors with R², and the interval of their difference."""
        low, high = self.interval()
        corrected, uncorrected = (
            f"{name} {risk:.4g} (R² {1 - risk / self.variance:.3f})"
            for name, risk in (("corrected", self.corrected), ("uncorrected", self.uncorrected))
        )
        return (
            "Mean squared error on clean data, estimated from noisy data by cross-fitting:\n"
            f"{corrected}, {uncorrected}; difference {self.difference:.2g} "
            f"[{low:.2g}, {high:.2g}]: {self.verdict()}."
        )

    def verdict(self) -> str:
        """Whether the correction helped, from the 95% interval of the difference."""
        low, high = self.interval()
        if high < 0:
            return "the correction helps"
        if low > 0:
            return "the correction hurts"
        return "no clear difference"


@dataclasses.dataclass(frozen=True, eq=False)
class LinearFit(Coefficients):
    """A corrected linear regression; print it for the table.

    The attributes of `Coefficients` are the corrected ones.

    Attributes:
        uncorrected: ordinary least squares on the noisy rows, with replicates on their means.
        reliability: `[d]`, the share of each column's variance that is not noise.
        risk: estimated errors of both on clean data.
        target: name of y.
        num_rows: n, rows of positive weight.
        num_copies: V, the noisy copies of each row whose mean is taken.
        gram: `[d, d]`, corrected centred moments of the columns, per row.
        cross: `[d]`, centred moments with y, per row.
        noise: `[d, d]`, mean covariance of the error that was taken away.
        means: `[1 + d]`, means of y and of the columns.
    """

    uncorrected: Coefficients
    reliability: np.ndarray
    risk: Comparison
    target: str
    num_rows: int
    num_copies: int
    gram: np.ndarray
    cross: np.ndarray
    noise: np.ndarray
    means: np.ndarray

    def __str__(self) -> str:
        """The table: coefficients, intervals, uncorrected coefficients, reliability, verdict."""
        noisy = "features" if self.num_copies == 1 else f"means of {self.num_copies} copies"
        return "\n".join(
            [
                f"{self.target} on {counted_features(len(self.names))}, "
                f"{self.num_rows:,} noisy rows",
                "",
                *compared(self, self.uncorrected, self.reliability),
                "",
                str(self.risk),
                "These coefficients are for interpretation and for clean features. To predict from",
                f"{noisy} that are as noisy as these, use the uncorrected fit (fit.uncorrected).",
            ]
        )

    def sensitivity(self, factors=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)) -> np.ndarray:
        """Coefficients under other assumed noise, `[len(factors), d]`.

        Row k assumes `factors[k]` times the covariance of the fit; 0 gives the uncorrected
        coefficients. Rows where the data would not identify the fit are NaN.

        Example:
            >>> import numpy as np, noisy_jax as nj
            >>> rng = np.random.default_rng(0)
            >>> x = rng.normal(size=(40_000, 1))
            >>> noisy = x + rng.normal(size=x.shape)
            >>> fit = nj.fit(nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=1.0))
            >>> print(fit.sensitivity([0.0, 1.0]).round(1))
            [[1.]
             [2.]]
        """
        plain = self.gram + self.noise
        rows = []
        for factor in factors:
            gram = plain - factor * self.noise
            sound = smallest_eigenvalue(gram, plain)[0] > SINGULAR
            rows.append(np.linalg.solve(gram, self.cross) if sound else np.nan * self.cross)
        return np.array(rows)

    def save(self, path: str | Path) -> None:
        """Writes the fit as JSON; `nj.load_fit` reads it."""
        write(self, path)


def compared(fit: Coefficients, uncorrected: Coefficients, reliability: np.ndarray) -> list[str]:
    """The lines of a table of coefficients with intervals, beside the uncorrected ones."""
    low, high = fit.interval()
    width = max(9, *map(len, fit.names))
    heading = (
        f"{'':<{width}} {'estimate':>10} {'std. error':>10} {'95% interval':>23} "
        f"{'uncorrected':>11} {'reliability':>11}"
    )
    rows = zip(
        ("intercept", *fit.names),
        np.append(fit.intercept, fit.coefficients),
        fit.std_error,
        low,
        high,
        np.append(uncorrected.intercept, uncorrected.coefficients),
        ("", *(f"{value:.3f}" for value in reliability)),
        strict=True,
    )
    table = [
        f"{name:<{width}} {value:>10.4g} {error:>10.2g} "
        f"{f'[{start:.4g}, {end:.4g}]':>23} {plain:>11.4g} {share:>11}"
        for name, value, error, start, end, plain, share in rows
    ]
    if len(table) > 11:
        table = [*table[:10], f"… and {len(table) - 10} more columns"]
    return [heading, *table]


def counted_features(count: int) -> str:
    """The words `1 feature` or `2 features`."""
    return f"{count} feature{'s' if count > 1 else ''}"


def features_of(x: Any, names: tuple[str, ...]) -> Any:
    """Features `[..., d]` in the order of a fit's names; a DataFrame's are found by name.

    In NumPy's float64, or traced in JAX's default precision.
    """
    if hasattr(x, "columns"):
        x = x[[x.columns[k] for k in in_order("x", x.columns, names)]]
    x = jnp.asarray(x, float) if isinstance(x, Tracer) else np.asarray(x, np.float64)
    if x.shape[-1:] != (len(names),):
        raise ValueError(
            f"x must be [..., {len(names)}], got {list(x.shape)}: one column a feature, in the "
            "order of the fit"
        )
    return x


def write(fit: Any, path: str | Path) -> None:
    """Writes the fields of a fit as JSON."""
    text = json.dumps(dataclasses.asdict(fit), default=lambda array: array.tolist(), indent=1)
    Path(path).write_text(text + "\n", encoding="utf-8")
