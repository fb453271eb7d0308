"""Streams whose labels drift, for tests of NORMA and of its bounds."""

import numpy as np


def drifting_streams(rng, dim, rounds=500, repeats=3):
    """Streams labelled by comparators of four kinds of drift, two rates of flipped labels, 3 B."""
    speeds = [(0.0, 0.0), (0.001, 0.0), (0.01, 0.0), (0.0, 2.0)]
    kinds = [(*s, f, b) for s in speeds for f in (0.0, 0.05) for b in (1.0, 3.0, 10.0)] * repeats
    speed, jump, flips, norm = (np.array(column)[:, None] for column in zip(*kinds, strict=True))
    g = np.zeros((len(kinds), rounds, dim))
    g[:, 0] = rng.normal(size=(len(kinds), dim))
    for t in range(1, rounds):
        size = jump if t % 125 == 0 else speed
        g[:, t] = g[:, t - 1] + size * rng.normal(size=(len(kinds), dim))
        g[:, t] /= np.linalg.norm(g[:, t], axis=1, keepdims=True)
    x = rng.normal(size=g.shape)
    x /= np.maximum(np.linalg.norm(x, axis=2, keepdims=True), 1)
    near = np.abs(np.sum(g * x, axis=2, keepdims=True)) < 0.1
    x = np.where(near, np.sign(np.sum(g * x, axis=2, keepdims=True)) * g, x)
    y = np.sign(np.sum(g * x, axis=2)) * np.where(rng.random(x.shape[:2]) < flips, -1, 1)
    return x, y, norm[:, :, None] * g


def hinge(comparator, x, y, mu):
    """Σ_t max(0, μ − y_t⟨u_t, x_t⟩) of each stream, `[S]`."""
    return np.maximum(mu - y * np.sum(comparator * x, axis=2), 0).sum(axis=1)
