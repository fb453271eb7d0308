"""Whether noisy features identify a fit: whether they vary by more than the noise in them."""

import numpy as np

SINGULAR = 1e-10
"""Smallest eigenvalue of a correlation matrix that float64 sums can tell from 0."""


def smallest_eigenvalue(gram, plain):
    """The smallest eigenvalue of the Gram matrix in units of the columns, and its direction."""
    size = np.sqrt(np.diag(plain))
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    return values[0], vectors[:, 0] / size


def check_identified(gram, plain, names, scale, least: float = SINGULAR) -> None:
    """Raises ValueError that names the column, or the direction, that noise covers.

    Args:
        gram: `[d, d]`, corrected covariance of the columns.
        plain: `[d, d]`, their covariance with the noise.
        names: d names.
        scale: `[d]`, units of `gram` and `plain`.
        least: smallest eigenvalue that is allowed, and smallest reliability, less `SINGULAR`.
    """
    reliability = np.diag(gram) / np.diag(plain)
    for j in np.flatnonzero(reliability <= least - SINGULAR):
        unit = scale[j] ** 2
        raise ValueError(
            f"column {names[j]!r} is not identified: its noise variance, "
            f"{(plain - gram)[j, j] * unit:.4g}, is not below its own variance, "
            f"{plain[j, j] * unit:.4g}; drop it, measure it again, or check the noise"
        )
    value, direction = smallest_eigenvalue(gram, plain)
    if value <= least:
        noisy = direction @ (plain - gram) @ direction > SINGULAR
        varies = "varies no more than the noise in it" if noisy else "does not vary"
        direction = direction / scale
        direction /= np.abs(direction).max()
        shown = np.argsort(-np.abs(direction))[:3]
        shown = [j for j in shown if abs(direction[j]) > 0.01]
        words = " ".join(f"{direction[j]:+.2g}·{names[j]}" for j in shown)
        raise ValueError(
            f"the combination {words} is not identified: it {varies}; "
            "drop one of these columns, measure them again, or check the noise"
        )
