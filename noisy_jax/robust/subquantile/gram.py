"""Gram matrices as products K v, with an upper bound on ‖K‖: in memory, or a chunk at a time.

The bound is the smaller one of ‖K‖_F and Collatz and Wielandt's: with |K| of absolute values,

    ‖K‖ ≤ ρ(|K|) ≤ max_i (|K|v)_i / v_i   for every v > 0,

where v is improved by |K| itself. Power iteration on K would approach ‖K‖ from below, and steps
made of it would be too long.
"""

import dataclasses
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_factor, cho_solve
from jax.scipy.sparse.linalg import cg

from noisy_jax.matrices import PSD_SLACK, check_gram, check_matrix
from noisy_jax.validation import check_at_least, check_finite, check_shape, concrete, given

_IMPROVEMENTS = 3  # of Wielandt's vector; each asks for all of K once
_SOLVER_PRODUCTS, _SOLVER_TOLERANCE = 200, 1e-4  # where K cannot be factorized: for starts only


@dataclasses.dataclass(frozen=True, eq=False)
class Gram:
    """A Gram matrix K as what can be done with it.

    Attributes:
        size: n.
        product: `v[n] -> [n]`, K v.
        norm: `[]`, an upper bound on the spectral norm ‖K‖.
        matrix: `[n, n]`, K itself; `None` where it is never held as a whole.
    """

    size: int
    product: Callable[[chex.Array], chex.Array]
    norm: chex.Array
    matrix: chex.Array | None = None


def dense_gram(matrix: chex.Array) -> Gram:
    """A Gram matrix that is held in memory.

    Args:
        matrix: `[n, n]`, K_ij = k(x_i, x_j), symmetric and positive semi-definite.

    Raises:
        ValueError: K not square, not symmetric, not positive semi-definite, NaN or infinity.

    Example:
        >>> import jax.numpy as jnp
        >>> print(dense_gram(jnp.array([[2.0, 1.0], [1.0, 2.0]])).norm)
        3.0
    """
    check_matrix("gram", matrix)
    matrix = jnp.asarray(matrix, float)
    _check_matrix(matrix)
    return _gram(lambda rows: rows(matrix), len(matrix), matrix)


def chunked_gram(
    kernel: Callable[[chex.Array, chex.Array], chex.Array], x: chex.Array, *, chunk: int = 512
) -> Gram:
    """A Gram matrix of which only `chunk` rows are in memory at a time.

    Every product evaluates the kernel n² times. Under `vmap` over targets or starts, with one x,
    the evaluations are shared.

    Args:
        kernel: `([n, d], [m, d]) -> [n, m]`, such as `kernels.gaussian` gives.
        x: `[n, d]` points.
        chunk: rows at a time, at least 1.

    Raises:
        ValueError: a kernel that gives no Gram matrix, x of another shape, NaN or infinity in x, or
            no rows in a chunk.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> gram = chunked_gram(nj.kernels.linear(), jnp.arange(6.0)[:, None], chunk=4)
        >>> print(gram.product(jnp.ones(6)))
        [ 0. 15. 30. 45. 60. 75.]
    """
    check_at_least("chunk", chunk, 1, "the number of rows of K in memory at a time")
    if not callable(kernel):
        raise ValueError(
            "kernel must be a function ([n, d], [m, d]) -> [n, m], as kernels builds it, got "
            f"{given(kernel)}; dense_gram takes a matrix"
        )
    x = jnp.asarray(x, float)
    if x.ndim != 2 or 0 in x.shape:
        raise ValueError(f"x must be [n, d] with n >= 1 and d >= 1, got {list(x.shape)}")
    check_finite("x", x, ": drop or impute such rows first")
    size, dim = x.shape
    check_shape("kernel(x, x)", jax.eval_shape(kernel, x, x), (size, size), "k(x_i, x_j)")
    blocks = jnp.pad(x, ((0, -size % chunk), (0, 0))).reshape(-1, chunk, dim)

    def by_rows(rows):
        return jax.lax.map(lambda block: rows(kernel(block, x)), blocks).reshape(-1)[:size]

    return _gram(by_rows, size)


def solver(gram: Gram, regularization: chex.Numeric) -> Callable[[chex.Array], chex.Array]:
    """The function b -> (K + C)⁻¹ b: by Cholesky, or roughly by products where K is not held."""
    if gram.matrix is not None:
        identity = jnp.eye(gram.size, dtype=gram.matrix.dtype)
        factor = cho_factor(gram.matrix + regularization * identity, lower=True)
        return lambda b: cho_solve(factor, b)

    def regularized(v):
        return gram.product(v) + regularization * v

    options = {"tol": _SOLVER_TOLERANCE, "maxiter": _SOLVER_PRODUCTS}
    return lambda b: cg(regularized, b, **options)[0]


@jax.default_matmul_precision("highest")
def _gram(by_rows, size, matrix=None) -> Gram:
    """From `by_rows`, which gives `[n]` by a function of some rows of K, `[b, n] -> [b]`."""

    @jax.default_matmul_precision("highest")
    def product(v):
        return by_rows(lambda rows: rows @ v)

    def absolute(v):
        return by_rows(lambda rows: jnp.abs(rows) @ v)

    frobenius = jnp.sqrt(jnp.sum(by_rows(lambda rows: jnp.sum(rows**2, axis=1))))
    vector = jnp.ones_like(frobenius, shape=size)
    smallest = jnp.finfo(vector.dtype).eps
    for _ in range(_IMPROVEMENTS):
        vector = absolute(vector)
        vector = jnp.maximum(vector / jnp.maximum(jnp.max(vector), smallest), smallest)
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
            f"gram must be positive semi-definite, but has the eigenvalue {smallest:.3g}; is the "
            "kernel positive definite?"
        ) from None
