import itertools

import numpy as np


def signs(count):
    return np.array(list(itertools.product([-1.0, 1.0], repeat=count)))


def residuals(copies, y, rate, radius):
    """ΣE(⟨w_t, x̃_t⟩ − y_t)² and ΣE w_tᵀΣ_t w_t of descent from two copies, by enumeration.

    `copies[T, n, d]` are the atoms of a copy in each round, equally likely.
    """
    w, total, spread = np.zeros((1, copies.shape[2])), 0.0, 0.0
    for atoms, target in zip(copies, y, strict=True):
        errors = w @ atoms.T - target
        total += np.mean(errors**2)
        spread += np.mean(errors**2) - np.mean(errors.mean(axis=1) ** 2)
        steps = 2 * errors[:, :, None, None] * atoms[None, None]
        w = (w[:, None, None] - rate * steps).reshape(-1, w.shape[1])
        w *= np.minimum(1, radius / np.maximum(np.linalg.norm(w, axis=1), 1e-300))[:, None]
    return total, spread
