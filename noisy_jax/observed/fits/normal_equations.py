"""The corrected normal equations of a linear fit, and its intervals by the sandwich.

`parts` has intervals by the jackknife, in one pass over chunks.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence

import numpy as np

from noisy_jax.intervals import p_value
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.doubts import LEVEL, Doubt
from noisy_jax.observed.fits.groups import LEAST_GROUPS, grouped, if_counts, jackknifed, labels_of
from noisy_jax.observed.fits.identification import WEAK, check_cross, covariances, identification
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.linear_equations import LinearEquations
from noisy_jax.observed.fits.linear_moments import LinearMoments
from noisy_jax.observed.fits.row_weights import (
    BY_VALUES,
    differ_by_row,
    intrinsic_scatter,
    row_weights,
)
from noisy_jax.observed.fits.sandwich import variance
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise, combined_freedom
from noisy_jax.observed.fits.units import Rows, UndeterminedError, Units, moments_of
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.products import expanded, measured


def linear_fit(
    observations: Observations, weights: np.ndarray | None, clusters: np.ndarray | None
) -> LinearFit:
    """See `nj.methods.Linear`: intervals by the sandwich."""
    products = observations.products
    if products is None:
        return _with_scatter(_solved(observations, weights, clusters)[1], observations, weights)
    equal, plain = _solved(measured(observations), weights, clusters)
    observations = expanded(observations, weights)
    made = _solved(observations, weights, clusters, equal)[1]
    known = {"names": plain.names[: -len(products.factors)], "products": products.factors}
    uncorrected = dataclasses.replace(plain.uncorrected, **known)
    made = dataclasses.replace(made, uncorrected=uncorrected, **known)
    return _with_scatter(made, observations, weights)


def _with_scatter(
    fit: LinearFit, observations: Observations, weights: np.ndarray | None
) -> LinearFit:
    """The fit with the scatter of y, if errors in y or by row are known."""
    if observations.target_cov is None and not differ_by_row(observations):
        return fit
    scatter = intrinsic_scatter(observations, weights, fit, fit.gram)
    return dataclasses.replace(fit, scatter=scatter)


def fit_by_errors(
    observations: Observations, clusters: np.ndarray | None
) -> tuple[LinearFit, list[Doubt]]:
    """As `linear_fit`, with rows that are weighted by their errors, and equal weights without them.

    If the corrected coefficients with equal weights differ from these by more than chance, by the
    jackknife over the same groups of rows, all weights are equal, and a doubt says so.
    """
    weights = row_weights(observations)
    try:
        equal, plain = _solved(observations, None, clusters)
    except ValueError:  # with equal weights the noise is too large
        equal = plain = None
    solver, made = _solved(observations, weights, clusters, equal)
    if equal is not None and plain is not None:
        if equal.known.strength >= WEAK and solver.differs(equal):
            return _with_scatter(plain, observations, None), [Doubt(BY_VALUES, spoils=False)]
        made = dataclasses.replace(made, uncorrected=plain.uncorrected)
    effective = float(weights.sum() ** 2 / (weights @ weights))
    made = dataclasses.replace(made, effective_rows=effective)
    return _with_scatter(made, observations, weights), []


def _solved(
    observations: Observations,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
    equal: "NormalEquations | None" = None,
) -> "tuple[NormalEquations, LinearFit]":
    n, dim = len(observations.y), observations.x.shape[2]
    count = n if clusters is None else int(clusters.max()) + 1
    if count <= dim + 1:
        kind = "rows" if clusters is None else "clusters"
        few = f"fit needs more than d + 1 = {dim + 1} {kind}, got {count}"
        raise UndeterminedError(f"{few}{if_counts(weights)}")
    if n < LEAST_GROUPS and (hint := if_counts(weights)):
        raise UndeterminedError(f"{n} rows with weights are too few{hint}")
    rows = Rows.of(observations, weights)
    units = Units.of(rows.x, rows.y, observations) if equal is None else equal.units
    order, slices = grouped(labels_of(observations.x, observations.y, clusters))
    clusters = None if clusters is None else clusters[order]
    rows = units.in_order(rows, order)
    parts = [moments_of(rows.some(group)) for group in slices]
    solver = NormalEquations(parts, units, observations, n, equal)

    def spread(corrected):
        share, moved = solver.share(solver.whole, corrected), solver.moved(corrected)
        combined, equations = solver.jacobian @ moved, LinearEquations(solver.whole, rows)
        blocks = equations.blocks(solver.whole.solution(share=share)[1], share)
        cov, freedom, _ = variance(blocks, equations.jacobian(share), clusters, combined)
        return moved @ cov @ moved.T, freedom

    return solver, solver.fit(spread)


class NormalEquations:
    """The corrected normal equations of groups of rows, and their solutions.

    `parts` are the standardized moments of the groups. The uncorrected fit is from the equations
    `equal` of the same groups with equal weights, or with products as they were measured; by
    default from these. ValueError is raised if the noise is larger than the moments allow.
    """

    def __init__(
        self,
        parts: Sequence[LinearMoments],
        units: Units,
        observations: Observations,
        num_rows: int,
        equal: "NormalEquations | None" = None,
    ):
        self.equal = equal or self
        self.parts, self.units, self.observations = parts, units, observations
        self.num_rows, names = num_rows, observations.names
        self.whole = whole = functools.reduce(LinearMoments.plus, parts)
        self.at = whole.x / whole.weight
        self.jacobian = units.jacobian(self.at)
        self.recorded = units.recorded(observations)
        self.noise = UncertainNoise(observations, units.products)
        self.known = identification(parts, whole, self.noise, names, units.scale)
        self.variance = whole.yy / whole.weight - (whole.y / whole.weight) ** 2
        cross, cov = whole.cross / whole.weight, whole.cov / whole.weight
        check_cross(cross, cov, self.variance, num_rows, names)

    def share(self, moments: LinearMoments, corrected: bool) -> float:
        """The share of the noise's moments that a fit to these moments takes away."""
        return self.known.share(moments) if corrected else 0.0

    def without(self, corrected: bool) -> list[tuple[float, np.ndarray]]:
        """Intercept and slopes without each group of rows."""
        return [self.solution(self.whole.plus(part, -1.0), corrected) for part in self.parts]

    def solution(self, moments: LinearMoments, corrected: bool) -> tuple[float, np.ndarray]:
        """Intercept and slopes; uncorrected ones are for recorded categories, not recodings."""
        intercept, beta = moments.solution(share=self.share(moments, corrected))
        if corrected or not self.observations.categories:
            return intercept, beta
        matrix, offset = self.recorded
        return intercept + float(offset @ beta), matrix.T @ beta

    def differs(self, other: "NormalEquations") -> bool:
        """Whether corrected fits with other weights differ by more than chance."""
        pairs = zip(self.without(True), other.without(True), strict=True)
        left = np.array([[a - c, *(b - d)] for (a, b), (c, d) in pairs])
        cov, freedom = jackknifed(left)
        pairs = zip(self.solution(self.whole, True), other.solution(other.whole, True), strict=True)
        apart = np.concatenate([np.atleast_1d(one - two) for one, two in pairs])
        error = np.sqrt(np.diag(cov))
        t = np.divide(apart, error, out=np.zeros_like(apart), where=error > 0)
        return bool((p_value(t, freedom) * len(t) < LEVEL).any())

    def moved(self, corrected: bool) -> np.ndarray:
        """`[1 + d, 1 + d]`, what `solution` makes of the mean of y and the slopes."""
        moved = np.eye(1 + len(self.at))
        if not corrected:
            matrix, offset = self.recorded
            moved[0, 1:] = offset + matrix @ self.at - self.at
            moved[1:, 1:] = matrix.T
        return moved

    def fit(self, spread: Callable[[bool], tuple[np.ndarray, float | np.ndarray]]) -> LinearFit:
        """The fit in original units.

        `spread(corrected)` gives the covariance `[1 + d, 1 + d]` of the mean of y and of β, and its
        degrees of freedom in original units, `[]` or `[1 + d]`.
        """
        whole, units, table = self.whole, self.units, self.observations
        found, slopes = [], []
        for corrected in (True, False):
            share = self.share(whole, corrected)
            cov, freedom = spread(corrected)
            gram, beta = whole.centred(share=share)[0], whole.solution(share=share)[1]
            moves = np.zeros((1 + len(beta), *gram.shape))
            # dβ = −S⁻¹ dS β with dS = −κ dΣ
            moves[1:] = (np.linalg.inv(gram) * share * whole.weight)[:, :, None] * beta
            own = self._freedom(beta)
            cov, freedom = self.noise.widened(moves, own, cov, freedom, self.jacobian)
            intercept, beta = self.solution(whole, corrected)
            slopes.append(beta)
            y = intercept + float(beta @ self.at)
            found.append(units.restored(y, beta, cov, self.at, freedom, table))
        clean, noisy = covariances(whole)
        return LinearFit.of(
            found[0],
            found[1],
            table,
            reliability=np.diag(clean) / np.diag(noisy),
            risk=self._risk(slopes),
            num_rows=self.num_rows,
            scale=units.scale * np.sqrt(np.diag(noisy)),
            gram=clean * units.products,
            cross=whole.centred()[1] / whole.weight * units.scale * units.y_scale,
            noise=(noisy - clean) * units.products,
            strength=self.known.strength,
            share=self.share(whole, True),
        )

    def _freedom(self, beta: np.ndarray) -> float:
        """Degrees of freedom of what the errors of the noise's covariance add."""
        return self.noise.freedom(self.whole.cov / self.whole.weight, np.outer(beta, beta))

    def _risk(self, slopes: list[np.ndarray]) -> Comparison:
        """Estimated clean risks of both predictors, each group judged by the fit to the others."""
        parts, weight, square = self.parts, self.whole.weight, self.units.y_scale**2
        errors = np.empty((len(parts), 3))
        for column, corrected in enumerate((True, False)):
            left_out = (self if corrected else self.equal).without(corrected)
            errors[:, column] = [
                part.clean_error(*one) for part, one in zip(parts, left_out, strict=True)
            ]
        errors[:, 2] = errors[:, 0] - errors[:, 1]
        errors *= square / weight
        means, freedom = errors.sum(axis=0), len(parts) - 1.0
        apart = errors - np.outer([part.weight / weight for part in parts], means)
        variances = (apart**2).sum(axis=0) * len(parts) / freedom
        if not self.noise.exact:  # each error contains −βᵀΣβ
            squares = [np.outer(beta, beta) * square for beta in slopes]
            directions = np.array([*squares, squares[0] - squares[1]])
            added = np.diag(self.noise.covariance(directions))
            own = self._freedom(slopes[0])
            freedom = float(combined_freedom((variances[2], added[2]), (freedom, own)))
            variances = variances + added
        pairs = np.stack([means, np.sqrt(variances)], axis=1).ravel().tolist()
        variance = float(self.variance * square)
        return Comparison(*pairs, variance=variance, degrees_of_freedom=freedom)
