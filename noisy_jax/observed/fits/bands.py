"""Bands around a function that is fitted to noisy rows, from its fits without groups of rows.

A fit is pulled towards zero by its regularization. A band around it that has the width of its
random error alone misses the curve where this bias is large. So the middle of a band is a fit with
a smaller regularization, whose bias is small against its random error (undersmoothing).

The standard error s(x) is from the jackknife: with the fit f_(g) without group g of G groups,

    s²(x) = (G − 1)/G Σ_g (f_(g)(x) − mean)².

A simultaneous band is f(x) ± q s(x) with the quantile q of max_x |N(x)|/s*(x). N is a Gaussian
process with the covariance that the jackknife estimates, and s*² its variance, estimated from
G − 1 more draws of N. At one point, N/s* has Student's t distribution, as in a pointwise band.

Source: Hall, The Annals of Statistics 20 (1992), on undersmoothing; for the largest deviation over
a curve Ruppert, Wand and Carroll, Semiparametric Regression (2003), Sec. 6.5.
"""

import numpy as np

from noisy_jax.intervals import half_width

_DRAWS = 4096
_AT_ONCE = 2**22  # numbers in memory


def half_widths(left_out: np.ndarray, level: float, simultaneous: bool) -> np.ndarray:
    """Half the width of a band, `[m]`, from values `[G, m]` of the fits without each group."""
    freedom = len(left_out) - 1
    moves = (left_out - left_out.mean(axis=0)) * np.sqrt(freedom / len(left_out))
    std_error = np.sqrt(np.sum(moves**2, axis=0))
    width = half_width(std_error, freedom, level=level)
    if not simultaneous:
        return width
    return np.maximum(width, np.quantile(_largest(moves, std_error), level) * std_error)


def _largest(moves: np.ndarray, std_error: np.ndarray) -> np.ndarray:
    """Draws of max_x |N(x)|/s*(x), `[_DRAWS]`; the same ones in every call."""
    groups = len(moves)
    moves = moves[:, std_error > 0] / std_error[std_error > 0]
    normal = np.random.default_rng(0).standard_normal((_DRAWS, groups, groups))
    found, step = [np.zeros(0)], max(1, _AT_ONCE // (groups * max(1, moves.shape[1])))
    for start in range(0, _DRAWS, step):
        draws = normal[start : start + step] @ moves  # the first is N, the others make s*
        square = np.sum(draws[:, 1:] ** 2, axis=1) / (groups - 1)
        ratios = draws[:, 0] ** 2 / np.where(square > 0, square, 1.0)
        found.append(np.sqrt(ratios.max(axis=1, initial=0.0)))
    return np.concatenate(found)
