"""Replicates in unequal or incomplete numbers, and rows of which several are of one subject."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisy_jax.columns import is_missing
from noisy_jax.noise import Gaussian
from noisy_jax.observed.observations.arrays import from_arrays
from noisy_jax.observed.observations.described import error_of, sd
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation import given

_FEW = 10  # rows of different values, up to which two replicates may be equal by chance


def _averaged(
    single: Mapping[str, np.ndarray],
    copies: Mapping[str, np.ndarray],
    noise: Mapping[str, Any],
    y: np.ndarray,
    options: Mapping[str, Any],
) -> Observations:
    """The table of the means of all copies, V = 1, with the covariances of their errors.

    `copies` are `[n, V_j]`, NaN where there is none; `single` are the other columns `[n]`. Errors
    of replicates that `noise` does not name are estimated; the others are taken as independent of
    these. `options` are further arguments of `from_arrays`, with `names` of all features.
    """
    names, noise = list(options["names"]), dict(noise)
    most = max(block.shape[1] for block in copies.values())
    every = np.full((len(y), most, len(names)), np.nan)
    for j, name in enumerate(names):
        if name in copies:
            every[:, : copies[name].shape[1], j] = copies[name]
        else:
            every[:, :, j] = single[name][:, None]
    counts = np.sum(~np.isnan(every), axis=1)
    x = np.nanmean(every, axis=1)
    pooled = np.array([name in copies and name not in noise for name in names])
    law = None
    for j, name in enumerate(names):
        if name not in copies:
            x[:, j], counts[:, j] = single[name], 1
        elif name in noise:
            known, number = error_of(name, noise[name], copies[name]), counts[:, j]
            if known.std_error:
                raise ValueError(
                    f"replicates of {name!r} beside others need a known variance, not a "
                    "noise.CovarianceEstimate: or give their means as one column"
                )
            law = law or known.law()
            x[:, j] -= known.mean
            number = number if number.min() < number.max() else number[0]
            gaussian = isinstance(known.distribution, Gaussian)
            noise[name] = sd(np.sqrt(known.variance / number), gaussian=gaussian)
    found = from_arrays(x, y, noise=noise, **options)
    if found.cross_cov is not None:  # with the first copy alone
        first = ~np.isnan(every[:, 0]) / counts
        found = dataclasses.replace(found, cross_cov=found.cross_cov * first)
    if not pooled.any():
        return dataclasses.replace(found, copies=every, law=law)
    kept = {"copies": every, "pooled": pooled, "law": law or found.not_gaussian()}
    found = dataclasses.replace(found, noise=None, only_sums=True, **kept)
    return dataclasses.replace(found, cov=found.estimated())


def with_copies(table: Observations, *, known: bool = False) -> Observations:
    """The copies themselves, where the covariance of each row is estimated from them alone.

    x is `[n, V, d]` with the copies in which all columns with replicates were measured, and NaN
    behind the last one of a row. With `known`, further columns may have noise of known covariance:
    they are the same in all copies, `cov` is theirs, and `pooled` stays. Other tables are left as
    they are.
    """
    if table.copies is None or table.pooled is None or table.categories or table.products:
        return table
    variances = np.diagonal(np.asarray(table.cov), axis1=1, axis2=2)
    further = variances[:, ~table.pooled].any()
    if further and not known:
        return table
    names = [name for name, pooled in zip(table.names, table.pooled, strict=True) if pooled]
    whole = ~np.isnan(table.copies).any(axis=2)
    if (most := whole.sum(axis=1).max()) < 2:
        raise ValueError(
            "no row has two copies in which all columns with replicates were measured: give the "
            f"variance of one copy of each, as noise={{{names[0]!r}: 0.25}}"
        )
    order = np.argsort(~whole, axis=1, kind="stable")[:, :most]
    x = np.take_along_axis(table.copies, order[:, :, None], axis=1)
    x[~np.take_along_axis(whole, order, axis=1)] = np.nan
    found = dataclasses.replace(table, x=x, cov=None, copies=None, pooled=None, only_sums=False)
    if not further:
        return found
    others = ~table.pooled
    x[:, :, others] = np.where(np.isnan(x[:, :, others]), np.nan, table.x[:, :, others])
    cov = np.asarray(table.cov) * np.outer(others, others)
    return dataclasses.replace(found, cov=cov, pooled=table.pooled)


def rows_of_subjects(labels: Any, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which rows are of which subject, in the order in which the subjects appear.

    Returns:
        `[m]`, the first row of each subject; `[n]`, the number of each row's subject, and of the
        row among those of its subject.
    """
    numbers: dict[Any, int] = {}
    for row, label in enumerate(labels := np.asarray(labels).tolist()):
        if is_missing(label):
            raise ValueError(f"row {row} of {name!r} names no subject: label it, or drop it")
        numbers.setdefault(label, len(numbers))
    subject = np.array([numbers[label] for label in labels])
    order = np.argsort(subject, kind="stable")
    starts = np.searchsorted(subject[order], np.arange(len(numbers)))
    place = np.empty(len(labels), int)
    place[order] = np.arange(len(labels)) - starts[subject[order]]
    return order[starts], subject, place


def of_first_rows(values: np.ndarray, name: str, labels: Any, rows) -> np.ndarray:
    """The values `[m]` of a column `[n]` that is the same in all rows of a subject.

    `labels` are of the subjects, and `rows` what `rows_of_subjects` returns.
    """
    first, subject, _ = rows
    both = values, values[first][subject]
    differ = (both[0] != both[1]) & ~np.logical_and(*map(np.isnan, both))
    for row in np.flatnonzero(differ)[:1]:
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
    """Raises ValueError if a row has no copy, or if a copy is another one, or the mean of all."""
    seen = ~np.isnan(block)
    without = np.flatnonzero(~seen.any(axis=1))
    if without.size:
        one = f"row {without[0]}" if labels is None else f"subject {given(labels[without[0]])}"
        raise ValueError(
            f"{name!r} has no value in {without.size} of {len(block)} rows, first in {one}: drop "
            "such rows"
        )
    for first, second in itertools.combinations(range(block.shape[1]), 2):
        one, other = block[seen[:, first] & seen[:, second]][:, [first, second]].T
        if np.array_equal(one, other) and len(np.unique(one)) == len(one) > _FEW:
            raise ValueError(
                f"replicates {first + 1} and {second + 1} of {name!r} are equal in all rows: drop "
                "one of them, or declare the column exact"
            )
    whole = block[seen.all(axis=1)]
    if block.shape[1] < 3 or len(whole) < 3 or not np.ptp(whole, axis=1).any():
        return
    mean = whole.mean(axis=1, keepdims=True)  # of all, and of the others, if one is their mean
    for place in np.flatnonzero(np.isclose(whole, mean, rtol=1e-6, atol=0).all(axis=0))[:1]:
        raise ValueError(
            f"replicate {place + 1} of {name!r} is the mean of the others: drop it, and name the "
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
    most = max(block.shape[1] for block in copies.values())
    even = all(block.shape[1] == most for block in copies.values())
    if by_name:
        known: Mapping[str, Any] = noise or {}
        others = {one: np.nan_to_num(values[one])[:, None] for one in known if one not in copies}
        noisy = [np.any(error_of(one, known[one], x).variance) for one, x in others.items()]
        gaps = [np.isnan(one).any() for one in (*copies.values(), *values.values())]
        stated = {name in known for name in copies}
        if not even or any(gaps) or any(noisy) or len(stated) > 1:
            return _averaged(values, copies, known, y, options)
        noise = known if stated == {True} else None
    elif not even or any(np.isnan(block).any() for block in copies.values()):
        kind = "incomplete" if even else "different numbers of"
        raise ValueError(
            f"features with {kind} replicates need noise by their names, such as "
            f"noise={{{next(iter(copies))!r}: 0.25}}, or none, with which it is estimated"
        )
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
                    f"by their names, as noise={{{name!r}: 0.25}}"
                )
    return found
