"""Batch fits for data in which some rows are corrupted, and ways to corrupt data for tests.

Every fit minimises the mean loss plus ½λ‖f‖², with λ = `regularization`, over functions
f = Σ_i a_i k(x_i, ·) of a kernel k. λ has the same meaning in `comparators.regularized` and
`learners.norma`. For squared losses it is scikit-learn's `KernelRidge(alpha=n * λ / 2)`, where n is
the number of rows (for trimmed fits, the number of rows kept).
"""

from noisy_jax.robust import contaminations, subquantile
from noisy_jax.robust.regressors import huber_ridge, kernel_ridge

__all__ = ["contaminations", "huber_ridge", "kernel_ridge", "subquantile"]
