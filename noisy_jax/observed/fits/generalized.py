"""Logistic and Poisson regression on noisy features, by estimating equations.

The equations are in `scores`; `roots` solves them, and `sandwich` has the variance of the root.
"""

import dataclasses
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from noisy_jax.observed.fits.estimates import Estimates
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters, if_counts
from noisy_jax.observed.fits.identification import check_identified, covariances
from noisy_jax.observed.fits.result import Fit, percent
from noisy_jax.observed.fits.roots import continued, root
from noisy_jax.observed.fits.sandwich import blocks_of, variance
from noisy_jax.observed.fits.scores import (
    MODELS,
    Enumerated,
    Model,
    enumerated,
    summed,
)
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import Rows, UndeterminedError, Units
from noisy_jax.observed.observations import Observations
from noisy_jax.warning import warn

_LEAST_SHARE = 0.5  # of the noise's covariance, for which an estimate is given


def generalized_fit(sample: Sample, name: str, labels: np.ndarray | None = None) -> Fit:
    """See `nj.methods`: `name` is a key of `MODELS`, and `labels` as in `enumerated`."""
    observations, weights, clusters = sample.table, sample.weights, sample.clusters
    exposure = sample.exposure
    model = MODELS[name]
    _check(observations, name)
    table = Rows.of(observations, weights)
    if exposure is not None:  # y − E m = E (y/E − m): rates, with the exposure E as a weight
        own = exposure if weights is None else weights * exposure
        table = table._replace(y=table.y / exposure, weights=own)
    units = dataclasses.replace(Units.of(table.x, table.y, observations), y_center=0, y_scale=1)
    n, dim = table.x.shape
    if n < (least := max(dim + 2, LEAST_GROUPS)):
        raise UndeterminedError(f"fit needs at least {least} rows, got {n}{if_counts(weights)}")
    check_clusters(clusters)
    gram, noisy = covariances(units.moments(table._replace(weights=weights)))
    check_identified(gram, noisy, observations.names, units.scale)
    standard = units.standardized(table)
    if observations.categories or labels is not None:
        standard = enumerated(standard, units, observations, labels)
        model = model._replace(equations=summed(model.equations))
    own = np.ones(n) if weights is None else weights
    problem = _Problem(name, model, observations, units, standard, own, clusters)
    rows, mean = problem.rows(slice(None)), np.average(table.y, weights=table.weights)
    plain = root(model, np.append(model.link(mean), np.zeros(dim)), rows.with_share(0))
    if plain is None:
        raise UndeterminedError(separated(table, observations, name))
    theta, share = continued(model, plain, rows)
    if share < _LEAST_SHARE:
        raise ValueError(f"{_NO_ROOT}, nor with half of it: {model.no_root}; {_INSTEAD}")
    if share < 1:
        warn(
            f"{_NO_ROOT}, so that {percent(share)} of it is taken away and intervals are wide: "
            f"{model.no_root}; {_INSTEAD}",
        )
    return Fit.of(
        problem.fitted(theta, share),
        problem.fitted(plain, 0.0),
        observations,
        reliability=np.diag(gram) / np.diag(noisy),
        scale=units.scale,
        share=share,
        about=f"{model.words} and Gaussian noise, or misclassification as stated.",
    )


class _Problem(NamedTuple):
    """A standardized table with its model."""

    name: str
    model: Model
    observations: Observations
    units: Units
    table: Rows | Enumerated
    weights: np.ndarray
    clusters: np.ndarray | None

    def rows(self, which) -> Rows | Enumerated:
        """Some rows; with replicates of unknown noise they share the mean of their covariances.

        Scores are not linear in the covariance, so that a row's own estimate of it is not enough.
        """
        rows = self.table.some(which)
        if self.observations.cov is not None:
            return rows
        return rows.with_cov(np.average(rows.cov, axis=0, weights=self.weights[which]))

    def fitted(self, theta: np.ndarray, share: float) -> Estimates:
        """In original units, with intervals, from a root with a share of the noise."""
        rows, jacobian = self.rows(slice(None)).with_share(share), self.units.jacobian(0)
        whole = self.model.equations(theta, rows)
        moves = whole.in_covariance(theta[1:])
        parts = self._scores(theta, rows, moves, share)
        spread, freedom, _ = variance(parts, -whole.jacobian, self.clusters, jacobian)
        noise = UncertainNoise(self.observations, self.units.products)
        if share and not noise.exact:  # delta method: dθ = −J⁻¹ (∂Σψ/∂C) dC
            cov = self.table.cov if self.table.cov.ndim == 2 else self.table.cov.mean(axis=0)
            own = noise.freedom(cov, np.outer(theta[1:], theta[1:]))
            moves = np.tensordot(np.linalg.inv(-whole.jacobian), share * moves, 1)
            spread, freedom = noise.widened(moves, own, spread, freedom, jacobian)
        at = np.zeros(len(theta) - 1)
        made = theta[0], theta[1:], spread, at, freedom, self.observations
        return self.units.restored(*made, self.name)

    def _scores(self, theta, rows, moves, share) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """ψ_i and −∂ψ_i/∂θ of blocks of rows.

        Where all rows share the mean of their covariances, ψ_i contains what row i does to it.
        """
        own = self.weights / self.weights.sum()
        for part in blocks_of(len(rows.y), len(theta)):
            made = self.model.equations(theta, rows.some(part), by_row=True)
            scores = made.scores
            if self.observations.cov is None:
                apart = (share * self.table.some(part).cov - rows.cov) * own[part, None, None]
                scores = scores + np.tensordot(apart, moves, ((1, 2), (1, 2)))
            yield scores, -made.jacobian


_NO_ROOT = "the corrected equations have no stable root with the whole covariance of the noise"
_INSTEAD = "drop columns, add rows or replicates, or take the uncorrected fit, with noise=0"


def separated(rows: Rows, observations: Observations, name: str) -> str:
    """Why the uncorrected fit has no finite root: its loss is convex, and its columns differ."""
    which, high = "a combination of the columns", rows.y > 0
    for column, values in zip(observations.names, rows.x.T, strict=True):
        low, up = values[~high], values[high]
        if name == "logistic" and (low.max() <= up.min() or up.max() <= low.min()):
            which = f"column {column!r}"
    return (
        f"the uncorrected fit has no finite solution: {which} predicts which rows have "
        f"{observations.target} = 0 perfectly, or nearly; drop a column, or add rows"
    )


def _check(observations: Observations, name: str) -> None:
    """Raises ValueError if the model does not allow these targets or this noise."""
    instead = f"; or take nj.methods.RegressionCalibration({name!r}), approximate"
    observations.check_each_row(f"model={name!r}", categories=True, instead=instead)
    if law := observations.not_gaussian():
        raise ValueError(
            f"model={name!r} is for Gaussian noise, got {law}; give its covariance to treat it as "
            "Gaussian"
        )
    if observations.cross_cov is not None:
        raise ValueError(f"model={name!r} needs errors in y that are independent of those in x")
    check_targets(observations, name)


def check_targets(observations: Observations, name: str) -> None:
    """Raises ValueError if the model, a key of `MODELS`, does not allow these targets."""
    y = observations.y
    if observations.target_cov is not None:
        raise ValueError(
            f"model={name!r} is for {MODELS[name].targets} without error: leave out "
            f"the noise of {observations.target!r}"
        )
    wrong = np.flatnonzero(~MODELS[name].allowed(y))
    if wrong.size:
        raise ValueError(
            f"{observations.target!r} must be {MODELS[name].targets} for model={name!r}, but is "
            f"{y[wrong[0]]:g} in row {wrong[0]} ({wrong.size} in all)"
        )
