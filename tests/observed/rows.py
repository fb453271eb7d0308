"""Noisy rows in NumPy files, and all numbers that `fit` and `learn` make of them."""

import jax
import numpy as np

import noisy_jax as nj
from noisy_jax.observed.observations import chunks

ROWS = np.random.default_rng(3)
CLEAN = ROWS.normal(size=(800, 2))
X = 10 + 5 * (CLEAN + 0.5 * ROWS.normal(size=(800, 2)))
Y = 3 + CLEAN @ [2.0, -1.0] + 0.1 * ROWS.normal(size=800)
NOISE = 25 * 0.25
LEARNER = nj.learners.known_covariance(radius=3.0)


def run(kind, table, folder=None, *, key=0, learner=LEARNER, **options):
    """All numbers of a fit, or of what was learned."""
    if kind == "fit":
        fit = nj.fit(table, checkpoint=folder, **options)
        parts = {**vars(fit), **vars(fit.risk), "without": fit.uncorrected.covariance}
        return {k: v for k, v in parts.items() if isinstance(v, (int, float, np.ndarray))}
    learned = nj.learn(learner, table, jax.random.key(key), checkpoint=folder, **options)
    return {k: v for k, v in vars(learned).items() if k not in ("learner", "names")}


def written(folder, x, y, **options):
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    options = {"noise": NOISE, "rows": 200} | options
    return chunks(folder / "x.npy", folder / "y.npy", **options)


def check_coverage(tables, truth, method=None, *, bias=0.01):
    """Of intervals of 95%: 93% to 97% over all coefficients, and no more bias beyond chance.

    Returns the coverage of the uncorrected intervals, `[d]`.
    """
    inside, slopes, plain = [], [], []
    for table in tables:
        fit = nj.fit(table, method)
        for found, one in ((inside, fit), (plain, fit.uncorrected)):
            low, high = one.interval()
            found.append((low <= truth) & (truth <= high))
        slopes.append(fit.coefficients)
    coverage, mean = np.mean(inside, axis=0), np.mean(slopes, axis=0)
    print(f"of {len(slopes)} tables: coverage {coverage}, mean {mean}")
    error = np.std(slopes, axis=0) / len(slopes) ** 0.5
    np.testing.assert_array_less(np.abs(mean - truth), 5 * error + bias)
    assert 0.93 < coverage.mean() < 0.97
    chance = 4 * (0.95 * 0.05 / len(slopes)) ** 0.5
    assert np.all(np.abs(coverage - 0.95) < max(0.03, chance))
    return np.mean(plain, axis=0)
