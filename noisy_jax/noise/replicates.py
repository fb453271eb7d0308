"""The covariance of the noise from replicates, several noisy copies of the same instances."""

from typing import NamedTuple

import chex
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation import concrete, number


class CovarianceEstimate(NamedTuple):
    """Covariance of the noise, estimated from replicates.

    Attributes:
        cov: `[d, d]`, unbiased and PSD.
        std_error: `[d, d]`, standard error of each entry.
        deviations: `[n, d, d]`, symmetric matrices D_i that say how errors of different entries
            depend on each other: for a fixed symmetric M, Σ_jk M_jk Σ̂_jk has the variance
            Σ_i (Σ_jk M_jk D_ijk)². `None`: errors of different entries are independent.
    """

    cov: chex.Array
    std_error: chex.Array
    deviations: chex.Array | None = None


def estimate_covariance(copies: chex.Array) -> CovarianceEstimate:
    """Estimates the noise's covariance from replicates; the clean instances need not be known.

    With the mean x̄_i of the V copies of instance i,

        Σ̂ = (1/n) Σ_i S_i,   S_i = Σ_v (x̃_iv − x̄_i)(x̃_iv − x̄_i)ᵀ/(V − 1).

    S_i is the sample covariance of these copies (for V = 2, half the outer product of their
    difference). Its standard deviation over the instances, divided by √n, is the standard error;
    (S_i − Σ̂)/√(n(n − 1)) are the `deviations`.

    Args:
        copies: `[n, V, d]`, V ≥ 2 independent noisy copies of each of n ≥ 2 instances.

    Example:
        >>> import jax.numpy as jnp
        >>> print(estimate_covariance(jnp.array([[[0.0], [2.0]], [[5.0], [5.0]]])).cov)
        [[1.]]
    """
    shape = np.shape(copies)
    if len(shape) != 3 or shape[0] < 2 or shape[1] < 2:
        raise ValueError(f"copies must be [n, V, d] with n >= 2 and V >= 2, got {list(shape)}")
    _check_axes_not_swapped(number("copies", copies, shape=None))
    copies = jnp.asarray(copies)
    residuals = copies - copies.mean(axis=1, keepdims=True)
    covs = jnp.einsum("nvi,nvj->nij", residuals, residuals, precision="highest") / (shape[1] - 1)
    cov = covs.mean(axis=0, keepdims=True)
    deviations = (covs - cov) / jnp.sqrt(jnp.asarray(shape[0] * (shape[0] - 1), covs.dtype))
    return CovarianceEstimate(cov[0], jnp.sqrt(jnp.sum(deviations**2, axis=0)), deviations)


def _check_axes_not_swapped(copies) -> None:
    """Copies of an instance differ by noise, instances by noise and by their clean values."""
    array, (n, v, _) = concrete(copies), np.shape(copies)
    if array is None or v <= n or v < 10:  # few copies do not show the difference reliably
        return
    array = array.astype(float)
    instances, noise = (array.var(axis=axis, ddof=1).mean(axis=0) for axis in (0, 1))
    # If all clean instances are equal, the log ratio is 0 up to about this standard error.
    standard_error = np.sqrt(2 / (v * (n - 1)) + 2 / (n * (v - 1)))
    if np.mean(noise > np.exp(5 * standard_error) * instances) > 0.5:
        raise ValueError(
            f"copies must be [n, V, d], but of n = {n} instances the V = {v} copies differ more "
            "than the instances do: np.swapaxes(copies, 0, 1) swaps the axes"
        )
