"""Curves that fits are tested with, noisy rows of one of them, and variances of fits in NumPy."""

import jax.numpy as jnp
import numpy as np

START = {"level": 0.0, "rate": 0.5, "size": 1.0}


def growth(params, x):
    return params["level"] + params["size"] * jnp.exp(params["rate"] * x[0])


def wave(params, x):
    return params["level"] + params["size"] * jnp.sin(params["rate"] * x[0])


def drawn(rng, n=600, copies=1, noise=0.2):
    """Noisy rows of `growth`, `[n, V, 1]`, and y."""
    x = rng.normal(size=n)
    y = 0.5 + np.exp(0.6 * x) + 0.3 * rng.normal(size=n)
    return x[:, None, None] + noise * rng.normal(size=(n, copies, 1)), y


def left_out(scores, theta, step=1e-6):
    """The covariance of a root of Σ scores(theta) `[n, p]`, by leaving out one row at a time.

    Each root moves by the inverse of the other rows' derivatives, which are differences.
    """
    moves = step * np.eye(len(theta))
    by_row = [(scores(theta + move) - scores(theta - move)) / (2 * step) for move in moves]
    by_row = np.stack(by_row, axis=2)  # [n, p, p]
    pairs = zip(by_row, scores(theta), strict=True)
    apart = np.array([np.linalg.solve(by_row.sum(axis=0) - own, score) for own, score in pairs])
    return apart.T @ apart
