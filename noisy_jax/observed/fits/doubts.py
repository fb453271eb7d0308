"""What a table contradicts, by scores of ranks and bounds that hold for any distribution.

The checks here are of replicates, and of columns that are declared exact. Where each row has just
two replicates, the noise is assumed to be symmetric as well, because the difference of two
replicates also depends on their mean if the noise is skewed.

Source: differences of replicates against their means: Bland and Altman (1986), and Carroll,
Ruppert, Stefanski and Crainiceanu, Measurement Error in Nonlinear Models (2006), Sec. 1.7; bounds
for sums over random rows: Hoeffding (1963).
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from noisy_jax.observed.observations import Observations

ROWS = 16_384
"""Rows, evenly spaced, that are checked."""
LEVEL = 0.01
"""Probability of a doubt about a table that obeys the assumptions."""
BELOW = (
    "the error on clean data is estimated below 0 by more than chance: the stated noise may be too "
    "large (a standard deviation in place of a variance?), depend on the target (state cross_cov), "
    "or have heavy tails"
)
"""What contradicts the stated noise in any fit by squared errors."""
_UNTRANSFORMED = (
    "corrections assume noise whose distribution does not depend on the clean value: fit on the "
    "untransformed measurements"
)
_NOISY = 1e-6  # share of a column's variance, from which on its noise counts
_FEW, _EACH = 10, 8  # differences, and rows, from which on equal ones are no accident
_ROUNDED = 1e-9  # share of the largest value that is rounding
_SMALL = 1e-9  # share of a variance that is rounding
_DIGITS = 1e-5  # share of what a formula gives that is rounding to some digits
_SHIFT = 0.01  # square of a difference of means over the variance of the noise


class Doubt(NamedTuple):
    """An assumption that a table contradicts."""

    text: str  # what contradicts it and what to do, in one line
    spoils: bool = True  # whether the correction is wrong without the assumption


class NoisyColumns(NamedTuple):
    """Which columns have noise, and how much."""

    variance: np.ndarray  # [d], mean variance of the error in one copy
    share: np.ndarray  # [d], its share of the variance of the copies
    noisy: np.ndarray  # numbers of the columns with noise
    exact: np.ndarray  # numbers of the other columns

    @classmethod
    def of(cls, rows: Observations) -> "NoisyColumns":
        """Those of a table."""
        if rows.cov is None:
            variance = rows.x.var(axis=1, ddof=1).mean(axis=0)
        else:
            variance = np.diagonal(rows.cov, axis1=-2, axis2=-1).reshape(-1, rows.x.shape[2])
            variance = variance.mean(axis=0)
        whole = rows.x.var(axis=(0, 1))
        share = np.divide(variance, whole, out=np.zeros_like(whole), where=whole > 0)
        return cls(variance, share, np.flatnonzero(share > _NOISY), np.flatnonzero(share <= _NOISY))


def scores(values: np.ndarray) -> np.ndarray:
    """Ranks of each column, the mean rank for ties, in mean 0 and variance 1 (0 if constant)."""
    if values.ndim > 1:
        made = [scores(column) for column in values.T]
        return np.stack(made, axis=1) if made else np.zeros(values.shape)
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    ranks -= ranks.mean()
    spread = ranks.std()
    return ranks / spread if spread > 0 else ranks


def tail(total, variance, largest) -> np.ndarray:
    """2 exp(−t²/2(v + mt/3)), which bounds P(|T| ≥ t) for a sum T of terms up to m."""
    room = 2 * (variance + largest * np.abs(total) / 3)
    return 2 * np.exp(-np.divide(total**2, room, out=np.zeros_like(room), where=room > 0))


def doubt_about(found: Sequence[str], text: str, *, spoils: bool = True) -> list[Doubt]:
    """A doubt about the first three of what was found, which replace the first … of the text.

    There is none about nothing. Texts of users, such as names, stand behind that … only.
    """
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    named = text.replace("…", ", ".join(found[:3]) + more, 1)
    return [Doubt(named, spoils)] if found else []


def noise_follows_values(observations: Observations) -> bool:
    """Whether replicates differ more at some values, so that their noise depends on the clean row.

    Rows may have noise of different variances, and skewed noise.
    """
    n = len(observations.y)
    some = np.linspace(0, n - 1, min(n, ROWS)).astype(int)
    rows = observations if len(some) == n else observations.rows(some)
    return bool(uneven_spreads(rows, NoisyColumns.of(rows), alike=False))


def different_means(rows: Observations, noise: NoisyColumns) -> list[Doubt]:
    """Noisy columns whose replicates have means so different that the estimated noise is larger.

    Differences of one replicate to the mean of a row's have the mean 0. What they have instead is
    told if its square is more than 1% of the variance of the noise.
    """
    copies = rows.x if rows.copies is None else rows.copies
    several = np.sum(~np.isnan(copies), axis=1, keepdims=True) > 1
    apart = np.where(several, copies - np.nanmean(copies, axis=1, keepdims=True), np.nan)
    total, square = np.nansum(apart, axis=0), np.nansum(apart**2, axis=0)
    p = tail(total, square, np.nanmax(np.abs(apart), axis=0, initial=0))[:, noise.noisy]
    means = total / np.maximum(np.sum(~np.isnan(apart), axis=0), 1)
    large = np.max(means**2, axis=0)[noise.noisy] > _SHIFT * noise.variance[noise.noisy]
    failed = noise.noisy[(p.min(axis=0) * p.size < LEVEL) & large]
    return doubt_about(
        [f"{rows.names[j]!r} (by up to {np.ptp(means[:, j]):.3g})" for j in failed],
        "replicates have different means in …, which the correction takes for noise: subtract its "
        "mean from each replicate first",
    )


def copied(rows: Observations, noise: NoisyColumns) -> list[Doubt]:
    """Noisy columns with two replicates that are equal in more rows than rounding explains.

    Differences of rounded measurements are 0 about as often as they are the next step to either
    side, and differences of others hardly ever. The most frequent value (a limit of detection) does
    not count.
    """
    copies, found = rows.x if rows.copies is None else rows.copies, []
    for j in noise.noisy.tolist():
        for first, second in itertools.combinations(range(copies.shape[1]), 2):
            one, other = copies[:, first, j], copies[:, second, j]
            if np.sum(one == other) <= _EACH:
                continue
            values, counts = np.unique(one, return_counts=True)
            kept = (one != values[counts.argmax()]) & ~np.isnan(one - other)
            apart = np.round(np.abs(one - other)[kept] / (_ROUNDED * np.abs(values).max()))
            sizes, counts = np.unique(apart, return_counts=True)
            if len(sizes) > _FEW and sizes[0] == 0 and counts[0] > 2 * counts[1:].max() + _EACH:
                found.append(f"{rows.names[j]!r} ({first + 1} and {second + 1})")
                break
    return doubt_about(
        found,
        "replicates are equal in many rows in …: if missing values were filled in from another "
        "replicate, the noise is underestimated; leave such values empty (NaN)",
    )


def uneven_spreads(rows: Observations, noise: NoisyColumns, *, alike: bool = True) -> list[Doubt]:
    """Noisy columns whose replicates differ by more, or by less, where some value is larger.

    Without dependence, the spread of a row's replicates is independent of exact columns and of y,
    the spread of all replicates but one is independent of that one, and the spread of two is
    uncorrelated with their mean, if the noise has one law in all rows (`alike`). Otherwise means of
    two replicates are not compared, and values of three or more enter as they are, not as scores.
    """
    x, noisy, copies = rows.x[:, :, noise.noisy], noise.noisy, rows.x.shape[1]
    if copies < 2 or not noisy.size:
        return []
    unit = _NOISY * x.std(axis=(0, 1))  # smaller differences are rounding
    if rows.cov is not None and rows.cov.ndim == 3:
        own = np.diagonal(rows.cov, axis1=1, axis2=2)[:, noisy]
        unit = unit * np.sqrt(np.where(own > 0, own, noise.variance[noisy]))
    exact = noise.exact[~replicates_differ(rows, noise.exact)]
    names = [f"values of {rows.names[k]!r}" for k in exact]
    others = rows.x[:, 0, exact]
    if rows.cross_cov is None:
        names, others = [*names, f"values of {rows.target!r}"], np.column_stack([others, rows.y])
    spread, ranked, bounds = scores(np.round(x.std(axis=1) / unit)), scores(others), []
    largest = np.abs(spread).max(axis=0)[:, None]
    for values in (ranked, scores(np.abs(ranked))):
        size = largest * np.abs(values).max(axis=0, initial=0)
        bounds.append(tail(spread.T @ values, np.sum(spread**2, axis=0)[:, None], size))
    means = [f"means of {rows.names[k]!r}" for k in noisy]
    if copies == 2:
        spreads, kinds = [spread], [[x.mean(axis=1) - x.mean(axis=(0, 1))]] if alike else []
    else:
        without = [np.delete(x, v, axis=1).std(axis=1) for v in range(copies)]
        spreads = [scores(np.round(one / unit)) for one in without]
        single = [scores(x[:, v]) for v in range(copies)]
        kinds = [single, [scores(np.abs(one)) for one in single]]
        kinds = kinds if alike else [[x[:, v] - x[:, v].mean(axis=0) for v in range(copies)]]
    for kind in kinds:
        pairs = [(s, v) for s, v in zip(spreads, kind, strict=True)]
        total = sum(s.T @ v for s, v in pairs)
        square = sum((s * t).T @ (v * w) for s, v in pairs for t, w in pairs)
        # Scores of spreads are symmetric, and so are products with them: no term for their size.
        bounds.append(tail(total, square, 0.0))
    names = [*names, *names, *len(kinds) * means]
    p = np.column_stack(bounds)
    failed = np.flatnonzero(p.min(axis=1) * p.size < LEVEL)
    failed = failed[np.argsort(p[failed].min(axis=1), kind="stable")]
    return doubt_about(
        [f"{rows.names[noisy[j]]!r} (by {names[p[j].argmin()]})" for j in failed],
        "replicates differ more where values are larger, or smaller, in …, as after a logarithm or "
        f"an embedding; {_UNTRANSFORMED}, unless copies have the clean value as their mean, as "
        "with relative or skewed errors",
    )


def computed_from_noisy(rows: Observations, noise: NoisyColumns) -> list[Doubt]:
    """Columns that are declared exact, but are computed from noisy ones.

    If noise is a share s of the variance of x̃_j, it hides about that share of what x̃_j says of an
    exact column e. Hence e is computed from x̃_j if less than s/10 of its variance is left between
    ranks of neighbours in the order of x̃_j; or if x̃_j, x_k and x̃_j x_k give e, up to rounding (a
    share of 1e-5 of what x_k alone leaves).
    """
    exact = noise.exact
    found = dict.fromkeys(exact[replicates_differ(rows, exact)].tolist(), "its replicates differ")
    some = rows.x[np.unique(np.linspace(0, len(rows.y) - 1, 4096).astype(int))]
    for x in (some[:, 0], some.mean(axis=1))[: rows.x.shape[1]]:
        if len(x) < 32:
            break
        spread = x.std(axis=0)
        z = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        for j in noise.noisy.tolist():
            allowed = float(min(0.1 * noise.share[j], 0.05))
            sources = _smooth(z, j, exact, allowed) | _products(z, j, exact, min(allowed, _DIGITS))
            for e, k in sources.items():
                factor = "" if k == j else f" and {rows.names[k]!r}"
                found.setdefault(e, f"computed from {rows.names[j]!r}{factor}")
    columns = [f"{rows.names[e]!r} ({how})" for e, how in sorted(found.items())]
    text = f"declared exact, but with noise that is not corrected: …; {_UNTRANSFORMED}"
    return doubt_about(columns, text)


def replicates_differ(rows: Observations, columns: np.ndarray) -> np.ndarray:
    """Whether replicates of each of these columns differ by more than rounding, `[c]`."""
    x = rows.x[:, :, columns]
    return np.ptp(x, axis=1).max(axis=0) > _NOISY * x.std(axis=(0, 1))


def _smooth(z: np.ndarray, j: int, exact: np.ndarray, allowed: float) -> dict[int, int]:
    """Which exact columns of many values are continuous functions of column j."""
    ordered = scores(z[np.argsort(z[:, j])][:, exact])
    left = np.sum(np.diff(ordered, axis=0) ** 2, axis=0) / (2 * len(z))
    near = exact[left < allowed].tolist()
    return {e: j for e in near if len(np.unique(z[:, e])) > len(z) / 2}


def _products(z: np.ndarray, j: int, exact: np.ndarray, allowed: float) -> dict[int, int]:
    """For which exact columns e there is a k such that e is linear in x_j, x_k and x_j x_k."""
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
