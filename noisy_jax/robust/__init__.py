"""Batch fits of tables in which some rows are corrupted, and the corruptions to test them with."""

from noisy_jax.robust import contaminations, subquantile
from noisy_jax.robust.regressors import huber_ridge, kernel_ridge, modified_residuals

__all__ = ["contaminations", "huber_ridge", "kernel_ridge", "modified_residuals", "subquantile"]
