"""Measures of novelty detectors."""

import chex
import jax
import jax.numpy as jnp


def auc(scores: chex.Array, positive: chex.Array) -> chex.Array:
    """Probability that a positive's score is above a negative's, ties counted half.

    Args:
        scores: `[n]`.
        positive: `[n]`, bool.

    Returns:
        `[]`, the area under the receiver operating characteristic.

    Example:
        >>> auc(jnp.array([0.1, 0.4, 0.3, 0.9]), jnp.array([False, True, False, True]))
        Array(1., dtype=float32)
    """
    count = jnp.sum(positive)
    mean_rank = jnp.mean(jax.scipy.stats.rankdata(scores), where=positive)
    return (mean_rank - (count + 1) / 2) / (len(scores) - count)


def effective_terms(weights: chex.Array) -> chex.Array:
    """The effective number of terms, (Σα)²/Σα² of coefficients α ≥ 0 `[n]`.

    It is the number of coefficients if all are equal, and 0 if all are 0.

    Example:
        >>> effective_terms(jnp.array([2.0, 2.0, 0.0, 2.0]))
        Array(3., dtype=float32)
    """
    largest = jnp.max(weights)
    shares = weights / jnp.where(largest > 0, largest, 1)  # their squares do not underflow
    return jnp.sum(shares) ** 2 / jnp.maximum(jnp.sum(shares**2), 1)
