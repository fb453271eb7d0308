"""The learners of the papers as plain NumPy float64 loops, from the pseudo-code."""

import numpy as np


def gradient(name, w, copies, y, cov):
    x = copies[0]
    residual = 2 * (w @ x - y)
    if name == "two_copies":
        return residual * copies[1]
    excess = {"known_covariance": 2, "as_printed": 1, "noise_blind": 0}[name]
    return residual * x - excess * cov @ w


def projected_gradient_descent(name, x, y, copies, noisy_y, covs, radius, rate):
    """Predictions before each step, the last weights, and how many steps were projected."""
    w, projected = np.zeros(x.shape[1]), 0
    predictions = []
    for t in range(len(x)):
        predictions.append(w @ x[t])
        w = w - rate(t) * gradient(name, w, copies[t], noisy_y[t], covs[t])
        norm = np.linalg.norm(w)
        if norm > radius:
            w, projected = w * radius / norm, projected + 1
    return np.array(predictions), w, projected
