"""Squared errors at clean rows of functions that are only called, extended from noisier rows.

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

from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.observations import Observations
from noisy_jax.unbiased import replicates

_LEVELS = np.repeat([0.0, 0.5, 1.0, 1.5, 2.0], [1, 10, 10, 10, 10])  # of points, in opposite pairs
_ROWS = 4096  # rows whose points are in memory at once


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
