"""Online gradient descent on expansions in NumPy, which benchmarks compare with."""

import numpy as np


def descent(read, y, *, radius, learning_rate):
    """Predictions of Algorithm 2 for the squared loss, with the recursion for ‖f‖².

    Args:
        read: from a round t and the weights `[t]` of its terms to f at the clean instance, f at the
            copy that is read, f at the copy that is stored, and the squared norm of the new term.
        y: `[T]`.
        radius: of the ball.
        learning_rate: constant.
    """
    weights, squared_norm = np.zeros(len(y), np.float32), 0.0
    predictions = np.zeros(len(y), np.float32)
    for t in range(len(y)):
        predictions[t], value, own, norm = read(t, weights[:t])
        alpha = -2 * learning_rate * (value - y[t])
        squared_norm += 2 * alpha * own + alpha**2 * norm
        weights[t] = alpha
        if squared_norm > radius**2:
            weights[: t + 1] *= radius / np.sqrt(squared_norm)
            squared_norm = radius**2
    return predictions
