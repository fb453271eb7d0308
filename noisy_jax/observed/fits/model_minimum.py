"""The uncorrected fit of a model: the parameters with the least loss of the noisy rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from noisy_jax.observed.fits.model_equations import ModelEquations
from noisy_jax.observed.fits.roots import Sums, root, shortened
from noisy_jax.observed.observations import Observations
from noisy_jax.validation.messages import listed

CONVERGED = 1e-10
"""Expected decrease of the loss, relative to it, that counts as none."""
_STEPS, _HALVINGS = 200, 30  # of the search for the uncorrected fit
_DESCENT = 1e-4  # share of the expected decrease of the loss that a step must give
_ROUNDING = 1e-12  # size of a step that may be rounding, relative to the parameters
_LEAST_SCALE = 1e-6  # of a parameter, relative to it
_FLAT = 1e-8  # eigenvalue, of a Hessian of unit diagonal, of a combination that is not determined


def _check_finite(equations: ModelEquations, table: Observations) -> None:
    """Raises ValueError if the loss or its derivatives are not finite, and names a row."""
    parts = list(equations.by_row(np.zeros(len(equations.center)), 0.0))
    wrong = ~np.concatenate(
        [
            np.isfinite(block.losses) & np.isfinite(block.jacobians).all(axis=(1, 2))
            for block in parts
        ]
    )
    x = np.nanmean(table.x, axis=1)
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    values = ", ".join(f"{k} = {v:.4g}" for k, v in zip(table.names, x[row], strict=True))
    places = f"in {wrong.sum()} of {len(wrong)} rows, first in row {row}, where {values}"
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
        return tried.loss < sums.loss - _DESCENT * size * newton.gain

    theta = equations.center
    sums = at(theta)
    _check_finite(equations, table)
    for _ in range(_STEPS):
        newton = _newton(theta, sums, names)
        if newton.small and newton.least > -_FLAT:
            break
        ahead = shortened(at, theta, newton.step, lower, _HALVINGS)
        if ahead is None:
            raise ValueError(_not_found(names, newton.unit * np.abs(sums.score)))
        theta, sums = ahead
    else:
        raise ValueError(_not_found(names, newton.unit * np.abs(sums.score)))
    if newton.least < _FLAT:
        pair = [names[k] for k in np.argsort(-np.abs(newton.axis))[:2]]
        raise ValueError(
            f"the rows do not tell {listed(pair)} apart: the uncorrected loss hardly changes along "
            "a combination of them; fix one, or give another start"
        )
    around_minimum = equations.around(theta)
    square = sum((block.scores**2).sum(axis=0) for block in around_minimum.by_row(zero, 0.0))
    units = np.sqrt(square * equations.num_rows) / -np.diag(around_minimum.at(zero, 0.0).jacobian)
    least = _LEAST_SCALE * np.maximum(np.abs(theta), newton.unit)
    around_minimum = around_minimum.around(theta, np.maximum(units, least))
    u = root(around_minimum, zero, 0.0)
    if u is None:
        raise ValueError(_not_found(names, newton.unit * np.abs(sums.score)))
    return around_minimum.around(theta + around_minimum.scale * u, around_minimum.scale)


class _Newton(NamedTuple):
    """A step of Newton's method towards a minimum."""

    step: np.ndarray  # [p]
    gain: float  # expected decrease of the loss
    small: bool  # nothing but rounding is left to gain
    unit: np.ndarray  # [p], in which the diagonal of the Hessian is ±1
    least: float  # eigenvalue of the Hessian in these units
    axis: np.ndarray  # [p], its eigenvector


def _newton(theta: np.ndarray, sums: Sums, names: Sequence[str]) -> _Newton:
    """The step from θ, with the sums there.

    Where the data are exact, the loss goes to 0, and a gain is only rounding if the step is small
    relative to θ, both measured by the Hessian.
    """
    curvatures = np.abs(np.diag(sums.jacobian))
    if not curvatures.all():
        name = names[int(np.argmin(curvatures))]
        raise ValueError(
            f"the loss does not depend on {name!r} at start, or only linearly: give another "
            "start; the arguments of the curve are (params, x), in this order"
        )
    unit = 1 / np.sqrt(curvatures)
    values, axes = np.linalg.eigh(-sums.jacobian * np.outer(unit, unit))
    sizes = np.maximum(np.abs(values), _FLAT)
    step = unit * (axes @ ((axes.T @ (unit * sums.score)) / sizes))
    gain = float(sums.score @ step)
    square_of_theta = float(sizes @ (axes.T @ (theta / unit)) ** 2)  # θᵀ|H|θ
    small = gain <= max(CONVERGED * abs(sums.loss), _ROUNDING**2 * square_of_theta)
    return _Newton(step, gain, small, unit, values[0], axes[:, 0])


def _not_found(names: Sequence[str], slopes: np.ndarray) -> str:
    worst = names[int(np.argmax(slopes))]
    return (
        f"the uncorrected fit did not converge from start, least in {worst!r}: give values nearer "
        "to the curve"
    )
