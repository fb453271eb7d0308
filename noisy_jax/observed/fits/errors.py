"""Estimated squared errors of fits on clean rows, from noisy rows that the fits have not seen.

A function f that is no sum of waves and not affine, such as a forest, is called at points z of more
and of less noise. Its errors L(z) = (f(z) − ỹ)² there are extended to no noise, row by row, with
weights that add up to 1:

- With the covariance C of the error in the mean x̄ of a row's copies, z = x̄ + √λ u, u ~ N(0, C), at
  λ = 0, ½, 1, 1½ and 2. The quadratic curve through the mean errors is read at λ = −1.
- With copies of unknown noise, z are means of blocks of the copies, as in `unbiased.replicates`,
  with one order more than two copies allow by themselves (`Transformed.next_order`).

Both leave a bias of order σ⁶ under Gaussian noise, and of order σ³ under skewed noise. How far the
last order moves the result shows how large the bias of one order less is.

Source: Cook and Stefanski, Simulation-Extrapolation Estimation in Parametric Measurement Error
Models (1994), here of the loss; Devanarayan and Stefanski, Empirical simulation extrapolation
(2002).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import estimated_errors
from noisy_jax.columns import ROUNDING
from noisy_jax.features import cosines_and_sines
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.fourier import by_each_row, frequencies_of
from noisy_jax.observed.fits.functions import FourierPredictor
from noisy_jax.observed.fits.hidden import JUDGE, hidden, places, readings
from noisy_jax.observed.fits.linear_moments import clean_errors
from noisy_jax.observed.fits.trials import order_of
from noisy_jax.observed.observations import Observations
from noisy_jax.unbiased import replicates

_LEVELS = np.repeat([0.0, 0.5, 1.0, 1.5, 2.0], [1, 10, 10, 10, 10])  # of points, in opposite pairs
_ROWS = 4096  # rows whose waves, or points, are in memory at once
_AFFINE = 1e-5  # share of the values of a function that is rounding


def linear_errors(line: np.ndarray, rows: Observations) -> np.ndarray:
    """(a + ⟨β, x̃⟩ − ỹ)² − βᵀΣ_iβ + 2βᵀc_i, `[n]`, of `line` (a, β) at the means x̃ of copies.

    Σ_i is the covariance of the error of x̃, and c_i its covariance with the error in y.
    """
    x, cov = rows.averaged()
    return clean_errors(x, rows.y, cov, rows.averaged_cross(), line[0], line[1:])


def affine_of(predict: Callable[[Any], Any], x: np.ndarray) -> np.ndarray | None:
    """`[1 + d]`, intercept and coefficients of a function `[n, d] -> [n]`, such as a pipeline's.

    `None` if it is not affine between the rows x `[n, d]`.
    """
    dim = x.shape[1]
    at, step = x.mean(axis=0), x.std(axis=0)
    step = np.where(step > 0, step, 1.0)
    values = np.asarray(predict(np.vstack([at, at + np.diag(step), x])), np.float64)
    if values.size != 1 + dim + len(x):
        shape = list(values.shape)
        raise ValueError(f"predict must give one number a row, got {shape} for {1 + dim + len(x)}")
    values = values.ravel()
    slopes = (values[1 : 1 + dim] - values[0]) / step
    apart = values[1 + dim :] - values[0] - (x - at) @ slopes
    if np.abs(apart).max() > _AFFINE * np.ptp(values) + ROUNDING * np.abs(values).max():
        return None
    return np.append(values[0] - at @ slopes, slopes)


def fourier_errors(
    fit: FourierPredictor, rows: Observations, table: Observations
) -> tuple[np.ndarray, np.ndarray]:
    """q − 2ỹv + ỹ², `[n]`, with readings v and q of the function and its square at the clean row.

    If the noise has no known law (`by_each_row`), readings are weighted sums over means of blocks
    of a row's copies. Otherwise every wave (`readings`) is divided by the noise's φ at its
    frequency, or rather by φ + ε/(nφ̄), which hardly differs except where φ is lost in the noise.
    An unknown φ is estimated from all n rows, `table`.

    Returns:
        The errors, and `[2, m]` what the readings q and v leave out where φ is lost in the noise
        (`hidden`).
    """
    table.check_each_row("an estimated error of a kernel fit")
    if by_each_row(table):
        return _errors_of_each_row(fit, rows), np.zeros((2, 1))
    ones, count = np.ones(len(fit.names)), len(table.y)
    made, _ = frequencies_of(fit.omega, 1.0, table, ones)
    phis = [np.asarray(leaf, complex) for leaf in made[2:5]]
    divided = [phi.conj() / (np.abs(phi) ** 2 + JUDGE / count) for phi in phis]
    pairs = len(fit.omega)
    c = fit.weights[:pairs] - 1j * fit.weights[pairs:]
    errors = []
    for start in range(0, len(rows.y), _ROWS):
        part = slice(start, start + _ROWS)
        x = rows.x[part].mean(axis=1) - fit.center
        cosines, sines = np.split(cosines_and_sines(x, fit.omega / (2 * np.pi)), 2, axis=1)
        read = readings(c * (cosines + 1j * sines), *divided)
        errors.append(estimated_errors(read, rows.y[part] - fit.constant))
    points = places(table.x.mean(axis=1) - fit.center)
    square = float(np.mean((table.y - fit.constant) ** 2))
    left_out = hidden(made, fit.weights[None], points, square, count)[0]
    return np.concatenate(errors), left_out


def _errors_of_each_row(fit: FourierPredictor, rows: Observations) -> np.ndarray:
    """Squared errors `[n]`, by `nj.unbiased.replicates` of the function and its square."""
    estimate: Any = replicates(fit.predict, order=order_of(rows.x.shape[1]))
    errors = []
    for start in range(0, len(rows.y), _ROWS):
        part = slice(start, start + _ROWS)
        copies = jnp.asarray(rows.x[part] - fit.center, float)
        points, weights = map(np.asarray, jax.vmap(estimate.points, (0, None))(copies, None))
        values = cosines_and_sines(points, fit.omega / (2 * np.pi)) @ fit.weights
        read = np.sum(weights * values, axis=1), np.sum(weights * values**2, axis=1)
        errors.append(estimated_errors(read, rows.y[part] - fit.constant))
    return np.concatenate(errors)


class Extended(NamedTuple):
    """Errors of one function at n rows."""

    errors: np.ndarray  # [n]
    last: np.ndarray  # [n], how far the last order moves them
    slope: np.ndarray  # [d, d], the derivative of their sum by the covariance of the error of x̄


def extended_errors(predict: Callable[[Any], Any], rows: Observations, seed: int) -> Extended:
    """Estimates of (f(x) − y)² + Var ỹ at rows that f, `[m, d] -> [m]`, has not seen.

    Functions that are compared see the same added noise, by one `seed`.
    """
    rows.check_each_row("a predictor that is not affine")
    noise = by_round(rows.noise)[0]
    if rows.cross_cov is not None or (noise is not None and noise.depends_on_x):
        what = "errors in x and y that are correlated" if noise is None else type(noise).__name__
        raise ValueError(
            f"its predictions are not affine in x, and under {what} the errors of such predictors "
            "cannot be estimated: take linear candidates"
        )
    gaussian = rows.cov is not None and not rows.not_gaussian()
    random = np.random.default_rng(seed)
    parts, count = [], len(rows.y)
    for start in range(0, count, _ROWS):
        some = rows.rows(np.arange(start, min(start + _ROWS, count)))
        by_copies = some.x.shape[1] > 1 and not gaussian
        parts.append(_of_copies(predict, some) if by_copies else _of_noise(predict, some, random))
    errors, last, slopes = zip(*parts, strict=True)
    return Extended(np.concatenate(errors), np.concatenate(last), np.sum(slopes, axis=0))


def _of_copies(predict, rows: Observations) -> Extended:
    estimate: Any = replicates(lambda x: x)
    kept = []
    for one in (estimate.next_order, estimate):
        found = jax.vmap(one.points, (0, None))(jnp.asarray(rows.x, float), None)
        points, weights = (np.asarray(each, np.float64) for each in found)
        kept.append(np.sum(weights * _losses(predict, points, rows.y), axis=1))
    return Extended(kept[0], kept[0] - kept[1], np.zeros(2 * rows.x.shape[2:]))


def _of_noise(predict, rows: Observations, random: np.random.Generator) -> Extended:
    x, cov = rows.averaged()
    values, axes = np.linalg.eigh(cov)
    sizes = np.sqrt(np.maximum(values, 0))
    root = (axes * sizes[..., None, :]) @ np.swapaxes(axes, -1, -2)
    half = random.standard_normal((*x.shape, 5))
    normal = np.concatenate([half, -half], axis=-1).swapaxes(1, 2)  # [n, 10, d]
    noise = np.matmul(normal, root)
    sets = [np.zeros((len(x), 1, x.shape[1])), *4 * [noise]]
    points = x[:, None] + np.sqrt(_LEVELS)[:, None] * np.concatenate(sets, axis=1)
    losses, levels, weights = _losses(predict, points, rows.y), np.unique(_LEVELS), []
    for order in (2, 1):  # of the polynomial that is read at −1
        own = np.vander([-1.0], order + 1)[0] @ np.linalg.pinv(np.vander(levels, order + 1))
        weights.append(own[np.searchsorted(levels, _LEVELS)])
    numbers = np.where(_LEVELS == 0, 1, 10)
    quadratic, straight = (losses @ (weight / numbers) for weight in weights)
    # By Stein's identity ∂/∂C E L(x̄ + √λ R z) is E ½ R⁻¹(zzᵀ − 1)R⁻¹ L for z ~ N(0, 1), C = R².
    drawn = (losses[:, 1:] - losses[:, :1]) * (weights[0] / numbers)[1:]
    drawn = drawn.reshape(len(x), 4, 10).sum(axis=1) / 2
    inverse = np.linalg.pinv(root, hermitian=True)
    moves = np.einsum("nb,nbi,nbj->nij", drawn, normal, normal)
    moves -= drawn.sum(axis=1)[:, None, None] * np.eye(x.shape[1])
    slope = np.sum(inverse @ moves @ inverse, axis=0)
    return Extended(quadratic, quadratic - straight, slope)


def _losses(predict, points: np.ndarray, y: np.ndarray) -> np.ndarray:
    """(f(z) − ỹ)² at points `[n, P, d]`, `[n, P]`."""
    values = np.asarray(predict(points.reshape(-1, points.shape[2])), np.float64)
    return (values.reshape(points.shape[:2]) - y[:, None]) ** 2
