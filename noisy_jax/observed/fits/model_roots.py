"""The fit of a model: its uncorrected parameters, the root that continues them, its covariance."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from noisy_jax.intervals import half_width
from noisy_jax.losses import squared
from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.doubts import BELOW, LEVEL
from noisy_jax.observed.fits.estimates import Estimates
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters
from noisy_jax.observed.fits.model_equations import Functions, ModelEquations, Share
from noisy_jax.observed.fits.result import Fit, percent
from noisy_jax.observed.fits.roots import Patience, continued, root
from noisy_jax.observed.fits.sandwich import variance
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.observations import Observations
from noisy_jax.validation import listed
from noisy_jax.warning import warn

_PATIENCE = Patience(steps=12, halvings=6)
_STEP = 0.01  # of the share
_LEAST_SHARE = 0.5  # of the noise, for which an estimate is given
_WIDER = 2.0  # jackknife over sandwich, from which on a sample is too small to trust
_STEPS, _HALVINGS = 200, 30  # of the search for the uncorrected fit
_DESCENT = 1e-4  # share of the expected decrease of the loss that a step must give
_CONVERGED = 1e-10  # expected decrease of the loss, relative to it
_BY_CHANCE = 3.0  # F statistic below which a curve explains nothing
_FLAT = 1e-8  # eigenvalue, of a Hessian of unit diagonal, of a combination that is not determined


def model_fit(
    table: Observations,
    functions: tuple[Functions, Functions],
    start: Any,
    names: tuple[str, ...],
    *,
    seed: int,
    weights: np.ndarray | None,
    clusters: np.ndarray | None,
) -> Fit:
    """See `nj.methods.Model`: `functions` are those without and with the correction."""
    n, size = len(table.y), len(names)
    check_clusters(clusters, max(LEAST_GROUPS, size + 1))
    if n < size + 3:
        raise ValueError(f"a model of {size} parameters needs at least {size + 3} rows, got {n}")
    nothing, zero = Share(table.y, np.zeros(())), np.zeros(size)

    rest = table, seed, weights
    plain = ModelEquations(functions[0], start, *rest)
    _minimize(plain, names, table)
    uncorrected = _estimates(plain, zero, nothing, names, table, clusters)[0]
    useless = _explains_nothing(plain, table.y, weights)

    equations = ModelEquations(functions[1], start, *rest)
    equations.center, equations.scale = plain.center, plain.scale
    try:
        equations.equations(zero, nothing)
    except ValueError as error:  # not entire
        hint = "; they need two copies of each row or more" if table.x.shape[1] == 1 else ""
        raise ValueError(f"{error}{hint}") from None
    patience = _PATIENCE._replace(least=_STEP * n)
    u, share = continued(equations, zero, nothing._replace(cov=np.ones(())), patience)
    why = f"{_WHY}; {_INSTEAD}" if useless is None else useless
    if share < _LEAST_SHARE:
        raise ValueError(f"{_NO_ROOT}, nor with half of it: {why}")
    remarks = [] if useless is None else [useless]
    if share < 1:
        remarks.append(f"{_NO_ROOT}, so that {percent(share)} of it is taken away: {why}")
    rows = nothing._replace(cov=np.asarray(share))
    found, doubts = _estimates(equations, u, rows, names, table, clusters)
    remarks += doubts
    for remark in remarks:
        category = AssumptionWarning if remark is BELOW else UserWarning
        warn(remark, category)
    return Fit.of(found, uncorrected, table, share=share, remarks=tuple(remarks))


_NO_ROOT = "the corrected equations have no stable root with the whole noise"
_WHY = (
    "the rows are too few for so much noise, or the noise is smaller than given, or start has led "
    "to a wrong minimum of the loss"
)
_INSTEAD = "add rows or replicates, take fewer parameters, or give another start"
_TOO_SMALL = (
    "too few rows to trust the estimates, which are skewed: standard errors with the leverages of "
    f"rows are {{:.2g}} times as large as without, and in large tables they agree; {_INSTEAD}"
)


def _explains_nothing(
    plain: ModelEquations, y: np.ndarray, weights: np.ndarray | None
) -> str | None:
    """What to say if least squares ended where the curve is no better than the mean of y."""
    if plain.functions.loss != squared():
        return None
    size, none = len(plain.center), Share(np.zeros(0), np.zeros(()))
    loss = plain.equations(np.zeros(size), none).loss
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
    none, zero = Share(np.zeros(0), np.zeros(())), np.zeros(len(equations.center))
    parts = list(equations.by_row(zero, none))
    wrong = ~np.concatenate(
        [np.isfinite(one.losses) & np.isfinite(one.jacobians).all(axis=(1, 2)) for one in parts]
    )
    x = np.nanmean(table.x, axis=1)
    for row in np.flatnonzero(wrong)[:1]:
        seen = ", ".join(f"{k} = {v:.4g}" for k, v in zip(table.names, x[row], strict=True))
        places = f"in {wrong.sum()} of {len(wrong)} rows, first in row {row}, where {seen}"
        above = (x[~wrong] > 0).all(axis=0) & (not wrong.all())
        if (x[wrong][:, above] <= 0).any(axis=1).all():
            raise ValueError(
                f"the loss, or its derivatives, are not finite {places}. Errors of measurement "
                "make some values negative, where powers, roots and logarithms are not defined: "
                "write a curve that is finite for all values"
            )
        raise ValueError(
            f"the loss, or its derivatives, are not finite at start {places}: give other values"
        )


def _minimize(equations: ModelEquations, names: Sequence[str], table: Observations) -> None:
    """Moves `equations.center` to the least uncorrected loss, and gives the parameters units.

    By Newton's method with the absolute values of the eigenvalues, in units in which the diagonal
    of the Hessian is ±1, and with halved steps. A unit is then a standard deviation of what one row
    would say of the parameter alone.
    """
    none, zero = Share(np.zeros(0), np.zeros(())), np.zeros(len(names))

    def at(theta):
        equations.center = theta
        return equations.equations(zero, none)

    theta = equations.center
    found = at(theta)
    _check_finite(equations, table)
    for _ in range(_STEPS):
        bends = np.abs(np.diag(found.jacobian))
        if not bends.all():
            name = names[int(np.argmin(bends))]
            raise ValueError(
                f"the loss does not depend on {name!r} at start, or only linearly: give another "
                "start; the arguments of the curve are (params, x), in this order"
            )
        unit = 1 / np.sqrt(bends)
        values, axes = np.linalg.eigh(-found.jacobian * np.outer(unit, unit))
        sizes = np.maximum(np.abs(values), _FLAT)
        step = unit * (axes @ ((axes.T @ (unit * found.score)) / sizes))
        gain = float(found.score @ step)
        if gain <= _CONVERGED * abs(found.loss) and values.min() > -_FLAT:
            break
        for size in 0.5 ** np.arange(_HALVINGS):
            tried = at(theta + size * step)
            if tried.loss < found.loss - _DESCENT * size * gain:
                break
        else:
            equations.center = theta
            raise ValueError(_not_found(names, unit * np.abs(found.score)))
        theta, found = theta + size * step, tried
    else:
        raise ValueError(_not_found(names, unit * np.abs(found.score)))
    if values.min() < _FLAT:
        pair = [names[k] for k in np.argsort(-np.abs(axes[:, 0]))[:2]]
        raise ValueError(
            f"the rows do not tell {listed(pair)} apart: the uncorrected loss hardly changes along "
            "a combination of them; fix one, or give another start"
        )
    equations.center = theta
    found = equations.equations(zero, none)
    square = sum((one.scores**2).sum(axis=0) for one in equations.by_row(zero, none))
    size = np.sqrt(square * equations.num_rows)
    own = size / -np.diag(found.jacobian)
    equations.scale = np.maximum(own, 1e-8 * np.maximum(np.abs(theta), unit))
    u = root(equations, zero, none, Patience())
    if u is None:
        raise ValueError(_not_found(names, unit * np.abs(found.score)))
    equations.center = theta + equations.scale * u


def _not_found(names: Sequence[str], slopes: np.ndarray) -> str:
    worst = names[int(np.argmax(slopes))]
    return (
        f"the uncorrected fit did not converge from start, least in {worst!r}: give values nearer "
        "to the curve"
    )


def _estimates(
    equations: ModelEquations,
    u: np.ndarray,
    rows: Share,
    names: tuple[str, ...],
    table: Observations,
    clusters: np.ndarray | None,
) -> tuple[Estimates, list[str]]:
    """The parameters at a root u with their covariance, and doubts about it."""
    made, share, doubts = equations.equations(u, rows), float(rows.cov), []
    losses: list[np.ndarray] = []

    def parts():
        for one in equations.by_row(u, rows):
            losses.append(one.losses)
            yield one.scores, -one.jacobians

    spread, freedom, wider = variance(parts(), -made.jacobian, clusters)
    if wider > _WIDER:
        doubts.append(_TOO_SMALL.format(wider))
    if share == 1 and equations.functions.loss == squared():
        each = np.concatenate(losses)
        each = each if clusters is None else np.bincount(clusters, each)
        error = np.std(each, ddof=1) * len(each) ** 0.5
        fitted = np.trace(spread @ -made.jacobian)  # by which the rows' own loss is too small
        half = half_width(error, len(each) - 1, level=1 - 2 * LEVEL)
        if made.loss + fitted + half < 0:
            doubts.append(BELOW)
    noise = UncertainNoise(table)
    if share and not noise.exact:  # delta method: du = A⁻¹ (∂Σψ/∂C) dC
        moves = share * equations.in_covariance(u, share)
        moves = np.tensordot(np.linalg.inv(-made.jacobian), moves, 1)
        spread, freedom = noise.widened(moves, np.inf, spread, freedom, np.eye(len(u)))
    theta = equations.center + equations.scale * u
    return (
        Estimates(
            labels=names,
            values=theta,
            covariance=spread * np.outer(equations.scale, equations.scale),
            degrees_of_freedom=freedom,
            names=table.names,
            form="curve",
            references=table.references,
            function=equations.functions.curve,
            start=equations.start,
        ),
        doubts,
    )
