"""Checks of covariance and Gram matrices, of concrete values only, as in `validation`."""

import numpy as np

from noisy_jax.validation import check_finite, check_shape, concrete, given

# Sample covariances of collinear data are singular up to a few roundings of float32.
PSD_SLACK = 1e-5

# Well above the rounding of a Gram matrix, and well below what a wrong one is off by.
_GRAM_SLACK = 1e-3


def check_covariance(name: str, cov, *, stacked: bool = False) -> None:
    """Raises ValueError unless `cov` is a covariance `[]`, `[d]` or `[d, d]`, symmetric and PSD.

    If `stacked`, a leading axis of rounds comes first.
    """
    shape = np.shape(cov)[1:] if stacked else np.shape(cov)
    if len(shape) > 2 or (len(shape) == 2 and shape[0] != shape[1]):
        raise ValueError(
            f"{name} must have shape [], [d] or [d, d], got {list(shape)}; for noise that changes "
            "from round to round stack distributions: noise.PerRound(jax.vmap(Gaussian)(covs))"
        )
    check_finite(name, cov)
    array = concrete(cov)
    if array is None:
        return
    if len(shape) < 2:
        if np.any(array < 0):
            raise ValueError(f"{name} holds variances and must be >= 0, got {array.min()}")
        return
    slack = PSD_SLACK * max(np.abs(array).max(), np.finfo(np.float32).tiny)
    if np.abs(array - array.swapaxes(-1, -2)).max() > slack:
        raise ValueError(
            f"{name} must be symmetric, but differs from its transpose; (Σ + Σᵀ)/2 would do"
        )
    smallest = np.linalg.eigvalsh(array).min()
    if smallest < -slack:
        raise ValueError(
            f"{name} must be positive semi-definite, but its smallest eigenvalue is {smallest:.3g}"
        )


def check_matrix(name: str, value) -> None:
    """Raises ValueError if `value` is not an array: it may be a kernel k instead of k(x, x)."""
    if not hasattr(value, "__len__"):
        raise ValueError(f"{name} must be [n, n], got {given(value)}; pass k(x, x) for a kernel k")


def check_gram(name: str, gram, size: int) -> None:
    """Raises ValueError unless `gram` is symmetric, `[size, size]` and finite."""
    check_shape(name, gram, (size, size), f"as y is [{size}]")
    check_finite(name, gram)
    array = concrete(gram)
    if array is not None and np.abs(array - array.T).max() > _GRAM_SLACK * np.abs(array).max():
        raise ValueError(
            f"{name} must be symmetric, but differs from its transpose; both its "
            "rows and its columns are the same points"
        )


def check_semidefinite(name: str, eigenvalues) -> None:
    """Raises ValueError if the first of increasing eigenvalues is negative beyond rounding."""
    array = concrete(eigenvalues)
    if array is not None and array[0] < -_GRAM_SLACK * np.abs(array).max():
        raise ValueError(
            f"{name} must be positive semi-definite, but it has eigenvalues from {array[0]:.2g} to "
            f"{array[-1]:.2g}; is the kernel positive definite?"
        )
