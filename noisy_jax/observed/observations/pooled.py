"""Covariances of the errors of means of replicates in unequal or incomplete numbers.

Row i has the copies x̃_ijv of feature j in n_ij of the places v, where the errors of one place have
the covariance Σ. With m_ijk places in which both j and k are seen, the errors of the means of the
copies have the covariances C_ijk = f_ijk Σ_jk, f_ijk = m_ijk/(n_ij n_ik). The products of residuals

    S_ijk = Σ_v (x̃_ijv − x̄_ij)(x̃_ikv − x̄_ik)    have the mean    g_ijk Σ_jk,
    g_ijk = m_ijk (1 − 1/n_ij − 1/n_ik + m_ijk/(n_ij n_ik)),

so that with weights w_i of the rows Σ̂_jk = Σ_i w_i S_ijk / Σ_i w_i g_ijk is unbiased, as is

    Ĉ_ijk = f_ijk Σ̂_jk + (S_ijk − g_ijk Σ̂_jk) Σ_i w_i f_ijk / Σ_i w_i g_ijk

for C_ijk in any row, and the weighted sum over rows, Σ̂_jk Σ_i w_i f_ijk, consists of what each row
adds to it. With n_ij = V and w_i = 1 in all rows, Ĉ_i = S_i/(V(V − 1)), as in
`Observations.averaged`.
"""

from collections.abc import Sequence

import numpy as np


def means_of_copies(
    copies: np.ndarray, names: Sequence[str], weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means `[n, d]` of copies `[n, V, d]` with NaN, their numbers `[n, d]`, and Ĉ `[n, d, d]`.

    Raises:
        ValueError: no two copies show the errors of a column, or of two columns together.
    """
    own = np.ones(len(copies)) if weights is None else weights
    seen = ~np.isnan(copies)
    counts = seen.sum(axis=1)
    means = np.where(seen, copies, 0.0).sum(axis=1) / counts
    residuals = np.where(seen, copies - means[:, None], 0.0)
    both = np.einsum("nvi,nvj->nij", seen, seen, dtype=np.float64)
    one, other = (1 / counts)[:, :, None], (1 / counts)[:, None]
    share = both * one * other
    freedom = both * (1 - one - other + share)
    products = np.einsum("nvi,nvj->nij", residuals, residuals)
    shares, freedoms, total = (
        np.tensordot(own, values, axes=1) for values in (share, freedom, products)
    )
    for i, j in np.argwhere((shares > 0) & (freedom.max(axis=0) < 0.1)).tolist():
        which = f"{names[i]!r} and {names[j]!r}" if i != j else f"{names[i]!r}"
        raise ValueError(
            f"no row has two copies of {which}, from which the errors could be estimated: give "
            f"the variance of one copy as noise={{{names[i]!r}: …}}; or take larger chunks, or "
            "fewer folds"
        )
    freedoms = np.where(freedoms > 0, freedoms, 1.0)
    pooled = total / freedoms
    cov = share * pooled + (products - freedom * pooled) * (shares / freedoms)
    return means, counts, cov
