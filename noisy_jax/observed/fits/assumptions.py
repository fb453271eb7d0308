"""Checks of the assumptions of a correction, which noisy rows alone may contradict.

Corrections assume the classical error model, x̃ = x + n with n of mean zero and of a distribution
that does not depend on the clean x. A table of independent rows that obeys the assumptions fails
with a probability of at most 1%: p-values of correlations of ranks are compared with 1%
over their number, and are bounds that hold for any distribution of the data (Bernstein's
inequality).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from noisy_jax.observed.fits.checked_rows import CheckedRows, rank_scores
from noisy_jax.observed.fits.doubts import (
    BELOW,
    LEVEL,
    AssumptionWarning,
    Check,
    Doubt,
    Finding,
    with_warnings,
)
from noisy_jax.observed.fits.replicates import copied, different_means, uneven
from noisy_jax.observed.observations import Observations
from noisy_jax.reports.intervals import half_width
from noisy_jax.warning import warn

_PART = 0.03  # of the variance of y, up to which noise with heavy tails may be the cause
_SMALL = 1e-9  # share of a variance that is rounding
_DIGITS = 1e-5  # share of what a formula gives that is rounding to some digits


def _impossible(checked: CheckedRows) -> list[Finding]:
    """Returns misclassified columns whose matrix would give a category a share below 0."""
    findings, x = [], checked.table.x[:, 0]
    for categories in checked.table.categories:
        shares = categories.recodings(x)
        error = shares.std(axis=0) / len(shares) ** 0.5
        half = half_width(error, len(shares) - 1, level=1 - 2 * LEVEL / len(categories.labels))
        for k in np.flatnonzero(shares.mean(axis=0) < -half)[:1]:
            recorded, least = categories.recorded(x)[:, k].mean(), categories.matrix[:, k].min()
            how = (
                f"{recorded:.2g} of the rows are recorded as {categories.labels[k]!r}, but by the "
                f"matrix at least {least:.2g} of the rows of any category are"
            )
            findings.append(Finding(categories.name, how))
    return findings


def _few_values(checked: CheckedRows) -> list[Finding]:
    return [Finding(checked.table.names[j], f"{count} values") for j, count in checked.few.items()]


def _whole_rows(checked: CheckedRows) -> list[Finding]:
    """Columns with one measurement in several rows, where whole rows are there several times."""
    counts = checked.repeated.values()
    if not counts or len(np.unique(np.column_stack([checked.x, checked.y]), axis=0)) > max(counts):
        return []
    return _repeated(checked)


def _measurements(checked: CheckedRows) -> list[Finding]:
    """Columns with one measurement in several rows, where other cells of these rows differ."""
    return [] if _whole_rows(checked) else _repeated(checked)


def _repeated(checked: CheckedRows) -> list[Finding]:
    names, rows = checked.table.names, len(checked.x)
    return [
        Finding(names[j], f"{count:,} values in {rows:,} rows")
        for j, count in checked.repeated.items()
    ]


def _targets(checked: CheckedRows) -> list[Finding]:
    """The target, if one value of it stands in several rows, whose measurements are their own."""
    if not checked.targets or checked.repeated:
        return []
    return [Finding(checked.table.target, f"{checked.targets:,} values in {len(checked.y):,} rows")]


def _computed(checked: CheckedRows) -> list[Finding]:
    """Exact columns that are computed from noisy ones, or whose replicates differ.

    If noise is a share s of the variance of x̃_j, it hides about that share of the information of
    x̃_j on an exact column e. Hence e is computed from x̃_j if less than s/10 of its variance is left
    between ranks of neighbours in the order of x̃_j; or if x̃_j, x_k and x̃_j x_k give e, up to
    rounding (a share of 1e-5 of the residual of x_k alone).
    """
    rows, exact = checked.table, checked.exact
    if not checked.noisy.size:
        return []
    reasons = dict.fromkeys(exact[checked.differ[exact]].tolist(), "its replicates differ")
    sample = rows.x[np.unique(np.linspace(0, len(rows.y) - 1, 4096).astype(int))]
    for x in (sample[:, 0], sample.mean(axis=1))[: rows.x.shape[1]]:
        if len(x) < 32:
            break
        spread = x.std(axis=0)
        z = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        for j in checked.noisy.tolist():
            allowed = float(min(0.1 * checked.share[j], 0.05))
            sources = _smooth(z, j, exact, allowed) | _products(z, j, exact, min(allowed, _DIGITS))
            for e, k in sources.items():
                factor = "" if k == j else f" and {rows.names[k]!r}"
                reasons.setdefault(e, f"computed from {rows.names[j]!r}{factor}")
    return [Finding(rows.names[e], how) for e, how in sorted(reasons.items())]


def _smooth(z: np.ndarray, j: int, exact: np.ndarray, allowed: float) -> dict[int, int]:
    """Returns exact columns of many values that are continuous functions of column j: `{e: j}`."""
    ordered = rank_scores(z[np.argsort(z[:, j])][:, exact])
    left = np.sum(np.diff(ordered, axis=0) ** 2, axis=0) / (2 * len(z))
    near = exact[left < allowed].tolist()
    return {e: j for e in near if len(np.unique(z[:, e])) > len(z) / 2}


def _products(z: np.ndarray, j: int, exact: np.ndarray, allowed: float) -> dict[int, int]:
    """Returns exact columns e that are linear in x_j, x_k and x_j x_k for some k: `{e: k}`."""
    z = z[np.linspace(0, len(z) - 1, 64).astype(int)]
    z = z - z.mean(axis=0)
    product = z[:, [j]] * z
    basis: list[np.ndarray] = []
    unexplained = np.tile((z[:, exact] ** 2).sum(axis=0), (z.shape[1], 1))  # [k, e]
    without_k = unexplained
    for columns in (z, np.tile(z[:, [j]], z.shape[1]), product - product.mean(axis=0)):
        for vector in basis:
            columns = columns - vector * np.sum(vector * columns, axis=0)
        size = np.sqrt(np.sum(columns**2, axis=0))
        basis.append(columns / np.where(size > _SMALL**0.5, size, np.inf))
        unexplained = unexplained - (basis[-1].T @ z[:, exact]) ** 2
        without_k = (
            without_k
            if len(basis) > 1
            else np.where(np.arange(z.shape[1])[:, None] == j, without_k, unexplained)
        )
    explained = (without_k > _SMALL * len(z)) & (unexplained < allowed * without_k)
    pairs = [(int(exact[e]), int(k)) for k, e in np.argwhere(explained)]
    return {e: k for e, k in pairs if e != k and _explained(z, e, j, k) < allowed}


def _explained(z: np.ndarray, e: int, j: int, k: int) -> float:
    """Does the same as `_products`, by medians of squares, since one large row may rule a sum."""
    with_j, without = [z[:, j], z[:, k], z[:, j] * z[:, k]], [] if j == k else [z[:, k]]
    residuals = []
    for columns in (with_j, without):
        design = np.column_stack([np.ones(len(z)), *columns])
        residuals.append(np.median((z[:, e] - design @ np.linalg.lstsq(design, z[:, e])[0]) ** 2))
    return residuals[0] / residuals[1] if residuals[1] > 0 else np.inf


CHECKS = (
    Check(
        _impossible,
        "the matrix of wrong categories cannot be right in …: estimates and intervals are "
        "meaningless; check the matrix, whose row j has the probabilities of true category j, and "
        "whether its probabilities are of these rows",
    ),
    Check(
        _few_values,
        "noise is declared in …, but a wrong category is not a value with noise added to it, and "
        "the correction is wrong: give the probabilities of wrong categories, as "
        "noise={{first}: nj.noise.Misclassified(matrix)}; or declare the column exact (variance 0, "
        "or one replicate in place of all), for the coefficient of the recorded category",
    ),
    Check(
        _computed,
        "columns that are stated as exact contain the error of noisy ones, which is not corrected: "
        "…; leave them out, and fit on the untransformed measurements (nj.table takes squares and "
        "products as products=)",
    ),
    Check(
        _whole_rows,
        "whole rows are there several times, as after tables were joined, which shows in …: "
        "standard errors are too small; leave the copies out, as frame.drop_duplicates() does, or "
        "name the column that says which rows belong together, as nj.table(…, clusters='person')",
    ),
    Check(
        _measurements,
        "one measurement stands in several rows, to the last digit, in …: such rows share its "
        "error, and standard errors are too small; name the column that says which rows belong "
        "together, as nj.table(…, clusters='school'), or if rows were copied, leave the copies "
        "out, as frame.drop_duplicates() does",
    ),
    Check(
        _targets,
        "one value of the target stands in several rows, to the last digit, in …: such rows are "
        "not independent, and standard errors are too small; if they are measurements of one "
        "subject, name its column, as nj.table(…, subject='id', replicates=['x1']), else the "
        "column that says which rows belong together, as nj.table(…, clusters='school')",
    ),
    Check(
        different_means,
        "replicates have different means in …, which the correction takes for noise: subtract its "
        "mean from each replicate first",
    ),
    Check(
        copied,
        "replicates are equal in many rows in …: if missing values were filled in from another "
        "replicate, the noise is underestimated; leave such values empty (NaN)",
    ),
    Check(
        uneven,
        "replicates differ more where values are larger, or smaller, in …, as after a logarithm or "
        "a power, but the correction takes errors to be alike at all values: fit on the "
        "untransformed measurements, unless each error has the mean 0 whatever the value is, as "
        "relative errors of a measurement do",
    ),
)
"""The assumptions that rows may contradict, in the order in which they are told."""


def doubts(observations: Observations, clusters: np.ndarray | None = None) -> list[Doubt]:
    """Returns the doubts of all checks of a table; one row of each cluster is checked."""
    checked = CheckedRows(observations, clusters)
    return [doubt for check in CHECKS for doubt in check.doubts(checked)]


def warned(
    observations: Observations, clusters=None, found: Sequence[Doubt] | None = None
) -> list[Doubt]:
    """Returns `doubts`, or the ones that were `found` before, each also a warning.

    Notes on categories, and on matrices of misclassification, stand behind them without a warning.
    """
    found = list(with_warnings(doubts(observations, clusters) if found is None else found))
    notes = [categories.told() for categories in observations.categories]
    if observations.references:
        notes.insert(0, f"categories are compared with {', '.join(observations.references)}")
    return found + [Doubt(text, spoils=False) for text in notes if text]


def remarked(fit: Any, doubts: list[Doubt]) -> Any:
    """The fit with the doubts as its remarks, and no favourable verdict if they spoil it.

    If nothing else spoils it, there is one more doubt, also a warning, where the estimated error is
    below 0 by more than chance. Where the identification is weak (a share below 1), it may be.
    """
    spoiled, risk = any(doubt.spoils for doubt in doubts), fit.risk
    if risk is not None and not spoiled and getattr(fit, "share", 1.0) == 1.0:
        error, freedom = risk.corrected_std_error, risk.degrees_of_freedom
        half = half_width(error, freedom, level=1 - 2 * LEVEL) + risk.corrected_bias
        if risk.corrected < -max(half, _PART * risk.variance):
            doubts, spoiled = [*doubts, Doubt(BELOW)], True
            warn(BELOW, AssumptionWarning)
    changes: dict[str, Any] = {"remarks": (*fit.remarks, *(doubt.text for doubt in doubts))}
    if risk is not None and spoiled:
        changes["risk"] = dataclasses.replace(risk, doubted=True)
    return dataclasses.replace(fit, **changes)
