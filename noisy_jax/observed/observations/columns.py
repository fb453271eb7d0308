"""Tables from columns by their names."""

import dataclasses
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from noisy_jax.columns import check_same_rows, levels_of, numeric, order_of
from noisy_jax.noise import Misclassified
from noisy_jax.noise.dependent import Dependent
from noisy_jax.observed.observations.arrays import Known
from noisy_jax.observed.observations.beside import ROLES, Beside, beside_of
from noisy_jax.observed.observations.categories import (
    Categories,
    Recoding,
    categories_of,
    mean_recoding,
)
from noisy_jax.observed.observations.copies import (
    check_copies,
    copies_of_subjects,
    of_first_rows,
    rows_of_subjects,
)
from noisy_jax.observed.observations.described import (
    StandardDeviation,
    check_not_traced,
    error_of,
    labelled_deviations,
    sd,
)
from noisy_jax.observed.observations.measured import columns_of_copies, observed
from noisy_jax.observed.observations.roles import (
    Layout,
    Roles,
    numbers_rows,
    roles_of,
    several,
    warn_of_code,
    with_indicators,
)
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation import check_concrete, collected, collected_map, given, non_negative


@dataclasses.dataclass(frozen=True, eq=False)
class Columns:
    """What is known of columns; `frames.table` and `files.csv` explain the attributes."""

    target: Any = None
    noise: Known = None
    replicates: Any = None
    cross_cov: Any = None
    subject: str | None = None
    features: Sequence[str] | None = None
    drop: Sequence[str] = ()
    products: Sequence[tuple[str, str]] = ()
    weights: str | None = None
    clusters: str | None = None
    exposure: str | None = None

    def __post_init__(self) -> None:
        for name in ("features", "drop", "products", "cross_cov"):
            object.__setattr__(self, name, collected(getattr(self, name)))
        noise = collected_map(self.noise)
        check_not_traced(noise, self.cross_cov)
        if isinstance(noise, Misclassified):
            raise ValueError(
                "a misclassified column is named, as noise={'x1': nj.noise.Misclassified(matrix)}"
            )
        if isinstance(noise, Mapping):
            noise = {str(name): one for name, one in noise.items()}
        object.__setattr__(self, "noise", noise)
        replicates = collected_map(self.replicates)
        if isinstance(replicates, Mapping):
            replicates = {str(name): collected(own) for name, own in replicates.items()}
        products = self.products
        if isinstance(products, list | tuple):
            pairs = [several(one) if isinstance(one, list | tuple) else one for one in products]
            object.__setattr__(self, "products", tuple(pairs))
        object.__setattr__(self, "replicates", replicates)
        for name in ("target", "subject", *ROLES):  # columns of several levels have tuples as names
            if isinstance(one := getattr(self, name), tuple):
                object.__setattr__(self, name, str(one))

    def _by_name(self) -> dict[str, Any]:
        """What is known of the noise of columns; empty if it is of all together."""
        return dict(self.noise) if isinstance(self.noise, Mapping) else {}

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

    def roles(self, header: Sequence[str], where: str) -> Roles:
        """What the columns of this header are; messages say `where` they are."""
        form = Layout(self.features, self.drop).checked()
        more = self.target, self.noise, self.replicates, self.subject, self.beside()
        return roles_of(header, where, form, *more)

    def table(
        self,
        roles: Roles,
        column: Callable[[str], Any],
        where: str,
        index: Any = None,
        *,
        labelled: bool = True,
    ) -> Observations:
        """The table of columns with these roles.

        `column` gives the values `[n]` in the column of a name. Messages say `where` the columns
        are. With `labelled` false a column that numbers or labels the rows is not looked for.
        """
        noise, known, target = self.noise, self._by_name(), self.target
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
        for name in roles.names if labelled and self.features is None else ():
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
            called = f"column {given(other)} of {where}"
            if np.ndim(error) == 2:
                error = np.where(np.isnan(copies[name]), 1.0, error)
            elif name not in roles.names and name != target:  # of a replicate
                error = np.where(np.isnan(values[name]), 1.0, error)
            error = non_negative(called, error, shape=None)
            known[name] = sd(error, gaussian=known[name].gaussian)
        self._weigh(roles, values, copies, known)
        if target in known:
            error = error_of(target, known.pop(target), y[:, None])
            if error.std_error:
                raise ValueError(f"give the variance of the error in {target!r}, not an estimate")
            y, y_cov = y - error.mean, np.broadcast_to(error.variance, y.shape)
        features: dict[str, Any] = {}
        for name in roles.names:
            features[name] = copies[name] if name in copies else values[name]
            if name in categories:
                own = mean_recoding(features[name], categories[name])
                features[name] = Recoding(own, categories[name])
                del known[name]
        return observed(
            columns_of_copies(features),
            y,
            known if isinstance(noise, Mapping) else noise,
            target=str(target),
            cross_cov=self.cross_cov,
            products=self.products,
            references=references,
            index=index,
            target_cov=y_cov,
            beside=self._beside(column, rows),
        )

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
        for name, other in roles.deviations.items():
            errors = copies_of_subjects(values[other], rows) if name in blocks else np.zeros(1)
            if errors.ndim == 2 and (np.nanmax(errors, axis=1) > np.nanmin(errors, axis=1)).any():
                values[other] = errors
        for name in [one for one in values if one not in blocks and np.ndim(values[one]) == 1]:
            values[name] = of_first_rows(values[name], name, labels, rows)
        return blocks, np.asarray(labels)[rows[0]].tolist(), rows

    def _weigh(
        self, roles: Roles, values: dict[str, Any], copies: dict[str, np.ndarray], known: Any
    ) -> None:
        """Replaces copies of which each has an error of its own by their weighted mean.

        With the standard deviation σ_v of the error in copy v, the weights are 1/σ_v², and the mean
        has an error of variance 1/Σ_v σ_v^(−2).
        """
        for name, columns in roles.copies.items():
            own = [known.get(one) for one in columns]
            several_rows = isinstance(own[0], StandardDeviation) and np.ndim(own[0].value) == 2
            if not several_rows and not any(one in known and one != name for one in columns):
                continue
            block = copies.pop(name)
            seen, law = ~np.isnan(block), all(getattr(one, "gaussian", False) for one in own)
            if several_rows:
                variances = np.asarray(own[0].value) ** 2
            else:
                pairs = zip(columns, block.T, strict=True)
                errors = [error_of(one, known.pop(one), part[:, None]) for one, part in pairs]
                if any(one.only_sums or one.std_error for one in errors):
                    raise ValueError(f"each replicate of {name!r} needs a known variance")
                block = block - np.array([one.mean for one in errors])
                variances = np.column_stack(
                    [np.broadcast_to(one.variance, len(block)) for one in errors]
                )
            if not np.all(variances[seen] > 0):
                raise ValueError(f"errors of replicates of {name!r} must have a variance above 0")
            weights = np.where(seen, 1 / np.where(seen, variances, 1.0), 0.0)
            total = weights.sum(axis=1)
            values[name] = np.sum(weights * np.where(seen, block, 0.0), axis=1) / total
            known[name] = sd(total**-0.5, gaussian=law)

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
        replicated |= {other for one, other in roles.deviations.items() if one in replicated}
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
            if shape == (0,):
                raise ValueError(f"{where} has no rows")
            if shape != (rows,) or not rows:
                raise ValueError(
                    f"{called} must have one number a row, as other columns have, got {list(shape)}"
                )
            values[name] = found
            if not categories:
                warn_of_code(f"{called} of {where}", found)
        return values
