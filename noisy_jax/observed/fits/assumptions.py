"""What noisy rows alone show against the assumptions of their correction.

Corrections assume the classical error model, x̃ = x + n with n of mean zero and of a distribution
that does not depend on the clean x; and for missing values, that gaps do not depend on any values.
Checks look for what cannot be so. A table of independent rows that obeys the assumptions fails with
a probability of at most 1%: p-values of scores by ranks are compared with 1% over their number, and
are bounds that hold for any distribution of the data (Bernstein's inequality). Where each row has
just two replicates, the noise is assumed to be symmetric as well, because the difference of two
replicates also depends on their mean if the noise is skewed.

Source: means of other columns where one is missing: Little, A test of missing completely at random
(1988); differences of replicates against their means: Bland and Altman (1986), and Carroll,
Ruppert, Stefanski and Crainiceanu, Measurement Error in Nonlinear Models (2006), Sec. 1.7; sums of
scores over random rows: Hoeffding (1963).
"""

import dataclasses
import itertools
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.intervals import half_width
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.computed import computed_from_noisy, replicates_differ
from noisy_jax.observed.fits.doubts import (
    BELOW,
    LEVEL,
    NOISY,
    UNTRANSFORMED,
    Doubt,
    listed,
    scores,
    tail,
)
from noisy_jax.observed.fits.gaps import gaps_and_values, pairs_of_gaps
from noisy_jax.observed.observations import Observations

_ROWS = 16_384  # evenly spaced, which are checked
_FEW, _EACH = 10, 8  # values, and rows a value, from which on few values are no accident
_ROUNDED = 1e-9  # share of the largest value that is rounding
_PART = 0.03  # of the variance of y, up to which noise with heavy tails may be the cause
_SHIFT = 0.01  # square of a difference of means over the variance of the noise


_LEFT_OUT = (
    "{} of {} rows have too few copies to be corrected, and are left out, as if they were missing "
    "at random given x: give the noise of one copy, as noise={{'x1': nj.noise.Gaussian(0.25)}}, to "
    "use all rows"
)


class AssumptionWarning(UserWarning):
    """Noisy rows contradict an assumption of their correction."""


def doubts(observations: Observations, clusters: np.ndarray | None = None) -> list[Doubt]:
    """What a table shows against the assumptions of a correction; of clusters a row of each."""
    n = len(observations.y)
    kept = np.arange(n) if clusters is None else np.unique(clusters, return_index=True)[1]
    if len(kept) > _ROWS:
        kept = kept[np.linspace(0, len(kept) - 1, _ROWS).astype(int)]
    known = tuple(one._replace(records=None) for one in observations.categories)
    plain = dataclasses.replace(observations, pooled=None, unreliability=None, categories=known)
    rows = plain if len(kept) == n else plain.rows(kept)
    if rows.seen is not None:
        return [*gaps_and_values(rows), *pairs_of_gaps(rows)]
    if rows.noise is not None and by_round(rows.noise)[0].depends_on_x:
        return []
    noise = _Noise.of(rows)
    recoded = [place for one in rows.categories for place in one.places]
    noise = noise._replace(
        noisy=np.setdiff1d(noise.noisy, recoded), exact=np.setdiff1d(noise.exact, recoded)
    )
    if len(rows.y) < _EACH or not noise.noisy.size:
        return []
    categories, tables = _few_values(rows, noise), [(rows, noise)]
    if rows.copies is not None and rows.copies.shape[1] > 1:
        first = np.argsort(np.isnan(rows.copies), axis=1, kind="stable")[:, :2]
        pairs = np.take_along_axis(rows.copies, first, axis=1)
        whole = np.flatnonzero(~np.isnan(pairs).any(axis=(1, 2)))
        if len(whole) >= _EACH:
            pairs = dataclasses.replace(rows.rows(whole), x=pairs[whole], cov=None, copies=None)
            tables.append((pairs, _Noise.of(pairs)))
            categories |= _few_values(*tables[1])
    found = [*_categories(rows, categories), *computed_from_noisy(rows, noise)]
    if observations.cov is None or observations.pooled is not None:
        found += [*_different_means(rows, noise), *_copied(rows, noise)]
    for table, own in tables:
        others = own._replace(noisy=np.setdiff1d(own.noisy, list(categories)))
        found += _replicates(table, others)
    return found


def noise_follows_values(observations: Observations) -> bool:
    """Whether replicates differ more at some values, so that their noise depends on the clean row.

    Rows may have noise of different variances, and skewed noise.
    """
    n = len(observations.y)
    some = np.linspace(0, n - 1, min(n, _ROWS)).astype(int)
    rows = observations if len(some) == n else observations.rows(some)
    return bool(_replicates(rows, _Noise.of(rows), alike=False))


def warned(
    observations: Observations, clusters=None, found: Sequence[Doubt] | None = None, *, stacklevel
) -> list[Doubt]:
    """`doubts`, or those `found` before, each also a warning; `stacklevel` as in `warnings.warn`.

    Behind them is what to know of categories, without a warning.
    """
    found = doubts(observations, clusters) if found is None else list(found)
    for doubt in found:
        warnings.warn(doubt.text, AssumptionWarning, stacklevel + 1)
    if observations.references:
        text = f"categories are compared with {', '.join(observations.references)}"
        found.append(Doubt(text, spoils=False, references=observations.references))
    return found


def enough_copies(
    rows: Observations, least: int, *, stacklevel: int
) -> tuple[np.ndarray, list[Doubt]]:
    """Which rows have at least `least` copies, `[n]`, and a doubt, also a warning, of others."""
    kept, found = rows.num_copies() >= least, []
    if not kept.all():
        found.append(Doubt(_LEFT_OUT.format(np.sum(~kept), len(kept)), spoils=False))
        warnings.warn(found[0].text, AssumptionWarning, stacklevel + 1)
    return kept, found


def remarked(fit: Any, found: list[Doubt], *, stacklevel: int = 4) -> Any:
    """The fit with the doubts as its remarks, and no favourable verdict if they spoil it.

    If nothing else spoils it, there is one more doubt, also a warning, where the estimated error is
    below 0 by more than chance. Where the identification is weak (a share below 1), it may be.
    Its `references`, and those of the fits in it, are the categories that the doubts name.
    """
    spoiled, risk = any(doubt.spoils for doubt in found), getattr(fit, "risk", None)
    if risk is not None and not spoiled and getattr(fit, "share", 1.0) == 1.0:
        error, freedom = risk.corrected_std_error, risk.degrees_of_freedom
        half = half_width(error, freedom, level=1 - 2 * LEVEL) + getattr(risk, "corrected_bias", 0)
        if risk.corrected < -max(half, _PART * risk.variance):
            found, spoiled = [*found, Doubt(BELOW)], True
            warnings.warn(BELOW, AssumptionWarning, stacklevel)
    known = {"references": tuple(one for doubt in found for one in doubt.references)}
    inner = [name for name in ("uncorrected", "undersmoothed") if hasattr(fit, name)]
    changes: dict[str, Any] = {"remarks": (*fit.remarks, *(doubt.text for doubt in found))}
    changes |= known
    changes |= {name: dataclasses.replace(getattr(fit, name), **known) for name in inner}
    if risk is not None and spoiled:
        changes["risk"] = dataclasses.replace(risk, doubted=True)
    return dataclasses.replace(fit, **changes)


class _Noise(NamedTuple):
    """Which columns have noise, and how much."""

    variance: np.ndarray  # [d], mean variance of the error in one copy
    share: np.ndarray  # [d], its share of the variance of the copies
    noisy: np.ndarray  # numbers of the columns with noise
    exact: np.ndarray  # numbers of the other columns

    @classmethod
    def of(cls, rows: Observations) -> "_Noise":
        if rows.cov is None:
            variance = rows.x.var(axis=1, ddof=1).mean(axis=0)
        else:
            variance = np.diagonal(rows.cov, axis1=-2, axis2=-1).reshape(-1, rows.x.shape[2])
            variance = variance.mean(axis=0)
        whole = rows.x.var(axis=(0, 1))
        share = np.divide(variance, whole, out=np.zeros_like(whole), where=whole > 0)
        return cls(variance, share, np.flatnonzero(share > NOISY), np.flatnonzero(share <= NOISY))


def _few_values(rows: Observations, noise: _Noise) -> dict[int, int]:
    """Noisy columns of two values, or of few that are further apart than noise allows: how many.

    The sum of two independent variables that vary has at least three values. And where noise of
    variance σ² is rounded to steps above 2σ, the errors of rounding have a variance above σ²/3. A
    column that varies no more than its noise may be a constant and noise.
    """
    found = {}
    for j in noise.noisy[noise.share[noise.noisy] < 1].tolist():
        if len(np.unique(rows.x[: _EACH * _FEW, :, j])) > _FEW:
            continue
        values = np.unique(rows.x[:, :, j])
        few = 2 <= len(values) <= min(_FEW, len(rows.y) / _EACH)
        if few and (len(values) == 2 or np.diff(values).min() > 2 * noise.variance[j] ** 0.5):
            found[j] = len(values)
    return found


def _categories(rows: Observations, found: dict[int, int]) -> list[Doubt]:
    if not found:
        return []
    columns = [f"{rows.names[j]!r} ({count} values)" for j, count in found.items()]
    return [
        Doubt(
            f"noise is declared in {listed(columns)}, but a wrong category is not a value with "
            "noise added to it, and the correction is wrong: give the probabilities of wrong "
            "categories, as noise={'x1': nj.noise.Misclassified(matrix)}, without a matrix if "
            "three replicates of two values show them; or declare the column exact (variance 0, "
            "or one replicate in place of all), for the coefficient of the recorded category"
        )
    ]


def _different_means(rows: Observations, noise: _Noise) -> list[Doubt]:
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
    if not failed.size:
        return []
    columns = [f"{rows.names[j]!r} (by up to {np.ptp(means[:, j]):.3g})" for j in failed]
    return [
        Doubt(
            f"replicates have different means in {listed(columns)}, which the correction takes for "
            "noise: subtract its mean from each replicate first"
        )
    ]


def _copied(rows: Observations, noise: _Noise) -> list[Doubt]:
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
    if not found:
        return []
    return [
        Doubt(
            f"replicates are equal in many rows in {listed(found)}: if missing values were filled "
            "in from another replicate, the noise is underestimated; leave such values empty (NaN)"
        )
    ]


def _replicates(rows: Observations, noise: _Noise, *, alike: bool = True) -> list[Doubt]:
    """Noisy columns whose replicates differ by more, or by less, where some value is larger.

    Without dependence, the spread of a row's replicates is independent of exact columns and of y,
    the spread of all replicates but one is independent of that one, and the spread of two is
    uncorrelated with their mean, if the noise has one law in all rows (`alike`). Otherwise means of
    two replicates are not compared, and values of three or more enter as they are, not as scores.
    """
    x, noisy, copies = rows.x[:, :, noise.noisy], noise.noisy, rows.x.shape[1]
    if copies < 2 or not noisy.size:
        return []
    unit = NOISY * x.std(axis=(0, 1))  # smaller differences are rounding
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
    if not failed.size:
        return []
    columns = [f"{rows.names[noisy[j]]!r} (by {names[p[j].argmin()]})" for j in failed]
    return [
        Doubt(
            f"replicates differ more where values are larger, or smaller, in {listed(columns)}, as "
            f"after a logarithm or an embedding; {UNTRANSFORMED}, unless copies have the clean "
            "value as their mean, as with relative or skewed errors"
        )
    ]
