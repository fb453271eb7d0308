"""Bands around a function that is fitted to noisy rows, from its fits without groups of rows.

A fit is pulled towards zero by its regularization. A band around it that has the width of its
random error alone misses the curve where this bias is large. So the middle of a band is a fit with
a smaller regularization, whose bias is small against its random error (undersmoothing).

The standard error s(x) is from the jackknife: with the fit f_(g) without group g of G groups,

    s²(x) = (G − 1)/G Σ_g (f_(g)(x) − mean)².

The estimates s(x) vary along the curve: where the fit is pulled to zero, so is s(x), and a curve
would be missed there. So a simultaneous band takes the moderated variance

    s̃²(x) = (1 − a) s²(x) + a median_x s²(x),  a = 0.2,

and is f(x) ± q s̃(x) with the quantile q of max_x |N(x)|/s̃*(x). N is a Gaussian process with the
covariance that the jackknife estimates, and s̃*² its moderated variance, estimated from G − 1 more
draws of N. It is nowhere narrower than a pointwise band. At one point, N/s̃* has Student's t
distribution, as in a pointwise band.

Source: Hall, The Annals of Statistics 20 (1992), on undersmoothing; for the largest deviation over
a curve Ruppert, Wand and Carroll, Semiparametric Regression (2003), Sec. 6.5; for moderated
variances Smyth, Statistical Applications in Genetics and Molecular Biology 3 (2004), with a given
a, and the median in place of the mean, which one end of the curve can dominate.
"""

import numpy as np

from noisy_jax.intervals import half_width

_SHARE = 0.2  # a
_DRAWS = 4096
_AT_ONCE = 2**22  # numbers in memory


def half_widths(left_out: np.ndarray, level: float, simultaneous: bool) -> np.ndarray:
    """Half the width of a band, `[m]`, from values `[G, m]` of the fits without each group."""
    freedom = len(left_out) - 1
    moves = (left_out - left_out.mean(axis=0)) * np.sqrt(freedom / len(left_out))
    square = np.sum(moves**2, axis=0)
    width = half_width(np.sqrt(square), freedom, level=level)
    some = square > 0
    if simultaneous and some.any():
        quantile = np.quantile(_largest(moves[:, some]), level)
        width[some] = np.maximum(width[some], quantile * np.sqrt(_moderated(square[some])))
    return width


def _moderated(square: np.ndarray) -> np.ndarray:
    """s̃², `[..., m]`, from s² at the m points of a curve."""
    return (1 - _SHARE) * square + _SHARE * np.median(square, axis=-1, keepdims=True)


def _largest(moves: np.ndarray) -> np.ndarray:
    """Draws of max_x |N(x)|/s̃*(x), `[_DRAWS]`; the same ones in every call."""
    groups = len(moves)
    normal = np.random.default_rng(0).standard_normal((_DRAWS, groups, groups))
    found, step = [], max(1, _AT_ONCE // moves.size)
    for start in range(0, _DRAWS, step):
        draws = normal[start : start + step] @ moves  # the first is N, the others make s*
        square = np.sum(draws[:, 1:] ** 2, axis=1) / (groups - 1)
        found.append(np.sqrt(np.max(draws[:, 0] ** 2 / _moderated(square), axis=1)))
    return np.concatenate(found)
