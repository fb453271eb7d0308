"""What a linear fit found: coefficients with intervals, and their estimated error on clean data."""

import dataclasses
import textwrap
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
from noisy_jax.validation import between, choice, unmasked


@dataclasses.dataclass(frozen=True, eq=False)
class Coefficients:
    """A linear predictor with its uncertainty, in original units.

    Attributes:
        intercept: the constant term.
        coefficients: `[d]`.
        covariance: `[1 + d, 1 + d]`, of the intercept and the coefficients.
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
        """`[1 + d]` standard errors of the intercept and the coefficients."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def interval(self, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the intervals of intercept and coefficients, `[1 + d]` each."""
        level = float(between("level", level, 0, 1))
        width = half_width(self.std_error, self.degrees_of_freedom, level=level)
        middle = np.append(self.intercept, self.coefficients)
        return middle - width, middle + width

    @jax.default_matmul_precision("highest")
    def predict(self, x: Any) -> Any:
        """Predictions `[...]` at features `[..., d]` in original units.

        A DataFrame's columns are taken by their names. It works under `jit`, `vmap` and `grad`, in
        JAX's default precision.
        """
        return features_of(x, self.names) @ self.coefficients + self.intercept


@dataclasses.dataclass(frozen=True, eq=False)
class LinearFit(Coefficients, Saved):
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
        strength: of the identification: for that combination of columns in which the noise is
            largest, (λ − 1)²/v with the ratio λ of its variance to the noise's, and the variance v
            that λ would have if there were nothing but noise; 0 if the
            clean variance is estimated below 0, infinite without noise. Below 6 the identification
            is weak.
        share: of the noise's moments that is taken away: 1, or less by Fuller's modification where
            the identification is weak.
        equations: what the groups of rows add to the equations, for Anderson-Rubin sets; `None`
            with too few groups.
        remarks: what the rows show against the assumptions of the correction.
    """

    kind: ClassVar[str] = "linear"

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
    strength: float
    share: float
    equations: Equations | None
    remarks: tuple[str, ...] = ()

    def interval(
        self, level: float = 0.95, *, method: str = "wald"
    ) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the intervals of intercept and coefficients, `[1 + d]` each.

        Args:
            level: between 0 and 1.
            method: "wald" for estimate ± t · standard error, or "anderson-rubin" for sets that hold
                however weak the identification is. They are wider, and may be unbounded, from −∞
                to ∞, or consist of several intervals, of which the outer ends are returned; both
                ends are NaN for an empty set, which says that the model does not fit the table.

        Source: Anderson and Rubin (1949), projected on each coefficient (Dufour, 1997).
        """
        if choice("method", method, ("wald", "anderson-rubin")) == "wald":
            return super().interval(level)
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
        noisy = "features" if self.num_copies == 1 else f"means of {self.num_copies} copies"
        return "\n".join(
            [
                f"{self.target} on {counted_features(len(self.names))}, "
                f"{self.num_rows:,} noisy rows",
                "",
                *compared(self, self.uncorrected, self.reliability),
                *self._identified(),
                "",
                str(self.risk),
                "These coefficients are for interpretation and for clean features. To predict from",
                f"{noisy} that are as noisy as these, use the uncorrected fit (fit.uncorrected).",
                *lines_of(self.remarks),
            ]
        )

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
