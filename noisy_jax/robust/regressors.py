"""Batch regression in the space of a kernel, from a Gram matrix: ridge and Huber.

Both minimise Σ_i w_i ρ(y_i − f(x_i)) + C‖f‖² over f = Σ_i a_i k(x_i, ·) and return a.

- Ridge, ρ(r) = r²: with W = diag(w), a = W^½(W^½KW^½ + C)⁻¹W^½y.
- Huber, ρ(r) = r² for |r| ≤ hs and 2hs|r| − (hs)² beyond, by modified residuals:
  r ← y − Ka,   s ← median|r|/0.6745,   a ← a + (K + C)⁻¹(clip(r, −hs, hs) − Ca),
  which has the stationary points of iteratively reweighted least squares and factorizes once.
"""

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve

from noisy_jax.matrices import check_gram, check_matrix
from noisy_jax.validation import (
    check_at_least,
    check_non_negative,
    check_one_number,
    check_positive,
    check_shape,
    check_targets,
    concrete,
)

__all__ = ["huber_ridge", "kernel_ridge", "modified_residuals"]

_MAD_OF_NORMAL = 0.6744897501960817  # median |z| of z ~ N(0, 1)


@jax.default_matmul_precision("highest")
def kernel_ridge(
    gram: chex.Array,
    y: chex.Array,
    *,
    regularization: chex.Numeric,
    weights: chex.Array | None = None,
) -> chex.Array:
    """Coefficients of kernel ridge regression, argmin Σ_i w_i (f(x_i) − y_i)² + C‖f‖².

    Rows of weight zero get the coefficient zero: f is that of the other rows alone.

    Args:
        gram: `[n, n]`, K_ij = k(x_i, x_j), symmetric and positive semi-definite.
        y: `[n]` targets.
        regularization: C > 0; in float32 not below about 1e-6 of the largest eigenvalue of K. In
            `comparators.regularized` and `learners.norma`, whose losses are a mean beside ½λ‖f‖²,
            it is λ = 2C/n.
        weights: `[n]`, w_i ≥ 0; one by default.

    Returns:
        `[n]`, a. Predictions at z are `kernel(z, x) @ a`.

    Raises:
        ValueError: C not positive or too small, a negative weight, shapes that do not match, NaN or
            infinity.

    Source: Subquantile Minimization for Kernel Learning, Algorithm 1 with nothing trimmed and C in
        its scale, Σ(·)² + C‖f‖² as its Section C has it. It is scikit-learn's `KernelRidge` with
        alpha = C.

    Example:
        >>> import jax.numpy as jnp
        >>> print(kernel_ridge(jnp.eye(2), jnp.array([6.0, 8.0]), regularization=3.0))
        [1.5 2. ]
    """
    gram, y = _checked(gram, y, regularization)
    if weights is None:
        return cho_solve(_factor(gram, regularization), y)
    weights = jnp.asarray(weights, y.dtype)
    check_shape("weights", weights, y.shape, "as y")
    check_non_negative("weights", weights, "it is how much each row counts")
    root = jnp.sqrt(weights)
    weighted = root[:, None] * gram * root[None]
    return root * cho_solve(_factor(weighted, regularization), root * y)


@jax.default_matmul_precision("highest")
def huber_ridge(
    gram: chex.Array,
    y: chex.Array,
    *,
    regularization: chex.Numeric,
    iterations: int = 50,
    threshold: chex.Numeric = 1.345,
) -> chex.Array:
    """Coefficients of Huber kernel regression, whose loss is square near zero and linear beyond hs.

    The scale s of the residuals is estimated anew in each iteration, by the median |r| over that of
    the standard normal distribution. Starts from ridge. Convergence is linear, at the rate of what K keeps
    of the clipped rows, ‖K(K + C)⁻¹‖ between them: slow where they crowd together.

    Args:
        gram: `[n, n]`, K_ij = k(x_i, x_j), symmetric and positive semi-definite.
        y: `[n]` targets.
        regularization: C > 0, as in `kernel_ridge`.
        iterations: at least 1, of O(n²) each.
        threshold: h > 0, in units of s; 1.345 is 95% efficient under normal noise.

    Returns:
        `[n]`, a. Predictions at z are `kernel(z, x) @ a`.

    Raises:
        ValueError: C or h not positive, C too small, shapes that do not match, NaN or infinity.

    Source: Huber, Robust Statistics (1981), Secs. 7.7 and 7.8, with K and C in place of a design.

    Example:
        >>> import jax.numpy as jnp
        >>> y = jnp.array([1.0, 1.0, 1.0, 1.0, 99.0])
        >>> coefficients = huber_ridge(jnp.ones((5, 5)), y, regularization=1e-3)
        >>> print(f"{coefficients.sum():.1f}")
        1.0
    """
    gram, y = _checked(gram, y, regularization)
    check_at_least("iterations", iterations, 1, "the number of refits")
    check_one_number("threshold", threshold)
    check_positive("threshold", threshold, "where squares end, in units of the residuals' scale")
    # An inverse, as its products batch over data sets where triangular solves do not; its rounding
    # slows convergence, but leaves the limit, clip(r) = Ca, where it is.
    inverse = cho_solve(_factor(gram, regularization), jnp.eye(y.size, dtype=y.dtype))
    return modified_residuals(
        lambda a: gram @ a,
        lambda b: inverse @ b,
        y,
        regularization=regularization,
        iterations=iterations,
        threshold=threshold,
    )


def modified_residuals(
    product: Callable[[chex.Array], chex.Array],
    solve: Callable[[chex.Array], chex.Array],
    y: chex.Array,
    *,
    regularization: chex.Numeric,
    iterations: int,
    threshold: chex.Numeric = 1.345,
) -> chex.Array:
    """`huber_ridge` of any K that is given as the functions Kv and (K + C)⁻¹b of `[n]`.

    Example:
        >>> import jax.numpy as jnp
        >>> y = jnp.array([1.0, 2.0, 3.0, 99.0])
        >>> double, third = (lambda v: 2 * v), (lambda b: b / 3)  # K = 2I, C = 1
        >>> a = modified_residuals(double, third, y, regularization=1.0, iterations=50)
        >>> print(f"{a[2]:.2f} {a[3]:.2f}")
        1.00 1.66
    """

    def refit(coefficients, _):
        residuals = y - product(coefficients)
        width = threshold * jnp.median(jnp.abs(residuals)) / _MAD_OF_NORMAL
        clipped = jnp.clip(residuals, -width, width)
        return coefficients + solve(clipped - regularization * coefficients), None

    return jax.lax.scan(refit, solve(y), length=iterations)[0]


def _factor(gram, regularization):
    factor = cho_factor(gram + regularization * jnp.eye(len(gram), dtype=gram.dtype), lower=True)
    numbers = concrete(factor[0])
    if numbers is not None and not np.all(np.isfinite(numbers)):
        eigenvalues = np.linalg.eigvalsh(gram)
        raise ValueError(
            f"regularization must be larger, got {regularization}: with eigenvalues of gram from "
            f"{eigenvalues[0]:.2g} to {eigenvalues[-1]:.2g}, K + C has no Cholesky factor in "
            f"{gram.dtype}"
        )
    return factor


def _checked(gram, y, regularization) -> tuple[chex.Array, chex.Array]:
    check_matrix("gram", gram)
    gram, y = jnp.asarray(gram, float), jnp.asarray(y, float)
    check_targets(y)
    check_gram("gram", gram, y.size)
    check_one_number("regularization", regularization)
    check_positive("regularization", regularization, "C, the weight of ‖f‖² beside squared errors")
    return gram, y
