"""What a linear fit found: coefficients with intervals, and their estimated error on clean data."""

import dataclasses
import textwrap
from collections.abc import Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from noisy_jax.columns import check_not_categorical, in_order, index_of
from noisy_jax.intervals import LEVEL, half_width
from noisy_jax.observed.fits.anderson_rubin import Equations
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.identification import SINGULAR, WEAK, smallest_eigenvalue
from noisy_jax.observed.fits.saved import Saved
from noisy_jax.tables import Table
from noisy_jax.validation import between, choice, unmasked


@dataclasses.dataclass(frozen=True, eq=False)
class Coefficients:
    """A linear predictor with its uncertainty, in original units.

    `names`, `coefficients`, `std_error` and both ends of `interval()` have one entry a column. The
    intercept has `intercept`, `intercept_std_error` and `intercept_interval()`.

    Attributes:
        intercept: the constant term.
        coefficients: `[d]`.
        covariance: `[1 + d, 1 + d]`, of the intercept and, behind it, the coefficients.
        degrees_of_freedom: of Student's t in intervals, one number or `[1 + d]`.
        names: d names of the columns.
    """

    intercept: float
    coefficients: np.ndarray
    covariance: np.ndarray
    degrees_of_freedom: float | np.ndarray
    names: tuple[str, ...]

    @property
    def std_error(self) -> np.ndarray:
        """`[d]` standard errors of the coefficients."""
        return self._errors()[1:]

    @property
    def intercept_std_error(self) -> float:
        """The standard error of the intercept."""
        return float(self._errors()[0])

    def interval(
        self, level: float = LEVEL, *, method: str = "wald"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the intervals of the coefficients, `[d]` each.

        Args:
            level: between 0 and 1.
            method: "wald" for estimate ± t · standard error; or, of a `LinearFit`, "anderson-rubin"
                for sets that hold however weak the identification is. They are wider, and may be
                unbounded, from −∞ to ∞, or consist of several intervals, of which the outer ends
                are returned; both ends are NaN for an empty set, which says that the model does not
                fit the table.

        Source: Anderson and Rubin (1949), projected on each coefficient (Dufour, 1997).
        """
        low, high = self._ends(level, method)
        return low[1:], high[1:]

    def intercept_interval(
        self, level: float = LEVEL, *, method: str = "wald"
    ) -> tuple[float, float]:
        """Lower and upper end of the interval of the intercept, as in `interval`."""
        low, high = self._ends(level, method)
        return float(low[0]), float(high[0])

    def _errors(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def _ends(self, level: float, method: str) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of intercept and coefficients, `[1 + d]` each."""
        choice("method", method, ("wald",))
        level = float(between("level", level, 0, 1))
        width = half_width(self._errors(), self.degrees_of_freedom, level=level)
        middle = np.append(self.intercept, self.coefficients)
        return middle - width, middle + width

    @jax.default_matmul_precision("highest")
    def predict(self, x: Any) -> Any:
        """Predictions `[...]` at features `[..., d]` in original units.

        A DataFrame's columns are taken by their names. It works under `jit`, `vmap` and `grad`.
        """
        return features_of(x, self.names) @ self.coefficients + self.intercept


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

    def _printed(self, lines: Sequence[str]) -> str:
        """The table of coefficients, some lines, and the remarks."""
        low, high = self._ends(LEVEL, "wald")
        columns = {
            "name": ("intercept", *self.names),
            "value": np.append(self.intercept, self.coefficients),
            "error": self._errors(),
            "low": low,
            "high": high,
            "plain": np.append(self.uncorrected.intercept, self.uncorrected.coefficients),
            "reliability": ("", *(f"{value:.3f}" for value in self.reliability)),
        }
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        shown = rows if len(rows) <= 11 else rows[:10]
        hidden = [f"… and {len(rows) - 10} more columns"] if len(rows) > 11 else []
        title = (
            f"{self.target} on {counted_features(len(self.names))}, {self.num_rows:,} noisy rows"
        )
        table = Table(rows, _COLUMNS, title, shown)
        return "\n".join([str(table), *hidden, *lines, *lines_of(self.remarks)])

    @property
    def _noisy(self) -> str:
        return "features" if self.num_copies == 1 else f"means of {self.num_copies} copies"


_COLUMNS = (
    ("", "{name}"),
    ("estimate", "{value:.4g}"),
    ("std. error", "{error:.2g}"),
    ("95% interval", "[{low:.4g}, {high:.4g}]"),
    ("uncorrected", "{plain:.4g}"),
    ("reliability", "{reliability}"),
)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class LinearFit(Corrected):
    """A corrected linear regression; print it for the table.

    It has the attributes of `Coefficients` and of `Corrected` as well.

    Attributes:
        risk: estimated errors of both fits on clean data.
        gram: `[d, d]`, corrected centred moments of the columns, per row.
        cross: `[d]`, centred moments with y, per row.
        noise: `[d, d]`, mean covariance of the error that was taken away.
        strength: of the identification: for that combination of columns in which the noise is
            largest, (λ − 1)²/v with the ratio λ of its variance to the noise's, and the variance v
            that λ would have if there were nothing but noise; 0 if the clean variance is estimated
            below 0, infinite without noise. Below 6 the identification is weak.
        equations: what the groups of rows add to the equations, for Anderson-Rubin sets; `None`
            with too few groups.
    """

    kind: ClassVar[str] = "linear"

    risk: Comparison
    gram: np.ndarray
    cross: np.ndarray
    noise: np.ndarray
    strength: float
    equations: Equations | None

    def _ends(self, level: float, method: str) -> tuple[np.ndarray, np.ndarray]:
        if choice("method", method, ("wald", "anderson-rubin")) == "wald":
            return super()._ends(level, method)
        level = float(between("level", level, 0, 1))
        if self.equations is None:
            raise ValueError(
                "Anderson-Rubin sets need more groups of rows than d + 1 = "
                f"{1 + len(self.names)}, of at most 32: give fewer columns, or more rows"
            )
        low, high = self.equations.sets(level)
        middle = np.append(self.intercept, self.coefficients)
        return middle + low, middle + high

    def __str__(self) -> str:
        """The table: coefficients, intervals, uncorrected coefficients, reliability, verdict."""
        lines = [
            *self._identified(),
            "",
            str(self.risk),
            "These coefficients are for interpretation and for clean features. To predict from",
            f"{self._noisy} that are as noisy as these, use the uncorrected fit (fit.uncorrected).",
        ]
        return self._printed(lines)

    def _identified(self) -> list[str]:
        if np.isinf(self.strength):  # no noise
            return []
        if self.strength >= WEAK:
            return [f"Identification strength {self.strength:.4g} (below {WEAK:g} is weak)."]
        return [
            f"Weak identification (strength {self.strength:.2g}, below {WEAK:g}): by Fuller's "
            f"modification {self.share:.2f} of the noise is taken away;",
            'intervals that hold at any strength: fit.interval(method="anderson-rubin").',
        ]

    def sensitivity(self, factors=(0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)) -> np.ndarray:
        """Coefficients under other assumed noise, `[len(factors), d]`.

        Row k assumes `factors[k]` times the covariance of the fit; 0 gives the uncorrected
        coefficients, and 1 those without Fuller's modification. Rows where the data would not
        identify the fit are NaN.

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


def lines_of(remarks: tuple[str, ...]) -> list[str]:
    """The remarks of a fit, in lines as wide as its table."""
    return [textwrap.fill(f"Note: {remark}.", 88) for remark in remarks]


def counted_features(count: int) -> str:
    """The words `1 feature` or `2 features`."""
    return f"{count} feature{'s' if count > 1 else ''}"


def features_of(x: Any, names: tuple[str, ...]) -> Any:
    """Features `[..., d]` in the order of a fit's names; pandas columns are found by name.

    In NumPy's float64, or traced in JAX's default precision.
    """
    if hasattr(x, "columns"):
        x = x[[x.columns[k] for k in in_order("x", x.columns, names)]]
        check_not_categorical("x", x)
    elif index_of(x) is not None and np.shape(x) == (len(names),):  # a row of a DataFrame
        x = np.asarray(x)[in_order("x", x.index, names)]
    traced = isinstance(x, Tracer)
    x = jnp.asarray(x, float) if traced else np.asarray(unmasked(x), np.float64)
    if x.shape[-1:] != (len(names),):
        raise ValueError(
            f"x must be [..., {len(names)}], got {list(x.shape)}: one column a feature, in the "
            "order of the fit"
        )
    return x
