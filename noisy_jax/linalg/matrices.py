"""Checks of covariance and Gram matrices, and factorizations.

Checks see concrete values only, as in `validation`. Factorizations are of one matrix; `vmap`
batches them, and both modes differentiate them. No other module may call JAX's own: from jaxlib
0.10.0 to 0.11.0 a batched call of LAPACK waits for other threads of the pool that it runs on, and
if all threads wait, the program hangs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation.arrays import check_shape, shape_of
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import check_finite, non_negative
from noisy_jax.validation.values import concrete
from noisy_jax.varying import of_this_device

# Sample covariances of collinear data are singular up to a few roundings of float32.
PSD_SLACK = 1e-5

# Well above the rounding of a Gram matrix, and well below what a wrong one is off by.
_GRAM_SLACK = 1e-3


def check_covariance(name: str, cov, *, stacked: bool = False) -> None:
    """Raises ValueError unless `cov` is a covariance `[]`, `[d]` or `[d, d]`, symmetric and PSD.

    If `stacked`, a leading axis of rounds comes first.
    """
    shape = shape_of(name, cov)[stacked:]
    if len(shape) > 2 or (len(shape) == 2 and shape[0] != shape[1]):
        raise ValueError(
            f"{name} must have shape [], [d] or [d, d], got {list(shape)}; for noise that changes "
            "from round to round stack distributions: noise.PerRound(jax.vmap(Gaussian)(covs))"
        )
    if len(shape) < 2:
        non_negative(name, cov, "it holds variances", shape=None)
    else:
        _check_symmetric(name, cov, PSD_SLACK, "; (Σ + Σᵀ)/2 would do")
        if (array := concrete(cov)) is not None:
            check_semidefinite(name, np.linalg.eigvalsh(_floats(array)), PSD_SLACK)


def check_matrix(name: str, value) -> None:
    """Raises ValueError if `value` is not an array: it may be a kernel k instead of k(x, x)."""
    if not hasattr(value, "__len__"):
        raise ValueError(f"{name} must be [n, n], got {given(value)}; pass k(x, x) for a kernel k")


def check_gram(name: str, gram, size: int) -> None:
    """Raises ValueError unless `gram` is symmetric, `[size, size]` and finite."""
    check_matrix(name, gram)
    check_shape(name, gram, (size, size), f"as y is [{size}]")
    _check_symmetric(name, gram, _GRAM_SLACK, "; its rows and its columns must be the same points")


def _check_symmetric(name, value, slack, hint) -> None:
    check_finite(name, value)
    if (array := concrete(value)) is None:
        return
    array = _floats(array)
    if np.abs(array - array.swapaxes(-1, -2)).max() > slack * np.abs(array).max():
        raise ValueError(f"{name} must be symmetric, but differs from its transpose{hint}")


def _floats(array: np.ndarray) -> np.ndarray:
    """Returns truth values and floats of 16 bits, which LAPACK does not take, in float32."""
    return array.astype(np.result_type(array, np.float32), copy=False)


def check_semidefinite(name: str, eigenvalues, slack: float = _GRAM_SLACK) -> None:
    """Raises ValueError if an eigenvalue is negative beyond rounding."""
    array = concrete(eigenvalues)
    if array is not None and array.min() < -slack * np.abs(array).max():
        extremes = f"eigenvalues from {array.min():.3g} to {array.max():.3g}"
        raise ValueError(f"{name} must be positive semi-definite, but has {extremes}")


def _one_by_one(function: Callable[..., Any], *, solves: bool = False) -> Callable[..., Any]:
    """Returns a function of one matrix, called in a loop where `vmap` has many, on a CPU.

    Other platforms have batched factorizations. If it solves equations, many right-hand sides with
    one matrix are the columns of one.
    """

    @jax.custom_batching.custom_vmap
    def single(*arrays):
        return function(*arrays)

    @single.def_vmap
    def of_batch(size, batched, *arrays):
        def loop(*arrays):
            def at(slices):
                slices = iter(slices)
                return single(
                    *(
                        next(slices) if is_batched else a
                        for a, is_batched in zip(arrays, batched, strict=True)
                    )
                )

            stacked = [a for a, is_batched in zip(arrays, batched, strict=True) if is_batched]
            return jax.lax.map(at, stacked)

        if solves and not batched[0]:
            matrix, b = arrays
            columns = single(matrix, jnp.moveaxis(b, 0, 1).reshape(len(matrix), -1))
            return jnp.moveaxis(columns.reshape(len(matrix), size, -1), 1, 0), True
        batch = jax.vmap(function, tuple(0 if is_batched else None for is_batched in batched))
        out = jax.lax.platform_dependent(*arrays, cpu=loop, default=batch)
        return out, jax.tree.map(lambda _: True, out)

    return single


_cholesky = partial(jax.lax.linalg.cholesky, symmetrize_input=False)
_factorize = _one_by_one(_cholesky)
_solve = partial(jax.lax.linalg.triangular_solve, left_side=True, lower=True)
_substitute = [
    _one_by_one(partial(_solve, transpose_a=transposed), solves=True)
    for transposed in (False, True)
]
_diagonalize = _one_by_one(lambda a: tuple(jnp.linalg.eigh(a)))
_decompose = _one_by_one(lambda a: tuple(jnp.linalg.svd(a, full_matrices=False)))
_orthogonalize = _one_by_one(lambda a: tuple(jnp.linalg.qr(a)))


@_one_by_one
def _lowest(a, bound):
    below = ~jnp.isfinite(_cholesky(a - bound * jnp.eye(len(a), dtype=a.dtype))[-1, -1])
    return jax.lax.cond(below, lambda: jnp.linalg.eigvalsh(a)[0], lambda: bound)


def solve_triangular(factor: jax.Array, b: jax.Array, *, transposed: bool = False) -> jax.Array:
    """Returns L⁻¹b, or L⁻ᵀb if `transposed`, for a lower triangular L and b `[n]` or `[n, m]`."""
    triangle, b = of_this_device((jnp.tril(factor), b))

    def product(v):
        matrix = triangle.T if transposed else triangle
        return jnp.matmul(matrix, v, precision="highest")

    def solution(transposed, b):
        columns = _substitute[transposed](triangle, b.reshape(len(factor), -1))
        return columns.reshape(b.shape)

    return jax.lax.custom_linear_solve(
        product,
        b,
        solve=lambda _, b: solution(transposed, b),
        transpose_solve=lambda _, b: solution(not transposed, b),
    )


def solve_cholesky(factor: jax.Array, b: jax.Array) -> jax.Array:
    """Returns A⁻¹b for A = LLᵀ, given L, and b `[n]` or `[n, m]`."""
    return solve_triangular(factor, solve_triangular(factor, b), transposed=True)


@jax.custom_jvp
def cholesky(a: jax.Array) -> jax.Array:
    """Returns the lower triangular L with LLᵀ = A, from A's lower triangle.

    NaN, with the derivative 0, where A is not positive definite.
    """
    return _factorize(a)


@cholesky.defjvp
@jax.default_matmul_precision("highest")
def _(primals, tangents):
    """dL = L Φ(L⁻¹ dA L⁻ᵀ), where Φ takes the lower triangle, with half of the diagonal."""
    factor = cholesky(*primals)
    exists = jnp.isfinite(factor[-1, -1])
    sound = jnp.where(exists, factor, jnp.eye(len(factor), dtype=factor.dtype))
    inner = solve_triangular(sound, solve_triangular(sound, _symmetric(tangents[0])).T)
    change = sound @ (jnp.tril(inner) - _diagonal_of(inner) / 2)
    return factor, jnp.where(exists, change, 0)


@jax.custom_jvp
def eigh(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns eigenvalues `[n]`, increasing, and eigenvectors `[n, n]` as columns of a symmetric A.

    Eigenvectors of repeated eigenvalues have no derivative: NaN.
    """
    return _diagonalize(a)


@eigh.defjvp
@jax.default_matmul_precision("highest")
def _(primals, tangents):
    """dΛ = diag(M), dV = V(M_ij/(λ_j − λ_i))_{i≠j} with M = Vᵀ dA V."""
    values, vectors = eigh(*primals)
    inner = vectors.T @ _symmetric(tangents[0]) @ vectors
    same = jnp.eye(len(values), dtype=bool)
    gaps = jnp.where(same, 1, values[None] - values[:, None])
    turns = jnp.where(same, 0, 1 / gaps) * inner
    return (values, vectors), (jnp.diagonal(inner), vectors @ turns)


def eigvalsh(a: jax.Array) -> jax.Array:
    """Returns the eigenvalues `[n]` of a symmetric A, increasing."""
    return eigh(a)[0]


@jax.custom_jvp
def positive_part(a: jax.Array) -> jax.Array:
    """Returns a symmetric A with zero in place of its negative eigenvalues."""
    values, vectors = eigh(a)
    return (vectors * jnp.maximum(values, 0)[None]) @ vectors.T


@positive_part.defjvp
@jax.default_matmul_precision("highest")
def _(primals, tangents):
    """V(K∘(Vᵀ dA V))Vᵀ, where K_ij is the slope of max(λ, 0) from λ_i to λ_j."""
    values, vectors = eigh(*primals)
    positive, run = jnp.maximum(values, 0), values[:, None] - values[None]
    slopes = (positive[:, None] - positive[None]) / jnp.where(run == 0, 1, run)
    slopes = jnp.where(run == 0, jnp.heaviside(values, 0)[:, None], slopes)
    change = vectors @ (slopes * (vectors.T @ _symmetric(tangents[0]) @ vectors)) @ vectors.T
    return (vectors * positive[None]) @ vectors.T, change


@jax.custom_jvp
def least_eigenvalue(a: jax.Array, bound: jax.Array) -> jax.Array:
    """Returns min(λ_min(A), bound) `[]`, by one Cholesky factor where that is the bound."""
    return jnp.minimum(_lowest(*of_this_device((a, bound))), bound)


@least_eigenvalue.defjvp
def _(primals, tangents):
    """dλ = vᵀ dA v with the eigenvector v."""
    lowest = least_eigenvalue(*primals)
    vector = eigh(primals[0])[1][:, 0]
    change = vector @ _symmetric(tangents[0]) @ vector
    return lowest, jnp.where(lowest < primals[1], change, tangents[1])


@jax.custom_jvp
def svd(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns U `[m, n]`, s `[n]`, decreasing, and Vᵀ `[n, n]` with A = U diag(s) Vᵀ, for m ≥ n.

    Singular vectors of repeated singular values have no derivative: NaN.
    """
    return _decompose(a)


@svd.defjvp
@jax.default_matmul_precision("highest")
def _(primals, tangents):
    """Derivative of the factors, by M = Uᵀ dA V and F_ij = 1/(s_j² − s_i²) for i ≠ j, F_ii = 0.

    ds = diag(M), dU = U(F∘(MS + SMᵀ)) + (I − UUᵀ) dA V S⁻¹, dV = V(F∘(SM + MᵀS)).
    """
    u, s, vt = svd(*primals)
    along = tangents[0] @ vt.T
    inner = u.T @ along
    same = jnp.eye(len(s), dtype=bool)
    gaps = jnp.where(same, 1, (s[None] - s[:, None]) * (s[None] + s[:, None]))
    apart = jnp.where(same, 0, 1 / gaps)
    right, left = inner * s[None], inner * s[:, None]
    change = u @ (apart * (right + right.T))
    if len(u) > len(s):
        change += (along - u @ inner) / s[None]
    return (u, s, vt), (change, jnp.diagonal(inner), (apart * (left + left.T)).T @ vt)


@jax.custom_jvp
def qr(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns Q `[m, n]`, orthonormal columns, and R `[n, n]`, upper triangular: A = QR, m ≥ n.

    Without full rank they have no derivative: NaN.
    """
    return _orthogonalize(a)


@qr.defjvp
@jax.default_matmul_precision("highest")
def _(primals, tangents):
    """dR = ΨR and dQ = dA R⁻¹ − QΨ with Ψ the upper triangle of C + Cᵀ − diag(C), C = Qᵀ dA R⁻¹."""
    q, r = qr(*primals)
    quotient = solve_triangular(r.T, tangents[0].T).T
    inner = q.T @ quotient
    upper = jnp.triu(inner + inner.T) - _diagonal_of(inner)
    return (q, r), (quotient - q @ upper, upper @ r)


def _symmetric(a):
    return (a + a.T) / 2


def _diagonal_of(a):
    return jnp.diag(jnp.diagonal(a))
