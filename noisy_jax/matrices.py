"""Checks of covariance and Gram matrices, of concrete values only, as in `validation`."""

import numpy as np

from noisy_jax.validation import check_finite, check_shape, concrete, given, non_negative

# Sample covariances of collinear data are singular up to a few roundings of float32.
PSD_SLACK = 1e-5

# Well above the rounding of a Gram matrix, and well below what a wrong one is off by.
_GRAM_SLACK = 1e-3


def check_covariance(name: str, cov, *, stacked: bool = False) -> None:
    """Raises ValueError unless `cov` is a covariance `[]`, `[d]` or `[d, d]`, symmetric and PSD.

    If `stacked`, a leading axis of rounds comes first.
    """
    shape = np.shape(cov)[stacked:]
    if len(shape) > 2 or (len(shape) == 2 and shape[0] != shape[1]):
        raise ValueError(
            f"{name} must have shape [], [d] or [d, d], got {list(shape)}; for noise that changes "
            "from round to round stack distributions: noise.PerRound(jax.vmap(Gaussian)(covs))"
        )
    if len(shape) < 2:
        non_negative(name, cov, "it holds variances", shape=None)
    else:
        _check_symmetric(name, cov, PSD_SLACK, "; (Σ + Σᵀ)/2 would do")
        if (array := concrete(cov)) is not None:
            check_semidefinite(name, np.linalg.eigvalsh(array), PSD_SLACK)


def check_matrix(name: str, value) -> None:
    """Raises ValueError if `value` is not an array: it may be a kernel k instead of k(x, x)."""
    if not hasattr(value, "__len__"):
        raise ValueError(f"{name} must be [n, n], got {given(value)}; pass k(x, x) for a kernel k")


def check_gram(name: str, gram, size: int) -> None:
    """Raises ValueError unless `gram` is symmetric, `[size, size]` and finite."""
    check_shape(name, gram, (size, size), f"as y is [{size}]")
    _check_symmetric(name, gram, _GRAM_SLACK, "; its rows and its columns must be the same points")


def _check_symmetric(name, value, slack, hint) -> None:
    check_finite(name, value)
    if (array := concrete(value)) is None:
        return
    if np.abs(array - array.swapaxes(-1, -2)).max() > slack * np.abs(array).max():
        raise ValueError(f"{name} must be symmetric, but differs from its transpose{hint}")


def check_semidefinite(name: str, eigenvalues, slack: float = _GRAM_SLACK) -> None:
    """Raises ValueError if an eigenvalue is negative beyond rounding."""
    array = concrete(eigenvalues)
    if array is not None and array.min() < -slack * np.abs(array).max():
        found = f"eigenvalues from {array.min():.3g} to {array.max():.3g}"
        raise ValueError(f"{name} must be positive semi-definite, but has {found}")
