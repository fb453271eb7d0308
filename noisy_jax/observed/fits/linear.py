"""Linear fits: from a table, or from moments of its parts, to coefficients with intervals.

A fit of one table, whose rows are there, has intervals by the sandwich or the jackknife; a fit of
moments alone has the jackknife. Everything else is the same.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from noisy_jax.intervals import LEVEL, half_width, p_value
from noisy_jax.observed.fits.assumptions import remarked, warned
from noisy_jax.observed.fits.clustered import ONE_CLUSTER
from noisy_jax.observed.fits.doubts import LEVEL as OF_DOUBTS
from noisy_jax.observed.fits.doubts import Doubt
from noisy_jax.observed.fits.groups import (
    LEAST_GROUPS,
    check_clusters,
    grouped,
    if_counts,
    jackknifed,
    labels_of,
)
from noisy_jax.observed.fits.identification import (
    WEAK,
    Identification,
    check_cross,
    covariances,
    identification,
)
from noisy_jax.observed.fits.judged import Comparison, Judged, compared
from noisy_jax.observed.fits.linear_equations import LinearEquations
from noisy_jax.observed.fits.linear_moments import LinearMoments, moments_by_group
from noisy_jax.observed.fits.parts import moments_of_parts
from noisy_jax.observed.fits.result import Fit, percent
from noisy_jax.observed.fits.roots import Root
from noisy_jax.observed.fits.row_weights import (
    BY_VALUES,
    differ_by_row,
    intrinsic_scatter,
    row_weights,
)
from noisy_jax.observed.fits.solutions import ERRORS, Restored, estimated
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import UndeterminedError, Units, check_varies
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.products import expanded, measured
from noisy_jax.validation import choice


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class LinearFit(Fit):
    """A corrected linear regression; print it for the table.

    It has the attributes of `Estimates` and of `Fit` as well.

    Attributes:
        risk: estimated errors of both fits on clean data.
        gram: `[d, d]`, corrected centred moments of the columns, per row.
        cross: `[d]`, centred moments with y, per row.
        noise: `[d, d]`, mean covariance of the error that was taken away.
        strength: of the identification: how clearly the noisiest combination of columns stands out
            from its own error, in squared standard errors. Below 6 do not trust intervals. With the
            ratio λ of its variance to the noise's, and the variance v that λ would have if there
            were nothing but noise, it is (λ − 1)²/v; 0 if the clean variance is estimated below 0,
            infinite without noise.
        scatter: `[3]`, s², its standard error and degrees of freedom: the variance of y at given
            clean features without the known errors of measurement in y; `None` unless these, or
            errors by row, are known.
        effective_rows: (Σ w)²/Σ w², if the rows are weighted by their errors of measurement. In
            `uncorrected` they have equal weights.
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
        """Both ends of the interval of s (see `scatter`), in units of y; ValueError without it."""
        if self.scatter is None:
            raise ValueError("the scatter is known where errors in y, or by row, are given")
        variance, error, freedom = self.scatter
        half = half_width(error, freedom, level=level)
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
    """Least squares on clean features.

    With the mean x̄ of n rows and the covariance C_i of the error in row i,

        β̂ = (Σ_i [(x̃_i − x̄)(x̃_i − x̄)ᵀ − (1 − 1/n) C_i])⁻¹ Σ_i (x̃_i − x̄) ỹ_i.

    The fit prints the strength of its identification: the estimated clean variance in the noisiest
    combination of columns against its standard error (`LinearFit.strength`). Where it is below 6,
    do not trust intervals; Fuller's modification then takes away less than the whole noise
    (`LinearFit.share`), such that the equations always have a solution.

    Args:
        weights: `[n]` weights of the rows of one table, or the name of their column, which is then
            no feature; by default those of the table (`nj.table(…, weights="w")`). Rows of weight 0
            are left out of everything, also of the number of rows. They are not counts of equal
            rows: repeat such rows, as `frame.loc[frame.index.repeat(frame["n"])]`. Without weights
            they are 1, but for the sandwich of rows whose errors of measurement are known, differ,
            and do not depend on the measured values, those that give the smallest variance, from
            the errors and a first fit. Where these change the coefficients by more than chance,
            they are 1, with a warning; so they are beside estimated errors (replicates, a
            reliability, misclassified columns).
        clusters: `[n]` labels of groups of rows of one table that may depend on each other, or the
            name of their column, as for `weights`; the sandwich leaves out one of them at a time. A
            warning names coefficients that are determined by one of them alone.
        errors: "sandwich" (the default for one table), by the scores of rows and their leverages
            (HC3); or "jackknife" (for chunks), which leaves out one of up to 32 groups of rows at a
            time. Rows, or clusters, are dealt to the groups at random. Both take rows as
            independent: for neighbouring rows that depend on each other give `clusters`.

    Source: Fuller, Measurement Error Models (1987), Sec. 2.2, 2.5 and 3.1, and Econometrica 45
    (1977) for the share of the noise.
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
        found = warned(total.table, found=total.doubts)
        parts, ends = total.groups.of_groups_with_rows(), total.ends * [[-1], [1]]
        instead = "join the chunks, and fit one table"
        _check_rows(total.rows, len(total.table.names), len(parts.weight), instead)
        check_varies(ends[:, :-1], ends[:, -1], total.table)
        made = Problem.of(LinearEquations(parts), total.units, total.table, total.rows)
        return remarked(linear_result(made, made, "jackknife"), found)

    def _solved(self, sample: Sample) -> LinearFit:
        fit = _fit_of(sample, self.errors or "sandwich")
        sample.tell(ONE_CLUSTER.doubts(sample.table, sample.weights, sample.clusters))
        return fit


def _fit_of(sample: Sample, errors: str) -> LinearFit:
    """The fit to rows, with intervals by the "sandwich" or the "jackknife"."""
    table, weights = sample.table, sample.weights
    if errors == "jackknife":
        check_clusters(sample.clusters)
        _check_rows(len(table.y), table.x.shape[2], LEAST_GROUPS)
    elif weights is None and differ_by_row(table):
        return _fit_by_errors(sample)
    if table.products is None:
        problem = Problem.of_sample(sample, weights)
        return _with_scatter(linear_result(problem, problem, errors), table, weights)
    whole, factors = expanded(table, weights), table.products.factors
    plain = Problem.of_sample(sample.of(measured(table)), weights)
    made = Problem.of_sample(sample.of(whole), weights, plain.units)
    fit = linear_result(made, plain, errors, names=table.names, products=factors)
    return _with_scatter(fit, whole, weights)


def _fit_by_errors(sample: Sample) -> LinearFit:
    """The fit with rows weighted by their errors, and with equal weights in the uncorrected one.

    If the corrected coefficients with equal weights differ from these by more than chance, by the
    jackknife over the same groups of rows, all weights are equal, and a doubt says so.
    """
    table, weights = sample.table, row_weights(sample.table)
    try:
        equal = Problem.of_sample(sample, None)
    except ValueError:  # with equal weights the noise is too large
        equal = None
    made = Problem.of_sample(sample, weights, None if equal is None else equal.units)
    if equal is not None and equal.known.strength >= WEAK and _differ(made, equal):
        sample.tell([Doubt(BY_VALUES, spoils=False)])
        return _with_scatter(linear_result(equal, equal), table, None)
    effective = float(weights.sum() ** 2 / (weights @ weights))
    fit = linear_result(made, made if equal is None else equal)
    fit = dataclasses.replace(fit, effective_rows=effective)
    return _with_scatter(fit, table, weights)


def _with_scatter(fit: LinearFit, table: Observations, weights: np.ndarray | None) -> LinearFit:
    """The fit with the scatter of y, if errors in y or by row are known."""
    if table.target_cov is None and not differ_by_row(table):
        return fit
    return dataclasses.replace(fit, scatter=intrinsic_scatter(table, weights, fit, fit.gram))


def _check_rows(rows: int, dim: int, groups: int, instead: str = "use errors='sandwich'") -> None:
    """Raises ValueError, with what to do instead, if rows are too few to leave out groups."""
    if groups < LEAST_GROUPS or rows - rows // LEAST_GROUPS < dim + 2:
        raise ValueError(f"{rows} rows are too few for the jackknife; {instead}")


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """The equations of a table in its units, and what is known of them.

    Attributes:
        equations: of groups of rows.
        units: of the equations.
        table: names, and the uncertainty of the noise.
        num_rows: n.
        clusters: `[n]`, in the order of the rows of the equations; or `None`.
        noise: the uncertainty of the noise's covariance, in these units.
        known: how well the columns identify the fit.
    """

    equations: LinearEquations
    units: Units
    table: Observations
    num_rows: int
    clusters: np.ndarray | None
    noise: UncertainNoise
    known: Identification

    @classmethod
    def of(
        cls,
        equations: LinearEquations,
        units: Units,
        table: Observations,
        num_rows: int,
        clusters: np.ndarray | None = None,
    ) -> "Problem":
        """Raises ValueError if the noise is larger than the moments allow."""
        noise, whole = UncertainNoise(table, units.products), equations.whole
        known = identification(equations.parts, whole, noise, table.names, units.scale)
        made = cls(equations, units, table, num_rows, clusters, noise, known)
        check_cross(whole.cross / whole.weight, made.cov, made.variance, num_rows, table.names)
        return made

    @classmethod
    def of_sample(
        cls, sample: Sample, weights: np.ndarray | None, units: Units | None = None
    ) -> "Problem":
        """The equations of the rows of a table, with weights of their own."""
        table, clusters = sample.table, sample.clusters
        n, dim = len(table.y), table.x.shape[2]
        count = n if clusters is None else int(clusters.max()) + 1
        if count <= dim + 1:
            kind = "rows" if clusters is None else "clusters"
            few = f"fit needs more than d + 1 = {dim + 1} {kind}, got {count}"
            raise UndeterminedError(f"{few}{if_counts(weights)}")
        if n < LEAST_GROUPS and (hint := if_counts(weights)):
            raise UndeterminedError(f"{n} rows with weights are too few{hint}")
        rows = table.means(weights)
        units = Units.of(rows.x, rows.y, table) if units is None else units
        order, groups = grouped(labels_of(table.x, table.y, clusters))
        rows = units.standardized(rows, order)
        equations = LinearEquations(moments_by_group(rows, groups).of_groups_with_rows(), rows)
        return cls.of(equations, units, table, n, None if clusters is None else clusters[order])

    @property
    def cov(self) -> np.ndarray:
        """`[d, d]`, mean covariance of the noise."""
        return self.equations.whole.cov / self.equations.whole.weight

    @property
    def variance(self) -> float:
        """Of y, in the units of the equations."""
        whole = self.equations.whole
        return whole.yy / whole.weight - (whole.y / whole.weight) ** 2

    def root(self, corrected: bool) -> Root:
        """θ, and the share of the noise that is taken away."""
        return Root(self.equations, *self._solved(self.equations.whole, corrected))

    def without_each(self, corrected: bool) -> np.ndarray:
        """`[G, 1 + d]`, θ without each group of rows."""
        equations = self.equations
        return self._solved(equations.whole.plus(equations.parts, -1.0), corrected)[0]

    def _solved(self, moments: LinearMoments, corrected: bool) -> tuple[np.ndarray, Any]:
        share = self.known.share(moments) if corrected else 0.0
        return self.equations.root(moments, share), share

    def recorded(self, corrected: bool) -> np.ndarray:
        """`[1 + d, 1 + d]`, from θ to θ of recorded categories, as uncorrected fits take them."""
        center = self.equations.center
        moved = np.eye(1 + len(center))
        if not corrected and self.table.categories:
            matrix, offset = self.units.recorded(self.table)
            moved[0, 1:] = offset + matrix @ center - center
            moved[1:, 1:] = matrix.T
        return moved

    def lines(self, theta: np.ndarray) -> np.ndarray:
        """Intercept and slopes `[..., 1 + d]`, of θ."""
        found = theta.copy()
        found[..., 0] -= theta[..., 1:] @ self.equations.center
        return found

    def judged(self, lines: np.ndarray, beta: np.ndarray) -> Judged:
        """Estimated clean errors of each group of rows, by lines `[G, 1 + d]` from other groups.

        β `[d]` is of all rows: each error contains −βᵀΣβ.
        """
        parts, square = self.equations.parts, self.units.y_scale**2
        sums = parts.clean_error(lines[:, 0], lines[:, 1:])
        return Judged(square * sums, parts.weight, -square * np.outer(beta, beta))


def _differ(one: Problem, other: Problem) -> bool:
    """True if corrected fits with other weights differ by more than chance."""

    def apart(thetas):
        return one.lines(thetas(one)) - other.lines(thetas(other))

    cov, freedom = jackknifed(apart(lambda problem: problem.without_each(True)))
    whole, error = apart(lambda problem: problem.root(True).theta), np.sqrt(np.diag(cov))
    t = np.divide(whole, error, out=np.zeros_like(whole), where=error > 0)
    return bool((p_value(t, freedom) * len(t) < OF_DOUBTS).any())


def linear_result(
    made: Problem, plain: Problem, errors: str = "sandwich", **known: Any
) -> LinearFit:
    """The fit in original units; `known` as of `Restored.line`.

    The uncorrected fit is of `plain`: the same rows, perhaps with equal weights, or with products
    as they were measured.
    """
    found: list[Any] = []
    judged: list[Any] = []
    for problem, corrected in ((made, True), (plain, False)):
        root, left = problem.root(corrected), problem.without_each(corrected)
        moved = problem.recorded(corrected)
        rest = problem.cov, problem.equations.center, moved
        way = Restored.line(problem.table, problem.units, "linear", *rest, **known)
        left_out = left if errors == "jackknife" else None
        found.append(estimated(root, way, problem.clusters, left_out)[0])
        lines, line = problem.lines(left @ moved.T), moved @ root.theta
        judged.append(made.judged(lines, line[1:]))
    units, whole = made.units, made.equations.whole
    clean, noisy = covariances(whole)
    freedom = float(made.noise.freedom(made.cov, -judged[0].slope[None])[0])
    variance = made.variance * units.y_scale**2
    return LinearFit.of(
        found[0],
        found[1],
        made.table,
        reliability=np.diag(clean) / np.diag(noisy),
        risk=compared(judged[0], judged[1], variance, noise=made.noise, freedom=freedom),
        num_rows=made.num_rows,
        scale=units.scale * np.sqrt(np.diag(noisy)),
        gram=clean * units.products,
        cross=whole.centred()[1] / whole.weight * units.scale * units.y_scale,
        noise=(noisy - clean) * units.products,
        strength=made.known.strength,
        share=float(made.known.share(whole)),
    )
