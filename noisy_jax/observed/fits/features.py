"""Features `[..., d]` in the order of a fit, from arrays, data frames, rows of these, mappings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from noisy_jax.observed.observations.frames import columns_of
from noisy_jax.tabular.columns import check_not_categorical, in_order, index_of, is_missing, numeric
from noisy_jax.validation.arrays import real_array, real_numbers, shape_of
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.values import collected, lists_traced, unmasked


def features_of(x: Any, names: tuple[str, ...], references: tuple[str, ...] = ()) -> Any:
    """Features `[..., d]` in the order of a fit's names.

    Columns of a data frame, of a row of it or of a mapping are found by name. Categories become
    indicators against `references`. In NumPy's float64, or traced in JAX's default precision.
    """
    x = collected(x)
    index = index_of(x)
    labelled = isinstance(x, Mapping) or hasattr(type(x), "columns")
    if not labelled and index is not None:  # a row of a DataFrame
        labelled = len(index) == len(names) or any(name in index for name in names)
    if labelled:
        x = _by_name(x, names, references)
    if isinstance(x, Tracer) or lists_traced(x):
        x = jnp.asarray(real_array("x", x), float)
    else:
        try:
            x = np.asarray(real_numbers("x", x), np.float64)
        except ValueError:
            shape_of("x", x)
            raise
    if x.shape[-1:] != (len(names),):
        raise ValueError(
            f"x must be [..., {len(names)}], got {list(x.shape)}: one column a feature, in the "
            "order of the fit"
        )
    return x


def _by_name(x: Any, names: tuple[str, ...], references: tuple[str, ...]) -> Any:
    """The columns of these names `[..., d]`; indicators that x lacks come from its categories."""
    index = index_of(x)
    if index is None and not isinstance(x, Mapping):
        labels, column, _ = columns_of(x)
        x = {label: column(label) for label in labels}
    labels = list(x if index is None or hasattr(x, "columns") else index)
    texts = [str(label) for label in labels]
    columns = {*texts}
    source_of = {one: _source(one, columns) for one in (*references, *names)}
    sources = {one: source_of[one] for one in names if one not in columns and source_of[one]}
    by_their_name = [name for name in names if name not in sources]
    try:
        taken = dict(
            zip(
                by_their_name,
                [labels[k] for k in in_order("x", labels, by_their_name)],
                strict=True,
            )
        )
    except ValueError as error:
        lost = [name for name in by_their_name if name not in texts]
        if not lost:
            raise
        for one in references:  # stands for the column of categories, which x has not
            source = next((one[:k] for k in _opening(one) if lost[0].startswith(one[: k + 1])), "")
            if source:
                has = f"x, which has {listed(texts)}"
                raise ValueError(f"column {source!r} of categories is missing in {has}") from None
        hint = "if it was measured several times, the mean of the copies is meant, as frame"
        raise ValueError(f"{error}: {hint}[[…]].mean(axis=1)") from None
    if hasattr(x, "columns"):
        check_not_categorical("x", x[list(taken.values())])
    values = {
        name: numeric(f"column {given(name)} of x", x[label], np.float64, missing=True)
        for name, label in taken.items()
    }
    for source in dict.fromkeys(sources.values()):
        indicators = [name for name in sources if sources[name] == source]
        levels_of_source = [one for one in source_of if source_of[one] == source]
        if levels_of_source[0] not in references:
            raise ValueError(
                f"x has the column {source!r}, but the fit has indicators of its categories: add "
                f"a column {indicators[0]!r} that is 1 where {source!r} is "
                f"{indicators[0][len(source) + 1 : -1]!r}, and 0 elsewhere"
            )
        levels = [one[len(source) + 1 : -1] for one in levels_of_source]
        own_level = _levels(source, x[labels[texts.index(source)]], levels)
        values |= {name: (own_level == levels_of_source.index(name)) * 1.0 for name in indicators}
    arrays = [values[name] for name in names]
    if any(isinstance(one, Tracer) for one in arrays):
        arrays = jnp.broadcast_arrays(*[jnp.asarray(one, float) for one in arrays])
        return jnp.stack(arrays, axis=-1)
    return np.stack(np.broadcast_arrays(*arrays), axis=-1)


def _source(name: str, columns: Collection[str]) -> str:
    """Returns the column behind an indicator, as `sex` of `sex[m]`, or "" if there is none."""
    return next((name[:k] for k in _opening(name) if name[:k] in columns), "")


def _opening(name: str) -> list[int]:
    """Returns the places of the brackets that may open the category in a name, the last first."""
    return [k for k in reversed(range(len(name))) if name[k] == "[" and name[-1] == "]"]


def _levels(name: str, values: Any, levels: Sequence[str]) -> np.ndarray:
    """The number of each cell's category among the levels of a fit."""
    cells = np.asarray(unmasked(values), object)
    numbers = np.empty(cells.shape, int)
    for place, cell in np.ndenumerate(cells):
        where = f" in row {place[0]}" if place else ""
        if is_missing(cell):
            raise ValueError(f"column {name!r} of x has no category{where}")
        texts = [str(cell), f"{cell:g}"] if isinstance(cell, float) else [str(cell)]
        places = [levels.index(text) for text in texts if text in levels]
        if not places:
            raise ValueError(
                f"column {name!r} of x has the category {given(cell)}{where}, and the fit has "
                f"{listed(levels)}"
            )
        numbers[place] = places[0]
    return numbers
