"""Linear regression on noisy features: solves the corrected normal equations."""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np

from noisy_jax.columns import ROUNDING, check_same_rows
from noisy_jax.moments.batch import LinearMoments, linear_moments
from noisy_jax.observed.fits.anderson_rubin import equations
from noisy_jax.observed.fits.coefficients import Coefficients, LinearFit
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.identification import Identification, check_cross, identification
from noisy_jax.observed.fits.sandwich import Table, combined_freedom, sandwich
from noisy_jax.observed.fits.uncertain_noise import freedom_of_noise, uncertainty, widened
from noisy_jax.observed.observations import Observations
from noisy_jax.validation import instance, unmasked

GROUPS = 32
"""Groups of rows by which risks are cross-fitted, and which the jackknife leaves out."""


def linear_fit(
    observations: Observations,
    *,
    weights: Any = None,
    clusters: Any = None,
) -> LinearFit:
    """See `nj.fit`: intervals by the sandwich."""
    instance("observations", observations, Observations, "nj.observations.from_arrays makes one")
    observations, weights, clusters = with_weight(observations, weights, clusters)
    x, cov = observations.averaged()
    cross = observations.averaged_cross()
    y, n, dim = observations.y, *x.shape
    groups = n if clusters is None else int(clusters.max()) + 1
    if groups <= dim + 1:
        kind = "rows" if clusters is None else "clusters"
        raise ValueError(f"fit needs more than d + 1 = {dim + 1} {kind}, got {groups}")
    units = Units.of(x, y, observations)
    order, slices = slice(None), [slice(g, None, GROUPS) for g in range(min(n, GROUPS))]
    if clusters is not None:
        order, slices = grouped(clusters, GROUPS)
    table = units.table(x, y, cov, cross)._replace(weights=weights).rows(order)
    clusters = None if clusters is None else clusters[order]
    parts = [linear_moments(*table.rows(group)) for group in slices]
    whole = functools.reduce(LinearMoments.plus, parts)
    known = identified(parts, whole, n, observations, units)
    found, freedoms, at = [], [], whole.x / whole.weight
    jacobian = units.jacobian(at)
    for share in (known.share(whole), 0.0):
        spread, freedom = sandwich(whole, share, table, clusters, jacobian)
        freedoms.append(float(freedom.min()))
        spread, freedom = widened(whole, share, spread, freedom, jacobian, observations, units)
        beta = whole.solution(share=share)[1]
        found.append(
            units.restored(whole.y / whole.weight, beta, spread, at, freedom, observations.names)
        )
    return assembled(parts, known, found[0], found[1], units, observations, n, freedoms[0])


@dataclasses.dataclass(frozen=True)
class Units:
    """Centres and scales by which the columns and y are made free of units."""

    center: np.ndarray
    scale: np.ndarray
    y_center: float
    y_scale: float

    @classmethod
    def of(cls, x, y, observations: Observations) -> "Units":
        """Means and standard deviations; raises ValueError if a column is constant."""
        check_varies(x, y, observations)
        return cls.of_some(x, y)

    @classmethod
    def of_some(cls, x, y) -> "Units":
        """From some of the rows: a column that is constant in them has the scale 1."""
        scale, y_scale = (np.where(_constant(z), 1.0, z.std(axis=0)) for z in (x, y))
        return cls(x.mean(axis=0), scale, float(y.mean()), float(y_scale))

    def table(self, x, y, cov, cross=None) -> Table:
        """The rows in these units."""
        x = x - self.center
        x /= self.scale
        cov = cov / np.outer(self.scale, self.scale)
        cross = None if cross is None else cross / (self.scale * self.y_scale)
        return Table(x, (y - self.y_center) / self.y_scale, cov, cross=cross)

    def jacobian(self, at) -> np.ndarray:
        """`[1 + d, 1 + d]`, of intercept and coefficients in the prediction at `at` and slopes."""
        ratio = self.y_scale / self.scale
        jacobian = np.diag(np.append(self.y_scale, ratio))
        jacobian[0, 1:] = -(self.center + self.scale * at) * ratio
        return jacobian

    def restored(self, value, beta, covariance, at, degrees_of_freedom, names) -> Coefficients:
        """In original units, the fit that predicts `value` at `at`, with the slopes `beta`.

        Args:
            value: `[]`.
            beta: `[d]`.
            covariance: `[1 + d, 1 + d]`, of both.
            at: `[d]`.
            degrees_of_freedom: of the intervals, `[]` or `[1 + d]`.
            names: of the columns.
        """
        jacobian = self.jacobian(at)
        moved = jacobian @ np.append(value, beta)
        return Coefficients(
            intercept=float(self.y_center + moved[0]),
            coefficients=moved[1:],
            covariance=jacobian @ covariance @ jacobian.T,
            degrees_of_freedom=degrees_of_freedom,
            names=names,
        )


def _constant(values: np.ndarray) -> np.ndarray:
    return values.std(axis=0) <= ROUNDING * np.abs(values).max(axis=0)


def check_varies(x: np.ndarray, y: np.ndarray, observations: Observations) -> None:
    """Raises ValueError if a column of x `[n, d]`, or y `[n]`, is constant."""
    for j in np.flatnonzero(_constant(x)):
        raise ValueError(f"column {observations.names[j]!r} is constant: drop it")
    if _constant(y):
        raise ValueError(f"{observations.target!r} takes one value only, {y[0]:g}")


def covariances(moments: LinearMoments) -> tuple[np.ndarray, np.ndarray]:
    """The corrected covariance of the columns, and the one with the noise."""
    clean, noisy = (moments.centred(share=share)[0] / moments.weight for share in (1.0, 0.0))
    return clean, noisy


def identified(
    parts: list[LinearMoments], whole: LinearMoments, rows: int, observations, units: Units
) -> Identification:
    """How well the columns identify the fit.

    Raises ValueError if the noise is larger than the moments of the noisy rows allow.
    """
    names, weight = observations.names, whole.weight

    def variance_of(direction):
        if not observations.cov_std_error.any():
            return 0.0
        return float(uncertainty(direction[None], observations, units)[0, 0])

    found = identification(parts, whole, variance_of, names, units.scale)
    y_variance = whole.yy / weight - (whole.y / weight) ** 2
    check_cross(whole.cross / weight, whole.cov / weight, y_variance, rows, names)
    return found


def grouped(labels: np.ndarray, count: int) -> tuple[np.ndarray, list[slice]]:
    """An order of the rows in which each of the groups `labels % count` is one slice."""
    groups = labels % count
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(count + 1))
    return order, [slice(*pair) for pair in itertools.pairwise(ends) if pair[0] < pair[1]]


def assembled(parts, known, corrected, plain, units, observations, num_rows, freedom) -> LinearFit:
    """The fit, from the moments of groups of rows and the coefficients of all rows.

    Args:
        parts: moments of groups of rows.
        known: how well the columns identify the fit.
        corrected: coefficients.
        plain: uncorrected coefficients.
        units: of the moments.
        observations: the table, or its first chunk.
        num_rows: n.
        freedom: degrees of freedom of the variances of the corrected coefficients, where the
            covariance of the noise is exact.
    """
    whole = functools.reduce(LinearMoments.plus, parts)
    clean, noisy = covariances(whole)
    scale, share = np.outer(units.scale, units.scale), known.share(whole)
    beta = whole.solution(share=share)[1]
    made = None
    if len(parts) > len(beta) + 1:
        freedoms = freedom, freedom_of_noise(whole, beta, observations, units)
        made = equations(parts, whole, beta, observations, units, freedoms)
    return LinearFit(
        **vars(corrected),
        uncorrected=plain,
        reliability=np.diag(clean) / np.diag(noisy),
        risk=_risk(parts, whole, known, units, observations),
        target=observations.target,
        num_rows=num_rows,
        num_copies=observations.x.shape[1],
        gram=clean * scale,
        cross=whole.centred()[1] / whole.weight * units.scale * units.y_scale,
        noise=(noisy - clean) * scale,
        means=np.append(units.y_center, units.center),
        strength=known.strength,
        share=share,
        equations=made,
    )


def _risk(parts: list[LinearMoments], whole, known, units, observations) -> Comparison:
    """Estimated clean risks of both predictors, each group judged by the fit to the others."""
    errors = np.empty((len(parts), 3))
    for k, part in enumerate(parts):
        rest = whole.plus(part, -1.0)
        errors[k, :2] = [
            part.clean_error(*rest.solution(share=s)) for s in (known.share(rest), 0.0)
        ]
    errors[:, 2] = errors[:, 0] - errors[:, 1]
    errors *= units.y_scale**2 / whole.weight
    means = errors.sum(axis=0)
    shares = np.array([part.weight for part in parts]) / whole.weight
    apart = errors - np.outer(shares, means)
    variances = (apart**2).sum(axis=0) * len(parts) / (len(parts) - 1)
    freedom = len(parts) - 1.0
    if observations.cov_std_error.any():  # each error contains −βᵀΣβ
        slopes = [whole.solution(share=share)[1] for share in (known.share(whole), 0.0)]
        squares = [np.outer(beta, beta) * units.y_scale**2 for beta in slopes]
        directions = np.array([*squares, squares[0] - squares[1]])
        added = np.diag(uncertainty(directions, observations, units))
        own = freedom_of_noise(whole, slopes[0], observations, units)
        freedom = float(combined_freedom((variances[2], added[2]), (freedom, own)))
        variances = variances + added
    std_errors = np.sqrt(variances)
    pairs = [float(value) for pair in zip(means, std_errors, strict=True) for value in pair]
    variance = (whole.yy / whole.weight - (whole.y / whole.weight) ** 2) * units.y_scale**2
    return Comparison(*pairs, variance=float(variance), degrees_of_freedom=freedom)


def with_weight(observations: Observations, weights, clusters):
    """The rows of positive weight, their weights and their clusters, if there are any."""
    n = len(observations.y)
    for name, given in (("weights", weights), ("clusters", clusters)):
        check_same_rows(name, given, "observations", observations.index)
    weights, clusters = checked_weights(weights, n), checked_clusters(clusters, n)
    if weights is None or weights.all():
        return observations, weights, clusters
    kept = weights > 0
    clusters = None if clusters is None else np.unique(clusters[kept], return_inverse=True)[1]
    return observations.rows(kept), weights[kept], clusters


def checked_weights(weights, n):
    """The weights `[n]`, or `None`."""
    if weights is None:
        return None
    weights = np.asarray(unmasked(weights), np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"weights must be {n} finite numbers of at least zero, one a row")
    if not weights.any():
        raise ValueError("weights must not all be zero")
    return weights


def checked_clusters(clusters, n):
    """Clusters as whole numbers from 0, `[n]`, or `None`."""
    if clusters is None:
        return None
    clusters = np.asarray(unmasked(clusters))
    if clusters.shape != (n,):
        raise ValueError(f"clusters must be {n} labels, one a row, got {list(clusters.shape)}")
    for row in np.flatnonzero(clusters != clusters):  # NaN alone is not itself
        raise ValueError(f"clusters must be labels, got NaN in row {row}: label it, or drop it")
    return np.unique(clusters, return_inverse=True)[1]
