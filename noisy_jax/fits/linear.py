"""Linear regression on noisy features: solves the corrected normal equations."""

import dataclasses
import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.fits.coefficients import Coefficients, Comparison, LinearFit
from noisy_jax.fits.identification import check_identified
from noisy_jax.moments.batch import LinearMoments, linear_moments
from noisy_jax.observations import Observations
from noisy_jax.validation import instance

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
    x, cov = observations.averaged()
    y, n, dim = observations.y, *x.shape
    weights, clusters = checked_weights(weights, n), checked_clusters(clusters, n)
    groups = n if clusters is None else int(clusters.max()) + 1
    if groups <= dim + 1:
        kind = "rows" if clusters is None else "clusters"
        raise ValueError(f"fit needs more than d + 1 = {dim + 1} {kind}, got {groups}")
    units = Units.of(x, y, observations)
    order, slices = grouped(np.arange(n) if clusters is None else clusters, GROUPS)
    table = units.table(x, y, cov)._replace(weights=weights).rows(order)
    clusters = None if clusters is None else clusters[order]
    parts = [linear_moments(*table.rows(group)) for group in slices]
    whole = functools.reduce(LinearMoments.plus, parts)
    check_identified(*covariances(whole), observations.names, units.scale)
    found = []
    for corrected in (True, False):
        beta = whole.solution(corrected=corrected)[1]
        spread, freedom = _sandwich(whole, beta, table, clusters, corrected)
        if corrected:
            spread[1:, 1:] += uncertainty(whole, beta, observations, units)
        mean = whole.x / whole.weight
        found.append(units.restored(whole.y / whole.weight, beta, spread, mean, freedom))
    return assembled(parts, found[0], found[1], units, observations, n)


class Table(NamedTuple):
    """Standardized rows; `rows` gives the arguments of `linear_moments`."""

    x: np.ndarray
    y: np.ndarray
    cov: np.ndarray
    weights: np.ndarray | None = None

    def rows(self, which) -> "Table":
        """Some of the rows, in some order."""
        cov = self.cov if self.cov.ndim == 2 else self.cov[which]
        weights = None if self.weights is None else self.weights[which]
        return Table(self.x[which], self.y[which], cov, weights)


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
        center, scale = x.mean(axis=0), x.std(axis=0)
        for j in np.flatnonzero(scale <= 1e-12 * np.abs(x).max(axis=0)):
            raise ValueError(f"column {observations.names[j]!r} is constant: drop it")
        y_center, y_scale = float(y.mean()), float(y.std())
        if not y_scale > 1e-12 * np.abs(y).max():
            raise ValueError(f"{observations.target!r} takes one value only, {y[0]:g}")
        return cls(center, scale, y_center, y_scale)

    def table(self, x, y, cov) -> Table:
        """The rows in these units."""
        x = x - self.center
        x /= self.scale
        cov = cov / np.outer(self.scale, self.scale)
        return Table(x, (y - self.y_center) / self.y_scale, cov)

    def restored(self, value, beta, covariance, at, degrees_of_freedom) -> Coefficients:
        """In original units, the fit that predicts `value` at `at`, with the slopes `beta`.

        Args:
            value: `[]`.
            beta: `[d]`.
            covariance: `[1 + d, 1 + d]`, of both.
            at: `[d]`.
            degrees_of_freedom: of the intervals.
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
        )


def covariances(moments: LinearMoments) -> tuple[np.ndarray, np.ndarray]:
    """The corrected covariance of the columns, and the one with the noise."""
    clean, noisy = (moments.centred(corrected=c)[0] / moments.weight for c in (True, False))
    return clean, noisy


def uncertainty(moments: LinearMoments, beta, observations: Observations, units: Units):
    """`[d, d]`, what an uncertain covariance of the noise adds to that of β (delta method)."""
    scale = np.outer(units.scale, units.scale)
    errors = observations.cov_std_error / observations.x.shape[1] / scale
    added = np.zeros_like(errors)
    if not errors.any():
        return added
    inverse = np.linalg.inv(covariances(moments)[0])
    # dβ = −S⁻¹ dS β with dS = −dΣ, entry by entry of the symmetric dΣ.
    for i, j in zip(*np.triu_indices(len(beta)), strict=True):
        direction = np.zeros_like(errors)
        direction[i, j] = direction[j, i] = 1
        move = inverse @ direction @ beta
        added += errors[i, j] ** 2 * np.outer(move, move)
    return added


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
        risk=_risk(parts, whole, units),
        names=observations.names,
        target=observations.target,
        num_rows=num_rows,
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
        psi[:, 1:] += (table.cov @ beta) * (1 - weights / whole.weight)
    psi *= weights
    return psi


def _risk(parts: list[LinearMoments], whole: LinearMoments, units: Units) -> Comparison:
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
    std_errors = np.sqrt((apart**2).sum(axis=0) * len(parts) / (len(parts) - 1))
    pairs = [float(value) for pair in zip(means, std_errors, strict=True) for value in pair]
    variance = (whole.yy / whole.weight - (whole.y / whole.weight) ** 2) * units.y_scale**2
    return Comparison(*pairs, variance=float(variance))


def checked_weights(weights, n):
    """The weights `[n]`, or `None`."""
    if weights is None:
        return None
    weights = np.asarray(weights, np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"weights must be {n} finite numbers of at least zero, one a row")
    if not weights.any():
        raise ValueError("weights must not all be zero")
    return weights


def checked_clusters(clusters, n):
    """Clusters as whole numbers from 0, `[n]`, or `None`."""
    if clusters is None:
        return None
    clusters = np.asarray(clusters)
    if clusters.shape != (n,):
        raise ValueError(f"clusters must be {n} labels, one a row, got {list(clusters.shape)}")
    return np.unique(clusters, return_inverse=True)[1]
