"""Logistic and Poisson regression on noisy features, by estimating equations.

The equations are in `scores`; `roots` solves them. Standard errors are from the jackknife over
groups of rows, whose covariance of θ̂ is (G − 1)/G Σ_g (θ_(g) − mean)(θ_(g) − mean)ᵀ. Where the
equations without some group have no root, or only a share of the noise is taken away, they are from
the sandwich A⁻¹ (Σ_i ψ_iψ_iᵀ) A⁻ᵀ n/(n − 1 − d), A = −∂Σψ/∂θ, with independent rows.
"""

import dataclasses
import warnings
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.fits.coefficients import Coefficients, Corrected
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters, groups_of, jackknifed
from noisy_jax.observed.fits.identification import check_identified, covariances
from noisy_jax.observed.fits.roots import continued, root
from noisy_jax.observed.fits.sandwich import of_scores
from noisy_jax.observed.fits.scores import (
    MODELS,
    Enumerated,
    Equations,
    Model,
    enumerated,
    summed,
)
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import Rows, UndeterminedError, Units
from noisy_jax.observed.observations import Observations
from noisy_jax.tables import Table

_LEAST_SHARE = 0.5  # of the noise's covariance, for which an estimate is given


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class GeneralizedCoefficients(Coefficients):
    """A predictor of a model with its uncertainty, in original units.

    Attributes:
        model: "logistic" or "poisson"; any other name is of a linear predictor.
    """

    model: str

    @property
    def unit(self) -> str:
        """Of which exp(coefficient) is a ratio: "odds" or "rate"."""
        return MODELS[self.model].unit if self.model in MODELS else super().unit

    def predict(self, x: Any) -> Any:
        """Probabilities of y = 1, or mean counts, `[...]` at features `[..., d]`.

        Columns are taken as in linear fits. It works under `jit`, `vmap` and `grad`, in JAX's
        default precision.
        """
        value = super().predict(x)
        return MODELS[self.model].mean(value) if self.model in MODELS else value


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class CorrectedModel(GeneralizedCoefficients, Corrected):
    """A corrected fit of a model; print it for the table.

    It has the attributes of `Coefficients` and of `Corrected` as well; `uncorrected` is the same
    estimator on the noisy rows.

    Attributes:
        scale: `[d]`, standard deviations of the means of the noisy copies.
    """

    uncorrected: GeneralizedCoefficients
    scale: np.ndarray


class GeneralizedFit(CorrectedModel):
    """A corrected logistic or Poisson regression; print it for the table.

    It has the attributes of `Coefficients` and of `Corrected` as well, and `scale`, the standard
    deviations `[d]` of the means of the noisy copies. `uncorrected` is maximum likelihood on these.
    If `share` is below 1, intervals contain the doubt about the root.
    """

    kind = "generalized"

    def _doubts(self) -> list[str]:
        return [*self._part(), *super()._doubts()]

    def _part(self) -> list[str]:
        part = f"Only {self.share:.0%} of the noise is taken away: see fit.share."
        return [part] if self.share < 1 else []

    def _shown(self) -> Table:
        """Coefficients, intervals, uncorrected coefficients, reliability."""
        lines = [
            "",
            *(line for part in self._part() for line in (part, "")),
            MODELS[self.model].words,
            "and Gaussian noise, or misclassification as stated. For interpretation and for clean",
            f"features: to predict from {self._noisy} as noisy as these, use fit.uncorrected.",
        ]
        return self._printed(lines)


def generalized_fit(
    observations: Observations,
    name: str,
    labels: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
    exposure: np.ndarray | None = None,
) -> GeneralizedFit:
    """See `nj.methods`: `name` is a key of `MODELS`, and `labels` as in `enumerated`."""
    model = MODELS[name]
    _check(observations, name)
    table = Rows.of(observations, weights)
    if exposure is not None:  # y − E m = E (y/E − m): rates, with the exposure E as a weight
        own = exposure if weights is None else weights * exposure
        table = table._replace(y=table.y / exposure, weights=own)
    units = dataclasses.replace(Units.of(table.x, table.y, observations), y_center=0, y_scale=1)
    n, dim = table.x.shape
    if n < (least := max(dim + 2, LEAST_GROUPS)):
        raise UndeterminedError(f"fit needs at least {least} rows, got {n}")
    check_clusters(clusters)
    gram, noisy = covariances(units.moments(table._replace(weights=weights)))
    check_identified(gram, noisy, observations.names, units.scale)
    standard = units.standardized(table)
    if observations.categories or labels is not None:
        standard = enumerated(standard, units, observations, labels)
        model = model._replace(equations=summed(model.equations))
    own = np.ones(n) if weights is None else weights
    problem = _Problem(model, observations, units, standard, own, clusters)
    rows, mean = problem.rows(slice(None)), np.average(table.y, weights=table.weights)
    plain = root(model, np.append(model.link(mean), np.zeros(dim)), rows.with_share(0))
    if plain is None:
        raise UndeterminedError(separated(table, observations, name))
    theta, share = continued(model, plain, rows)
    if share < _LEAST_SHARE:
        raise ValueError(f"{_NO_ROOT}, nor with half of it: {model.no_root}; {_INSTEAD}")
    if share < 1:
        warnings.warn(
            f"{_NO_ROOT}, so that {share:.0%} of it is taken away and intervals are wide: "
            f"{model.no_root}; {_INSTEAD}",
            stacklevel=5,
        )
    corrected = problem.fitted(theta, share)
    uncorrected = problem.fitted(plain, 0.0)
    return GeneralizedFit(
        **vars(corrected),
        model=name,
        uncorrected=GeneralizedCoefficients(**vars(uncorrected), model=name),
        reliability=np.diag(gram) / np.diag(noisy),
        scale=units.scale,
        target=observations.target,
        num_rows=n,
        num_copies=observations.x.shape[1],
        share=share,
    )


class _Problem(NamedTuple):
    """A standardized table with its model."""

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

    def fitted(self, theta: np.ndarray, share: float) -> Coefficients:
        """In original units, with intervals, from a root with a share of the noise."""
        rows = self.rows(slice(None)).with_share(share)
        made = self.model.equations(theta, rows)
        without = self._without_groups(theta, share) if share in (0, 1) else None
        if without is None:
            count = len(rows.y) if self.clusters is None else int(self.clusters.max()) + 1
            spread, freedom = self._sandwich(made, theta, rows.cov, share), count - len(theta)
        else:
            spread, freedom = jackknifed(without)
        noise = UncertainNoise(self.observations, self.units.products)
        if share and not noise.exact:  # delta method: dθ = −J⁻¹ (∂Σψ/∂C) dC
            moves = share * made.in_covariance(theta[1:])
            moves = np.tensordot(np.linalg.inv(-made.jacobian), moves, 1)
            spread += noise.covariance(moves)
        at = np.zeros(len(theta) - 1)
        names = self.observations.names
        return self.units.restored(theta[0], theta[1:], spread, at, freedom, names)

    def _without_groups(self, theta, share) -> np.ndarray | None:
        """`[G, 1 + d]`, roots without each group of rows; `None` with a warning if one fails.

        In large tables they are so near to θ that one step of Newton's method finds them.
        """
        n = len(self.table.y)
        groups = groups_of(n, self.clusters)
        if self.observations.cov is not None and n >= _LARGE:  # one step of Newton's method
            every = (self.rows(group).with_share(share) for group in groups)
            parts = [self.model.equations(theta, rows) for rows in every]
            score = sum(one.score for one in parts)
            jacobian = sum(one.jacobian for one in parts)
            steps = [np.linalg.solve(one.jacobian - jacobian, score - one.score) for one in parts]
            return theta + np.array(steps)
        rest = (self.rows(np.delete(np.arange(n), group)).with_share(share) for group in groups)
        found = [root(self.model, theta, rows) for rows in rest]
        if all(one is not None for one in found):
            return np.array(found)
        failed = sum(one is None for one in found)
        warnings.warn(
            f"the {'corrected' if share else 'uncorrected'} equations have no root without "
            f"{failed} of the {len(found)} groups of rows that the jackknife leaves out: standard "
            "errors are from the sandwich, which takes "
            f"{'rows' if self.clusters is None else 'clusters'} as independent; the coefficients "
            "are weakly determined",
            stacklevel=7,
        )
        return None

    def _sandwich(self, made: Equations, theta, cov, share) -> np.ndarray:
        """By the scores ψ_i; where the rows' covariances are averaged, with what its own moves."""
        scores = made.scores
        if self.observations.cov is None:
            apart = share * self.table.cov - cov
            moves = np.tensordot(apart, made.in_covariance(theta[1:]), ((1, 2), (1, 2)))
            scores = scores + moves * (self.weights / self.weights.sum())[:, None]
        return of_scores(scores, made.jacobian, self.clusters)


_LARGE = 16_384
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
    instead = (
        f"; or take nj.methods.RegressionCalibration({name!r}) or SIMEX({name!r}), approximate"
    )
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
