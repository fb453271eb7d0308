"""What replicates, several noisy copies of the same instances, tell of the noise."""

from typing import NamedTuple

import chex
import jax.numpy as jnp

from noisy_jax.validation import check_finite


class CovarianceEstimate(NamedTuple):
    """Covariance of the noise, estimated from replicates.

    Attributes:
        cov: `[d, d]`, unbiased and PSD.
        std_error: `[d, d]`, standard error of each entry.
    """

    cov: chex.Array
    std_error: chex.Array


def estimate_covariance(copies: chex.Array) -> CovarianceEstimate:
    """The noise's covariance from replicates, whatever the clean instances are.

    Σ̂ = (1/n) Σ_i S_i with S_i = Σ_v (x̃_iv − x̄_i)(x̃_iv − x̄_i)ᵀ/(V − 1), the sample covariance of
    instance i's copies (for V = 2: half the outer product of their difference). The standard error
    is that of the mean of the n independent S_i.

    Args:
        copies: `[n, V, d]`, V ≥ 2 independent noisy copies of each of n ≥ 2 instances.

    Raises:
        ValueError: the shape does not fit, or something is not finite.

    Example:
        >>> import jax.numpy as jnp
        >>> estimate_covariance(jnp.array([[[0.0], [2.0]], [[5.0], [5.0]]])).cov
        Array([[1.]], dtype=float32)
    """
    shape = jnp.shape(copies)
    if len(shape) != 3 or shape[0] < 2 or shape[1] < 2:
        raise ValueError(
            "copies must have shape [n, V, d] with n >= 2 instances and V >= 2 copies of each, "
            f"got {list(shape)}"
        )
    check_finite("copies", copies)
    copies = jnp.asarray(copies)
    residuals = copies - copies.mean(axis=1, keepdims=True)
    covs = jnp.einsum("nvi,nvj->nij", residuals, residuals, precision="highest") / (shape[1] - 1)
    return CovarianceEstimate(
        covs.mean(axis=0), covs.std(axis=0, ddof=1) / jnp.sqrt(jnp.asarray(shape[0], covs.dtype))
    )
