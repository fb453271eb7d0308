"""Errors shown by copies, of unequal numbers in the rows: pooled over the rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def share_of_means(measured: np.ndarray) -> np.ndarray:
    """Returns f, the covariance of errors of means of copies divided by a single copy's.

    Columns j and k with n_j and n_k copies, m_jk of them in the same places, have
    f_jk = m_jk/(n_j n_k).

    Args:
        measured: `[n, V, k]`, where there is a copy.

    Returns:
        `[k, k]` if rows have the same copies, else `[n, k, k]`.
    """
    share = _shares(measured[:1] if (measured == measured[:1]).all() else measured)[0]
    return share[0] if len(share) == 1 else share


def covariances_of_means(
    copies: np.ndarray, names: Sequence[str], weights: np.ndarray | None = None
) -> np.ndarray:
    """Ĉ `[n, k, k]`, unbiased estimates of the covariances of means of copies `[n, V, k]` with NaN.

    Row i has the copies x̃_ijv of feature j in n_ij of the places v, where the errors of one place
    have the covariance Σ. With m_ijk places that show both j and k, the errors of the means
    of the copies have the covariances C_ijk = f_ijk Σ_jk, f_ijk = m_ijk/(n_ij n_ik). The products
    of residuals

        S_ijk = Σ_v (x̃_ijv − x̄_ij)(x̃_ikv − x̄_ik)    have the mean    g_ijk Σ_jk,
        g_ijk = m_ijk (1 − 1/n_ij − 1/n_ik + m_ijk/(n_ij n_ik)),

    so that with weights w_i of the rows Σ̂_jk = Σ_i w_i S_ijk / Σ_i w_i g_ijk is unbiased, as is

        Ĉ_ijk = f_ijk Σ̂_jk + (S_ijk − g_ijk Σ̂_jk) Σ_i w_i f_ijk / Σ_i w_i g_ijk

    for C_ijk in any row, and the weighted sum over rows, Σ̂_jk Σ_i w_i f_ijk, consists of the terms
    of the rows. With n_ij = V in all rows this is Ĉ_i = S_i/(V(V − 1)), for any weights.

    Raises:
        ValueError: no two copies show the errors of a column, or of two columns together.
    """
    places = copies.shape[1]
    if places > 1 and not np.isnan(copies.sum()):
        residuals = copies - copies.mean(axis=1)[:, None]
        return np.einsum("nvi,nvj->nij", residuals, residuals) / (places * (places - 1))
    row_weights = np.ones(len(copies)) if weights is None else weights
    measured = ~np.isnan(copies)
    means = np.where(measured, copies, 0.0).sum(axis=1) / measured.sum(axis=1)
    residuals = np.where(measured, copies - means[:, None], 0.0)
    share, freedom = _shares(measured)
    products = np.einsum("nvi,nvj->nij", residuals, residuals)
    shares, freedoms, total = (
        np.tensordot(row_weights, values, axes=1) for values in (share, freedom, products)
    )
    for i, j in _lacking(share, freedom)[:1]:
        which = f"{names[i]!r} and {names[j]!r}" if i != j else f"{names[i]!r}"
        raise ValueError(
            f"no row has two copies of {which}, from which the errors could be estimated: give "
            f"the variance of one copy as noise={{{names[i]!r}: …}}; or take larger chunks, or "
            "fewer folds"
        )
    freedoms = np.where(freedoms > 0, freedoms, 1.0)
    pooled = total / freedoms
    return share * pooled + (products - freedom * pooled) * (shares / freedoms)


def _shares(measured: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """f and g `[n, k, k]` of `covariances_of_means`, where there is a copy or not `[n, V, k]`."""
    both = np.einsum("nvi,nvj->nij", measured, measured, dtype=np.float64)
    counts = measured.sum(axis=1)
    left, right = (1 / counts)[:, :, None], (1 / counts)[:, None]
    share = both * left * right
    return share, both * (1 - left - right + share)


def unshown(measured: np.ndarray) -> list[list[int]]:
    """Pairs of columns, or columns twice, of whose errors no row has two copies `[n, V, k]`."""
    return _lacking(*_shares(measured))


def _lacking(share: np.ndarray, freedom: np.ndarray) -> list[list[int]]:
    return np.argwhere(share.any(axis=0) & (freedom.max(axis=0, initial=0.0) < 0.1)).tolist()
