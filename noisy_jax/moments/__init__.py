"""Unbiased second moments of clean data from noisy data, for every kind of noise."""

from noisy_jax.moments.linear import LinearMoments, linear_moments

__all__ = ["LinearMoments", "linear_moments"]
