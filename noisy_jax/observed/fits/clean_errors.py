"""Estimated squared errors of fits on clean rows, from noisy rows that the fits have not seen.

Estimates v of f and q of f² at the clean row are unbiased where f is affine or a sum of waves; then
q − 2ỹv + ỹ² has the mean (f(x) − y)² + Var ỹ.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import estimated_errors
from noisy_jax.features import cosines_and_sines
from noisy_jax.observed.fits.black_boxes import affine_of
from noisy_jax.observed.fits.characteristics import by_each_row, frequencies_of
from noisy_jax.observed.fits.estimates import Estimates
from noisy_jax.observed.fits.functions import FourierPredictor
from noisy_jax.observed.fits.hidden import JUDGE, clean_estimates, hidden, places
from noisy_jax.observed.fits.judged import Judged, of_rows
from noisy_jax.observed.fits.linear_moments import clean_errors
from noisy_jax.observed.fits.trials import order_of
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.products import expanded
from noisy_jax.unbiased import replicates
from noisy_jax.validation.messages import given, listed

_ROWS = 4096  # rows whose waves, or points, are in memory at once


def errors_of(fit: Any, rows: Observations, table: Observations) -> Judged:
    """The squared errors of a fit on the clean rows of `rows`, which are some of a table.

    The fit is affine in x, or a kernel fit; ValueError is raised if it is neither.
    """
    if isinstance(fit, Estimates | FourierPredictor) and fit.names != rows.names:
        raise ValueError(
            f"its fit has the columns {listed(fit.names)}, but the table {listed(rows.names)}: "
            "make the table with the columns of the fit, in their order"
        )
    if isinstance(fit, FourierPredictor):  # whose noise is known exactly
        errors, left_out = fourier_errors(fit, rows, table)
        return of_rows(errors, hidden=left_out)
    predict = getattr(fit, "predict", None)
    if not callable(predict):
        raise ValueError(
            "must return a fit such as nj.fit returns, or an object with a method predict, but it "
            f"returned {given(fit)}"
        )
    if isinstance(fit, Estimates) and fit.form == "linear":
        line = fit.values
        if fit.products:  # whose covariance is known exactly
            return of_rows(linear_errors(line, expanded(rows)))
    else:
        line = affine_of(predict, rows.means().x)
    if line is None:
        raise ValueError(
            "its predictions are not linear in x, so that noisy rows alone do not show their "
            "errors on clean data: take linear candidates, nj.methods.Fourier(…).fitted, or "
            "learners of nj.learners"
        )
    return of_rows(linear_errors(line, rows), slope=-np.outer(line[1:], line[1:]))


def linear_errors(line: np.ndarray, rows: Observations) -> np.ndarray:
    """Returns (a + ⟨β, x̃⟩ − ỹ)² − βᵀΣ_iβ + 2βᵀc_i `[n]`, of `line` (a, β) at means x̃ of copies.

    Σ_i is the covariance of the error of x̃, and c_i its covariance with the error in y.
    """
    x, y, cov, _, cross = rows.means()
    return clean_errors(x, y, cov, cross, line[0], line[1:])


def fourier_errors(
    fit: FourierPredictor, rows: Observations, table: Observations
) -> tuple[np.ndarray, np.ndarray]:
    """q − 2ỹv + ỹ², `[n]`, with estimates v and q of the function and its square at the clean row.

    If the noise has no known law (`by_each_row`), estimates are weighted sums over means of blocks
    of a row's copies. Otherwise every wave (`clean_estimates`) is divided by the noise's φ at its
    frequency, or rather by φ + ε/(nφ̄), which hardly differs except where φ is lost in the noise.
    An unknown φ is estimated from all n rows, `table`.

    Returns:
        The errors, and the parts `[2, m]` that the estimates q and v leave out where φ is lost
        (`hidden`).
    """
    table.check_each_row("an estimated error of a kernel fit")
    if by_each_row(table):
        return _errors_of_each_row(fit, rows), np.zeros((2, 1))
    ones, count = np.ones(len(fit.names)), len(table.y)
    frequencies, _ = frequencies_of(fit.omega, 1.0, table, ones)
    phis = [np.asarray(leaf, complex) for leaf in frequencies[2:5]]
    divided = [phi.conj() / (np.abs(phi) ** 2 + JUDGE / count) for phi in phis]
    pairs = len(fit.omega)
    c = fit.weights[:pairs] - 1j * fit.weights[pairs:]
    errors = []
    for start in range(0, len(rows.y), _ROWS):
        part = slice(start, start + _ROWS)
        x = rows.x[part].mean(axis=1) - fit.center
        cosines, sines = np.split(cosines_and_sines(x, fit.omega / (2 * np.pi)), 2, axis=1)
        read = clean_estimates(c * (cosines + 1j * sines), *divided)
        errors.append(estimated_errors(read, rows.y[part] - fit.constant))
    points = places(table.x.mean(axis=1) - fit.center)
    square = float(np.mean((table.y - fit.constant) ** 2))
    left_out = hidden(frequencies, fit.weights[None], points, square, count)[0]
    return np.concatenate(errors), left_out


def _errors_of_each_row(fit: FourierPredictor, rows: Observations) -> np.ndarray:
    """Squared errors `[n]`, by `nj.unbiased.replicates` of the function and its square."""
    estimate: Any = replicates(fit.predict, order=order_of(rows.x.shape[1]))
    errors = []
    for start in range(0, len(rows.y), _ROWS):
        part = slice(start, start + _ROWS)
        copies = jnp.asarray(rows.x[part] - fit.center, float)
        estimates = jax.vmap(estimate.points)(copies)
        points, weights = np.asarray(estimates.real), np.asarray(estimates.weights)
        values = cosines_and_sines(points, fit.omega / (2 * np.pi)) @ fit.weights
        read = np.sum(weights * values, axis=1), np.sum(weights * values**2, axis=1)
        errors.append(estimated_errors(read, rows.y[part] - fit.constant))
    return np.concatenate(errors)
