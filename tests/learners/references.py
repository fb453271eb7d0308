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


def gaussian_kernel(squared_width):
    def kernel(x, z):
        return np.exp(-np.sum((x - z) ** 2, axis=-1) / squared_width)

    return kernel


def gaussian_surrogate(squared_width, cov):
    """k̂ for Gaussian noise of full covariance, by its inverse and determinant."""
    dim = len(cov)
    inverse = np.linalg.inv(squared_width * np.eye(dim) - 2 * cov)
    peak = np.linalg.det(np.eye(dim) - 2 * cov / squared_width) ** -0.5

    def surrogate(x, z):
        return peak * np.exp(-np.einsum("...i,ij,...j", x - z, inverse, x - z))

    return surrogate


def parallel_worlds(surrogate, kernel, x, copies, noisy_y, radius, rate):
    """Algorithm 2 with its double sum: predictions, coefficients, ‖w‖², projected rounds."""
    stored, alpha, projected, squared_norm = copies[:, 0], np.zeros(0), 0, 0.0
    predictions = []
    for t in range(len(x)):
        predictions.append(alpha @ kernel(stored[:t], x[t]) if t else 0.0)
        residual = (alpha @ surrogate(stored[:t], copies[t, 1]) if t else 0.0) - noisy_y[t]
        alpha = np.append(alpha, -2 * rate * residual)
        gram = surrogate(stored[: t + 1, None], stored[None, : t + 1])
        squared_norm = alpha @ gram @ alpha
        if squared_norm > radius**2:
            alpha, projected = alpha * radius / np.sqrt(squared_norm), projected + 1
            squared_norm = radius**2
    return np.array(predictions), alpha, squared_norm, projected


def soft_margin(kernel, x, y, rate, decay, margin, size):
    """Soft-margin descent with offset on the `size` newest terms: f_t(x_t) + b_t, α and b."""
    alpha, predictions, offset = np.zeros(0), [], 0.0
    for t in range(len(x)):
        f = alpha @ kernel(x[:t], x[t]) if t else 0.0
        predictions.append(f + offset)
        error = y[t] * (f + offset) <= margin
        alpha = np.append((1 - decay) * alpha, rate * y[t] * error)
        alpha[: max(t + 1 - size, 0)] = 0
        offset += rate * y[t] * error
    return np.array(predictions), alpha, offset
