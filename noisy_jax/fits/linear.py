"""Linear regression on noisy features: solves the corrected normal equations."""

import dataclasses
from typing import Any

import numpy as np

from noisy_jax.fits.coefficients import Coefficients, Comparison, LinearFit
from noisy_jax.fits.identification import check_identified
from noisy_jax.moments.batch import LinearMoments, linear_moments
from noisy_jax.observations import Observations
from noisy_jax.validation import instance

_FOLDS = 10


def linear_fit(
    observations: Observations,
    *,
    weights: Any = None,
    clusters: Any = None,
) -> LinearFit:
    """See `nj.fit`."""
    instance("observations", observations, Observations, "nj.observations.from_arrays makes one")
    x, cov = observations.averaged()
    y, n, dim = observations.y, *x.shape
    weights = _weights(weights, n)
    clusters = _clusters(clusters, n)
    groups = n if clusters is None else int(clusters.max()) + 1
    if groups <= dim + 1:
        kind = "rows" if clusters is None else "clusters"
        raise ValueError(f"fit needs more than d + 1 = {dim + 1} {kind}, got {groups}")
    center, scale = x.mean(axis=0), x.std(axis=0)
    for j in np.flatnonzero(scale <= 1e-12 * np.abs(x).max(axis=0)):
        raise ValueError(f"column {observations.names[j]!r} is constant: drop it")
    y_center, y_scale = y.mean(), y.std()
    if not y_scale > 1e-12 * np.abs(y).max():
        raise ValueError(f"{observations.target!r} takes one value only, {y[0]:g}")
    x, y = (x - center) / scale, (y - y_center) / y_scale
    cov = cov / np.outer(scale, scale)

    folds = np.arange(n) % _FOLDS if clusters is None else clusters % _FOLDS
    parts = [
        linear_moments(
            x[folds == k],
            y[folds == k],
            cov if cov.ndim == 2 else cov[folds == k],
            None if weights is None else weights[folds == k],
        )
        for k in range(min(_FOLDS, groups))
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.plus(part)
    clean, noisy = (whole.centred(corrected=c)[0] / whole.weight for c in (True, False))
    check_identified(clean, noisy, observations.names, scale)

    uncertain = observations.cov_std_error / observations.x.shape[1] / np.outer(scale, scale)
    units = _Units(center, scale, y_center, y_scale)
    corrected = _coefficients(whole, x, y, cov, weights, clusters, uncertain, units)
    plain = _coefficients(whole, x, y, 0 * cov[:1], weights, clusters, 0 * uncertain, units, False)
    gram, cross = whole.centred()
    noisy = whole.centred(corrected=False)[0]
    rows = whole.weight
    return LinearFit(
        **vars(corrected),
        uncorrected=plain,
        reliability=np.diag(gram) / np.diag(noisy),
        risk=_risk(parts, whole, x, y, cov, weights, clusters, folds, y_scale),
        names=observations.names,
        target=observations.target,
        num_rows=n,
        gram=gram / rows * np.outer(scale, scale),
        cross=cross / rows * scale * y_scale,
        noise=(noisy - gram) / rows * np.outer(scale, scale),
        means=np.append(y_center, center),
    )


@dataclasses.dataclass(frozen=True)
class _Units:
    """Centres and scales by which the columns and y were made free of units."""

    center: np.ndarray
    scale: np.ndarray
    y_center: float
    y_scale: float


def _coefficients(
    moments: LinearMoments, x, y, cov, weights, clusters, uncertain, units, corrected=True
) -> Coefficients:
    """Solves the normal equations, with the sandwich covariance of the solution."""
    gram, cross = moments.centred(corrected=corrected)
    beta = np.linalg.solve(gram, cross)
    n, dim = x.shape
    mean, y_mean = moments.x / moments.weight, moments.y / moments.weight
    residual = y - y_mean - (x - mean) @ beta
    # The contribution ψ_i of row i to the normal equations; the mean of y comes first.
    psi = np.empty((n, 1 + dim))
    psi[:, 0] = residual
    psi[:, 1:] = (x - mean) * residual[:, None]
    if corrected:
        share = (1.0 if weights is None else weights[:, None]) / moments.weight
        psi[:, 1:] += (cov @ beta) * (1 - share)  # as `centred` takes it away: Σ ψ_i = 0
    if weights is not None:
        psi *= weights[:, None]
    groups = n
    if clusters is not None:
        groups = int(clusters.max()) + 1
        sums = np.zeros((groups, 1 + dim))
        np.add.at(sums, clusters, psi)
        psi = sums
    bread = np.zeros((1 + dim, 1 + dim))
    bread[0, 0], bread[1:, 1:] = 1 / moments.weight, np.linalg.inv(gram)
    spread = psi.T @ psi * (groups / (groups - 1 - dim if clusters is None else groups - 1))
    covariance = bread @ spread @ bread
    if uncertain.any():
        # dβ = −S⁻¹ dS β with dS = −Σ w dΣ, entry by entry of the symmetric dΣ.
        for i, j in zip(*np.triu_indices(dim), strict=True):
            direction = np.zeros((dim, dim))
            direction[i, j] = direction[j, i] = 1
            move = moments.weight * bread[1:, 1:] @ direction @ beta
            covariance[1:, 1:] += uncertain[i, j] ** 2 * np.outer(move, move)
    # Back to original units: the intercept is ȳ − ⟨x̄, β⟩ at x = 0.
    to_units = np.zeros((1 + dim, 1 + dim))
    to_units[0, 0] = units.y_scale
    to_units[1:, 1:] = np.diag(units.y_scale / units.scale)
    to_units[0, 1:] = -(units.center + units.scale * mean) * units.y_scale / units.scale
    coefficients = beta * units.y_scale / units.scale
    center = units.center + units.scale * mean
    return Coefficients(
        intercept=float(units.y_center + units.y_scale * y_mean - center @ coefficients),
        coefficients=coefficients,
        covariance=to_units @ covariance @ to_units.T,
        degrees_of_freedom=groups - 1 - (dim if clusters is None else 0),
    )


def _risk(parts, whole, x, y, cov, weights, clusters, folds, y_scale) -> Comparison:
    """Estimated clean risks of both predictors, each on rows that it was not fitted to."""
    errors = np.empty((len(y), 2))
    for k, part in enumerate(parts):
        rest, here = whole.plus(part, -1.0), folds == k
        own = cov if cov.ndim == 2 else cov[here]
        for column, corrected in enumerate((True, False)):
            gram, cross = rest.centred(corrected=corrected)
            beta = np.linalg.solve(gram, cross)
            constant = (rest.y - rest.x @ beta) / rest.weight
            noise = np.einsum("...ij,i,j->...", own, beta, beta)
            errors[here, column] = (y[here] - constant - x[here] @ beta) ** 2 - noise
    errors = np.column_stack([errors, errors[:, 0] - errors[:, 1]]) * y_scale**2
    w = np.ones(len(y)) if weights is None else weights
    mean = w @ errors / w.sum()
    scores = w[:, None] * (errors - mean)
    if clusters is not None:
        sums = np.zeros((int(clusters.max()) + 1, 3))
        np.add.at(sums, clusters, scores)
        scores = sums
    groups = len(scores)
    error = np.sqrt((scores**2).sum(axis=0) * groups / (groups - 1)) / w.sum()
    variance = (whole.yy / whole.weight - (whole.y / whole.weight) ** 2) * y_scale**2
    pairs = [float(value) for pair in zip(mean, error, strict=True) for value in pair]
    return Comparison(*pairs, variance=float(variance))


def _weights(weights, n):
    if weights is None:
        return None
    weights = np.asarray(weights, np.float64)
    if weights.shape != (n,) or not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"weights must be {n} finite numbers of at least zero, one a row")
    if not weights.any():
        raise ValueError("weights must not all be zero")
    return weights


def _clusters(clusters, n):
    if clusters is None:
        return None
    clusters = np.asarray(clusters)
    if clusters.shape != (n,):
        raise ValueError(f"clusters must be {n} labels, one a row, got {list(clusters.shape)}")
    return np.unique(clusters, return_inverse=True)[1]
