"""What the columns of a frame or file are: target, features, replicates, standard deviations."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.observations.described import StandardDeviation
from noisy_jax.validation import given, listed
from noisy_jax.warning import warn

_DEVIATIONS = "a column of standard deviations"
_ID = re.compile(
    r"(.*[_\W])?(case|hh|household|participant|patient|person|p|r|record|respondent|s|subject|u|user)?"
    r"_?(id|ids|index|key|uid|uuid|row|no|nr|num|number|subject|respondent|participant|patient|"
    r"person|record|unnamed: \d+)",
    re.IGNORECASE,
)
_CHANCE = 9.0  # of unique whole numbers less than e⁻⁹, if they were drawn from their range
_CODES = {10.0**k - 1 for k in range(1, 6)}  # 9, 99, … stand for missing values in many tables
_FEW_ROWS = 10  # whole numbers in fewer rows may differ and increase by chance


class Layout(NamedTuple):
    """Names of the columns that are features, or of those that are left out."""

    features: Sequence[str] | None = None
    drop: Sequence[str] = ()

    def checked(self) -> "Layout":
        """The layout with one name as a list of it; ValueError if it contradicts itself."""
        one = str, int, float
        features = [self.features] if isinstance(self.features, one) else self.features
        features = features if features is None else several(features)
        drop = several([self.drop] if isinstance(self.drop, one) else self.drop)
        if features is not None and drop:
            raise ValueError("name the columns by features or by drop, not by both")
        return Layout(features, drop)


class Roles(NamedTuple):
    """What the columns are."""

    names: list[str]  # of the features, in their order
    copies: dict[str, list[str]]  # of features with replicates, the columns with these
    deviations: dict[str, str]  # the column with the standard deviation in each row
    used: list[str]  # columns that hold numbers, or categories
    plain: list[str]  # features without replicates of which nothing is said


def several(names: Any) -> list[str]:
    """One name, or several, as a list of texts; a tuple in a list is a name of several levels."""
    names = [names] if isinstance(names, str) else names
    return [str(one) for one in names]


def _copies_of(
    header: Sequence[str], replicates: Any, subject: str | None, target: Any
) -> dict[str, list[str]]:
    """The columns with the copies of each feature with replicates."""
    if isinstance(replicates, Mapping | str | list | tuple) and target in (
        several(replicates) if not isinstance(replicates, Mapping) else replicates
    ):
        mean = f"frame.groupby({subject!r})[{target!r}].transform('mean')"
        if isinstance(replicates, Mapping):
            columns = several(replicates[target])
            names = list(dict.fromkeys([target, *columns])) if target in header else columns
            mean = f"frame[{names}].mean(axis=1)"
        raise ValueError(
            f"{given(target)} is the target, whose replicates are averaged: give their mean as the "
            f"target, frame[{target!r}] = {mean}, and name features only in replicates"
        )
    if not replicates and subject is None:
        return {}
    if subject is not None:
        if isinstance(replicates, Mapping) or not replicates:
            raise ValueError(
                "with subject, replicates must be names of columns whose values in the rows of "
                f"a subject are copies, such as ['x1'], got {given(replicates)}"
            )
        return {name: [name] for name in several(replicates)}
    if not isinstance(replicates, Mapping):
        raise ValueError(
            "replicates must be a mapping from a feature to its columns, such as "
            f"{{'x1': ['x1a', 'x1b']}}, got {given(replicates)}; for several rows of each "
            "subject name the column of subjects, as subject='id'"
        )
    found = {name: several(columns) for name, columns in replicates.items()}
    for name, columns in found.items():
        if name in header and name not in columns:
            columns.insert(0, name)
        if len(columns) < 2:
            raise ValueError(f"replicates of {given(name)} must be two columns or more")
    return found


def roles_of(
    header: Sequence[str],
    where: str,
    form: Layout,
    target: Any,
    known: Any,
    replicates: Any,
    subject: str | None,
    beside: Mapping[str, str],
) -> Roles:
    """The roles of the columns of this header; ValueError if they contradict each other.

    Messages say `where` the columns are. `known` is `noise` of `frames.table`, and the last
    arguments are as there.
    """
    taken: dict[str, str] = {}

    def take(name, role):
        if name not in header:
            raise ValueError(f"{where} has no column named {given(name)}; it has {listed(header)}")
        if taken.get(name) == role == _DEVIATIONS:
            return
        if name in taken or name in form.drop:
            other = taken.get(name, "one to drop")
            raise ValueError(f"column {given(name)} is named twice, as {other} and as {role}")
        taken[name] = role

    copies = _copies_of(header, replicates, subject, target)
    own = () if form.features is None else form.features
    for role, name in beside.items():  # the option features may name it as well
        if name not in own or name not in header:
            take(name, f"the column of {role}")
    named = [*known] if isinstance(known, Mapping) else []
    take(target, "the target")
    if subject is not None:
        take(subject, "the subject")
    deviations = {}
    for name in named:
        if isinstance(known[name], StandardDeviation) and known[name].column is not None:
            deviations[name] = known[name].column
            take(known[name].column, _DEVIATIONS)
    for name, columns in copies.items():
        for column in columns:
            take(column, f"a replicate of {given(name)}")
    by_copy: list[str] = []  # replicates of which each has an error of its own
    for name, columns in copies.items():
        if any(one in named and one != name for one in columns):
            by_copy += columns
            if name in named and name not in columns:
                raise ValueError(
                    f"noise names {given(name)} and its replicates: name all of the replicates, or "
                    f"{given(name)} alone, if their errors are alike"
                )
            for other in [one for one in columns if one not in named]:
                raise ValueError(
                    f"noise names replicates of {given(name)}, but not {given(other)}: name all of "
                    f"them, or {given(name)} alone, if their errors are alike"
                )
    features = form.features
    if features is None:
        first = {columns[0]: name for name, columns in copies.items()}
        names = [first.get(c, c) for c in header if c in first or c not in taken]
        names = [name for name in names if name not in form.drop]
    else:
        names = list(features)
    for name in names:
        if name not in copies:
            take(name, "a feature")
        elif names.count(name) > 1:
            raise ValueError(f"features must be different names, but {given(name)} is named twice")
    for name in form.drop:
        if name not in header:
            raise ValueError(f"{where} has no column named {given(name)}; it has {listed(header)}")
    for name in [*named, *copies]:
        role = taken.get(name, "")
        if name in names or name == target:
            continue
        if name in by_copy:
            continue
        if role.startswith("a replicate"):
            raise ValueError(f"noise must name features, but {given(name)} is {role}")
        raise ValueError(f"{where} has no feature {given(name)}; it has {listed(names)}")
    if not names:
        raise ValueError(f"{where} has no feature beside the target {given(target)}")
    apart = {subject, *beside.values()}.difference(names)
    used = [name for name in header if name in taken and name not in apart]
    plain = [name for name in names if name not in copies and name not in named]
    return Roles(names, copies, deviations, used, plain)


def with_indicators(roles: Roles, values: dict[str, Any]) -> tuple[Roles, tuple[str, ...]]:
    """Roles with indicators in place of categories, and the categories without one, as `sex[f]`.

    `values` gets the indicators.
    """
    names, references = [], []
    for name in roles.names:
        if not isinstance(values.get(name), tuple):
            names.append(name)
            continue
        levels, numbers = values.pop(name)
        references.append(f"{name}[{levels[0]}]")
        for k, level in enumerate(levels[1:], start=1):
            names.append(f"{name}[{level}]")
            values[names[-1]] = np.asarray(numbers == k, np.float64)
    return roles._replace(names=names), tuple(references)


def numbers_rows(name: str, values: np.ndarray) -> bool:
    """Whether a column seems to be a label of the rows."""
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
