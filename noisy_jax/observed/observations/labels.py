"""Arguments with labels of their own, such as a pandas Series, in the order of the columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from noisy_jax.noise import CovarianceEstimate, PerRound, Product
from noisy_jax.observed.observations.described import StandardDeviation
from noisy_jax.tabular.columns import in_order, index_of
from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.messages import listed


def by_column(noise: Any, names: Sequence[str]) -> Any:
    """Returns the noise; for a product with a column that depends on x, the columns by names."""
    if not isinstance(noise, Product) or not noise.depends_on_x:
        return noise
    check_dimension("Product.columns", noise.columns, (len(names),))
    return dict(zip(names, noise.columns, strict=True))


def by_name(name: str, values: Any, names: tuple[str, ...]) -> Any:
    """The noise, or its covariance with y, in the order of the columns, if it has labels."""
    values = by_column(values, names)
    if isinstance(values, Mapping):
        if name == "noise":
            return values
        for label in values:
            if label not in names:
                raise ValueError(f"{name} has {label!r}, but x has the columns {listed(names)}")
        return [values.get(label, 0) for label in names]
    if isinstance(values, StandardDeviation):
        return dataclasses.replace(values, value=by_row("noise", values.value, names))
    if isinstance(values, PerRound):
        return jax.tree.map(lambda v: v if index_of(v) is None else np.asarray(v), values)
    if isinstance(values, CovarianceEstimate):
        parts = values.cov, values.std_error
        cov, std_error = (by_name(name, part, names) for part in parts)
        return values._replace(cov=cov, std_error=std_error)
    if not hasattr(values, "axes"):
        return values
    if name == "noise" and np.ndim(values) == 2:  # a covariance of some of the columns
        labels, rows = ([str(label) for label in axis] for axis in (values.columns, values.index))
        same = sorted(rows) == sorted(labels) and len({*labels}) == len(labels)
        if same and {*labels} & {*names}:  # by name; without one they are positions
            unknown = [label for label in labels if label not in names]
            if unknown:
                raise ValueError(
                    f"noise has {listed(unknown)}, but x has the columns {listed(names)}"
                )
            places = (
                [names.index(label) for label in rows],
                [names.index(label) for label in labels],
            )
            full = np.zeros((len(names), len(names)))
            full[np.ix_(*places)] = np.asarray(values, np.float64)
            return full
    if np.shape(values) != len(values.axes) * (len(names),):
        return values
    orders = [in_order(name, labels, names) for labels in values.axes]
    return np.asarray(values)[np.ix_(*orders)]


def by_row(name: str, values: Any, names: tuple[str, ...]) -> Any:
    """Orders arguments as `by_name` does, where a DataFrame has a row for each row of the table."""
    if hasattr(values, "columns"):
        return np.asarray(values)[:, in_order(name, values.columns, names)]
    return by_name(name, values, names)


def of_each_row(noise: Any, cross_cov: Any) -> list[tuple[str, Any]]:
    """Arguments with a value for each row, which may have pandas labels, with their names."""
    by_column = noise if isinstance(noise, Mapping) else {}
    by_row = [
        (f"noise[{str(name)!r}]", stated.value)
        for name, stated in by_column.items()
        if isinstance(stated, StandardDeviation) and np.ndim(stated.value)
    ]
    if isinstance(noise, PerRound):
        by_row += [("noise", leaf) for leaf in jax.tree.leaves(noise)]
    whole = noise.value if isinstance(noise, StandardDeviation) else None
    pairs = (("noise", whole), ("cross_cov", cross_cov))  # a Series has the names of the columns
    return by_row + [(name, value) for name, value in pairs if hasattr(value, "columns")]
