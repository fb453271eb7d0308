"""Bands around a function that is fitted to noisy rows, from its fits without groups of rows.

A fit is pulled towards zero by its regularization. A band around it that has the width of its
random error alone misses the curve where this bias is large. So the middle of a band is a fit with
a smaller regularization, whose bias is small against its random error (undersmoothing).

The standard error s(x) is from the jackknife: with the fit f_(g) without group g of G groups,

    s²(x) = (G − 1)/G Σ_g (f_(g)(x) − mean)².

It counts the variance of the terms of f that are of order k in the groups k times, so that it is
too large where f is far from linear in the moments. The interactions of groups show that:

    I_gh(x) = f(x) − f_(g)(x) − f_(h)(x) + f_(gh)(x),  i(x) = Σ_{g<h} I²_gh(x)

with the fit f_(gh) without two groups. i counts order k k(k − 1)/2 times, and exceeds s²/2 only
where orders above 2 matter. There s² is multiplied by the median over rows of s²/(2i), but not by
less than ½. Otherwise it is left as it is, which makes up for bias that is left.

The estimates s(x) vary along the curve: where the fit is pulled to zero, so is s(x), and a curve
would be missed there. So a simultaneous band takes the moderated variance

    s̃²(x) = (1 − a) s²(x) + a median_x s²(x),  a = 0.2,

and is f(x) ± q s̃(x) with the quantile q of max_x |N(x)|/s̃*(x). N is a Gaussian process with the
covariance that the jackknife estimates, and s̃*² its moderated variance, estimated from G − 1 more
draws of N. It is nowhere narrower than a pointwise band. At one point, N/s̃* has Student's t
distribution, as in a pointwise band.

Source: Hall, The Annals of Statistics 20 (1992), on undersmoothing; for what the jackknife counts
Efron and Stein, The Annals of Statistics 9 (1981), who subtract an estimate like i, which left too
little here; for the largest deviation over a curve Ruppert, Wand and Carroll, Semiparametric
Regression (2003), Sec. 6.5; for moderated variances Smyth, Statistical Applications in Genetics and
Molecular Biology 3 (2004), with a given a, and the median in place of the mean, which one end of
the curve can dominate.
"""

import numpy as np

from noisy_jax.intervals import half_width

_SHARE = 0.2  # a
_DRAWS = 4096
_AT_ONCE = 2**22  # numbers in memory


def pairs_of_groups(groups: int) -> list[tuple[int, int]]:
    """Some of all pairs, as each of them needs a fit; none is of neighbouring rows."""
    return [(g, (g + groups // 3) % groups) for g in range(groups)]


def calibrated(
    whole: np.ndarray, left_out: np.ndarray, both: np.ndarray, features: np.ndarray
) -> np.ndarray:
    """Weights `[G, D]` without each group, nearer to their mean if interactions are large.

    From weights of the fits to all rows `[D]`, without each group `[G, D]` and without both groups
    of each of `pairs_of_groups` `[P, D]`; features `[m, D]` are those of rows.
    """
    groups, moves = len(left_out), left_out - left_out.mean(axis=0)
    first, second = np.transpose(pairs_of_groups(groups))
    interactions = (whole - left_out[first] - left_out[second] + both) @ features.T
    square = np.sum((moves @ features.T) ** 2, axis=0) * (groups - 1) / groups
    interacting = np.mean(interactions**2, axis=0) * groups * (groups - 1) / 2
    seen = interacting > 0
    share = np.median(square[seen] / interacting[seen]) / 2 if seen.any() else 1.0
    return left_out.mean(axis=0) + np.sqrt(np.clip(share, 0.5, 1.0)) * moves


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
