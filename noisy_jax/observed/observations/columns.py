"""Tables from columns by their names, and from the parts of a CSV file."""

import dataclasses
import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from noisy_jax.columns import check_same_rows, levels_of, numeric, order_of
from noisy_jax.csv_files import Layout, csv_parts
from noisy_jax.noise import Misclassified
from noisy_jax.noise.dependent import Dependent
from noisy_jax.observed.observations.arrays import Known
from noisy_jax.observed.observations.beside import ROLES, Beside, beside_of
from noisy_jax.observed.observations.categories import (
    Categories,
    categories_of,
    mean_recoding,
    numbers_or_texts,
    with_categories,
)
from noisy_jax.observed.observations.copies import (
    check_copies,
    copies_of_subjects,
    of_columns,
    of_first_rows,
    rows_of_subjects,
)
from noisy_jax.observed.observations.described import (
    StandardDeviation,
    error_of,
    labelled_deviations,
    sd,
)
from noisy_jax.observed.observations.products import with_products
from noisy_jax.observed.observations.roles import (
    Roles,
    numbers_rows,
    roles_of,
    several,
    warn_of_code,
    with_indicators,
)
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation import check_concrete, given, listed, non_negative


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """What is known of columns; `frames.table` and `files.csv` explain the attributes."""

    target: Any = None
    noise: Known = None
    replicates: Any = None
    cross_cov: Any = None
    std_error: Mapping[str, str] | None = None
    subject: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    sep: str = ","
    decimal: str = "."
    missing: Sequence[str] | None = None
    products: Sequence[tuple[str, str]] = ()
    weights: str | None = None
    clusters: str | None = None
    exposure: str | None = None

    @property
    def layout(self) -> Layout:
        """How the cells of a CSV file are read."""
        return Layout(self.features, self.drop, self.sep, self.decimal, self.missing)

    def _known(self) -> Any:
        """What is known of the noise, of columns by their names unless it is of all together."""
        if isinstance(self.noise, Misclassified):
            raise ValueError(
                "a misclassified column is named, as noise={'x1': nj.noise.Misclassified(matrix)}"
            )
        if self.std_error is None:
            if not isinstance(self.noise, Mapping):
                return self.noise
            return {str(name): one for name, one in self.noise.items()}
        if self.noise is not None or self.replicates is not None:
            raise ValueError("give std_error in place of noise and replicates, not beside them")
        return {name: sd(column=column) for name, column in self.std_error.items()}

    def _by_name(self) -> dict[str, Any]:
        """What is known of the noise of columns; empty if it is of all together."""
        known = self._known()
        return dict(known) if isinstance(known, Mapping) else {}

    def beside(self) -> dict[str, str]:
        """The columns beside the features, by their roles."""
        found = {role: getattr(self, role) for role in ROLES}
        for role, name in found.items():
            if name is not None and not isinstance(name, str):
                raise ValueError(
                    f"{role} must be the name of a column, got {given(name)}: an array is an "
                    f"option of the fit, as nj.methods.Linear({role}=…)"
                )
        return {role: name for role, name in found.items() if name is not None}

    def labelled(self) -> dict[str, list[str]]:
        """Misclassified features, with the columns of their recorded categories."""
        copies = self.replicates if isinstance(self.replicates, Mapping) else {}
        return {
            name: list(dict.fromkeys([name, *several(copies.get(name, ()))]))
            for name, one in self._by_name().items()
            if isinstance(one, Misclassified) and name != self.target
        }

    def roles(self, header: Sequence[str], where: str, form: Layout) -> Roles:
        """What the columns of this header are."""
        more = self.target, self._known(), self.replicates, self.subject, self.beside()
        return roles_of(header, where, form, *more)

    def table(
        self,
        header: Sequence[str],
        column: Callable[[str], Any],
        where: str,
        form: Layout,
        index: Any = None,
        labels: np.ndarray | None = None,
    ) -> Observations:
        """The table of the columns of this header.

        `column` gives the values `[n]` in the column of a name. Messages say `where` the columns
        are. `form` says which of them are features, or dropped. `labels` are numbers of the rows.
        """
        noise, known, target = self._known(), self._by_name(), self.target
        roles = self.roles(header, where, form)
        values = self._values(roles, column, where)
        roles, references = with_indicators(roles, values)
        categories = self._categories(values, known, column)
        copies, subjects, rows = self._copies(roles, values, column)
        whose = "frame"
        if subjects is not None and index is not None:
            whose, pandas = "subjects", importlib.import_module("pandas")
            index = pandas.Index(subjects, name=self.subject)
        for label, value in labelled_deviations(known):
            check_same_rows(label, value, whose, index)
        for name in roles.names if form.features is None else ():
            if name not in {*known, *copies} and numbers_rows(name, values[name]):
                raise ValueError(
                    f"column {given(name)} of {where} numbers or labels the rows: leave it out "
                    "(the option drop), or name all features (the option features)"
                )
        for name, block in copies.items() if not isinstance(noise, Dependent) else ():
            check_copies(name, block, subjects)
        y, y_cov = values[target], None
        for name, other in roles.deviations.items():
            error = values[other]
            error = non_negative(f"column {given(other)} of {where}", error, shape=None)
            known[name] = sd(error, gaussian=known[name].gaussian)
        if target in known:
            error = error_of(target, known.pop(target), y[:, None])
            y, y_cov = y - error.mean, np.broadcast_to(error.variance, y.shape)
        recoded = {}
        for name, one in categories.items():
            numbers = copies.pop(name) if name in copies else values[name]
            recoded[name] = mean_recoding(numbers, one), one
            values[name] = np.zeros(len(y))
            del known[name]
        noise = known if isinstance(noise, Mapping) else noise
        options = {"target": str(target), "cross_cov": self.cross_cov}
        found = of_columns(values, copies, roles.names, noise, y, options)
        found = with_categories(found, recoded)
        references = (*references, *found.references)
        more: dict[str, Any] = {"target_cov": y_cov, "index": index, "references": references}
        more["beside"] = self._beside(column, rows)
        labels = labels if subjects is None else np.array(subjects)
        found = dataclasses.replace(found, labels=labels, **more)
        return with_products(found, self.products, self._known())

    def _categories(
        self, values: dict[str, np.ndarray], noise: Any, column: Callable[[str], Any]
    ) -> dict[str, Categories]:
        """The categories of misclassified features, whose numbers replace them in `values`."""
        found = {}
        for name, columns in self.labelled().items():
            columns = [one for one in columns if one in values]
            cells = np.column_stack([values[one] for one in columns])
            orders = [order for one in columns if (order := order_of(column(one))) is not None]
            numbers, found[name] = categories_of(name, cells, noise[name], orders)
            values.update(zip(columns, numbers.T, strict=True))
        return found

    def _copies(
        self, roles: Roles, values: dict[str, np.ndarray], column: Callable[[str], Any]
    ) -> tuple[dict[str, np.ndarray], list[Any] | None, Any]:
        """The copies `[n, V]` of features with replicates, the subjects of the rows, and the rows.

        With subjects, `values` of other columns become one for each subject.
        """
        if self.subject is None:
            every = roles.copies.items()
            blocks = {name: np.column_stack([values[k] for k in own]) for name, own in every}
            return blocks, None, None
        labels = column(self.subject)
        rows = rows_of_subjects(labels, self.subject)
        blocks = {name: copies_of_subjects(values[name], rows) for name in roles.copies}
        for name in [one for one in values if one not in blocks]:
            values[name] = of_first_rows(values[name], name, labels, rows)
        return blocks, np.asarray(labels)[rows[0]].tolist(), rows

    def _beside(self, column: Callable[[str], Any], rows: Any) -> dict[str, Beside]:
        """Weights, clusters and exposures; `rows` are of subjects, or `None`."""
        found = {}
        for role, name in self.beside().items():
            values = column(name)
            one = beside_of(role, name, values, len(values))
            if rows is not None:
                labels = column(str(self.subject))
                one = one._replace(values=of_first_rows(one.values, name, labels, rows))
            found[role] = one
        return found

    def _values(self, roles: Roles, column: Callable[[str], Any], where: str) -> dict[str, Any]:
        """The numbers in the columns; NaN may be among replicates.

        Of features without noise that are categories, what `levels_of` returns.
        """
        replicated = {one for columns in roles.copies.values() for one in columns}
        labelled = {one for columns in self.labelled().values() for one in columns}
        values: dict[str, Any] = {}
        rows = None
        for name in roles.used:
            one, called = column(name), f"column {given(name)}"
            check_concrete(called, one, "make tables, and fit them, outside jit, vmap and grad")
            found: Any = levels_of(called, one) if name in roles.plain else None
            categories = found is not None or name in labelled
            if name in labelled:
                found = np.asarray(one, object)
            elif found is None:
                hint = f"drop such rows, as by frame.dropna(subset=[{name!r}]), or impute them"
                options = {"missing": name in replicated, "hint": hint}
                found = numeric(called, one, np.float64, **options)
                found = found.astype(np.float64, copy=False)
            shape = np.shape(found[1] if categories and name not in labelled else found)
            rows = shape[0] if rows is None and len(shape) == 1 else rows
            if shape != (rows,) or not rows:
                raise ValueError(
                    f"{called} must have one number a row, as the others, got {list(shape)}"
                )
            values[name] = found
            if not categories:
                warn_of_code(f"{called} of {where}", found, stacklevel=5)
        return values

    def tables(self, path: str | Path, rows: int | None = None) -> Iterator[Observations]:
        """The tables of parts of a file, as `csv_parts` reads them."""
        form, own = self.layout.checked(), []
        beside = [self.subject] if self.subject is not None else []
        categories = {one for columns in self.labelled().values() for one in columns}
        labels: dict[str, dict[Any, Any]] = {name: {} for name in (*categories, *beside)}
        errors = [one for one in self._by_name().values() if isinstance(one, StandardDeviation)]
        beside += [one.column for one in errors if one.column is not None]
        if isinstance(self.replicates, Mapping):
            own = list(self.replicates)
            beside += [one for columns in self.replicates.values() for one in several(columns)]
        elif self.replicates is not None:
            beside += several(self.replicates)
        features = form.features and [one for one in form.features if one not in own]
        options = {
            "missing": self.replicates is not None,
            "layout": form._replace(features=features),
            "others": list(dict.fromkeys(beside)),
            "others_if_there": own,
            "labels": labels,
        }
        form = form._replace(drop=())  # they were not read
        before = 0
        for header, part in csv_parts(path, self.target, rows=rows, **options):
            numbers = np.arange(before, before + len(part)) + 1
            before += len(part)
            part, numbers = self._complete(path, header, part, form, numbers)
            columns: dict[str, Any] = dict(zip(header, part.T, strict=True))
            for name in labels.keys() & columns.keys():
                texts = [*labels[name]]
                columns[name] = [None if k != k else texts[int(k)] for k in columns[name]]
                if name in categories:
                    columns[name] = numbers_or_texts(columns[name])
            yield self.table(header, columns.__getitem__, str(path), form, labels=numbers)

    def _complete(self, path, header, part, form: Layout, numbers) -> tuple[np.ndarray, np.ndarray]:
        """The rows without a missing value, if the file may have them, and their numbers.

        Those of some of several replicates are used.
        """
        if self.missing is None:
            return part, numbers
        gaps = np.isnan(part)
        for columns in self.roles(header, str(path), form).copies.values():
            places = [header.index(one) for one in columns]
            none = gaps[:, places].all(axis=1, keepdims=True)
            gaps[:, places] = none if self.subject is None else False
        kept = ~gaps.any(axis=1)
        if kept.all():
            return part, numbers
        which = listed([name for name, some in zip(header, gaps.any(axis=0), strict=True) if some])
        if not kept.any():
            raise ValueError(f"{path}: in each row a value is missing, of {which}")
        warnings.warn(
            f"{path}: {len(kept) - kept.sum():,} of {len(kept):,} rows are left out, as they have "
            f"missing values, of {which}",
            stacklevel=2,
        )
        return part[kept], numbers[kept]
