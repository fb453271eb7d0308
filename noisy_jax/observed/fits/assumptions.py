"""What noisy rows alone show against the assumptions of their correction.

Corrections assume the classical error model, x̃ = x + n with n of mean zero and of a distribution
that does not depend on the clean x.
Checks look for what cannot be so. A table of independent rows that obeys the assumptions fails with
a probability of at most 1%: p-values of scores by ranks are compared with 1% over their number, and
are bounds that hold for any distribution of the data (Bernstein's inequality).
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from noisy_jax.intervals import half_width
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.doubts import (
    BELOW,
    LEVEL,
    ROWS,
    Doubt,
    NoisyColumns,
    computed_from_noisy,
    copied,
    different_means,
    doubt_about,
    uneven_spreads,
)
from noisy_jax.observed.fits.repeated import repeated
from noisy_jax.observed.observations import Observations
from noisy_jax.warning import warn

_FEW, _EACH = 10, 8  # values, and rows a value, from which on few values are no accident
_PART = 0.03  # of the variance of y, up to which noise with heavy tails may be the cause

_LEFT_OUT = (
    "{} of {} rows have too few copies to be corrected, and are left out, as if they were missing "
    "at random given x: give the noise of one copy, as noise={{{!r}: nj.noise.Gaussian(0.25)}}, to "
    "use all rows"
)


class AssumptionWarning(UserWarning):
    """Noisy rows contradict an assumption of their correction."""


def doubts(observations: Observations, clusters: np.ndarray | None = None) -> list[Doubt]:
    """What a table shows against the assumptions of a correction; of clusters a row of each."""
    n = len(observations.y)
    kept = np.arange(n) if clusters is None else np.unique(clusters, return_index=True)[1]
    each = slice(None) if clusters is None else kept
    if len(kept) > ROWS:
        kept = kept[np.linspace(0, len(kept) - 1, ROWS).astype(int)]
    plain = dataclasses.replace(observations, pooled=None, unreliability=None)
    rows = plain if len(kept) == n else plain.rows(kept)
    impossible = _impossible(rows)
    if rows.noise is not None and by_round(rows.noise)[0].depends_on_x:
        return impossible
    noise = NoisyColumns.of(rows)
    recoded = [place for one in rows.categories for place in one.places]
    noise = noise._replace(
        noisy=np.setdiff1d(noise.noisy, recoded), exact=np.setdiff1d(noise.exact, recoded)
    )
    if len(rows.y) < _EACH or not noise.noisy.size:
        return impossible
    categories, tables = _few_values(rows, noise), [(rows, noise)]
    if rows.copies is not None and rows.copies.shape[1] > 1:
        first = np.argsort(np.isnan(rows.copies), axis=1, kind="stable")[:, :2]
        pairs = np.take_along_axis(rows.copies, first, axis=1)
        whole = np.flatnonzero(~np.isnan(pairs).any(axis=(1, 2)))
        if len(whole) >= _EACH:
            pairs = dataclasses.replace(rows.rows(whole), x=pairs[whole], cov=None, copies=None)
            tables.append((pairs, NoisyColumns.of(pairs)))
            categories |= _few_values(*tables[1])
    found = [*impossible, *_categories(rows, categories), *computed_from_noisy(rows, noise)]
    measured = np.setdiff1d(noise.noisy, list(categories)).tolist()
    found += repeated(observations.x[each, 0], observations.y[each], rows.names, measured)
    if observations.cov is None or observations.pooled is not None:
        found += [*different_means(rows, noise), *copied(rows, noise)]
    for table, own in tables:
        others = own._replace(noisy=np.setdiff1d(own.noisy, list(categories)))
        found += uneven_spreads(table, others)
    return found


def warned(
    observations: Observations, clusters=None, found: Sequence[Doubt] | None = None
) -> list[Doubt]:
    """`doubts`, or those `found` before, each also a warning.

    Behind them is what to know of categories, and of matrices of misclassification, without a
    warning.
    """
    found = doubts(observations, clusters) if found is None else list(found)
    told(found)
    if observations.references:
        text = f"categories are compared with {', '.join(observations.references)}"
        found.append(Doubt(text, spoils=False))
    texts = [one.told() for one in observations.categories]
    found += [Doubt(text, spoils=False) for text in texts if text]
    return found


def told(found: Sequence[Doubt]) -> Sequence[Doubt]:
    """The same doubts, each also a warning."""
    for doubt in found:
        warn(doubt.text, AssumptionWarning)
    return found


def enough_copies(rows: Observations, least: int) -> tuple[np.ndarray, list[Doubt]]:
    """Which rows have at least `least` copies, `[n]`, and a doubt, also a warning, of others."""
    kept, found = rows.num_copies() >= least, []
    if not kept.all():
        found.append(Doubt(_LEFT_OUT.format(np.sum(~kept), len(kept), rows.names[0]), spoils=False))
        warn(found[0].text, AssumptionWarning)
    return kept, found


def remarked(fit: Any, found: list[Doubt]) -> Any:
    """The fit with the doubts as its remarks, and no favourable verdict if they spoil it.

    If nothing else spoils it, there is one more doubt, also a warning, where the estimated error is
    below 0 by more than chance. Where the identification is weak (a share below 1), it may be.
    """
    spoiled, risk = any(doubt.spoils for doubt in found), fit.risk
    if risk is not None and not spoiled and getattr(fit, "share", 1.0) == 1.0:
        error, freedom = risk.corrected_std_error, risk.degrees_of_freedom
        half = half_width(error, freedom, level=1 - 2 * LEVEL) + risk.corrected_bias
        if risk.corrected < -max(half, _PART * risk.variance):
            found, spoiled = [*found, Doubt(BELOW)], True
            warn(BELOW, AssumptionWarning)
    changes: dict[str, Any] = {"remarks": (*fit.remarks, *(doubt.text for doubt in found))}
    if risk is not None and spoiled:
        changes["risk"] = dataclasses.replace(risk, doubted=True)
    return dataclasses.replace(fit, **changes)


def _few_values(rows: Observations, noise: NoisyColumns) -> dict[int, int]:
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


def _impossible(rows: Observations) -> list[Doubt]:
    """Misclassified columns in which, by their matrix, a category would have a share below 0."""
    found = []
    for one in rows.categories:
        shares = one.recodings(rows.x[:, 0])
        error = shares.std(axis=0) / len(shares) ** 0.5
        half = half_width(error, len(shares) - 1, level=1 - 2 * LEVEL / len(one.labels))
        for k in np.flatnonzero(shares.mean(axis=0) < -half)[:1]:
            recorded = one.recorded(rows.x[:, 0])[:, k].mean()
            label, least = one.labels[k], one.matrix[:, k].min()
            found.append(
                f"{one.name!r} ({recorded:.2g} of the rows are recorded as {label!r}, but by the "
                f"matrix at least {least:.2g} of the rows of any category are)"
            )
    return doubt_about(
        found,
        "the matrix of wrong categories cannot be right in …: estimates and intervals are "
        "meaningless; check the matrix, whose row j has the probabilities of true category j, and "
        "whether its probabilities are of these rows",
    )


def _categories(rows: Observations, found: dict[int, int]) -> list[Doubt]:
    first = rows.names[min(found, default=0)]
    return doubt_about(
        [f"{rows.names[j]!r} ({count} values)" for j, count in found.items()],
        "noise is declared in …, but a wrong category is not a value with noise added to it, and "
        "the correction is wrong: give the probabilities of wrong categories, as "
        f"noise={{{first!r}: nj.noise.Misclassified(matrix)}}; or declare the column exact "
        "(variance 0, or one replicate in place of all), for the coefficient of the recorded "
        "category",
    )
