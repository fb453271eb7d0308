"""Gram matrices as products K v with an upper bound on ‖K‖: in memory, or by chunks of rows.

The bound is the smaller of ‖K‖_F and the bound of Collatz and Wielandt: with |K| = (|K_ij|),

    ‖K‖ ≤ ρ(|K|) ≤ max_i (|K|v)_i / v_i   for every v > 0,

where v is improved by products with |K|. Power iteration on K would approach ‖K‖ from below, and
step sizes computed from it would be too large.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.sparse.linalg import cg

from noisy_jax.linalg.ball import largest_size, norm, precision
from noisy_jax.linalg.matrices import PSD_SLACK, check_gram, check_matrix, cholesky, solve_cholesky
from noisy_jax.validation.arrays import check_shape, real_array
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import check_finite, whole
from noisy_jax.validation.values import Array, ArrayLike, concrete

_IMPROVEMENTS = 3  # of Wielandt's vector v; each reads all of K once
_SOLVER_PRODUCTS, _SOLVER_TOLERANCE = 200, 1e-4  # if K is not in memory; used for starts only


@dataclasses.dataclass(frozen=True, eq=False)
class Gram:
    """A Gram matrix K.

    Attributes:
        size: n.
        product: `v[n] -> [n]`, K v.
        norm: `[]`, an upper bound on the spectral norm ‖K‖.
        matrix: `[n, n]`, K itself; `None` if it is never in memory as a whole.
    """

    size: int
    product: Callable[[jax.Array], jax.Array]
    norm: jax.Array
    matrix: jax.Array | None = None


def dense_gram(matrix: Array) -> Gram:
    """A Gram matrix `[n, n]` in memory, symmetric and positive semi-definite."""
    check_matrix("gram", matrix)
    matrix = jnp.asarray(real_array("gram", matrix), float)
    _check_matrix(matrix)
    return _gram(lambda rows: rows(matrix), len(matrix), matrix)


def chunked_gram(kernel: Callable[[Array, Array], Array], x: Array, *, chunk: int = 512) -> Gram:
    """Makes a Gram matrix K_ij = k(x_i, x_j) of which only some rows at a time are in memory.

    It is for fits to more rows than n² numbers in memory allow. Every product K v evaluates the
    kernel n² times, and a fit needs one in each iteration. Under `vmap` over targets or starts,
    with one x, the evaluations are shared.

    Args:
        kernel: `([n, d], [m, d]) -> [n, m]`, for example `kernels.gaussian(length_scale=1.0)`. It
            must be symmetric and positive semi-definite.
        x: `[n, d]` points.
        chunk: number of rows in memory at a time, at least 1; 512 by default.

    Returns:
        An object with `size` n, `product(v)` = K v for v `[n]`, and `norm`, an upper bound on the
        spectral norm ‖K‖, which `subquantile.ridge` and `logistic` take in place of a matrix.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> x = jnp.arange(6.0)[:, None]
        >>> gram = nj.robust.subquantile.chunked_gram(nj.kernels.linear(), x, chunk=4)
        >>> print(gram.product(jnp.ones(6)))
        [ 0. 15. 30. 45. 60. 75.]
    """
    chunk = whole("chunk", chunk)
    if not callable(kernel):
        raise ValueError(
            "kernel must be a function ([n, d], [m, d]) -> [n, m], such as kernels.gaussian(...), "
            f"got {given(kernel)}; pass a matrix as it is"
        )
    x = jnp.asarray(real_array("x", x), float)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"x must be [n, d] with n >= 1 and d >= 1, got {list(x.shape)}")
    check_finite("x", x, "drop or impute such rows first")
    size, dim = x.shape
    check_shape("kernel(x, x)", jax.eval_shape(kernel, x, x), (size, size), "k(x_i, x_j)")
    blocks = jnp.pad(x, ((0, -size % chunk), (0, 0))).reshape(-1, chunk, dim)

    def by_rows(rows):
        return jax.lax.map(lambda block: rows(kernel(block, x)), blocks).reshape(-1)[:size]

    return _gram(by_rows, size)


def solver(gram: Gram, C: ArrayLike) -> Callable[[jax.Array], jax.Array]:
    """The function b -> (K + C)⁻¹ b: by Cholesky, or roughly by products if K is in chunks."""
    if gram.matrix is not None:
        identity = jnp.eye(gram.size, dtype=gram.matrix.dtype)
        factor = cholesky(gram.matrix + C * identity)
        return lambda b: solve_cholesky(factor, b)

    def regularized(v):
        return gram.product(v) + C * v

    options = {"tol": _SOLVER_TOLERANCE, "maxiter": _SOLVER_PRODUCTS}
    return lambda b: cg(regularized, b, **options)[0]


@jax.default_matmul_precision("highest")
def _gram(by_rows, size, matrix=None) -> Gram:
    """Makes a `Gram` of `by_rows`, which applies a function `[b, n] -> [b]` to all rows of K."""

    @jax.default_matmul_precision("highest")
    def product(v):
        return by_rows(lambda rows: rows @ v)

    def absolute(v):
        return by_rows(lambda rows: jnp.abs(rows) @ v)

    frobenius = norm(by_rows(jax.vmap(norm)))  # squares of small kernels would underflow
    vector = jnp.ones_like(frobenius, shape=size)
    for _ in range(_IMPROVEMENTS):
        vector = absolute(vector)
        vector = jnp.maximum(vector / largest_size(vector), precision(vector))
    return Gram(size, product, jnp.minimum(frobenius, jnp.max(absolute(vector) / vector)), matrix)


def _check_matrix(matrix) -> None:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or 0 in matrix.shape:
        raise ValueError(
            f"gram must be [n, n] with n >= 1, got {list(matrix.shape)}; batch fits with jax.vmap"
        )
    check_gram("gram", matrix, len(matrix))
    array = concrete(matrix)
    if array is None:
        return
    slack = PSD_SLACK * np.abs(array).max()
    try:
        np.linalg.cholesky(array + (len(array) ** 0.5 * slack or 1) * np.eye(len(array)))
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(array)[0]
        raise ValueError(
            f"gram must be positive semi-definite, but has the eigenvalue {smallest:.3g}; check "
            "the kernel"
        ) from None
