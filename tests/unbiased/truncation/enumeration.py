"""Exact expectations over discrete noise and random orders: every case, with its probability."""

import itertools

import numpy as np


def cases(*atoms):
    """All combinations of atoms `[k_i, …]`, one array `[cases, …]` for each."""
    choices = np.array(list(itertools.product(*(range(len(a)) for a in atoms))))
    return [np.asarray(a)[choices[:, i]] for i, a in enumerate(atoms)]


def copies_and_orders(x, noise, count, distributions):
    """Noisy copies `[cases, count, d]`, orders `[cases]` for each distribution, and probabilities.

    Each copy is x + n or x − n with probability ½, with its own n of `noise[count, d]`.
    """
    signs = [[-1.0, 1.0]] * count
    orders = [np.arange(len(distribution.probabilities)) for distribution in distributions]
    every = cases(*signs, *orders)
    copies = x[None, None] + np.stack(every[:count], axis=1)[:, :, None] * noise[None]
    drawn = every[count:]
    chances = np.full(len(copies), 0.5**count)
    for distribution, order in zip(distributions, drawn, strict=True):
        chances = chances * np.asarray(distribution.probabilities)[order]
    return copies, drawn, chances
