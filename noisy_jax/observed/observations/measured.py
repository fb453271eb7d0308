"""The table of measured values: features in columns of copies, and their known errors.

All functions that make a table call this module, once names, missing values and roles are resolved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.observations.categories import Recoding
from noisy_jax.observed.observations.errors import Errors, Known, Recoded
from noisy_jax.observed.observations.known import UNKNOWN, errors_by_name, errors_by_position
from noisy_jax.observed.observations.labels import by_row
from noisy_jax.observed.observations.products import with_products
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.numbers import number


class Measured(NamedTuple):
    """Features in columns of copies."""

    x: np.ndarray  # [n, V, d], NaN where there is no copy
    names: tuple[str, ...]  # of the d columns
    replicated: np.ndarray  # [d], which columns have copies of their own in the V places
    features: tuple[str, ...]  # names of the features, of which one may be several columns
    source: tuple[int, ...]  # the feature of each column
    recoded: tuple[Recoded, ...] = ()  # errors of the misclassified columns


def columns_of_copies(features: Mapping[str, np.ndarray | Recoding]) -> Measured:
    """Returns features in columns: single values `[n]`, copies `[n, V_j]`, or recodings."""
    names: list[str] = []
    source: list[int] = []
    parts: list[np.ndarray] = []
    recoded = []
    for j, (name, values) in enumerate(features.items()):
        columns = [name]
        if isinstance(values, Recoding):
            columns = values.categories.columns
            places = tuple(range(len(names), len(names) + len(columns)))
            recoded.append(Recoded(places, values.categories._replace(places=places)))
            parts += [*values.values.T]
        else:
            parts.append(values)
        names += columns
        source += len(columns) * [j]
    if len({*names}) < len(names):
        raise ValueError(f"names of columns must differ from those of categories: {listed(names)}")
    replicated = np.array([part.ndim == 2 for part in parts])
    most = max(part.shape[1] if part.ndim == 2 else 1 for part in parts)
    x = np.empty((len(parts[0]), most, len(parts)))
    for j, part in enumerate(parts):
        copies = part if part.ndim == 2 else np.broadcast_to(part[:, None], x.shape[:2])
        x[:, : copies.shape[1], j] = copies
        x[:, copies.shape[1] :, j] = np.nan
    return Measured(x, tuple(names), replicated, tuple(features), tuple(source), tuple(recoded))


def observations_of(
    measured: Measured,
    y: np.ndarray,
    noise: Any,
    *,
    target: str,
    cross_cov: Any = None,
    products: Sequence[tuple[str, str]] = (),
    references: Sequence[str] = (),
    **more: Any,
) -> Observations:
    """Returns the table of measured features and of all that is known of their errors.

    Args:
        measured: the features; its array becomes the table's.
        y: `[n]` targets.
        noise: a mapping by names of columns, or by position; `None`: estimated from replicates.
        target: name of y.
        cross_cov: as in `from_arrays`, for the features.
        products: pairs of names of columns.
        references: categories of features in whose place are indicators.
        **more: further attributes of `Observations`.
    """
    x, names, copied = measured.x, measured.names, measured.replicated
    if noise is None and copied.any():
        noise = {}
    if isinstance(noise, Mapping):
        stated = errors_by_name(noise, x, names, copied)
    elif x.shape[1] > 1 and np.isnan(x).any():
        kind = "different numbers of" if np.isnan(x).all(axis=0).any() else "incomplete"
        raise ValueError(
            f"features with {kind} replicates need noise by their names, such as "
            f"noise={{{names[copied.argmax()]!r}: 0.25}}, or none, with which it is estimated"
        )
    else:
        stated = errors_by_position(noise, x, names)
        noisy = [j for error in stated for j in error.noisy()] if copied.any() else []
        for j in [j for j in noisy if not copied[j]]:
            raise ValueError(
                f"column {given(names[j])} has noise but no replicates: give the noise of columns "
                f"by their names, as noise={{{names[j]!r}: 0.25}}"
            )
    errors = (*stated, *measured.recoded)
    # A single copy; or one kind of error, every noisy column replicated, no copy missing.
    even = x.shape[1] == 1 or (
        len(errors) < 2
        and all(copied[j] for error in errors for j in error.noisy())
        and not np.isnan(x).any()
    )
    _check(x, copied, errors, names, even)
    cross = None if cross_cov is None else _cross(cross_cov, measured)
    references_of_recoded = (error.categories.reference for error in measured.recoded)
    more["references"] = (*references, *filter(None, references_of_recoded))
    table = Observations(x, y, errors, names, target, copied, even, cross, **more)
    return with_products(table, products)


def _check(
    x: np.ndarray, copied: np.ndarray, errors: Sequence[Errors], names: Sequence[str], even: bool
) -> None:
    """Raises ValueError if errors of some columns cannot stand beside errors of another kind."""
    if x.shape[1] == 1 and any(error.estimated for error in errors):
        raise ValueError(UNKNOWN)
    estimates = [
        error for error in errors if isinstance(error, Known) and error.std_error is not None
    ]
    if not estimates:
        return
    if any(error.categories for error in errors):
        raise ValueError(
            "beside a misclassified column variances of errors count as known: give the variance, "
            "not a noise.CovarianceEstimate"
        )
    places = np.array(estimates[0].places)
    uncertain = np.diag(np.asarray(estimates[0].std_error)) > 0
    for j in places[uncertain & copied[places]] if not even else ():
        raise ValueError(
            f"replicates of {names[j]!r} in unequal numbers, or beside other noisy columns, need "
            "a known variance, not a noise.CovarianceEstimate: or give their means as one column"
        )


def _cross(cross_cov: Any, measured: Measured) -> np.ndarray:
    """The covariance of the errors in y and in the first copy, `[d]` or `[n, d]`."""
    dim, rows = len(measured.features), len(measured.x)
    cross = by_row("cross_cov", cross_cov, measured.features)
    cross = np.asarray(number("cross_cov", cross, shape=None), np.float64)
    if cross.shape not in ((dim,), (rows, dim)):
        wanted, shape = f"[{dim}] or [{rows}, {dim}]", list(cross.shape)
        raise ValueError(f"cross_cov must be {wanted}, got {shape}")
    cross = cross[..., list(measured.source)]
    for error in measured.recoded:
        if np.any(cross[..., list(error.places)]):
            raise ValueError(
                f"cross_cov of {error.categories.name!r} must be 0: misclassification must not "
                "depend on y"
            )
    return cross
