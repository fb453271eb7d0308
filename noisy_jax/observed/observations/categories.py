"""Misclassified columns of a table, as recoded indicators with a covariance in each row.

A recorded category k becomes the recoding u(k) of `noise.Misclassified`, of which the table holds
the indicators behind the first category; of several recorded copies of a row it holds the mean. The
covariance of their error is unknown, as the true category is, and in its place is the unbiased
estimate u uᵀ − diag(u).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from noisy_jax.columns import is_missing
from noisy_jax.noise import Gaussian, Misclassified
from noisy_jax.noise.rounds import by_round
from noisy_jax.validation import given, listed

_Table = TypeVar("_Table")

_NAMED = (
    "name all of them in the order of the matrix, as nj.noise.Misclassified(matrix, categories=[…])"
)


class Categories(NamedTuple):
    """The categories of a misclassified column."""

    name: str  # of the column as it was recorded
    labels: tuple[Any, ...]  # K categories, the first of which is the reference
    matrix: np.ndarray  # [K, K], in row j the probabilities that j is recorded as each of them
    places: tuple[int, ...] = ()  # of its K − 1 indicators among the columns of the table

    @property
    def columns(self) -> list[str]:
        """Names of the indicators."""
        if self.labels in ((0, 1), (False, True)):
            return [self.name]
        return [f"{self.name}[{_text(label)}]" for label in self.labels[1:]]

    def told(self) -> str:
        """To which categories the matrix refers; "" of 0 and 1."""
        if self.columns == [self.name]:
            return ""
        labels = ", ".join(map(_text, self.labels))
        return f"rows and columns of the matrix of {self.name!r} are {labels}, in this order"

    def recodings(self, x: np.ndarray) -> np.ndarray:
        """`[n, K]`, u of all categories, in rows `[n, d]` of the table."""
        own = x[:, list(self.places)]
        return np.column_stack([1 - own.sum(axis=1), own])

    def recorded(self, x: np.ndarray) -> np.ndarray:
        """`[n, K]`, indicators of the recorded category, or their means over copies: Mᵀu."""
        return self.recodings(x) @ self.matrix


def categories_of(
    name: str, values: Any, noise: Misclassified, orders: Sequence[list[Any]] = ()
) -> tuple[np.ndarray, Categories]:
    """The number of the category in each cell, NaN where there is none, and the categories.

    `values` `[n]` or `[n, V]` are labels of any kind. If `noise` names no categories, they are
    those in the column, in the order that the frame keeps of them (`columns.order_of`, of each
    copy), or else sorted.
    """
    cells = np.asarray(values, object)
    flat = [None if is_missing(one) else one for one in cells.ravel().tolist()]
    found = {one for one in flat if one is not None}
    count = len(noise.matrix)
    labels = noise.categories
    for order in orders if labels is None else ():
        kept = order if len(order) == count else [one for one in order if one in found]
        if labels is not None and labels != tuple(kept):
            raise ValueError(
                f"replicates of {name!r} have categories in different orders, {listed(labels)} and "
                f"{listed(kept)}: {_NAMED}"
            )
        labels = tuple(kept)
    if labels is None:
        try:
            labels = tuple(sorted(found))
        except TypeError:
            raise ValueError(f"column {name!r} has categories of several types") from None
    if len(labels) != count:
        raise ValueError(
            f"noise[{name!r}] is of {count} categories, but the column has {len(labels)}, "
            f"{listed(labels)}: {_NAMED}"
        )
    places: dict[Any, float] = {label: k for k, label in enumerate(labels)}
    for one in flat:
        if one is not None and one not in places:
            raise ValueError(
                f"column {name!r} has the category {given(one)}, but those of its noise are "
                f"{listed(labels)}"
            )
    numbers = np.array([np.nan if one is None else places[one] for one in flat])
    numbers = numbers.reshape(cells.shape)
    return numbers, Categories(name, tuple(labels), np.asarray(noise.matrix, np.float64))


def mean_recoding(numbers: np.ndarray, categories: Categories) -> np.ndarray:
    """`[n, K − 1]`, the mean recoding of the copies `[n]` or `[n, V]` of each row."""
    numbers = numbers.reshape(len(numbers), -1)
    seen = ~np.isnan(numbers)
    for row in np.flatnonzero(~seen.any(axis=1))[:1]:
        raise ValueError(
            f"row {row} of {categories.name!r} has no category: drop such rows, or make missing a "
            "category"
        )
    inverse = np.linalg.inv(categories.matrix)[:, 1:]
    own = np.where(seen[:, :, None], inverse[np.where(seen, numbers, 0).astype(int)], 0.0)
    return own.sum(axis=1) / seen.sum(axis=1)[:, None]


def with_categories(table: _Table, recoded: Mapping[str, tuple[np.ndarray, Categories]]) -> _Table:
    """The table with recodings `[n, K − 1]` in place of the columns of these names.

    So far these are exact columns of the table. With replicates of others the means of the copies
    are taken (V = 1).
    """
    if not recoded:
        return table
    old: Any = table
    if old.cov_std_error.any():
        raise ValueError(
            "beside a misclassified column variances of errors count as known: give the variance, "
            "not a noise.CovarianceEstimate"
        )
    x, cov = old.averaged()
    cross, copies = old.averaged_cross(), old.copies
    if old.x.shape[1] > 1:
        copies = old.x
    names: list[str] = []
    source: list[int] = []
    made = []
    for j, name in enumerate(old.names):
        columns = [name]
        if name in recoded:
            columns = recoded[name][1].columns
            places = tuple(range(len(names), len(names) + len(columns)))
            made.append((recoded[name][0], recoded[name][1]._replace(places=places)))
            if cross is not None and np.any(cross[..., j]):
                raise ValueError(
                    f"cross_cov of {name!r} must be 0: misclassification must not depend on y"
                )
        names += columns
        source += [j] * len(columns)
    if len({*names}) < len(names):
        raise ValueError(f"names of columns must differ from those of categories: {listed(names)}")
    x = x[:, source]
    full = np.empty((len(x), len(names), len(names)))
    full[:] = cov[..., np.array(source)[:, None], source]
    for values, one in made:
        own = np.array(one.places)
        x[:, own] = values
        full[:, own[:, None], own] = values[:, :, None] * (values[:, None] - np.eye(len(own)))
    if copies is not None:
        copies = copies[:, :, source]
        for values, one in made:
            copies[:, :, list(one.places)] = values[:, None]
    pooled = np.ones(len(old.names), bool) if old.cov is None else old.pooled
    estimated = {"pooled": pooled, "unreliability": old.unreliability}
    estimated = {name: None if own is None else own[source] for name, own in estimated.items()}
    for _, one in made if estimated["pooled"] is not None else ():
        estimated["pooled"][list(one.places)] = False
    return dataclasses.replace(
        old,
        x=x[:, None],
        cov=full,
        cov_std_error=np.zeros(full.shape[1:]),
        noise=None if isinstance(by_round(old.noise)[0], Gaussian) else old.noise,
        names=tuple(names),
        cross_cov=None if cross is None else cross[..., source],
        only_sums=old.only_sums or old.cov is None,
        copies=copies,
        references=tuple(
            f"{one.name}[{_text(one.labels[0])}]" for _, one in made if one.columns != [one.name]
        ),
        categories=tuple(one for _, one in made),
        **estimated,
    )


def recording(categories: Sequence[Categories], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """F `[d, d]` and f `[d]` with which x̃ = F r + f, for r with indicators of recorded categories.

    Where r has means of indicators over copies, x̃ has the means of recodings.
    """
    matrix, offset = np.eye(dim), np.zeros(dim)
    for one in categories:
        inverse, own = np.linalg.inv(one.matrix)[:, 1:], np.array(one.places)
        offset[own] = inverse[0]
        matrix[own[:, None], own] = (inverse[1:] - inverse[0]).T
    return matrix, offset


def recorded_means(table: Any) -> np.ndarray:
    """`[n, d]`, means of the copies of a table, with indicators of recorded categories."""
    x, (matrix, offset) = table.averaged()[0], recording(table.categories, len(table.names))
    return np.linalg.solve(matrix, (x - offset).T).T if table.categories else x


def without_categories(
    x: np.ndarray, noise: Mapping[str, Any], names: Sequence[str]
) -> tuple[np.ndarray, dict[str, Any], dict[str, tuple[np.ndarray, Categories]]]:
    """x with 0 in misclassified columns, the noise of the others, and what is in their place."""
    recoded, others = {}, dict(noise)
    for name in [name for name in noise if name in names]:
        if not isinstance(noise[name], Misclassified):
            continue
        j = names.index(name)
        numbers, categories = categories_of(name, x[:, :, j], others.pop(name))
        recoded[name] = mean_recoding(numbers, categories), categories
        x = x.copy()
        x[:, :, j] = 0.0
    return x, others, recoded


def _text(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)
