"""Columns that are declared exact, but are computed from noisy ones."""

import numpy as np

from noisy_jax.observed.fits.doubts import Finding
from noisy_jax.observed.fits.seen import Seen, scores

_SMALL = 1e-9  # share of a variance that is rounding
_DIGITS = 1e-5  # share of what a formula gives that is rounding to some digits


def computed_from_noisy(seen: Seen) -> list[Finding]:
    """Exact columns that are computed from noisy ones, or whose replicates differ.

    If noise is a share s of the variance of x̃_j, it hides about that share of what x̃_j says of an
    exact column e. Hence e is computed from x̃_j if less than s/10 of its variance is left between
    ranks of neighbours in the order of x̃_j; or if x̃_j, x_k and x̃_j x_k give e, up to rounding (a
    share of 1e-5 of what x_k alone leaves).
    """
    rows, exact = seen.rows, seen.exact
    if not seen.noisy.size:
        return []
    found = dict.fromkeys(exact[seen.differ[exact]].tolist(), "its replicates differ")
    some = rows.x[np.unique(np.linspace(0, len(rows.y) - 1, 4096).astype(int))]
    for x in (some[:, 0], some.mean(axis=1))[: rows.x.shape[1]]:
        if len(x) < 32:
            break
        spread = x.std(axis=0)
        z = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        for j in seen.noisy.tolist():
            allowed = float(min(0.1 * seen.share[j], 0.05))
            sources = _smooth(z, j, exact, allowed) | _products(z, j, exact, min(allowed, _DIGITS))
            for e, k in sources.items():
                factor = "" if k == j else f" and {rows.names[k]!r}"
                found.setdefault(e, f"computed from {rows.names[j]!r}{factor}")
    return [Finding(rows.names[e], how) for e, how in sorted(found.items())]


def _smooth(z: np.ndarray, j: int, exact: np.ndarray, allowed: float) -> dict[int, int]:
    """Returns exact columns of many values that are continuous functions of column j: `{e: j}`."""
    ordered = scores(z[np.argsort(z[:, j])][:, exact])
    left = np.sum(np.diff(ordered, axis=0) ** 2, axis=0) / (2 * len(z))
    near = exact[left < allowed].tolist()
    return {e: j for e in near if len(np.unique(z[:, e])) > len(z) / 2}


def _products(z: np.ndarray, j: int, exact: np.ndarray, allowed: float) -> dict[int, int]:
    """Returns exact columns e that are linear in x_j, x_k and x_j x_k for some k: `{e: k}`."""
    z = z[np.linspace(0, len(z) - 1, 64).astype(int)]
    z = z - z.mean(axis=0)
    product = z[:, [j]] * z
    basis: list[np.ndarray] = []
    rest = np.tile((z[:, exact] ** 2).sum(axis=0), (z.shape[1], 1))  # [k, e]
    own = rest
    for columns in (z, np.tile(z[:, [j]], z.shape[1]), product - product.mean(axis=0)):
        for one in basis:
            columns = columns - one * np.sum(one * columns, axis=0)
        size = np.sqrt(np.sum(columns**2, axis=0))
        basis.append(columns / np.where(size > _SMALL**0.5, size, np.inf))
        rest = rest - (basis[-1].T @ z[:, exact]) ** 2
        own = own if len(basis) > 1 else np.where(np.arange(z.shape[1])[:, None] == j, own, rest)
    found = (own > _SMALL * len(z)) & (rest < allowed * own)
    pairs = [(int(exact[e]), int(k)) for k, e in np.argwhere(found)]
    return {e: k for e, k in pairs if e != k and _explained(z, e, j, k) < allowed}


def _explained(z: np.ndarray, e: int, j: int, k: int) -> float:
    """As `_products`, by medians of squares in place of sums, which one large row may rule."""
    with_j, without = [z[:, j], z[:, k], z[:, j] * z[:, k]], [] if j == k else [z[:, k]]
    left = []
    for columns in (with_j, without):
        design = np.column_stack([np.ones(len(z)), *columns])
        left.append(np.median((z[:, e] - design @ np.linalg.lstsq(design, z[:, e])[0]) ** 2))
    return left[0] / left[1] if left[1] > 0 else np.inf
