"""Tables from columns by their names, whose roles are known."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from noisy_jax.noise import Gaussian, Misclassified
from noisy_jax.noise.dependent import Dependent
from noisy_jax.observed.observations.beside import beside_of, labels_of_rows
from noisy_jax.observed.observations.categories import Recoding, categories_of, mean_recoding
from noisy_jax.observed.observations.copies import Subjects, check_copies
from noisy_jax.observed.observations.described import TABLES_OUTSIDE_JIT, StandardDeviation, sd
from noisy_jax.observed.observations.known import error_of
from noisy_jax.observed.observations.labels import by_name, of_each_row
from noisy_jax.observed.observations.measured import columns_of_copies, observations_of
from noisy_jax.observed.observations.roles import Columns, Roles
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.tabular.columns import check_same_rows, levels_of, numeric, order_of
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import non_negative
from noisy_jax.validation.values import check_concrete, unmasked
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
    errors = dict(roles.noise) if isinstance(roles.noise, Mapping) else {}
    values, levels = _parsed(roles, column, where)
    rows = len(values[said.target])
    names = [
        column_name for name in roles.names for column_name in levels.get(name, ["", name])[1:]
    ]
    categories = {}
    for name, columns in roles.labelled.items():  # numbers of categories replace the labels
        columns = [column_name for column_name in columns if column_name in values]
        cells = np.column_stack([values[column_name] for column_name in columns])
        orders = [
            order for column_name in columns if (order := order_of(column(column_name))) is not None
        ]
        numbers, categories[name] = categories_of(name, cells, errors[name], orders)
        values.update(zip(columns, numbers.T, strict=True))
    subjects, whose = None, "frame"
    if said.subject is not None:
        called = f"column {given(said.subject)}"
        labels = labels_of_rows(called, column(said.subject), rows)
        subjects = Subjects(labels, said.subject)
        if index is not None:
            pandas = importlib.import_module("pandas")
            whose, index = "subjects", pandas.Index(subjects.labels, name=said.subject)
    copies = _copies(roles, values, subjects)
    for label, value in of_each_row(roles.noise, said.cross_cov):
        check_same_rows(label, value, whose, index)
    for name in names if whole and said.features is None else ():
        if name not in {*errors, *copies} and numbers_rows(name, values[name]):
            raise ValueError(
                f"column {given(name)} of {where} numbers or labels the rows: leave it out "
                "(the option drop), or name all features (the option features)"
            )
    for name, block in copies.items() if not isinstance(roles.noise, Dependent) else ():
        check_copies(name, block, subjects and subjects.labels)
    of_copies = {column_name for name in roles.by_copy for column_name in roles.copies[name]}
    for name, deviation in roles.deviations.items():
        sizes = values[deviation]
        if sizes.ndim == 2 or name in of_copies:  # a copy that is missing has no error
            cells = copies[name] if sizes.ndim == 2 else values[name]
            sizes = np.where(np.isnan(cells), 1.0, sizes)
        sizes = non_negative(f"column {given(deviation)} of {where}", sizes, shape=None)
        errors[name] = sd(sizes, gaussian=errors[name].gaussian)
    _weigh(roles, values, copies, errors)
    y, target_cov = _target(said.target, values[said.target], errors)
    features: dict[str, Any] = {}
    for name in names:
        features[name] = copies[name] if name in copies else values[name]
        if name in categories:
            recodings = mean_recoding(features[name], categories[name])
            features[name] = Recoding(recodings, categories[name])
            del errors[name]
    beside = {}
    for role, name in said.beside.items():
        beside[role] = beside_of(role, name, column(name), rows)
        if subjects:
            values_of_subjects = subjects.single(beside[role].values, name)
            beside[role] = beside[role]._replace(values=values_of_subjects)
    measured, noise = columns_of_copies(features), errors
    if not isinstance(roles.noise, Mapping):
        noise = by_name("noise", roles.noise, measured.features)
    return observations_of(
        measured,
        y,
        noise,
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
    replicated = {column_name for columns in roles.copies.values() for column_name in columns}
    replicated |= {
        deviation
        for column_name, deviation in roles.deviations.items()
        if column_name in replicated
    }
    labelled = {column_name for columns in roles.labelled.values() for column_name in columns}
    values: dict[str, Any] = {}
    levels: dict[str, list[str]] = {}
    rows = None
    for name in roles.used:
        given_one, called = column(name), f"column {given(name)}"
        check_concrete(called, given_one, TABLES_OUTSIDE_JIT)
        categories = levels_of(called, given_one) if name in roles.plain else None
        if name in labelled:
            cells = np.asarray(unmasked(given_one), object)
        elif categories is not None:
            levels[name] = [f"{name}[{category}]" for category in categories[0]]
            cells = categories[1]
        else:
            hint = f"drop such rows, as by frame.dropna(subset=[{name!r}]), or impute them"
            options = {"missing": name in replicated, "hint": hint}
            cells = numeric(called, given_one, np.float64, **options).astype(np.float64, copy=False)
        rows = len(cells) if rows is None and cells.ndim == 1 else rows
        if cells.shape == (0,):
            raise ValueError(f"{where} has no rows")
        if cells.shape != (rows,) or not rows:
            raise ValueError(
                f"{called} must have one number a row, as other columns have, got "
                f"{list(cells.shape)}"
            )
        if categories is not None:
            indicators = enumerate(levels[name][1:], start=1)
            values |= {indicator: np.asarray(cells == k, np.float64) for k, indicator in indicators}
            continue
        values[name] = cells
        if name not in labelled:
            warn_of_code(f"{called} of {where}", cells)
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
        return {name: np.column_stack([values[one] for one in columns]) for name, columns in every}
    copies = {name: subjects.copies(values[name]) for name in roles.copies}
    for other in {other for name, other in roles.deviations.items() if name in copies}:
        errors = subjects.copies(values[other])
        if (np.nanmax(errors, axis=1) > np.nanmin(errors, axis=1)).any():
            values[other] = errors
    for name, cells in values.items():
        if name not in copies and cells.ndim == 1:
            values[name] = subjects.single(cells, name)
    return copies


def _weigh(
    roles: Roles,
    values: dict[str, np.ndarray],
    copies: dict[str, np.ndarray],
    errors: dict[str, Any],
) -> None:
    """Replaces copies with an error of their own each by their weighted mean.

    With the standard deviation σ_v of the error in copy v, the weights are 1/σ_v², and the mean
    has an error of variance 1/Σ_v σ_v^(−2).
    """
    for name, columns in roles.copies.items():
        block, error = copies[name], errors.get(name)
        if name in roles.by_copy:
            pairs = zip(columns, block.T, strict=True)
            of_copies = [error_of(copy, errors.pop(copy), part[:, None]) for copy, part in pairs]
            if any(copy.in_sums or copy.std_error for copy in of_copies):
                raise ValueError(f"each replicate of {name!r} needs a known variance")
            block = block - np.array([copy.mean for copy in of_copies])
            parts = [np.broadcast_to(copy.variance, len(block)) for copy in of_copies]
            variances = np.column_stack(parts)
            gaussian = all(isinstance(copy.law, Gaussian) for copy in of_copies)
        elif isinstance(error, StandardDeviation) and np.ndim(error.value) == 2:
            variances, gaussian = np.asarray(error.value) ** 2, error.gaussian
        else:
            continue
        measured = ~np.isnan(block)
        if not np.all(variances[measured] > 0):
            raise ValueError(f"errors of replicates of {name!r} must have a variance above 0")
        weights = np.where(measured, 1 / np.where(measured, variances, 1.0), 0.0)
        total = weights.sum(axis=1)
        values[name] = np.sum(weights * np.where(measured, block, 0.0), axis=1) / total
        errors[name] = sd(total**-0.5, gaussian=gaussian)
        del copies[name]


def _target(
    name: str, y: np.ndarray, errors: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray | None]:
    """y `[n]` less the known mean of its error, whose variance `[n]` is taken out of `errors`."""
    if name not in errors:
        return y, None
    if isinstance(errors[name], Misclassified):
        raise ValueError(
            f"noise[{name!r}] is the target: flipped labels are an option of the fit, as in "
            "nj.fit(table, nj.methods.Logistic(flips=(0.1, 0.2)))"
        )
    error = error_of(name, errors.pop(name), y[:, None])
    if error.std_error:
        raise ValueError(f"give the variance of the error in {name!r}, not an estimate")
    return y - error.mean, np.broadcast_to(error.variance, y.shape)


def numbers_rows(name: str, values: np.ndarray) -> bool:
    """Returns True if a column seems to be a label of the rows."""
    for numbers in (values[:_FEW_ROWS], values):  # most columns end this after few rows
        if len(numbers) < _FEW_ROWS or not np.array_equal(numbers, np.round(numbers)):
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
        rest = values[values != code]
        several = 0 < len(rest) < len(values) - 1
        if abs(code) in _CODES and several and np.abs(rest - code).min() >= np.ptp(rest) > 0:
            warn(
                f"{name} has {code:g} far from all other values: if it stands for a missing value, "
                "leave such rows out (in files by the option missing)",
            )
            return
