"""Linear fits: from a table, or from moments of its parts, to coefficients with intervals.

A fit of one table, whose rows are there, has intervals by the sandwich or the jackknife; a fit of
moments alone has the jackknife. Everything else is the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from noisy_jax.observed.fits.assumptions import remarked, warned
from noisy_jax.observed.fits.clustered import ONE_CLUSTER
from noisy_jax.observed.fits.doubts import LEVEL as OF_DOUBTS
from noisy_jax.observed.fits.doubts import Doubt
from noisy_jax.observed.fits.groups import (
    LEAST_GROUPS,
    check_clusters,
    jackknifed,
)
from noisy_jax.observed.fits.identification import (
    WEAK,
    covariances,
)
from noisy_jax.observed.fits.judged import Comparison, compared
from noisy_jax.observed.fits.linear_equations import LinearEquations
from noisy_jax.observed.fits.parts import moments_of_parts
from noisy_jax.observed.fits.result import Fit, percent
from noisy_jax.observed.fits.row_weights import (
    BY_VALUES,
    differ_by_row,
    intrinsic_scatter,
    row_weights,
)
from noisy_jax.observed.fits.solutions import ERRORS, OriginalUnits, estimated
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.units import check_varies
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.products import expanded, measured
from noisy_jax.reports.intervals import LEVEL, half_width, p_value, parsed_level
from noisy_jax.validation.objects import choice


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class LinearFit(Fit):
    """A corrected linear regression, the result of `nj.fit(table)`; print it for the table.

    It is a `Fit`: `coefficients`, `intercept`, `std_error`, `interval()`, `predict()` and
    `summary()` are of the corrected fit, and `uncorrected` is least squares on the noisy columns,
    with the weights of the rows if any were given.

    Attributes:
        risk: mean squared errors on clean data, plus the variance of the noise in y, estimated from
            noisy rows that each fit did not see (cross-fitting). Its fields `corrected`,
            `uncorrected` and `difference` (corrected − uncorrected) are in units of y squared, and
            each has a standard error, such as `corrected_std_error`; `variance` is the variance of
            y, so that R² = 1 − corrected/variance. `risk.interval()` is the 95% interval of the
            difference, and `risk.verdict()` says in words whether the correction helps.
        gram: `[d, d]`, estimated covariance of the clean columns: the covariance of the noisy
            columns minus `noise`.
        cross: `[d]`, estimated covariance of the clean columns and y.
        noise: `[d, d]`, mean covariance of the error in the mean of a row's copies. `share` of it
            was taken away for the coefficients.
        strength: strength of the identification: how clearly the noisiest combination of columns
            stands out from its own error, in squared standard errors. Below 6 do not trust
            intervals. With the ratio λ of its noisy variance to the noise's, and the variance v
            that λ would have if there were nothing but noise, it is (λ − 1)²/v; 0 if the clean
            variance is estimated below 0, infinite without noise.
        scatter: `[3]`: s², the variance of y at given clean features without the known errors of
            measurement in y; its standard error; and its degrees of freedom. `None` unless
            variances of the error in y, or errors by row, are known.
        effective_rows: (Σ w)²/Σ w², the number of equally weighted rows that would be as
            informative, if the fit has weighted rows by their known errors with weights w (`Linear`
            says when); else `None`.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(5000, 1))
        >>> noisy = x + 0.7 * rng.normal(size=x.shape)
        >>> fit = nj.fit(nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=0.49))
        >>> print(fit.reliability.round(1), fit.strength > 6, fit.risk.verdict())
        [0.7] True the correction helps
    """

    kind: ClassVar[str] = "linear"

    risk: Comparison = dataclasses.field()
    gram: np.ndarray
    cross: np.ndarray
    noise: np.ndarray
    strength: float
    scatter: np.ndarray | None = None
    effective_rows: float | None = None

    def scatter_interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Returns both ends of the interval of s (see `scatter`), in units of y.

        `level` is between 0 and 1; 0.95 by default. ValueError if `scatter` is `None`.
        """
        if self.scatter is None:
            raise ValueError("the scatter is known where errors in y, or by row, are given")
        variance, error, freedom = self.scatter
        half = half_width(error, freedom, level=parsed_level(level))
        low, high = np.sqrt(np.maximum([variance - half, variance + half], 0)).tolist()
        return low, high

    def _scattered(self) -> list[str]:
        if self.scatter is None:
            return []
        low, high = self.scatter_interval()
        lines = [
            f"Intrinsic scatter {max(self.scatter[0], 0.0) ** 0.5:.4g} [{low:.4g}, {high:.4g}]: "
            f"standard deviation of {self.target} at given clean features, without stated errors."
        ]
        if self.effective_rows is not None:
            count = f"{self.effective_rows:,.0f} effective rows"
            lines.append(f"Rows are weighted by their errors of measurement: {count}.")
        return lines

    def _known(self) -> list[str]:
        return [*self._identified(), *self._scattered()]

    def _identified(self) -> list[str]:
        if np.isinf(self.strength):  # no noise
            return []
        if self.strength >= WEAK:
            return [f"Identification strength {self.strength:.4g} (below {WEAK:g} is weak)."]
        lines = [
            f"Weak identification (strength {self.strength:.2g}, below {WEAK:g}): do not trust "
            "intervals and p values,",
            "as the columns hardly vary by more than their errors.",
        ]
        if self.share < 1:
            lines.append(
                f"Only {percent(self.share)} of the stated error is taken away, to keep estimates "
                "stable: they are still biased."
            )
        return lines


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Linear(Method[LinearFit]):
    """Least squares on clean features: the default method of `nj.fit`.

    With the measured row x̃_i (the mean of its copies), its target ỹ_i, the mean x̄ of the n rows and
    the covariance C_i of the error in x̃_i, the coefficients are

        β̂ = (Σ_i [(x̃_i − x̄)(x̃_i − x̄)ᵀ − (1 − 1/n) C_i])⁻¹ Σ_i (x̃_i − x̄) ỹ_i

    (minus the sum of the covariances of the errors in x̃_i and ỹ_i, if they are stated). They are
    consistent for noise of any distribution. If C_i is unknown, an unbiased estimate from the row's
    replicates takes its place. `nj.fit(table, nj.methods.Linear(…))` returns a `LinearFit`.

    The fit prints the strength of its identification: the estimated clean variance in the noisiest
    combination of columns against its standard error (`LinearFit.strength`). Where it is below 6,
    do not trust intervals. Fuller's modification then takes away less than the whole noise
    (`LinearFit.share`), such that the equations always have a solution.

    Args:
        weights: `[n]` weights of the rows of one table, or the name of their column, which is then
            no feature; by default the weights of the table (`nj.table(…, weights="w")`). They are
            not counts of equal rows: repeat such rows, as
            `frame.loc[frame.index.repeat(frame["n"])]`. Rows of weight 0 are left out, and are not
            counted. If no weights are given, all rows weigh 1, with one exception: if error
            variances are known for each row and differ between rows, the sandwich weights rows by
            them such that the variance of the coefficients is smallest. If this changes the
            coefficients by more than chance, the fit keeps weights 1 and warns. It also keeps them
            if errors are estimated (from replicates, a reliability or misclassified columns).
        clusters: `[n]` labels of groups of rows of one table that may depend on each other, at
            least 8, or the name of their column, as for `weights`; by default the clusters of the
            table. Without any, rows are independent. A warning names coefficients that are
            determined by one cluster alone.
        errors: the kind of standard errors. "sandwich" (the default for one table) is computed from
            each row's term in the equations, or each cluster's, as if the row were left out (HC3).
            "jackknife" (the only kind for chunks) refits without one of up to 32 groups of rows at
            a time, to which rows, or clusters, are dealt at random.

    Source: Fuller, Measurement Error Models (1987), Sec. 2.2, 2.5 and 3.1, and Econometrica 45
    (1977) for the share of the noise.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(5000, 1))
        >>> noisy = x + 0.7 * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=0.49)
        >>> fit = nj.fit(table, nj.methods.Linear(clusters=np.arange(5000) // 5))
        >>> print(fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        [2.] [1.3]
    """

    weights: Any = None
    clusters: Any = None
    errors: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.errors is not None:
            choice("errors", self.errors, ERRORS)

    def _of_chunks(self, chunks: Iterable[Any]) -> LinearFit:
        if self.weights is not None or self.clusters is not None:
            raise ValueError("chunks are for fits without weights and clusters; pass one table")
        if self.errors == "sandwich":
            raise ValueError(
                "errors='sandwich' reads rows twice, and chunks are read once: leave errors out"
            )
        total = moments_of_parts(chunks)
        doubts = warned(total.table, found=total.doubts)
        parts, ends = total.groups.with_rows(), total.ends * [[-1], [1]]
        instead = "join the chunks, and fit one table"
        _check_rows(total.rows, len(total.table.names), len(parts.weight), instead)
        check_varies(ends[:, :-1], ends[:, -1], total.table)
        equations = LinearEquations(parts, total.units, total.table, total.rows)
        return remarked(linear_result(equations, equations, "jackknife"), doubts)

    def _solved(self, sample: Sample) -> LinearFit:
        fit = _fit_of(sample, self.errors or "sandwich")
        sample.tell(ONE_CLUSTER.doubts(sample.table, sample.weights, sample.clusters))
        return fit


def _fit_of(sample: Sample, errors: str) -> LinearFit:
    """The fit to rows, with intervals by the "sandwich" or the "jackknife"."""
    table, weights = sample.table, sample.weights
    check_clusters(sample.clusters)
    if errors == "jackknife":
        _check_rows(len(table.y), table.x.shape[2], LEAST_GROUPS)
    elif weights is None and differ_by_row(table):
        return _fit_by_errors(sample)
    if table.products is None:
        equations = LinearEquations.of_sample(sample, weights)
        return _with_scatter(linear_result(equations, equations, errors), table, weights)
    whole, factors = expanded(table, weights), table.products.factors
    measured_equations = LinearEquations.of_sample(sample.of(measured(table)), weights)
    equations = LinearEquations.of_sample(sample.of(whole), weights, measured_equations.units)
    fit = linear_result(equations, measured_equations, errors, names=table.names, products=factors)
    return _with_scatter(fit, whole, weights)


def _fit_by_errors(sample: Sample) -> LinearFit:
    """The fit with rows weighted by their errors, and with equal weights in the uncorrected one.

    If the corrected coefficients with equal weights differ from these by more than chance, by the
    jackknife over the same groups of rows, all weights are equal, and a doubt says so.
    """
    table, weights = sample.table, row_weights(sample.table)
    try:
        equal = LinearEquations.of_sample(sample, None)
    except ValueError:  # with equal weights the noise is too large
        equal = None
    weighted = LinearEquations.of_sample(sample, weights, None if equal is None else equal.units)
    if equal is not None and equal.identification.strength >= WEAK and _differ(weighted, equal):
        sample.tell([Doubt(BY_VALUES, spoils=False)])
        return _with_scatter(linear_result(equal, equal), table, None)
    effective = float(weights.sum() ** 2 / (weights @ weights))
    fit = linear_result(weighted, weighted if equal is None else equal)
    fit = dataclasses.replace(fit, effective_rows=effective)
    return _with_scatter(fit, table, weights)


def _with_scatter(fit: LinearFit, table: Observations, weights: np.ndarray | None) -> LinearFit:
    """The fit with the scatter of y, if errors in y or by row are known."""
    if table.target_cov is None and not differ_by_row(table):
        return fit
    return dataclasses.replace(fit, scatter=intrinsic_scatter(table, weights, fit, fit.gram))


def _check_rows(rows: int, dim: int, groups: int, instead: str = "use errors='sandwich'") -> None:
    """Raises ValueError, with a way out, if rows are too few to leave out groups."""
    if groups < LEAST_GROUPS or rows - rows // LEAST_GROUPS < dim + 2:
        raise ValueError(f"{rows} rows are too few for the jackknife; {instead}")


def _differ(weighted: LinearEquations, equal: LinearEquations) -> bool:
    """True if corrected fits with other weights differ by more than chance."""

    def apart(thetas):
        return weighted.lines(thetas(weighted)) - equal.lines(thetas(equal))

    cov, freedom = jackknifed(apart(lambda equations: equations.without_each(True)))
    whole, error = apart(lambda equations: equations.root(True).theta), np.sqrt(np.diag(cov))
    t = np.divide(whole, error, out=np.zeros_like(whole), where=error > 0)
    return bool((p_value(t, freedom) * len(t) < OF_DOUBTS).any())


def linear_result(
    equations: LinearEquations,
    plain_equations: LinearEquations,
    errors: str = "sandwich",
    **more: Any,
) -> LinearFit:
    """The fit in original units; `more` as of `OriginalUnits.line`.

    The uncorrected fit is of `plain_equations`: the same rows, perhaps with equal weights, or with
    products as they were measured.
    """
    estimates: list[Any] = []
    judged: list[Any] = []
    for solved, corrected in ((equations, True), (plain_equations, False)):
        root, left_out = solved.root(corrected), solved.without_each(corrected)
        moved = solved.recorded(corrected)
        original = OriginalUnits.line(
            solved.table,
            solved.units,
            "linear",
            cov=solved.cov,
            at=solved.center,
            moved=moved,
            **more,
        )
        of_groups = left_out if errors == "jackknife" else None
        estimates.append(estimated(root, original, solved.clusters, of_groups)[0])
        lines, line = solved.lines(left_out @ moved.T), moved @ root.theta
        judged.append(equations.judged(lines, line[1:]))
    units, whole = equations.units, equations.whole
    clean, noisy = covariances(whole)
    freedom = float(equations.noise.freedom(equations.cov, -judged[0].slope[None])[0])
    variance = equations.variance * units.y_scale**2
    return LinearFit.of(
        estimates[0],
        estimates[1],
        equations.table,
        reliability=np.diag(clean) / np.diag(noisy),
        risk=compared(judged[0], judged[1], variance, noise=equations.noise, freedom=freedom),
        num_rows=equations.num_rows,
        scale=units.scale * np.sqrt(np.diag(noisy)),
        gram=clean * units.products,
        cross=whole.centred()[1] / whole.weight * units.scale * units.y_scale,
        noise=(noisy - clean) * units.products,
        strength=equations.identification.strength,
        share=float(equations.identification.share(whole)),
    )
