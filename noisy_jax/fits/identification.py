"""Whether noisy features identify a fit: whether they vary by more than the noise in them."""

import numpy as np

SINGULAR = 1e-10
"""Smallest eigenvalue of a correlation matrix that float64 sums can tell from 0."""


def smallest_eigenvalue(gram, plain):
    """The smallest eigenvalue of the Gram matrix in units of the columns, and its direction."""
    size = np.sqrt(np.diag(plain))
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    return values[0], vectors[:, 0] / size


def check_cross(cross, cov, y_variance: float, rows: int, names) -> None:
    """Raises ValueError if errors in x and y covary by more than |c_i| ≤ √(Σ_ii Var ỹ) allows.

    Args:
        cross: `[d]`, mean covariance c of the errors in x with that in y.
        cov: `[d, d]`, mean covariance Σ of the errors in x.
        y_variance: of ỹ.
        rows: number of rows, for what chance explains.
        names: d names.
    """
    largest = np.sqrt(np.diag(cov) * y_variance) * (1 + 5 / rows**0.5)
    for j in np.flatnonzero(np.abs(cross) > largest):
        share = np.abs(cross[j]) / largest[j] if largest[j] > 0 else np.inf
        raise ValueError(
            f"cross_cov of {names[j]!r} is {share:.2g} times what is possible with this noise in "
            "it and this variance of y: check cross_cov, or the noise"
        )


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
