"""Misclassified columns of a table, as recoded indicators with a covariance in each row.

A recorded category k becomes the recoding u(k) of `noise.Misclassified`. The table holds its
entries behind the first category; of several recorded copies of a row it holds the mean. The
covariance of their error is unknown, as the true category is, and in its place is the unbiased
estimate u uᵀ − diag(u).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.noise import Misclassified
from noisy_jax.tabular.columns import is_missing
from noisy_jax.validation.messages import given, listed

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

    @property
    def reference(self) -> str | None:
        """Returns the reference category of the indicators; `None` for a column of 0 and 1."""
        return None if self.columns == [self.name] else f"{self.name}[{_text(self.labels[0])}]"

    def told(self) -> str:
        """Returns a text on the categories of the matrix; "" for a column of 0 and 1."""
        if self.columns == [self.name]:
            return ""
        labels = ", ".join(map(_text, self.labels))
        return f"rows and columns of the matrix of {self.name!r} are {labels}, in this order"

    def recodings(self, x: np.ndarray) -> np.ndarray:
        """`[n, K]`, u of all categories, in rows `[n, d]` of the table."""
        indicators = x[:, list(self.places)]
        return np.column_stack([1 - indicators.sum(axis=1), indicators])

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
    flat = [None if is_missing(cell) else cell for cell in cells.ravel().tolist()]
    occurring = {cell for cell in flat if cell is not None}
    count = len(noise.matrix)
    labels = noise.categories
    for order in orders if labels is None else ():
        kept = order if len(order) == count else [cell for cell in order if cell in occurring]
        if labels is not None and labels != tuple(kept):
            raise ValueError(
                f"replicates of {name!r} have categories in different orders, {listed(labels)} and "
                f"{listed(kept)}: {_NAMED}"
            )
        labels = tuple(kept)
    if labels is None:
        try:
            labels = tuple(sorted(occurring))
        except TypeError:
            raise ValueError(f"column {name!r} has categories of several types") from None
    if len(labels) != count:
        raise ValueError(
            f"noise[{name!r}] is of {count} categories, but the column has {len(labels)}, "
            f"{listed(labels)}: {_NAMED}"
        )
    places: dict[Any, float] = {label: k for k, label in enumerate(labels)}
    for cell in flat:
        if cell is not None and cell not in places:
            raise ValueError(
                f"column {name!r} has the category {given(cell)}, but those of its noise are "
                f"{listed(labels)}"
            )
    numbers = np.array([np.nan if cell is None else places[cell] for cell in flat])
    numbers = numbers.reshape(cells.shape)
    return numbers, Categories(name, tuple(labels), np.asarray(noise.matrix, np.float64))


def mean_recoding(numbers: np.ndarray, categories: Categories) -> np.ndarray:
    """`[n, K − 1]`, the mean recoding of the copies `[n]` or `[n, V]` of each row."""
    numbers = numbers.reshape(len(numbers), -1)
    recorded = ~np.isnan(numbers)
    for row in np.flatnonzero(~recorded.any(axis=1))[:1]:
        raise ValueError(
            f"row {row} of {categories.name!r} has no category: drop such rows, or make missing a "
            "category"
        )
    inverse = np.linalg.inv(categories.matrix)[:, 1:]
    recodings = np.where(
        recorded[:, :, None], inverse[np.where(recorded, numbers, 0).astype(int)], 0.0
    )
    return recodings.sum(axis=1) / recorded.sum(axis=1)[:, None]


class Recoding(NamedTuple):
    """A misclassified column, recoded."""

    values: np.ndarray  # [n, K − 1], mean recodings of the copies of each row
    categories: Categories


def recoding(
    name: str, values: Any, noise: Misclassified, orders: Sequence[list[Any]] = ()
) -> Recoding:
    """The recoding of a column `[n]`, or of copies of it `[n, V]`; see `categories_of`."""
    numbers, categories = categories_of(name, values, noise, orders)
    return Recoding(mean_recoding(numbers, categories), categories)


def recording(categories: Sequence[Categories], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns F `[d, d]` and f `[d]` of x̃ = F r + f, for r with indicators of recorded categories.

    Where r has means of indicators over copies, x̃ has the means of recodings.
    """
    matrix, offset = np.eye(dim), np.zeros(dim)
    for column in categories:
        inverse, places = np.linalg.inv(column.matrix)[:, 1:], np.array(column.places)
        offset[places] = inverse[0]
        matrix[places[:, None], places] = (inverse[1:] - inverse[0]).T
    return matrix, offset


def recorded_means(table: Any) -> np.ndarray:
    """`[n, d]`, means of the copies of a table, with indicators of recorded categories."""
    x, (matrix, offset) = table.means().x, recording(table.categories, len(table.names))
    return np.linalg.solve(matrix, (x - offset).T).T if table.categories else x


def _text(label: Any) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)
