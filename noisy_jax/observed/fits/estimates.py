"""Named estimates with standard errors, tests, intervals and predictions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from noisy_jax.gone import refuse_attribute
from noisy_jax.observed.fits.features import features_of
from noisy_jax.reports.intervals import LEVEL, half_width, p_value, parsed_level
from noisy_jax.reports.tables import Summarized, Table
from noisy_jax.validation.objects import switch
from noisy_jax.validation.values import array_module

COLUMNS = (
    ("", "{name}"),
    ("estimate", "{estimate:.4g}"),
    ("std. error", "{std_error:.2g}"),
    ("95% interval", "[{low:.4g}, {high:.4g}]"),
    ("uncorrected", "{uncorrected:.4g}"),
)
"""Columns of the table that a corrected fit prints."""


class Form(NamedTuple):
    """A kind of estimates, and the mean of y at clean features that follows from them."""

    line: bool  # an intercept, and behind it coefficients
    mean: Callable[[Any], Any] | None = None  # of y, from the linear predictor
    unit: str = ""  # of which exp(coefficient) is a ratio


def _sigmoid(eta: Any) -> Any:
    xp = array_module(eta)
    return xp.exp(-xp.logaddexp(0.0, -eta))


FORMS = {
    "linear": Form(True, lambda eta: eta),
    "logistic": Form(True, _sigmoid, "odds"),
    "poisson": Form(True, lambda eta: array_module(eta).exp(eta), "rate"),
    "coefficients": Form(True),  # of an estimator that only knows itself how it predicts
    "numbers": Form(False),  # of a function
    "curve": Form(False),  # parameters of a function of one row
}
"""Forms by the name that a saved fit has."""


def labels_of_line(names: tuple[str, ...]) -> tuple[str, ...]:
    """The label "intercept", or "(intercept)" if a column is called so, and the columns' names."""
    return ("(intercept)" if "intercept" in names else "intercept", *names)


def _root(cov: np.ndarray) -> np.ndarray:
    """Returns R `[k, k]` with RRᵀ = `cov`; negative eigenvalues, from rounding, count as zero."""
    values, axes = np.linalg.eigh(cov)
    return axes * np.sqrt(np.maximum(values, 0))


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Estimates(Summarized):
    """Named estimates with their covariance, in original units, and the predictions they make.

    `nj.fit` returns a `Fit`, which is one of these for the corrected estimates, and has another in
    `fit.uncorrected`. `std_error`, both ends of `interval()`, and rows of `summary()` and
    `to_frame()` are in the order of `labels`. A line has the label "intercept" first.

    Attributes:
        labels: k names of the estimates.
        values: `[k]`, the estimates.
        covariance: `[k, k]`, estimated covariance of the estimates' errors.
        degrees_of_freedom: degrees of freedom of Student's t in intervals, one number or `[k]`.
        names: names of the d columns that `predict` takes.
        form: how the estimates predict: "linear", "logistic" or "poisson" is a line with its link;
            "curve" is a function of one's own (`nj.methods.Model`). Of SIMEX, which does not
            predict, "coefficients" (intercept and slopes) or "numbers".
        references: categories that have no indicator column, such as `sex[f]` beside `sex[m]`.
        products: for each product of columns, which stand last in `labels`, the places of its two
            factors among `names`; () without products.
        function: the curve `(params, x[d]) -> []`; `None` for other forms, and in a fit that was
            read from a file without its method.
        start: a pytree with the structure of the curve's parameters; `None` where `function` is.
    """

    functions: ClassVar[tuple[str, ...]] = ("function", "start")

    labels: tuple[str, ...]
    values: np.ndarray
    covariance: np.ndarray
    degrees_of_freedom: float | np.ndarray
    names: tuple[str, ...]
    form: str = "linear"
    references: tuple[str, ...] = ()
    products: tuple[tuple[int, ...], ...] = ()
    function: Callable[..., Any] | None = None
    start: Any = None

    @property
    def _form(self) -> Form:
        return FORMS[self.form]

    @property
    def coefficients(self) -> np.ndarray:
        """The estimates without the intercept, `[k − 1]`; all of them, `[k]`, if there is none."""
        return self.values[1:] if self._form.line else self.values

    @property
    def intercept(self) -> float:
        """The intercept of a line; AttributeError for curves, and for numbers of a function."""
        if not self._form.line:
            raise AttributeError  # goes on in __getattr__
        return float(self.values[0])

    @property
    def params(self) -> Any:
        """The estimates as a pytree: for a curve in the structure of its `start`.

        For other forms, and for a curve that was read from a file without its method, it is a
        dictionary from labels to numbers.
        """
        if self.start is None:
            return dict(zip(self.labels, self.values.tolist(), strict=True))
        leaves, structure = jax.tree.flatten(self.start)
        ends = np.cumsum([np.size(leaf) for leaf in leaves])[:-1]
        parts = zip(np.split(self.values, ends), leaves, strict=True)
        return jax.tree.unflatten(structure, [part.reshape(np.shape(leaf)) for part, leaf in parts])

    @property
    def std_error(self) -> np.ndarray:
        """`[k]` standard errors."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def interval(self, level: float = LEVEL) -> tuple[np.ndarray, np.ndarray]:
        """Returns lower and upper ends of confidence intervals of all estimates, `[k]` each.

        They are estimate ± t · standard error, where t is the quantile of Student's t with
        `degrees_of_freedom` for the `level`, between 0 and 1; 0.95 by default.
        """
        level = parsed_level(level)
        width = half_width(self.std_error, self.degrees_of_freedom, level=level)
        return self.values - width, self.values + width

    @jax.default_matmul_precision("highest")
    def predict(self, x: Any, *, interval: bool = False, level: float = LEVEL) -> Any:
        """Returns predictions `[...]` of y at clean features `[..., d]`, in original units.

        They are means of y for linear fits and curves, probabilities of y = 1 for logistic fits and
        mean counts (at an exposure of 1) for Poisson fits. It works under `jit`, `vmap` and `grad`;
        curves are computed in JAX's default precision.

        Args:
            x: an array, or a DataFrame, a row of it or a mapping, whose columns are taken by name
                and whose categories become the fit's indicators. Products are computed from it.
            interval: whether to return confidence intervals of the mean of y as well, by default
                False. They contain the uncertainty of the estimates and not the scatter of y around
                its mean, and assume that the form of the line or curve is right. For curves they
                are by the delta method.
            level: level of these intervals, between 0 and 1; only with `interval`.

        Returns:
            The predictions; with `interval` three arrays `[...]`, the predictions and the lower and
            upper ends.

        Raises:
            ValueError: the fit is of SIMEX, whose estimator alone knows how to predict; columns are
                missing; or a curve was read from a file without its method.
        """
        level, interval = parsed_level(level), switch("interval", interval)
        if not interval and level != LEVEL:
            raise ValueError("level is of intervals: write predict(x, interval=True, level=…)")
        mean = self._form.mean
        if self.form != "curve" and mean is None:
            raise ValueError(
                "a fit of SIMEX has the numbers of an estimator, not its predictions: compute them "
                f"from {'fit.intercept and ' if self._form.line else ''}fit.coefficients"
            )
        x = features_of(x, self.names, self.references)
        value = self._on_curve(x, lambda curve: curve) if mean is None else self._on_line(x)
        if not interval:
            return value if mean is None else mean(value)
        xp = jnp if isinstance(x, Tracer) else np
        if mean is None:
            leaves, start = (
                jax.tree.leaves(self._on_curve(x, jax.grad)),
                jax.tree.leaves(self.params),
            )
            pairs = zip(leaves, start, strict=True)
            parts = [xp.asarray(a, float).reshape(*value.shape, np.size(b)) for a, b in pairs]
            value, slopes = xp.asarray(value, float), xp.concatenate(parts, axis=-1)
        else:
            factors = [(x[..., a] * x[..., b])[..., None] for a, b in self.products]
            slopes = xp.concatenate([xp.ones_like(x[..., :1]), x, *factors], axis=-1)
        quantile = float(half_width(1.0, np.min(self.degrees_of_freedom), level=level))
        half = quantile * self._error(slopes, xp)
        three = value, value - half, value + half
        return three if mean is None else tuple(mean(values) for values in three)

    def _error(self, slopes: Any, xp: Any) -> Any:
        """Standard errors `[...]` of combinations `[..., k]` of the estimates.

        Those of a line are split at the place where it is surest, so that float32 loses nothing to
        columns that are far from 0.
        """
        if not self._form.line:
            return xp.sqrt(xp.sum((slopes @ _root(self.covariance)) ** 2, axis=-1))
        shared, rest = self.covariance[1:, 0], self.covariance[1:, 1:]
        at = -np.linalg.pinv(rest, hermitian=True) @ shared
        least = max(self.covariance[0, 0] + at @ shared, 0.0)
        apart = slopes[..., 1:] - np.broadcast_to(at, slopes[..., 1:].shape)
        return xp.sqrt(least + xp.sum((apart @ _root(rest)) ** 2, axis=-1))

    def _on_line(self, x: Any) -> Any:
        """The linear predictor `[...]`."""
        dim = len(self.names)
        total = x @ self.values[1 : 1 + dim] + self.values[0]
        for (a, b), slope in zip(self.products, self.values[1 + dim :], strict=True):
            total = total + slope * x[..., a] * x[..., b]
        return total

    def _on_curve(self, x: Any, made_of: Callable[[Any], Any]) -> Any:
        """The function `made_of(curve)` of the parameters and each row of x `[..., d]`."""
        if self.function is None:
            raise ValueError(
                "the curve is not in the file: read it by nj.load_fit(path, nj.methods.Model(curve,"
                " start))"
            )
        x = jnp.asarray(x, float)
        params = jax.tree.map(lambda leaf: jnp.asarray(leaf, float), self.params)
        values = jax.vmap(made_of(self.function), (None, 0))(params, x.reshape(-1, x.shape[-1]))
        return jax.tree.map(lambda leaf: leaf.reshape(*x.shape[:-1], *leaf.shape[1:]), values)

    def summary(self, *, level: float = LEVEL, ratios: bool = False) -> Table:
        """Returns a table of estimates, standard errors, tests that they are 0, and intervals.

        The test statistic is t = estimate/std. error, by Student's t with the fit's degrees of
        freedom. The p value is two-sided, and below 1 − level exactly where the interval excludes
        0. No p value is corrected for the number of columns.

        Args:
            level: level of the intervals, between 0 and 1.
            ratios: adds exp(estimate) and its interval: odds ratios of a logistic fit, rate ratios
                of a Poisson fit, for a change of the column by 1. In the row of the intercept they
                are the odds, or the rate, where all columns are 0.

        Returns:
            A table: print it; `.rows` (dictionaries) and `.to_frame()` have the numbers, and
            `.save(path)` writes them as CSV.

        Example:
            >>> import numpy as np, noisy_jax as nj
            >>> fit = nj.fits.Estimates(
            ...     labels=("intercept", "dose"),
            ...     values=np.array([2.0, -1.0]),
            ...     covariance=np.diag([0.25, 4.0]),
            ...     degrees_of_freedom=7,
            ...     names=("dose",),
            ... )
            >>> print(fit.summary())
                       estimate  std. error     t        p     95% interval
            intercept         2         0.5     4  0.00519  [0.8177, 3.182]
            dose             -1           2  -0.5    0.632  [-5.729, 3.729]
            Student's t with 7 degrees of freedom; p values are two-sided.
        """
        level = parsed_level(level)
        if switch("ratios", ratios) and not self.unit:
            raise ValueError(
                "ratios are for logistic and Poisson fits, where exp(coefficient) is an odds ratio "
                "or a rate ratio; of this fit call summary()"
            )
        freedom = np.broadcast_to(np.asarray(self.degrees_of_freedom, float), self.values.shape)
        rows, has_freedom = self._rows(level), bool(np.isfinite(freedom).any())
        interval = f"{100 * level:g}% interval"
        columns = [
            *COLUMNS[:3],
            ("t" if has_freedom else "z", "{statistic:.3g}"),
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
        law = (
            f"Student's t with {several} degrees of freedom"
            if has_freedom
            else "Normal distribution"
        )
        below = [f"{law}; p values are two-sided.", *self._doubts()]
        return Table(rows, columns, self.title, below="\n".join(below))

    def to_frame(self) -> Any:
        """Returns the numbers of `summary()` as a pandas DataFrame, a row for each label."""
        return super().to_frame().set_index("name")

    @property
    def unit(self) -> str:
        """The kind of ratio that exp(coefficient) is: "odds", "rate", or "" for other fits."""
        return self._form.unit

    @property
    def title(self) -> str:
        """The line above the table; none for uncorrected estimates."""
        return ""

    def _doubts(self) -> list[str]:
        """Lines to read before one believes the intervals."""
        return []

    def _rows(self, level: float) -> list[dict[str, Any]]:
        """The numbers of all estimates."""
        low, high = self.interval(level)
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = self.values / self.std_error
        columns = {
            "name": self.labels,
            "estimate": self.values.tolist(),
            "std_error": self.std_error.tolist(),
            "statistic": statistic.tolist(),
            "p_value": p_value(statistic, self.degrees_of_freedom).tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        }
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raises an AttributeError; for a name that has left, it names the replacement."""
            if name == "intercept":
                labels = ", ".join(self.labels)
                raise AttributeError(f"these estimates have no intercept, they are of {labels}")
            refuse_attribute(self, name)
