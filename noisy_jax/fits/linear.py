"""Linear regression on noisy features: solves the corrected normal equations."""

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.fits.coefficients import Coefficients, Comparison, LinearFit
from noisy_jax.fits.identification import check_cross, check_identified
from noisy_jax.moments.batch import LinearMoments, linear_moments
from noisy_jax.observations import Observations
from noisy_jax.streams.columns import ROUNDING, check_same_rows
from noisy_jax.validation import instance, unmasked

_ROWS = 4096
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
    names = observations.names
    check_moments(whole, n, names, units)
    found = []
    for corrected in (True, False):
        beta = whole.solution(corrected=corrected)[1]
        spread, freedom = _sandwich(whole, beta, table, clusters, corrected)
        if corrected:
            spread[1:, 1:] += uncertainty_of_slopes(whole, beta, observations, units)
        mean = whole.x / whole.weight
        found.append(units.restored(whole.y / whole.weight, beta, spread, mean, freedom, names))
    return assembled(parts, found[0], found[1], units, observations, n)


class Table(NamedTuple):
    """Standardized rows; `rows` gives the arguments of `linear_moments`."""

    x: np.ndarray
    y: np.ndarray
    cov: np.ndarray
    weights: np.ndarray | None = None
    cross: np.ndarray | None = None

    def rows(self, which) -> "Table":
        """Some of the rows, in some order."""
        cov = self.cov if self.cov.ndim == 2 else self.cov[which]
        weights = None if self.weights is None else self.weights[which]
        cross = self.cross
        cross = cross if cross is None or cross.ndim == 1 else cross[which]
        return Table(self.x[which], self.y[which], cov, weights, cross)


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

    def restored(self, value, beta, covariance, at, degrees_of_freedom, names) -> Coefficients:
        """In original units, the fit that predicts `value` at `at`, with the slopes `beta`.

        Args:
            value: `[]`.
            beta: `[d]`.
            covariance: `[1 + d, 1 + d]`, of both.
            at: `[d]`.
            degrees_of_freedom: of the intervals.
            names: of the columns.
        """
        center = self.center + self.scale * at
        ratio = self.y_scale / self.scale
        jacobian = np.diag(np.append(self.y_scale, ratio))
        jacobian[0, 1:] = -center * ratio
        return Coefficients(
            intercept=float(self.y_center + self.y_scale * value - center @ (beta * ratio)),
            coefficients=beta * ratio,
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
    clean, noisy = (moments.centred(corrected=c)[0] / moments.weight for c in (True, False))
    return clean, noisy


def check_moments(whole: LinearMoments, rows: int, names, units: Units) -> None:
    """Raises ValueError if the noise is larger than the moments of the noisy rows allow."""
    check_identified(*covariances(whole), names, units.scale)
    weight = whole.weight
    y_variance = whole.yy / weight - (whole.y / weight) ** 2
    check_cross(whole.cross / weight, whole.cov / weight, y_variance, rows, names)


def uncertainty_of_slopes(whole: LinearMoments, beta, observations: Observations, units: Units):
    """`[d, d]`, what an uncertain covariance of the noise adds to that of β (delta method)."""
    if not observations.cov_std_error.any():
        return np.zeros((len(beta), len(beta)))
    # dβ = −S⁻¹ dS β with dS = −dΣ.
    inverse = np.linalg.inv(covariances(whole)[0])
    return uncertainty(inverse[:, :, None] * beta, observations, units)


def uncertainty(directions: np.ndarray, observations: Observations, units: Units) -> np.ndarray:
    """`[k, k]`, covariance of Σ_ij M_ij Σ̂_ij for k matrices M, `[k, d, d]`.

    Σ̂ is the uncertain covariance of the error in a mean of copies, in these units.
    """
    directions = directions / np.outer(units.scale, units.scale) / observations.x.shape[1]
    if observations.cov_deviations is not None:
        moves = np.tensordot(directions, observations.cov_deviations, axes=([1, 2], [1, 2]))
    else:  # the error of Σ̂_ij moves both M_ij and M_ji
        both = directions + np.swapaxes(directions, 1, 2)
        both[:, *np.diag_indices(len(units.scale))] /= 2
        moves = np.triu(both * observations.cov_std_error).reshape(len(both), -1)
    return moves @ moves.T


def grouped(labels: np.ndarray, count: int) -> tuple[np.ndarray, list[slice]]:
    """An order of the rows in which each of the groups `labels % count` is one slice."""
    groups = labels % count
    order = np.argsort(groups, kind="stable")
    ends = np.searchsorted(groups[order], np.arange(count + 1))
    return order, [slice(*pair) for pair in itertools.pairwise(ends) if pair[0] < pair[1]]


def assembled(parts, corrected, plain, units, observations, num_rows) -> LinearFit:
    """The fit, from the moments of groups of rows and the coefficients of all rows."""
    whole = functools.reduce(LinearMoments.plus, parts)
    clean, noisy = covariances(whole)
    scale = np.outer(units.scale, units.scale)
    return LinearFit(
        **vars(corrected),
        uncorrected=plain,
        reliability=np.diag(clean) / np.diag(noisy),
        risk=_risk(parts, whole, units, observations),
        target=observations.target,
        num_rows=num_rows,
        num_copies=observations.x.shape[1],
        gram=clean * scale,
        cross=whole.centred()[1] / whole.weight * units.scale * units.y_scale,
        noise=(noisy - clean) * scale,
        means=np.append(units.y_center, units.center),
    )


def _sandwich(whole, beta, table: Table, clusters, corrected) -> tuple[np.ndarray, int]:
    """Covariance of the mean of y and of β, and its degrees of freedom."""
    n, dim = table.x.shape
    groups = n if clusters is None else int(clusters.max()) + 1
    freedom = n - 1 - dim if clusters is None else groups - 1
    spread = np.zeros((1 + dim, 1 + dim))
    sums = np.zeros((0 if clusters is None else groups, 1 + dim))
    for start in range(0, n, _ROWS):  # in parts that fit into a processor's cache
        part = slice(start, start + _ROWS)
        psi = _scores(whole, beta, table.rows(part), corrected)
        if clusters is None:
            spread += psi.T @ psi
        else:
            np.add.at(sums, clusters[part], psi)
    if clusters is not None:
        spread = sums.T @ sums
    bread = np.zeros((1 + dim, 1 + dim))
    gram = whole.centred(corrected=corrected)[0]
    bread[0, 0], bread[1:, 1:] = 1 / whole.weight, np.linalg.inv(gram)
    return bread @ spread @ bread * (groups / freedom), freedom


def _scores(whole, beta, table: Table, corrected) -> np.ndarray:
    """`[n, 1 + d]`, what each row contributes to the equations of the mean of y and of β."""
    x = table.x - whole.x / whole.weight
    residual = table.y - whole.y / whole.weight - x @ beta
    psi = np.empty((len(x), 1 + len(beta)))
    psi[:, 0] = residual
    np.multiply(x, residual[:, None], out=psi[:, 1:])
    weights = 1.0 if table.weights is None else table.weights[:, None]
    if corrected:  # as `centred` takes it away: the scores of all rows sum to 0
        noise = table.cov @ beta - (0.0 if table.cross is None else table.cross)
        psi[:, 1:] += noise * (1 - weights / whole.weight)
    psi *= weights
    return psi


def _risk(parts: list[LinearMoments], whole: LinearMoments, units, observations) -> Comparison:
    """Estimated clean risks of both predictors, each group judged by the fit to the others."""
    errors = np.empty((len(parts), 3))
    for k, part in enumerate(parts):
        rest = whole.plus(part, -1.0)
        errors[k, :2] = [part.clean_error(*rest.solution(corrected=c)) for c in (True, False)]
    errors[:, 2] = errors[:, 0] - errors[:, 1]
    errors *= units.y_scale**2 / whole.weight
    means = errors.sum(axis=0)
    shares = np.array([part.weight for part in parts]) / whole.weight
    apart = errors - np.outer(shares, means)
    variances = (apart**2).sum(axis=0) * len(parts) / (len(parts) - 1)
    if observations.cov_std_error.any():  # each error contains −βᵀΣβ
        slopes = [whole.solution(corrected=corrected)[1] for corrected in (True, False)]
        squares = [np.outer(beta, beta) * units.y_scale**2 for beta in slopes]
        directions = np.array([*squares, squares[0] - squares[1]])
        variances += np.diag(uncertainty(directions, observations, units))
    std_errors = np.sqrt(variances)
    pairs = [float(value) for pair in zip(means, std_errors, strict=True) for value in pair]
    variance = (whole.yy / whole.weight - (whole.y / whole.weight) ** 2) * units.y_scale**2
    return Comparison(*pairs, variance=float(variance), degrees_of_freedom=len(parts) - 1)


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
