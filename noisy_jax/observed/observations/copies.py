"""Replicates in unequal or incomplete numbers, and rows of which several are of one subject.

Row i has the copies x̃_ijv of feature j in n_ij of the places v, where the errors of one place have
the covariance Σ. With m_ijk places in which both j and k are seen, the errors of the means of the
copies have the covariances C_ijk = f_ijk Σ_jk, f_ijk = m_ijk/(n_ij n_ik). The products of residuals

    S_ijk = Σ_v (x̃_ijv − x̄_ij)(x̃_ikv − x̄_ik)    have the mean    g_ijk Σ_jk,
    g_ijk = m_ijk (1 − 1/n_ij − 1/n_ik + m_ijk/(n_ij n_ik)),

so that Σ̂_jk = Σ_i S_ijk / Σ_i g_ijk is unbiased, for any row

    Ĉ_ijk = f_ijk Σ̂_jk + (S_ijk − g_ijk Σ̂_jk) Σ_i f_ijk / Σ_i g_ijk

is unbiased for C_ijk, and the sum over rows, Σ̂_jk Σ_i f_ijk, consists of what each row adds to it.
With n_ij = V in all rows, Ĉ_i = S_i/(V(V − 1)), as in `Observations.averaged`.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisy_jax.observed.observations.described import error_of, sd
from noisy_jax.observed.observations.tables import Observations, from_arrays
from noisy_jax.validation import given


def means_of_copies(
    copies: np.ndarray, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means `[n, d]` of copies `[n, V, d]` with NaN, their numbers `[n, d]`, and Ĉ `[n, d, d]`.

    Raises:
        ValueError: no two copies show the errors of a column, or of two columns together.
    """
    seen = ~np.isnan(copies)
    counts = seen.sum(axis=1)
    means = np.where(seen, copies, 0.0).sum(axis=1) / counts
    residuals = np.where(seen, copies - means[:, None], 0.0)
    both = np.einsum("nvi,nvj->nij", seen, seen, dtype=np.float64)
    one, other = (1 / counts)[:, :, None], (1 / counts)[:, None]
    share = both * one * other
    freedom = both * (1 - one - other + share)
    products = np.einsum("nvi,nvj->nij", residuals, residuals)
    shares, freedoms = share.sum(axis=0), freedom.sum(axis=0)
    for i, j in np.argwhere((shares > 0) & (freedoms < 0.1)).tolist():
        which = f"{names[i]!r} and {names[j]!r}" if i != j else f"{names[i]!r}"
        raise ValueError(
            f"no row has two copies of {which}, from which the errors could be estimated: give "
            f"the variance of one copy as noise={{{names[i]!r}: …}}"
        )
    freedoms = np.where(freedoms > 0, freedoms, 1.0)
    pooled = products.sum(axis=0) / freedoms
    cov = share * pooled + (products - freedom * pooled) * (shares / freedoms)
    return means, counts, cov


def _averaged(
    single: Mapping[str, np.ndarray],
    copies: Mapping[str, np.ndarray],
    noise: Mapping[str, Any],
    y: np.ndarray,
    options: Mapping[str, Any],
) -> Observations:
    """The table of the means of all copies, V = 1, with the covariances of their errors.

    Args:
        single: columns `[n]` without replicates.
        copies: `[n, V_j]` for the others, NaN where there is none.
        noise: as in `table`, for one copy. Errors of replicates that it does not name are
            estimated; the others are taken as independent of these.
        y: targets.
        options: further arguments of `from_arrays`, with `names` of all features in their order.
    """
    names = list(options["names"])
    columns, counts, noise = dict(single), {}, dict(noise)
    unknown = [name for name in names if name in copies and name not in noise]
    cov = None
    if unknown:
        most = max(copies[name].shape[1] for name in unknown)
        block = np.full((len(y), most, len(unknown)), np.nan)
        for k, name in enumerate(unknown):
            block[:, : copies[name].shape[1], k] = copies[name]
        means, numbers, cov = means_of_copies(block, unknown)
        columns |= dict(zip(unknown, means.T, strict=True))
        counts |= dict(zip(unknown, numbers.T, strict=True))
    for name in copies.keys() - {*unknown}:
        values, known = copies[name], error_of(name, noise[name], copies[name])
        counts[name] = np.sum(~np.isnan(values), axis=1)
        columns[name] = np.nanmean(values, axis=1) - known.mean
        alike = counts[name].min() == counts[name].max()
        noise[name] = sd(np.sqrt(known.variance / (counts[name][0] if alike else counts[name])))
    x = np.column_stack([columns[name] for name in names])
    found = from_arrays(x, y, noise=noise, **options)
    changes: dict[str, Any] = {"pairs": _pairs(columns, copies, names)}
    if found.cross_cov is not None:  # with the first copy alone
        first = [
            ~np.isnan(copies[name][:, 0]) / counts[name] if name in copies else np.ones(len(y))
            for name in names
        ]
        changes["cross_cov"] = found.cross_cov * np.column_stack(first)
    if cov is not None:
        places = np.array([names.index(name) for name in unknown])
        whole = np.broadcast_to(np.asarray(found.cov), (len(y), len(names), len(names))).copy()
        whole[:, places[:, None], places[None]] += cov
        changes |= {"cov": whole, "noise": None, "only_sums": True}
    return dataclasses.replace(found, **changes)


def _pairs(columns, copies: Mapping[str, np.ndarray], names: Sequence[str]) -> np.ndarray:
    """`[n, 2, d]`, the first two copies in each row; of other columns twice the same."""
    blocks = []
    for name in names:
        if name in copies:
            block = np.pad(copies[name], ((0, 0), (0, 1)), constant_values=np.nan)
            first = np.argsort(np.isnan(block), axis=1, kind="stable")[:, :2]
            blocks.append(np.take_along_axis(block, first, axis=1))
        else:
            blocks.append(np.repeat(columns[name][:, None], 2, axis=1))
    return np.stack(blocks, axis=2)


def rows_of_subjects(labels: Any, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows are of which subject, in the order in which the subjects appear.

    Returns:
        `[m]`, the first row of each subject; `[n]`, the number of each row's subject, and of the
        row among those of its subject.
    """
    numbers: dict[Any, int] = {}
    for row, label in enumerate(labels := np.asarray(labels).tolist()):
        if label is None or label != label or type(label).__name__ == "NAType":
            raise ValueError(f"row {row} of {name!r} names no subject: label it, or drop it")
        numbers.setdefault(label, len(numbers))
    subject = np.array([numbers[label] for label in labels])
    order = np.argsort(subject, kind="stable")
    starts = np.searchsorted(subject[order], np.arange(len(numbers)))
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - starts[subject[order]]
    return order[starts], subject, place


def of_first_rows(values: np.ndarray, name: str, labels: Any, rows) -> np.ndarray:
    """The values `[m]` of a column that is the same in all rows of a subject.

    Args:
        values: `[n]`.
        name: of the column.
        labels: `[n]`, of the subjects.
        rows: what `rows_of_subjects` returns.
    """
    first, subject, _ = rows
    for row in np.flatnonzero(values != values[first][subject])[:1]:
        other, label = first[subject[row]], given(np.asarray(labels).tolist()[row])
        raise ValueError(
            f"column {name!r} differs between rows {other} and {row} of subject {label}: drop it, "
            "name it in replicates if these are noisy copies of one value, or take one a subject"
        )
    return values[first]


def copies_of_subjects(values: np.ndarray, rows) -> np.ndarray:
    """`[m, V]`, the values `[n]` of each subject's rows, NaN behind the last."""
    first, subject, place = rows
    copies = np.full((len(first), place.max() + 1), np.nan)
    copies[subject, place] = values
    return copies


def check_copies(name: str, block: np.ndarray, labels: Any) -> None:
    """Raises ValueError if a row has no copy, or if the first copy is the mean of the others."""
    seen = ~np.isnan(block)
    without = np.flatnonzero(~seen.any(axis=1))
    if without.size:
        one = f"row {without[0]}" if labels is None else f"subject {given(labels[without[0]])}"
        raise ValueError(
            f"{name!r} has no value in {without.size} of {len(block)} rows, first in {one}: drop "
            "such rows"
        )
    whole = block[seen.all(axis=1)]
    several = block.shape[1] > 2 and len(whole) > 2 and np.ptp(whole, axis=1).any()
    if several and np.allclose(whole[:, 0], whole[:, 1:].mean(axis=1), rtol=1e-6, atol=0):
        raise ValueError(
            f"the first replicate of {name!r} is the mean of the others: drop it, and name the "
            "feature as no column is named"
        )


def of_columns(
    values: Mapping[str, np.ndarray],
    copies: Mapping[str, np.ndarray],
    names: Sequence[str],
    noise: Any,
    y: np.ndarray,
    options: Mapping[str, Any],
) -> Observations:
    """The table of features `[n]` in `values`, and of those with copies `[n, V]`."""
    options = {**options, "names": names}
    if not copies:
        return from_arrays(
            np.column_stack([values[name] for name in names]), y, noise=noise, **options
        )
    by_name = noise is None or isinstance(noise, Mapping)
    known = (noise or {}) if by_name else {}
    most = max(block.shape[1] for block in copies.values())
    even = all(block.shape[1] == most for block in copies.values())
    if not by_name and not even:
        raise ValueError(
            "features with different numbers of replicates need noise by their names, such as "
            "noise={'x1': 0.25}, or none, with which it is estimated"
        )
    others = [name for name in known if name not in copies]
    noisy = [np.any(error_of(one, known[one], values[one][:, None]).variance) for one in others]
    stated = [name in known for name in copies]
    if by_name:
        even = even and not any(np.isnan(block).any() for block in copies.values())
        if not even or any(noisy) or len({*stated}) > 1:
            return _averaged(values, copies, known, y, options)
        noise = known if all(stated) else None
    blocks = [
        copies[one] if one in copies else np.tile(values[one][:, None], most) for one in names
    ]
    found = from_arrays(np.stack(blocks, axis=2), y, noise=noise, **options)
    if not by_name and found.cov is not None:
        variances = np.diagonal(found.cov, axis1=-2, axis2=-1).T
        for name, variance in zip(names, variances, strict=True):
            if name not in copies and np.any(variance):
                raise ValueError(
                    f"column {given(name)} has noise but no replicates: give the noise of columns "
                    "by their names, as noise={'x1': 0.25}"
                )
    return found
