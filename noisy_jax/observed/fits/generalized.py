"""Logistic and Poisson regression on noisy features, by estimating equations.

The equations are in `scores`, `roots` solves them, and `solutions` makes a fit of the root.
"""

import dataclasses

import numpy as np

from noisy_jax.observed.fits.clustered import ONE_CLUSTER
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters, if_counts
from noisy_jax.observed.fits.identification import check_identified, covariances
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.roots import PATIENT, Root, root, solved
from noisy_jax.observed.fits.scores import MODELS, score_equations
from noisy_jax.observed.fits.solutions import Restored, fit_of
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.fits.units import Rows, UndeterminedError, Units
from noisy_jax.observed.observations import Observations

_STEP = 0.1  # smallest one of the share, in units of 1/n


def generalized_fit(
    sample: Sample, name: str, errors: str, labels: np.ndarray | None = None
) -> Fit:
    """The fit of one of `MODELS`, by its name; `labels` as for `scores.score_equations`."""
    table, weights, exposure, family = sample.table, sample.weights, sample.exposure, MODELS[name]
    _check(table, name)
    rows = Rows.of(table, weights)
    if exposure is not None:  # y − E m = E (y/E − m): rates, with the exposure E as a weight
        own = exposure if weights is None else weights * exposure
        rows = rows._replace(y=rows.y / exposure, weights=own)
    units = dataclasses.replace(Units.of(rows.x, rows.y, table), y_center=0, y_scale=1)
    n, dim = rows.x.shape
    if n < (least := max(dim + 2, LEAST_GROUPS)):
        raise UndeterminedError(f"fit needs at least {least} rows, got {n}{if_counts(weights)}")
    check_clusters(sample.clusters)
    gram, noisy = covariances(units.moments(rows._replace(weights=weights)))
    check_identified(gram, noisy, table.names, units.scale)
    weights = np.ones(n) if weights is None else weights
    equations = score_equations(family, units.standardized(rows), units, table, labels, weights)
    mean = np.average(rows.y, weights=rows.weights)
    plain = root(equations, np.append(family.link(mean), np.zeros(dim)), 0.0)
    if plain is None:
        raise UndeterminedError(separated(rows, table, name))
    fit = fit_of(
        sample,
        Root(equations, plain, 0.0),
        solved(equations, plain, n, family.no_root, PATIENT._replace(least=_STEP / n)),
        Restored.line(table, units, name, equations.rows[0].mean_cov()),
        errors,
        reliability=np.diag(gram) / np.diag(noisy),
        scale=units.scale,
        exposed=exposure is not None,
        about=f"{family.words} and Gaussian noise, or misclassification as stated.",
    )
    sample.tell(ONE_CLUSTER.doubts(table, sample.weights, sample.clusters))
    return fit


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
        raise ValueError(
            f"model={name!r} needs errors in y that are independent of those in x: leave out "
            "cross_cov"
        )
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
        signs = name == "logistic" and bool(np.all(np.abs(y) == 1))
        raise ValueError(
            f"{observations.target!r} must be {MODELS[name].targets} for model={name!r}, but is "
            f"{y[wrong[0]]:g} in row {wrong[0]} ({wrong.size} in all)"
            + "; (y + 1) / 2 turns labels −1 and 1 into these"
            * signs
        )
