"""Tables from columns by their names, whose roles are known."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from noisy_jax.noise import Gaussian, Misclassified
from noisy_jax.noise.dependent import Dependent
from noisy_jax.observed.observations.beside import beside_of
from noisy_jax.observed.observations.categories import Recoding, categories_of, mean_recoding
from noisy_jax.observed.observations.copies import Subjects, check_copies
from noisy_jax.observed.observations.described import (
    OUTSIDE,
    StandardDeviation,
    error_of,
    sd,
)
from noisy_jax.observed.observations.labels import of_each_row
from noisy_jax.observed.observations.measured import columns_of_copies, observations_of
from noisy_jax.observed.observations.roles import Columns, Roles
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.tabular.columns import check_same_rows, levels_of, numeric, order_of
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import non_negative
from noisy_jax.validation.values import check_concrete
from noisy_jax.warning import warn

_ID = re.compile(
    r"(.*[_\W])?(case|hh|household|participant|patient|person|p|r|record|respondent|s|subject|u|user)?"
    r"_?(id|ids|index|key|uid|uuid|row|no|nr|num|number|subject|respondent|participant|patient|"
    r"person|record|unnamed: \d+)",
    re.IGNORECASE,
)
_CHANCE = 9.0  # of unique whole numbers less than e⁻⁹, if they were drawn from their range
_CODES = {10.0**k - 1 for k in range(1, 6)}  # 9, 99, … stand for missing values in many tables
_FEW_ROWS = 10  # whole numbers in fewer rows may differ and increase by chance


def table_of(
    said: Columns,
    roles: Roles,
    column: Callable[[str], Any],
    where: str,
    index: Any = None,
    *,
    whole: bool = True,
) -> Observations:
    """Returns the table of columns with these roles.

    Args:
        said: the arguments of `nj.table` on the columns.
        roles: the roles of the columns.
        column: function that returns the values `[n]` in the column of a name.
        where: name of the frame or file, for messages.
        index: pandas labels of the rows, or `None`.
        whole: false for a part of the rows, which does not show if a column numbers all of them.
    """
    known = dict(roles.noise) if isinstance(roles.noise, Mapping) else {}
    values, levels = _parsed(roles, column, where)
    names = [one for name in roles.names for one in levels.get(name, ["", name])[1:]]
    categories = {}
    for name, columns in roles.labelled.items():  # numbers of categories replace the labels
        columns = [one for one in columns if one in values]
        cells = np.column_stack([values[one] for one in columns])
        orders = [order for one in columns if (order := order_of(column(one))) is not None]
        numbers, categories[name] = categories_of(name, cells, known[name], orders)
        values.update(zip(columns, numbers.T, strict=True))
    subjects, whose = None, "frame"
    if said.subject is not None:
        subjects = Subjects(column(said.subject), said.subject)
        if index is not None:
            pandas = importlib.import_module("pandas")
            whose, index = "subjects", pandas.Index(subjects.labels, name=said.subject)
    copies = _copies(roles, values, subjects)
    for label, value in of_each_row(roles.noise, said.cross_cov):
        check_same_rows(label, value, whose, index)
    for name in names if whole and said.features is None else ():
        if name not in {*known, *copies} and numbers_rows(name, values[name]):
            raise ValueError(
                f"column {given(name)} of {where} numbers or labels the rows: leave it out "
                "(the option drop), or name all features (the option features)"
            )
    for name, block in copies.items() if not isinstance(roles.noise, Dependent) else ():
        check_copies(name, block, subjects and subjects.labels)
    of_copies = {one for name in roles.by_copy for one in roles.copies[name]}
    for name, other in roles.deviations.items():
        error = values[other]
        if error.ndim == 2 or name in of_copies:  # a copy that is missing has no error
            cells = copies[name] if error.ndim == 2 else values[name]
            error = np.where(np.isnan(cells), 1.0, error)
        error = non_negative(f"column {given(other)} of {where}", error, shape=None)
        known[name] = sd(error, gaussian=known[name].gaussian)
    _weigh(roles, values, copies, known)
    y, target_cov = _target(said.target, values[said.target], known)
    features: dict[str, Any] = {}
    for name in names:
        features[name] = copies[name] if name in copies else values[name]
        if name in categories:
            own = mean_recoding(features[name], categories[name])
            features[name] = Recoding(own, categories[name])
            del known[name]
    beside = {}
    for role, name in said.beside.items():
        own = column(name)
        beside[role] = one = beside_of(role, name, own, len(own))
        if subjects:
            beside[role] = one._replace(values=subjects.single(one.values, name))
    return observations_of(
        columns_of_copies(features),
        y,
        known if isinstance(roles.noise, Mapping) else roles.noise,
        target=said.target,
        cross_cov=said.cross_cov,
        products=said.products,
        references=[levels[name][0] for name in roles.names if name in levels],
        index=index,
        target_cov=target_cov,
        beside=beside,
    )


def _parsed(
    roles: Roles, column: Callable[[str], Any], where: str
) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    """The numbers `[n]` in the columns, where NaN may be among replicates, and indicators.

    Of features without noise that are categories, there are indicators of all but the first, whose
    names by feature are the second result. Of misclassified ones the labels are left.
    """
    replicated = {one for columns in roles.copies.values() for one in columns}
    replicated |= {other for one, other in roles.deviations.items() if one in replicated}
    labelled = {one for columns in roles.labelled.values() for one in columns}
    values: dict[str, Any] = {}
    levels: dict[str, list[str]] = {}
    rows = None
    for name in roles.used:
        given_one, called = column(name), f"column {given(name)}"
        check_concrete(called, given_one, OUTSIDE)
        categories = levels_of(called, given_one) if name in roles.plain else None
        if name in labelled:
            found = np.asarray(given_one, object)
        elif categories is not None:
            levels[name], found = [f"{name}[{one}]" for one in categories[0]], categories[1]
        else:
            hint = f"drop such rows, as by frame.dropna(subset=[{name!r}]), or impute them"
            options = {"missing": name in replicated, "hint": hint}
            found = numeric(called, given_one, np.float64, **options).astype(np.float64, copy=False)
        rows = len(found) if rows is None and found.ndim == 1 else rows
        if found.shape == (0,):
            raise ValueError(f"{where} has no rows")
        if found.shape != (rows,) or not rows:
            raise ValueError(
                f"{called} must have one number a row, as other columns have, got "
                f"{list(found.shape)}"
            )
        if categories is not None:
            indicators = enumerate(levels[name][1:], start=1)
            values |= {one: np.asarray(found == k, np.float64) for k, one in indicators}
            continue
        values[name] = found
        if name not in labelled:
            warn_of_code(f"{called} of {where}", found)
    return values, levels


def _copies(
    roles: Roles, values: dict[str, np.ndarray], subjects: Subjects | None
) -> dict[str, np.ndarray]:
    """The copies `[n, V]` of features with replicates.

    With subjects, `values` of other columns become one for each subject; standard deviations that
    differ in the rows of a subject become `[n, V]`, as the copies.
    """
    if subjects is None:
        every = roles.copies.items()
        return {name: np.column_stack([values[one] for one in own]) for name, own in every}
    copies = {name: subjects.copies(values[name]) for name in roles.copies}
    for other in {other for name, other in roles.deviations.items() if name in copies}:
        errors = subjects.copies(values[other])
        if (np.nanmax(errors, axis=1) > np.nanmin(errors, axis=1)).any():
            values[other] = errors
    for name, own in values.items():
        if name not in copies and own.ndim == 1:
            values[name] = subjects.single(own, name)
    return copies


def _weigh(
    roles: Roles,
    values: dict[str, np.ndarray],
    copies: dict[str, np.ndarray],
    known: dict[str, Any],
) -> None:
    """Replaces copies with an error of their own each by their weighted mean.

    With the standard deviation σ_v of the error in copy v, the weights are 1/σ_v², and the mean
    has an error of variance 1/Σ_v σ_v^(−2).
    """
    for name, columns in roles.copies.items():
        block, own = copies[name], known.get(name)
        if name in roles.by_copy:
            pairs = zip(columns, block.T, strict=True)
            errors = [error_of(one, known.pop(one), part[:, None]) for one, part in pairs]
            if any(one.in_sums or one.std_error for one in errors):
                raise ValueError(f"each replicate of {name!r} needs a known variance")
            block = block - np.array([one.mean for one in errors])
            parts = [np.broadcast_to(one.variance, len(block)) for one in errors]
            variances = np.column_stack(parts)
            gaussian = all(isinstance(one.law, Gaussian) for one in errors)
        elif isinstance(own, StandardDeviation) and np.ndim(own.value) == 2:
            variances, gaussian = np.asarray(own.value) ** 2, own.gaussian
        else:
            continue
        seen = ~np.isnan(block)
        if not np.all(variances[seen] > 0):
            raise ValueError(f"errors of replicates of {name!r} must have a variance above 0")
        weights = np.where(seen, 1 / np.where(seen, variances, 1.0), 0.0)
        total = weights.sum(axis=1)
        values[name] = np.sum(weights * np.where(seen, block, 0.0), axis=1) / total
        known[name] = sd(total**-0.5, gaussian=gaussian)
        del copies[name]


def _target(
    name: str, y: np.ndarray, known: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray | None]:
    """y `[n]` less the known mean of its error, whose variance `[n]` is taken out of `known`."""
    if name not in known:
        return y, None
    if isinstance(known[name], Misclassified):
        raise ValueError(
            f"noise[{name!r}] is the target: flipped labels are an option of the fit, as in "
            "nj.fit(table, nj.methods.Logistic(flips=(0.1, 0.2)))"
        )
    error = error_of(name, known.pop(name), y[:, None])
    if error.std_error:
        raise ValueError(f"give the variance of the error in {name!r}, not an estimate")
    return y - error.mean, np.broadcast_to(error.variance, y.shape)


def numbers_rows(name: str, values: np.ndarray) -> bool:
    """Returns True if a column seems to be a label of the rows."""
    for some in (values[:_FEW_ROWS], values):  # most columns end this after few rows
        if len(some) < _FEW_ROWS or not np.array_equal(some, np.round(some)):
            return False
    steps = np.diff(values)
    in_order = bool(np.all(steps > 0) or np.all(steps < 0))
    if in_order or len(np.unique(values)) < len(values):
        return in_order
    count, places = len(values), np.ptp(values) + 1
    return bool(_ID.fullmatch(name)) or count * (count - 1) / 2 > _CHANCE * places


def warn_of_code(name: str, values: np.ndarray) -> None:
    """Warns of a number such as -999 that seems to stand for a missing value; NaN are left out."""
    if {abs(np.fmin.reduce(values)), abs(np.fmax.reduce(values))}.isdisjoint(_CODES):
        return
    values = values[~np.isnan(values)]
    for code in (values.min(), values.max()) if len(values) >= _FEW_ROWS else ():
        others = values[values != code]
        several = 0 < len(others) < len(values) - 1
        if abs(code) in _CODES and several and np.abs(others - code).min() >= np.ptp(others) > 0:
            warn(
                f"{name} has {code:g} far from all other values: if it stands for a missing value, "
                "leave such rows out (in files by the option missing)",
            )
            return
