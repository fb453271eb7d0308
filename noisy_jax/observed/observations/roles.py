"""Roles of the columns of a frame or file: target, features, replicates, standard deviations."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from noisy_jax.noise import Misclassified, Product
from noisy_jax.observed.observations.beside import ROLES
from noisy_jax.observed.observations.described import (
    StandardDeviation,
    check_no_gaps,
    check_no_recording,
    check_not_traced,
)
from noisy_jax.observed.observations.labels import by_column
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.values import collected, collected_map

_NAMES = str | list | tuple
_DEVIATIONS = "a column of standard deviations"


class Roles(NamedTuple):
    """Roles of the columns of one header."""

    names: list[str]  # of the features, in their order
    noise: Any  # what is known of it: by names of columns, or by the positions of features
    copies: dict[str, list[str]]  # of features with replicates, the columns with these
    by_copy: list[str]  # features with replicates of which each has an error of its own
    deviations: dict[str, str]  # the column with the standard deviation in each row
    labelled: dict[str, list[str]]  # of misclassified features, the columns with their categories
    used: list[str]  # columns that hold numbers, or categories
    plain: list[str]  # features without replicates of which nothing is said


def several(names: Any, argument: str = "names") -> list[str]:
    """One name, or several, as a list of texts; a tuple in a list is a name of several levels."""
    names = [names] if isinstance(names, str | int | float) else names
    if not isinstance(names, Iterable):
        raise ValueError(f"{argument} must be names of columns, got {given(names)}")
    return [str(name) for name in names]


def one_name(argument: str, name: Any) -> str:
    """The name of one column as a text; a tuple is a name of several levels."""
    if isinstance(name, Iterable) and not isinstance(name, str | bytes | tuple):
        raise ValueError(f"{argument} must be the name of a column, got {given(name)}")
    return str(name)


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """Stated roles of columns: the arguments of `nj.table`, which explains them."""

    target: Any = None
    noise: Any = None
    replicates: Any = None
    cross_cov: Any = None
    subject: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    products: Sequence[tuple[str, str]] = ()
    weights: str | None = None
    clusters: str | None = None
    exposure: str | None = None
    gaps: None = None

    def __post_init__(self) -> None:
        """Reads iterators, and names of other kinds than texts, which stay the same for parts."""
        check_no_gaps(self.gaps)
        if self.target is None:
            raise ValueError("name y's column by target=")
        features, drop = collected(self.features), collected(self.drop)
        noise, replicates = collected_map(self.noise), collected_map(self.replicates)
        products, cross_cov = collected(self.products), collected(self.cross_cov)
        check_not_traced(noise, cross_cov)
        if isinstance(noise, Misclassified):
            raise ValueError(
                "a misclassified column is named, as noise={'x1': nj.noise.Misclassified(matrix)}"
            )
        if isinstance(noise, Mapping):
            noise = {str(name): item for name, item in noise.items()}
        if isinstance(replicates, Mapping):
            replicates = {
                str(name): several(collected(columns)) for name, columns in replicates.items()
            }
        elif isinstance(replicates, Iterable) and not isinstance(replicates, str):
            replicates = list(replicates)  # also of an array, or an index of pandas
        if isinstance(products, list | tuple):
            pairs = [several(item) if isinstance(item, list | tuple) else item for item in products]
            products = tuple(pairs)
        beside = {name: getattr(self, name) for name in ("subject", *ROLES)}
        read = {
            **{k: str(item) if isinstance(item, tuple) else item for k, item in beside.items()},
            **{"target": one_name("target", self.target), "noise": noise, "replicates": replicates},
            **{"products": products, "cross_cov": cross_cov, "drop": several(drop, "drop")},
            "features": None if features is None else several(features, "features"),
        }
        for name, value in read.items():
            object.__setattr__(self, name, value)
        if features is not None and self.drop:
            raise ValueError("name the columns by features or by drop, not by both")

    @property
    def beside(self) -> dict[str, str]:
        """The columns beside the features, by their roles."""
        columns = {role: getattr(self, role) for role in ROLES}
        for role, name in columns.items():
            if name is not None and not isinstance(name, str):
                raise ValueError(
                    f"{role} must be the name of a column, got {given(name)}: an array is an "
                    f"option of the fit, as nj.methods.Linear({role}=…)"
                )
        return {role: name for role, name in columns.items() if name is not None}

    def roles(self, header: Sequence[str], where: str) -> Roles:
        """Returns the roles of the columns of this header, which messages say are `where`.

        Raises:
            ValueError: they contradict each other.
        """
        taken: dict[str, str] = {}

        def take(name, role):
            if name not in header:
                has = f"it has {listed(header)}"
                raise ValueError(f"{where} has no column named {given(name)}; {has}")
            if taken.get(name) == role == _DEVIATIONS:
                return
            if name in taken or name in self.drop:
                role_before = taken.get(name, "one to drop")
                raise ValueError(
                    f"column {given(name)} is named twice, as {role_before} and as {role}"
                )
            taken[name] = role

        copies, beside, target = self._copies(header), self.beside, self.target
        errors = self.noise if isinstance(self.noise, Mapping) else {}
        for role, name in beside.items():  # the option features may name it as well
            if name not in (self.features or ()) or name not in header:
                take(name, f"the column of {role}")
        take(target, "the target")
        if self.subject is not None:
            one_name("subject", self.subject)
            take(self.subject, "the subject")
        deviations = {
            name: item.column
            for name, item in errors.items()
            if isinstance(item, StandardDeviation) and item.column is not None
        }
        for column in deviations.values():
            take(column, _DEVIATIONS)
        for name, columns in copies.items():
            for column in columns:
                take(column, f"a replicate of {given(name)}")
        by_copy = [
            name for name, columns in copies.items() if _errors_of_copies(name, columns, errors)
        ]
        names = list(self.features or ())
        if self.features is None:
            first = {columns[0]: name for name, columns in copies.items()}
            names = [first.get(item, item) for item in header if item in first or item not in taken]
            names = [name for name in names if name not in self.drop]
        for name in names:
            if name not in copies:
                take(name, "a feature")
            elif names.count(name) > 1:
                raise ValueError(
                    f"features must be different names, but {given(name)} is named twice"
                )
        for name in [name for name in self.drop if name not in header]:
            take(name, "one to drop")
        single = {item for name in by_copy for item in copies[name]}
        for name in [item for item in (*errors, *copies) if item not in {*names, target, *single}]:
            if taken.get(name, "").startswith("a replicate"):
                raise ValueError(f"noise must name features, but {given(name)} is {taken[name]}")
            raise ValueError(f"{where} has no feature {given(name)}; it has {listed(names)}")
        if not names:
            raise ValueError(f"{where} has no feature beside the target {given(target)}")
        noise: Any = self.noise
        if isinstance(noise, Product) and any(isinstance(k, Misclassified) for k in noise.columns):
            noise = errors = by_column(noise, names)
        labelled = {
            name: list(dict.fromkeys([name, *copies.get(name, ())]))
            for name, item in errors.items()
            if isinstance(item, Misclassified) and name in names
        }
        apart = {self.subject, *beside.values()}.difference(names)
        used = [name for name in header if name in taken and name not in apart]
        plain = [name for name in names if name not in copies and name not in errors]
        return Roles(names, noise, copies, by_copy, deviations, labelled, used, plain)

    def _copies(self, header: Sequence[str]) -> dict[str, list[str]]:
        """The columns with the copies of each feature with replicates."""
        replicates: Any = self.replicates
        target, by_name = self.target, isinstance(replicates, Mapping)
        if target in (
            replicates if by_name else several(replicates) if isinstance(replicates, _NAMES) else ()
        ):
            mean = f"frame.groupby({self.subject!r})[{target!r}].transform('mean')"
            if by_name:
                itself = [target] if target in header else []
                mean = f"frame[{list(dict.fromkeys([*itself, *replicates[target]]))}].mean(axis=1)"
            raise ValueError(
                f"{given(target)} is the target, whose replicates are averaged: give their mean as "
                f"the target, frame[{target!r}] = {mean}, and name features only in replicates"
            )
        if self.subject is not None:
            if by_name or not replicates:
                raise ValueError(
                    "with subject, replicates must be names of columns whose values in the rows of "
                    f"a subject are copies, such as ['x1'], got {given(replicates)}"
                )
            return {name: [name] for name in several(replicates)}
        if not replicates:
            return {}
        if not isinstance(replicates, Mapping):
            raise ValueError(
                "replicates must be a mapping from a feature to its columns, such as "
                f"{{'x1': ['x1a', 'x1b']}}, got {given(replicates)}; for several rows of each "
                "subject name the column of subjects, as subject='id'"
            )
        copies = {}
        for name, columns in replicates.items():
            itself = [name] if name in header and name not in columns else []
            copies[name] = [*itself, *columns]
            if len(copies[name]) < 2:
                raise ValueError(f"replicates of {given(name)} must be two columns or more")
        return copies


def _errors_of_copies(name: str, columns: Sequence[str], errors: Mapping[str, Any]) -> bool:
    """Returns True if noise names each column with copies of a feature; ValueError if only some."""
    if not any(column in errors and column != name for column in columns):
        return False
    hint = f"name all of them, or {given(name)} alone, if their errors are alike"
    if name in errors and name not in columns:
        hint = hint.replace("them", "the replicates")
        raise ValueError(f"noise names {given(name)} and its replicates: {hint}")
    for column in [column for column in columns if column not in errors]:
        raise ValueError(
            f"noise names replicates of {given(name)}, but not {given(column)}: {hint}"
        )
    for column in columns:
        check_no_recording(f"noise[{column!r}]", errors[column], name)
    return True
