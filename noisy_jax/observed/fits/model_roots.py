"""The fit of a model: its uncorrected parameters, and the root that continues them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.losses import squared
from noisy_jax.observed.fits.doubts import BELOW, LEVEL, Doubt
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters
from noisy_jax.observed.fits.model_equations import Functions, ModelEquations
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.roots import Patience, Root, Sums, root, shortened, solved
from noisy_jax.observed.fits.sandwich import Variance
from noisy_jax.observed.fits.solutions import OriginalUnits, fit_of
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.observations import Observations
from noisy_jax.reports.intervals import half_width
from noisy_jax.validation.messages import listed

_PATIENCE = Patience(steps=12, halvings=6, least=0.01)
_WIDER = 2.0  # jackknife over sandwich, from which on a sample is too small to trust
_STEPS, _HALVINGS = 200, 30  # of the search for the uncorrected fit
_DESCENT = 1e-4  # share of the expected decrease of the loss that a step must give
_CONVERGED = 1e-10  # expected decrease of the loss, relative to it
_ROUNDING = 1e-12  # size of a step that may be rounding, relative to the parameters
_LEAST_SCALE = 1e-6  # of a parameter, relative to it
_BY_CHANCE = 3.0  # F statistic below which a curve explains nothing
_FLAT = 1e-8  # eigenvalue, of a Hessian of unit diagonal, of a combination that is not determined

_INSTEAD = "add rows or replicates, take fewer parameters, or give another start"
_NO_ROOT = (
    "perhaps the rows are too few for so much noise, or the noise is smaller than stated, or start "
    f"has led to a wrong minimum of the loss: {_INSTEAD}"
)
_TOO_SMALL = (
    "this table is too small to trust the estimates: a few rows decide them, and standard errors "
    f"that allow for this are {{:.2g}} times as large as without (in large tables they agree); "
    f"{_INSTEAD}"
)


def model_fit(
    sample: Sample,
    functions: tuple[Functions, Functions],
    start: Any,
    names: tuple[str, ...],
    seed: int,
    errors: str,
) -> Fit:
    """See `nj.methods.Model`: `functions` are those without and with the correction."""
    table, (n, size) = sample.table, (len(sample.table.y), len(names))
    check_clusters(sample.clusters, max(LEAST_GROUPS, size + 1))
    if n < size + 3:
        raise ValueError(f"a model of {size} parameters needs at least {size + 3} rows, got {n}")
    zero, rest = np.zeros(size), (start, table, seed, sample.weights)
    plain = minimized(ModelEquations.of(functions[0], *rest), names, table)
    useless = _explains_nothing(plain, table.y, sample.weights)
    equations = ModelEquations.of(functions[1], *rest).around(plain.center, plain.scale)
    try:
        equations.at(zero, 0.0)
    except ValueError as error:  # not entire
        hint = "; they need two copies of each row or more" if table.x.shape[1] == 1 else ""
        raise ValueError(f"{error}{hint}") from None
    corrected = solved(equations, zero, n, useless or _NO_ROOT, _PATIENCE)
    if useless is not None:
        sample.tell([Doubt(useless, spoils=False)])

    original = OriginalUnits(
        noise=UncertainNoise(table),
        cov=table.means().mean_cov(),
        combined=np.diag(plain.scale),
        offset=plain.center,
        known={
            "labels": names,
            "names": table.names,
            "references": table.references,
            "form": "curve",
            "function": functions[1].curve,
            "start": start,
        },
        slopes=False,
    )
    return fit_of(
        sample,
        Root(plain, zero, 0.0),
        corrected,
        original,
        errors,
        doubts=lambda found, spread: _doubts(found, spread, sample.clusters),
    )


def _doubts(found: Root, spread: Variance, clusters: np.ndarray | None) -> list[Doubt]:
    """Doubts of a corrected fit: too few rows, and a squared loss that is below 0 on clean data."""
    equations, doubts = found.equations, []
    if spread.wider > _WIDER:
        doubts.append(Doubt(_TOO_SMALL.format(spread.wider), spoils=False))
    if found.share == 1 and equations.functions.loss == squared():
        made = equations.at(found.theta, 1.0)
        losses = np.concatenate([one.losses for one in equations.by_row(found.theta, 1.0)])
        each = losses if clusters is None else np.bincount(clusters, losses)
        error = np.std(each, ddof=1) * len(each) ** 0.5
        fitted = np.trace(spread.covariance @ -made.jacobian)  # the rows' own loss is too small
        half = half_width(error, len(each) - 1, level=1 - 2 * LEVEL)
        if made.loss + fitted + half < 0:
            doubts.append(Doubt(BELOW))
    return doubts


def _explains_nothing(
    plain: ModelEquations, y: np.ndarray, weights: np.ndarray | None
) -> str | None:
    """A remark if least squares ended where the curve is no better than the mean of y."""
    if plain.functions.loss != squared():
        return None
    size = len(plain.center)
    loss = plain.at(np.zeros(size), 0.0).loss
    own = np.ones(len(y)) if weights is None else weights
    total = own @ (y - np.average(y, weights=own)) ** 2
    less, chance = total - loss, _BY_CHANCE * size * loss / (len(y) - size)
    if less > chance or less < -_CONVERGED * total:  # or the curve has no constant term
        return None
    return (
        f"the uncorrected fit explains {max(0.0, less / total):.1%} of the variance of y, no "
        "more than chance: start has led to a wrong minimum of the loss, or the columns say "
        "nothing of y; give values of start nearer to the curve"
    )


def _check_finite(equations: ModelEquations, table: Observations) -> None:
    """Raises ValueError if the loss or its derivatives are not finite, and names a row."""
    parts = list(equations.by_row(np.zeros(len(equations.center)), 0.0))
    wrong = ~np.concatenate(
        [np.isfinite(one.losses) & np.isfinite(one.jacobians).all(axis=(1, 2)) for one in parts]
    )
    x = np.nanmean(table.x, axis=1)
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    seen = ", ".join(f"{k} = {v:.4g}" for k, v in zip(table.names, x[row], strict=True))
    places = f"in {wrong.sum()} of {len(wrong)} rows, first in row {row}, where {seen}"
    above = (x[~wrong] > 0).all(axis=0) & (not wrong.all())
    if (x[wrong][:, above] <= 0).any(axis=1).all():
        raise ValueError(
            f"the loss, or its derivatives, are not finite {places}. Errors of measurement make "
            "some values negative, where powers, roots and logarithms are not defined: write a "
            "curve that is finite for all values"
        )
    raise ValueError(
        f"the loss, or its derivatives, are not finite at start {places}: give other values"
    )


def minimized(
    equations: ModelEquations, names: Sequence[str], table: Observations
) -> ModelEquations:
    """The equations around the least uncorrected loss, in parameters with units of their own.

    By Newton's method with the absolute values of the eigenvalues, in units that make the diagonal
    of the Hessian ±1, and with halved steps. The unit of a parameter is then a standard
    deviation of its estimate from one row alone.
    """
    zero = np.zeros(len(names))

    def at(theta):
        return equations.around(theta).at(zero, 0.0)

    def lower(tried, size):
        return tried.loss < found.loss - _DESCENT * size * newton.gain

    theta = equations.center
    found = at(theta)
    _check_finite(equations, table)
    for _ in range(_STEPS):
        newton = _newton(theta, found, names)
        if newton.small and newton.least > -_FLAT:
            break
        ahead = shortened(at, theta, newton.step, lower, _HALVINGS)
        if ahead is None:
            raise ValueError(_not_found(names, newton.unit * np.abs(found.score)))
        theta, found = ahead
    else:
        raise ValueError(_not_found(names, newton.unit * np.abs(found.score)))
    if newton.least < _FLAT:
        pair = [names[k] for k in np.argsort(-np.abs(newton.axis))[:2]]
        raise ValueError(
            f"the rows do not tell {listed(pair)} apart: the uncorrected loss hardly changes along "
            "a combination of them; fix one, or give another start"
        )
    made = equations.around(theta)
    square = sum((one.scores**2).sum(axis=0) for one in made.by_row(zero, 0.0))
    own = np.sqrt(square * equations.num_rows) / -np.diag(made.at(zero, 0.0).jacobian)
    least = _LEAST_SCALE * np.maximum(np.abs(theta), newton.unit)
    made = made.around(theta, np.maximum(own, least))
    u = root(made, zero, 0.0)
    if u is None:
        raise ValueError(_not_found(names, newton.unit * np.abs(found.score)))
    return made.around(theta + made.scale * u, made.scale)


class _Newton(NamedTuple):
    """A step of Newton's method towards a minimum."""

    step: np.ndarray  # [p]
    gain: float  # expected decrease of the loss
    small: bool  # nothing but rounding is left to gain
    unit: np.ndarray  # [p], in which the diagonal of the Hessian is ±1
    least: float  # eigenvalue of the Hessian in these units
    axis: np.ndarray  # [p], its eigenvector


def _newton(theta: np.ndarray, found: Sums, names: Sequence[str]) -> _Newton:
    """The step from θ, with the sums there.

    Where the data are exact, the loss goes to 0, and a gain is only rounding if the step is small
    relative to θ, both measured by the Hessian.
    """
    curvatures = np.abs(np.diag(found.jacobian))
    if not curvatures.all():
        name = names[int(np.argmin(curvatures))]
        raise ValueError(
            f"the loss does not depend on {name!r} at start, or only linearly: give another "
            "start; the arguments of the curve are (params, x), in this order"
        )
    unit = 1 / np.sqrt(curvatures)
    values, axes = np.linalg.eigh(-found.jacobian * np.outer(unit, unit))
    sizes = np.maximum(np.abs(values), _FLAT)
    step = unit * (axes @ ((axes.T @ (unit * found.score)) / sizes))
    gain = float(found.score @ step)
    square_of_theta = float(sizes @ (axes.T @ (theta / unit)) ** 2)  # θᵀ|H|θ
    small = gain <= max(_CONVERGED * abs(found.loss), _ROUNDING**2 * square_of_theta)
    return _Newton(step, gain, small, unit, values[0], axes[:, 0])


def _not_found(names: Sequence[str], slopes: np.ndarray) -> str:
    worst = names[int(np.argmax(slopes))]
    return (
        f"the uncorrected fit did not converge from start, least in {worst!r}: give values nearer "
        "to the curve"
    )
