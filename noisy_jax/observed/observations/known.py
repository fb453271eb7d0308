"""Error objects from the argument `noise`: of one column, by names of columns, or by positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.linalg.matrices import check_covariance
from noisy_jax.noise import (
    Attributes,
    CovarianceEstimate,
    Gaussian,
    Missing,
    Noise,
    PerRound,
    Poisson,
)
from noisy_jax.noise.dependent import Dependent
from noisy_jax.noise.rounds import by_round, check_noise
from noisy_jax.observed.observations.described import (
    Reliability,
    StandardDeviation,
    check_no_recording,
    error_size,
)
from noisy_jax.observed.observations.errors import Errors, Known, Replicates, Unreliable
from noisy_jax.validation.arrays import (
    check_axes,
    check_dimension,
    check_shape,
    shape_of,
)
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.numbers import non_negative, number

UNKNOWN = (
    "noise is unknown: give its variance, as 0.1 or one number a column, or replicates as "
    "x [n, V >= 2, d]"
)
"""Message where the errors are neither given nor can be estimated."""


class ErrorOfColumn(NamedTuple):
    """The error in one copy of a column."""

    variance: np.ndarray  # [], or [n] for one a row
    mean: float = 0.0  # it is subtracted from the column
    law: Noise | None = None  # its distribution; `None` if only the variance is known
    in_sums: bool = False  # whether variances by row are right in sums over rows only
    std_error: float = 0.0  # of the variance, if it is an estimate
    unreliability: float = 0.0  # `variance` over the column's variance, if that is known


def error_of(name: str, stated: Any, x: np.ndarray) -> ErrorOfColumn:
    """The error in the column of this name, with copies x `[n, V]`.

    It is stated by a variance, `sd(value)`, `reliability(ratio)` or a scalar distribution.
    """
    name = f"noise[{name!r}]"
    if isinstance(stated, StandardDeviation):
        if stated.value is None:
            raise ValueError(f"{name} names a column: nj.table and nj.csv take these")
        value = np.asarray(error_size(name, stated.value, shape=None), np.float64)
        if value.shape not in ((), (len(x),)):
            wanted = f"one standard deviation, or {len(x)}, one a row"
            raise ValueError(f"{name} must be {wanted}, got shape {list(value.shape)}")
        law: Any = jax.vmap(Gaussian) if value.ndim else Gaussian
        return ErrorOfColumn(value**2, law=law(value**2) if stated.gaussian else None)
    if isinstance(stated, CovarianceEstimate):
        if np.size(stated.cov) != 1 or np.size(stated.std_error) != 1:
            raise ValueError(
                f"{name} must be the estimate of one variance, with its standard error"
            )
        variance, error = (
            np.asarray(error_size(part, value, shape=None), np.float64).reshape(())
            for part, value in ((name, stated.cov), (f"{name}.std_error", stated.std_error))
        )
        return ErrorOfColumn(variance, std_error=float(error))
    by_row = isinstance(stated, Reliability | Dependent)
    if by_row and x.shape[1] > 1:
        raise ValueError(
            f"{name} is for one copy of each row, but there are replicates: leave it out, and it "
            "is estimated from them"
        )
    if isinstance(stated, Reliability):
        share = 1 - stated.ratio
        return ErrorOfColumn(share * x.var(), in_sums=share > 0, unreliability=share)
    if not isinstance(stated, Noise):
        if shape_of(name, stated) or isinstance(stated, PerRound):
            raise ValueError(
                f"{name} must be a variance, nj.sd(…), nj.reliability(…) or a distribution, got "
                f"{given(stated)}; one standard deviation a row is nj.sd(array)"
            )
        return ErrorOfColumn(np.asarray(error_size(name, stated), np.float64))
    check_no_recording(name, stated)
    _check_complete(name, stated)
    if any(map(np.ndim, jax.tree.leaves(stated))):
        raise ValueError(
            f"{name} must be a distribution of one number, such as nj.noise.Laplace(0.3), got "
            f"{type(stated).__name__} of several: name each column, or give noise of all features, "
            f"in their order, as noise=nj.noise.{type(stated).__name__}(…)"
        )
    if isinstance(stated, Dependent):
        variance = _estimated_covariances(stated, x[:, :, None], (name,))
        return ErrorOfColumn(variance[:, 0, 0], law=stated, in_sums=True)
    return ErrorOfColumn(np.asarray(stated.cov, np.float64), float(stated.mean), stated)


def errors_by_name(
    noise: Mapping[str, Any], x: np.ndarray, names: Sequence[str], replicated: np.ndarray
) -> list[Errors]:
    """Returns the errors in x from a mapping of names to arguments of `error_of`.

    Columns that it does not name have errors that are estimated from their copies, or else none.

    Args:
        noise: errors by the names of columns.
        x: `[n, V, d]`, with NaN where there is no copy; known means are subtracted from it.
        names: names of the d columns.
        replicated: `[d]`, which of them have copies of their own in the V places.
    """
    for name in noise:
        if name not in {*names}:
            raise ValueError(f"noise has {name!r}, but x has the columns {listed(names)}")
    by_place = {}
    for j, name in enumerate(names):
        if name in noise:
            column_error = error_of(name, noise[name], x[:, :, j] if replicated[j] else x[:, :1, j])
            if column_error.mean:
                x[:, :, j] -= column_error.mean
            if np.any(column_error.variance):
                by_place[j] = column_error
    errors: list[Errors] = []
    places = tuple(j for j, column_error in by_place.items() if not column_error.unreliability)
    if places:
        stated = [by_place[j] for j in places]
        by_row = any(np.ndim(column_error.variance) for column_error in stated)
        cov = np.zeros((len(x),) * by_row + (len(places), len(places)))
        for k, column_error in enumerate(stated):
            cov[..., k, k] = column_error.variance
        deviations = np.diag([column_error.std_error for column_error in stated])
        error = deviations if deviations.any() else None
        each_row = not any(column_error.in_sums for column_error in stated)
        errors.append(
            Known(
                places,
                cov,
                tuple(column_error.law for column_error in stated),
                error,
                each_row=each_row,
            )
        )
    if unreliable := tuple(j for j in by_place if j not in places):
        errors.append(
            Unreliable(unreliable, np.array([by_place[j].unreliability for j in unreliable]))
        )
    copied = [j for j, name in enumerate(names) if replicated[j] and name not in noise]
    return [*errors, Replicates(tuple(copied))] if copied else errors


def errors_by_position(noise: Any, x: np.ndarray, names: Sequence[str]) -> list[Errors]:
    """Returns the errors from `noise`, an argument of `from_arrays` in the order of the columns.

    Args:
        noise: errors of all columns.
        x: `[n, V, d]`; known means of the errors are subtracted from it.
        names: of the d columns.
    """
    rows, _, dim = x.shape

    def of_all_columns(cov, law=None, **more) -> list[Errors]:
        return [Known(tuple(range(dim)), cov, law, **more)]

    _check_complete("noise", noise)
    if isinstance(noise, Reliability):
        call = f"noise={{{names[0]!r}: nj.reliability(0.6)}}"
        raise ValueError(f"a reliability is of one column, as {call}")
    if isinstance(noise, StandardDeviation):
        if noise.value is None:
            raise ValueError("noise names a column: nj.table takes such noise, by a mapping")
        variances = np.asarray(noise.value, np.float64) ** 2
        if variances.shape in ((), (dim,)):
            return of_all_columns(
                _full(variances, dim), Gaussian(variances) if noise.gaussian else None
            )
        reason = "one standard deviation for each row and column"
        check_shape("sd", variances, (rows, dim), reason)
        law = PerRound(jax.vmap(Gaussian)(variances)) if noise.gaussian else None
        return of_all_columns(variances[:, :, None] * np.eye(dim), law)
    if noise is None:
        raise ValueError(UNKNOWN)
    if isinstance(noise, CovarianceEstimate):
        error = np.asarray(non_negative("std_error", noise.std_error, shape=None), np.float64)
        check_shape("std_error", error, (dim, dim), "one number for each entry of cov")
        moves = noise.deviations
        if moves is not None:
            moves = np.asarray(number("deviations", moves, shape=None), np.float64)
            check_axes("deviations", moves, "[n, d, d]")
            check_shape("deviations", moves[:1], (1, dim, dim), "one matrix an instance")
        return of_all_columns(_full(noise.cov, dim), std_error=error, deviations=moves)
    if isinstance(noise, PerRound):
        check_noise(noise, None, rows)
        if noise.distribution.depends_on_x:
            raise ValueError("noise.PerRound must hold noise whose covariance does not depend on x")
        cov = jax.vmap(lambda distribution: distribution.covariance(dim))(noise.distribution)
        means = jax.vmap(lambda distribution: jnp.broadcast_to(distribution.mean, (dim,)))(
            noise.distribution
        )
        x -= np.asarray(means, np.float64)[:, None]
        return of_all_columns(_full(cov, dim, stacked=True), noise)
    if isinstance(noise, Dependent):
        return of_all_columns(_estimated_covariances(noise, x, names), noise)
    if isinstance(noise, Noise):
        cov, mean = _full(noise.cov, dim), np.asarray(noise.mean, np.float64)
        check_dimension("noise.mean", mean, (dim,))
        if mean.any():
            x -= mean
        return of_all_columns(cov, noise)
    cov = _full(noise, dim)
    return of_all_columns(cov) if cov.any() else []


def _full(cov, dim, *, stacked=False) -> np.ndarray:
    """`[d, d]` from a covariance in any of its forms; `[n, d, d]` from stacked ones."""
    check_covariance("noise", cov, stacked=stacked)
    cov = np.asarray(cov, np.float64)
    check_dimension("noise", cov[0] if stacked else cov, (dim,))
    rank = cov.ndim - stacked
    return cov if rank == 2 else cov.reshape(cov.shape + (1,) * (2 - rank)) * np.eye(dim)


def _check_complete(name: str, stated: Any) -> None:
    """Raises ValueError if noise, an argument of this name, hides values of rows."""
    if isinstance(by_round(stated)[0], Missing | Attributes):
        raise ValueError(
            f"{name} hides values, which is for streams, but tables take complete rows: leave it "
            "out, and drop rows with a missing value, as by frame.dropna()"
        )


def _estimated_covariances(noise: Dependent, x: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """The mean of `noise.estimated_cov` over the copies of each row, `[n, d, d]`.

    Args:
        noise: of the d columns.
        x: `[n, V, d]`, the measured values, in float64.
        names: of the columns, for messages.
    """
    noise.check_dimension(x.shape[2:])
    if isinstance(noise, Poisson):
        for row, _, column in np.argwhere((x < 0) | (x != np.round(x))).tolist():
            raise ValueError(
                f"noise.Poisson is for counts, but {names[column]!r} is not a count in row {row}: "
                "give counts as they are, without scaling"
            )
    with jax.enable_x64(True):
        cov = np.asarray(jax.vmap(jax.vmap(noise.estimated_cov))(jnp.asarray(x))).mean(axis=1)
    return cov if cov.ndim == 3 else cov[:, :, None] * np.eye(x.shape[2])
