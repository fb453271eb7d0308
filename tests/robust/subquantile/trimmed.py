"""Subquantile minimization in plain NumPy loops, from the corrected equations.

λ is `lam`: the weight of ½‖f‖² beside the mean loss.
"""

import functools

import jax
import numpy as np

from noisy_jax import losses as jax_losses
from noisy_jax.robust.subquantile.problem import trimmed
from noisy_jax.robust.subquantile.steps import init, step

RADII, SHARES, WEIGHTS = (np.inf, 0.8), (0.0, 0.02, 0.3), (5e-4, 0.05, 0.5)
GRID = np.array([(e, lam, r) for r in RADII for e in SHARES for lam in WEIGHTS])
PROBLEMS = {
    "ridge": functools.partial(trimmed, jax_losses.squared()),
    "logistic": functools.partial(trimmed, jax_losses.logistic()),
}


def regression(rng, n=40, outliers=6):
    """A Gaussian Gram matrix on the line, and sin 2x with gross outliers in the first rows."""
    x = rng.uniform(-3, 3, size=(n, 1))
    y = np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=n)
    y[:outliers] += rng.uniform(5, 20, outliers)
    return np.exp(-2 * (x - x.T) ** 2), y


def classification(rng, n=40):
    """The same points with labels, some of them flipped."""
    gram, y = regression(rng, n, outliers=0)
    labels = np.where(y > 0, 1.0, -1.0)
    labels[: n // 6] *= -1
    return gram, labels


def data(task, rng):
    return regression(rng) if task == "ridge" else classification(rng)


def losses(task, values, y):
    return (values - y) ** 2 if task == "ridge" else np.log1p(np.exp(-y * values))


def slopes(task, values, y):
    return 2 * (values - y) if task == "ridge" else -y / (1 + np.exp(y * values))


def rows(task, values, y, m):
    return np.argsort(losses(task, values, y), kind="stable")[:m]


def objective(task, gram, y, m, lam, a):
    return np.sort(losses(task, gram @ a, y))[:m].sum() / m + lam / 2 * a @ gram @ a


def gradient(task, gram, y, m, lam, a):
    mask = np.zeros(len(y))
    mask[rows(task, gram @ a, y, m)] = 1
    return mask * slopes(task, gram @ a, y) / m + lam * a


def closed_form(gram, y, kept, lam):
    """Coefficients of ridge on the rows kept."""
    a, kept = np.zeros(len(y)), np.flatnonzero(kept)
    diagonal = len(kept) * lam / 2 * np.eye(len(kept))
    a[kept] = np.linalg.solve(gram[np.ix_(kept, kept)] + diagonal, y[kept])
    return a


def descent(task, gram, y, m, lam, radius, rate, steps):
    """Coefficients after each step of projected gradient descent from zero."""
    a, found = np.zeros(len(y)), []
    for _ in range(steps):
        a = a - rate * gradient(task, gram, y, m, lam, a)
        norm = np.sqrt(a @ gram @ a)
        a = a * min(1, radius / norm) if norm > 0 else a
        found.append(a)
    return np.array(found)


@functools.partial(jax.jit, static_argnames=("task", "solver", "steps"))
def _trajectories(gram, y, points, start, *, task, solver, steps):
    def at(point):
        share, lam, radius = point if solver != "alternation" else (*point[:2], np.inf)
        problem = PROBLEMS[task](gram, y, contamination=share, regularization=lam, radius=radius)
        first = init(problem, start)

        def one(state, _):
            if solver == "descent":  # accelerated steps without momentum
                state = state._replace(momentum=state.momentum**0)
            by = "accelerated" if solver == "descent" else solver
            state = step(problem, state, solver=by, tolerance=1e-6)
            return state, state

        return first, jax.lax.scan(one, first, length=steps)[1], problem.smoothness

    return jax.vmap(at)(points)


def trajectories(gram, y, points, *, task, solver, steps, start=None):
    """States `[points]` of the start and `[points, steps]` after, and L, over (ε, λ, R)."""
    start = np.zeros(len(y)) if start is None else start
    found = _trajectories(gram, y, points, start, task=task, solver=solver, steps=steps)
    return jax.tree.map(np.asarray, found)
