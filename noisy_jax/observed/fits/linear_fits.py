"""Linear fits: from a table, or from moments of its parts, to coefficients with intervals.

A fit of one table, whose rows are there, has intervals by the sandwich or the jackknife; a fit of
moments alone has the jackknife. Everything else is the same.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from noisy_jax.intervals import p_value
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.doubts import LEVEL, Doubt
from noisy_jax.observed.fits.estimates import Estimates
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
from noisy_jax.observed.fits.judged import Judged, compared
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.linear_equations import LinearEquations
from noisy_jax.observed.fits.linear_moments import LinearMoments
from noisy_jax.observed.fits.parts import TableMoments
from noisy_jax.observed.fits.roots import Root
from noisy_jax.observed.fits.row_weights import (
    BY_VALUES,
    differ_by_row,
    intrinsic_scatter,
    row_weights,
)
from noisy_jax.observed.fits.solutions import Restored, estimated
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import UndeterminedError, Units, check_varies
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.products import expanded, measured
from noisy_jax.observed.observations.rows import Rows


def linear_fit(sample: Sample, errors: str) -> LinearFit:
    """See `nj.methods.Linear`: intervals by the "sandwich", or the "jackknife"."""
    table, weights = sample.table, sample.weights
    if errors == "jackknife":
        check_clusters(sample.clusters)
        _check_rows(len(table.y), table.x.shape[2], LEAST_GROUPS)
    elif weights is None and differ_by_row(table):
        return _fit_by_errors(sample)
    if table.products is None:
        fit = linear_result(_problem(sample, weights), errors=errors)
        return _with_scatter(fit, table, weights)
    count, whole = len(table.products.factors), expanded(table, weights)
    plain = _problem(sample.of(measured(table)), weights)
    made = linear_result(_problem(sample.of(whole), weights, plain.units), plain, errors)
    known = {"names": made.names[:-count], "products": table.products.factors}
    uncorrected = dataclasses.replace(made.uncorrected, **known)
    fit = dataclasses.replace(made, uncorrected=uncorrected, **known)
    return _with_scatter(fit, whole, weights)


def _fit_by_errors(sample: Sample) -> LinearFit:
    """The fit with rows weighted by their errors, and with equal weights in the uncorrected one.

    If the corrected coefficients with equal weights differ from these by more than chance, by the
    jackknife over the same groups of rows, all weights are equal, and a doubt says so.
    """
    table, weights = sample.table, row_weights(sample.table)
    try:
        equal = _problem(sample, None)
    except ValueError:  # with equal weights the noise is too large
        equal = None
    made = _problem(sample, weights, None if equal is None else equal.units)
    if equal is not None and equal.known.strength >= WEAK and _differ(made, equal):
        sample.tell([Doubt(BY_VALUES, spoils=False)])
        return _with_scatter(linear_result(equal), table, None)
    effective = float(weights.sum() ** 2 / (weights @ weights))
    fit = dataclasses.replace(linear_result(made, equal), effective_rows=effective)
    return _with_scatter(fit, table, weights)


def _with_scatter(fit: LinearFit, table: Observations, weights: np.ndarray | None) -> LinearFit:
    """The fit with the scatter of y, if errors in y or by row are known."""
    if table.target_cov is None and not differ_by_row(table):
        return fit
    return dataclasses.replace(fit, scatter=intrinsic_scatter(table, weights, fit, fit.gram))


def fit_of_moments(found: TableMoments) -> LinearFit:
    """The fit to moments, by the jackknife."""
    parts, ends = found.sums.parts(), found.sums.ends * [[-1], [1]]
    instead = "join the chunks, and fit one table"
    _check_rows(found.rows, len(found.table.names), len(parts), instead)
    check_varies(ends[:, :-1], ends[:, -1], found.table)
    problem = Problem.of(LinearEquations(parts), found.units, found.table, found.rows)
    return linear_result(problem, errors="jackknife")


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
        cross, cov = whole.cross / whole.weight, whole.cov / whole.weight
        check_cross(cross, cov, made.variance, num_rows, table.names)
        return made

    @property
    def variance(self) -> float:
        """Of y, in the units of the equations."""
        whole = self.equations.whole
        return whole.yy / whole.weight - (whole.y / whole.weight) ** 2

    def root(self, corrected: bool, left_out: LinearMoments | None = None) -> Root:
        """θ and the share of the noise that is taken away, of all groups or without one."""
        whole = self.equations.whole
        moments = whole if left_out is None else whole.plus(left_out, -1.0)
        share = self.known.share(moments) if corrected else 0.0
        return Root(self.equations, self.equations.root(moments, share), share)

    def without_each(self, corrected: bool) -> np.ndarray:
        """`[G, 1 + d]`, θ without each group of rows."""
        return np.array([self.root(corrected, part).theta for part in self.equations.parts])

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

    def estimates(self, corrected: bool, left: np.ndarray | None = None) -> Estimates:
        """In original units; intervals by the jackknife from `without_each`, or the sandwich."""
        moved, center = self.recorded(corrected), self.equations.center
        whole = self.equations.whole

        def restored(theta, spread, freedom):
            value, *slopes = moved @ theta
            rest = np.array(slopes), moved @ spread @ moved.T, center, freedom, self.table
            return self.units.restored(value, *rest)

        combined = self.units.jacobian(center) @ moved
        way = Restored(self.noise, combined, whole.cov / whole.weight, restored)
        return estimated(self.root(corrected), way, self.clusters, left)[0]


def _problem(sample: Sample, weights: np.ndarray | None, units: Units | None = None) -> Problem:
    """The equations of one table; ValueError if its noise is larger than the moments allow."""
    table, clusters = sample.table, sample.clusters
    n, dim = len(table.y), table.x.shape[2]
    count = n if clusters is None else int(clusters.max()) + 1
    if count <= dim + 1:
        kind = "rows" if clusters is None else "clusters"
        few = f"fit needs more than d + 1 = {dim + 1} {kind}, got {count}"
        raise UndeterminedError(f"{few}{if_counts(weights)}")
    if n < LEAST_GROUPS and (hint := if_counts(weights)):
        raise UndeterminedError(f"{n} rows with weights are too few{hint}")
    rows = Rows.of(table, weights)
    units = Units.of(rows.x, rows.y, table) if units is None else units
    order, groups = grouped(labels_of(table.x, table.y, clusters))
    equations = LinearEquations.of_groups(units.in_order(rows, order), groups)
    clusters = None if clusters is None else clusters[order]
    return Problem.of(equations, units, table, n, clusters)


def _differ(one: Problem, other: Problem) -> bool:
    """True if corrected fits with other weights differ by more than chance."""

    def apart(thetas):
        return one.lines(thetas(one)) - other.lines(thetas(other))

    cov, freedom = jackknifed(apart(lambda problem: problem.without_each(True)))
    whole, error = apart(lambda problem: problem.root(True).theta), np.sqrt(np.diag(cov))
    t = np.divide(whole, error, out=np.zeros_like(whole), where=error > 0)
    return bool((p_value(t, freedom) * len(t) < LEVEL).any())


def linear_result(
    made: Problem, plain: Problem | None = None, errors: str = "sandwich"
) -> LinearFit:
    """The fit in original units.

    The uncorrected fit is of `plain`: the same rows with equal weights, or with products as they
    were measured; by default it is of the same equations.
    """
    pairs = (made, True), (made if plain is None else plain, False)
    left = [problem.without_each(corrected) for problem, corrected in pairs]
    found = [
        problem.estimates(corrected, own if errors == "jackknife" else None)
        for (problem, corrected), own in zip(pairs, left, strict=True)
    ]
    units, whole = made.units, made.equations.whole
    clean, noisy = covariances(whole)
    return LinearFit.of(
        found[0],
        found[1],
        made.table,
        reliability=np.diag(clean) / np.diag(noisy),
        risk=_risk(pairs, left),
        num_rows=made.num_rows,
        scale=units.scale * np.sqrt(np.diag(noisy)),
        gram=clean * units.products,
        cross=whole.centred()[1] / whole.weight * units.scale * units.y_scale,
        noise=(noisy - clean) * units.products,
        strength=made.known.strength,
        share=made.root(True).share,
    )


def _risk(pairs, left: Sequence[np.ndarray]) -> Comparison:
    """Estimated clean risks of both predictors, each group judged by the fit to the others."""
    made, square = pairs[0][0], pairs[0][0].units.y_scale ** 2
    whole, parts, judged = made.equations.whole, made.equations.parts, []
    count = np.array([part.weight for part in parts])
    for (problem, corrected), thetas in zip(pairs, left, strict=True):
        moved = problem.recorded(corrected)
        lines = zip(parts, problem.lines(thetas @ moved.T), strict=True)
        sums = np.array([part.clean_error(line[0], line[1:]) for part, line in lines])
        beta = (moved @ problem.root(corrected).theta)[1:]  # each error contains −βᵀΣβ
        judged.append(Judged(square * sums, count, -square * np.outer(beta, beta)))
    own = float(made.noise.freedom(whole.cov / whole.weight, -judged[0].slope[None])[0])
    variance = made.variance * square
    return compared(judged[0], judged[1], variance, noise=made.noise, freedom=own)
