"""Kernel regression from a Gram matrix: ridge and Huber.

Both minimise the mean of the losses ρ(y_i − f(x_i)) plus ½λ‖f‖² over f = Σ_i a_i k(x_i, ·), and
return a. With C = nλ/2:

- Ridge, ρ(r) = r²: a = (K + C)⁻¹y.
- Huber, ρ(r) = r² for |r| ≤ hs and 2hs|r| − (hs)² beyond, by modified residuals:
  r ← y − Ka,   s ← median|r|/0.6745,   a ← a + (K + C)⁻¹(clip(r, −hs, hs) − Ca).
  This has the same stationary points as iteratively reweighted least squares, but factorizes a
  matrix only once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.linalg.matrices import check_gram, check_matrix, cholesky, solve_cholesky
from noisy_jax.validation.arrays import real_array
from noisy_jax.validation.numbers import positive, whole
from noisy_jax.validation.rows import check_targets
from noisy_jax.validation.values import Array, ArrayLike, concrete

_MAD_OF_NORMAL = 0.6744897501960817  # median |z| of z ~ N(0, 1)


@jax.default_matmul_precision("highest")
def kernel_ridge(gram: Array, y: Array, *, regularization: ArrayLike) -> Array:
    """Computes the coefficients a of kernel ridge regression, f = Σ_i a_i k(x_i, ·).

    f minimizes (1/n) Σ_i (f(x_i) − y_i)² + ½λ‖f‖² over the space of the kernel k, with its norm
    ‖f‖ = √(aᵀKa). The solution is a = (K + (nλ/2) I)⁻¹ y.

    Args:
        gram: `[n, n]`, K_ij = k(x_i, x_j), symmetric and positive semi-definite.
        y: `[n]` targets.
        regularization: λ > 0; in float32 nλ should be at least 1e-6 of the largest eigenvalue of K.
            It equals scikit-learn's `KernelRidge` with alpha = nλ/2.

    Returns:
        `[n]`, a. Predictions at q new points z are `kernel(z, x) @ a`, `[q]`.

    Raises:
        ValueError: shapes do not match, K is not symmetric or positive semi-definite, or λ is too
            small for a Cholesky factor.

    Source: Subquantile Minimization for Kernel Learning, Algorithm 1 with nothing trimmed.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> x, y = jnp.array([[0.0], [1.0], [2.0]]), jnp.array([0.0, 1.0, 2.0])
        >>> kernel = nj.kernels.gaussian(length_scale=1.0)
        >>> a = nj.robust.kernel_ridge(kernel(x, x), y, regularization=0.001)
        >>> print((kernel(jnp.array([[1.0]]), x) @ a).round(2))
        [1.]
    """
    gram, y, lam = _parsed(gram, y, regularization)
    return solve_cholesky(_factor(gram, y.size * lam / 2), y)


@jax.default_matmul_precision("highest")
def huber_ridge(
    gram: Array,
    y: Array,
    *,
    regularization: ArrayLike,
    iterations: int = 50,
    threshold: ArrayLike = 1.345,
) -> Array:
    """Computes the coefficients a of Huber kernel regression, f = Σ_i a_i k(x_i, ·).

    f minimizes (1/n) Σ_i ρ(y_i − f(x_i)) + ½λ‖f‖² over the space of the kernel k, where the loss
    ρ(r) is r² for |r| ≤ hs and 2hs|r| − (hs)² beyond. So rows with large residuals r (outliers)
    count less than in ridge regression. The scale s of the residuals is estimated in each
    iteration: the median of |r|, divided by 0.6745, the median of |z| for z ~ N(0, 1).

    The iterations start from `kernel_ridge`. With C = nλ/2 they converge linearly, at the rate
    ‖K(K + C)⁻¹‖ restricted to rows with |r| > hs: slowly if many of these are close together.

    Args:
        gram: `[n, n]`, K_ij = k(x_i, x_j), symmetric and positive semi-definite.
        y: `[n]` targets.
        regularization: λ > 0; in float32 nλ should be at least 1e-6 of the largest eigenvalue of K.
        iterations: number of iterations, at least 1; 50 by default. Each takes O(n²) time.
        threshold: h > 0, in units of s; 1.345, the default, has 95% efficiency under normal noise.

    Returns:
        `[n]`, a, after the last iteration. Predictions at q new points z are `kernel(z, x) @ a`,
        `[q]`.

    Raises:
        ValueError: shapes do not match, K is not symmetric or positive semi-definite, or λ is too
            small for a Cholesky factor.

    Source: Huber, Robust Statistics (1981), Secs. 7.7 and 7.8, with K and C in place of a design.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> y = jnp.array([1.0, 1.0, 1.0, 1.0, 99.0])  # the last row is an outlier
        >>> gram = jnp.ones((5, 5))  # of a constant: k = 1
        >>> a = nj.robust.huber_ridge(gram, y, regularization=4e-4)
        >>> ridge = nj.robust.kernel_ridge(gram, y, regularization=4e-4)
        >>> print(f"{(gram @ a)[0]:.1f} {(gram @ ridge)[0]:.1f}")
        1.0 20.6
    """
    gram, y, lam = _parsed(gram, y, regularization)
    iterations = whole("iterations", iterations)
    threshold = positive("threshold", threshold)
    C = y.size * lam / 2
    # An inverse, because its products batch over data sets while triangular solves do not. Its
    # rounding slows convergence, but does not move the limit, clip(r) = Ca.
    inverse = solve_cholesky(_factor(gram, C), jnp.eye(y.size, dtype=y.dtype))
    return modified_residuals(
        lambda a: gram @ a, lambda b: inverse @ b, y, C, iterations=iterations, threshold=threshold
    )


def modified_residuals(
    product: Callable[[jax.Array], jax.Array],
    solve: Callable[[jax.Array], jax.Array],
    y: jax.Array,
    C: ArrayLike,
    *,
    iterations: int,
    threshold: ArrayLike = 1.345,
) -> jax.Array:
    """`huber_ridge` of a matrix K that is given by its product Kv and the solution (K + C)⁻¹b."""

    def refit(coefficients, _):
        residuals = y - product(coefficients)
        width = threshold * jnp.median(jnp.abs(residuals)) / _MAD_OF_NORMAL
        clipped = jnp.clip(residuals, -width, width)
        return coefficients + solve(clipped - C * coefficients), None

    return jax.lax.scan(refit, solve(y), length=iterations)[0]


def _factor(gram, C):
    factor = cholesky(gram + C * jnp.eye(len(gram), dtype=gram.dtype))
    numbers = concrete(factor)
    if numbers is not None and not np.all(np.isfinite(numbers)):
        eigenvalues = np.linalg.eigvalsh(gram)
        raise ValueError(
            f"regularization must be larger: gram has eigenvalues from {eigenvalues[0]:.2g} to "
            f"{eigenvalues[-1]:.2g}, and with {float(C):.2g} added (regularization times n/2) it "
            f"has no Cholesky factor in {gram.dtype}"
        )
    return factor


def _parsed(gram, y, regularization) -> tuple[jax.Array, jax.Array, Any]:
    check_matrix("gram", gram)
    gram = jnp.asarray(real_array("gram", gram), float)
    y = jnp.asarray(real_array("y", y), float)
    check_targets(y)
    check_gram("gram", gram, y.size)
    return gram, y, positive("regularization", regularization)
