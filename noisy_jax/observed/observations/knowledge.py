"""What is known of the noise in a table, in the order of its columns."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.columns import in_order, index_of
from noisy_jax.matrices import check_covariance
from noisy_jax.noise import CovarianceEstimate, Gaussian, Noise, PerRound
from noisy_jax.noise.rounds import check_noise
from noisy_jax.observed.observations.described import (
    NoiseOfRows,
    Reliability,
    StandardDeviation,
    noise_of_columns,
)
from noisy_jax.validation import check_dimension, check_shape, listed, non_negative, number

Known = (
    float
    | np.ndarray
    | Sequence[Any]
    | Mapping[str, Any]
    | Noise
    | PerRound
    | CovarianceEstimate
    | StandardDeviation
    | None
)
"""What may be known of the noise: see `observations.from_arrays`."""


def by_name(name: str, values: Any, names: tuple[str, ...]) -> Any:
    """The noise, or its covariance with y, in the order of the columns, if it has labels."""
    if isinstance(values, Mapping):
        if name == "noise":
            return values
        for one in values:
            if one not in names:
                raise ValueError(f"{name} has {one!r}, but x has the columns {listed(names)}")
        return [values.get(one, 0) for one in names]
    if isinstance(values, StandardDeviation):
        return dataclasses.replace(values, value=by_row("noise", values.value, names))
    if isinstance(values, PerRound):
        return jax.tree.map(lambda v: v if index_of(v) is None else np.asarray(v), values)
    if isinstance(values, CovarianceEstimate):
        parts = values.cov, values.std_error
        cov, std_error = (by_name(name, part, names) for part in parts)
        return values._replace(cov=cov, std_error=std_error)
    if not hasattr(values, "axes") or np.shape(values) != len(values.axes) * (len(names),):
        return values
    orders = [in_order(name, labels, names) for labels in values.axes]
    return np.asarray(values)[np.ix_(*orders)]


def by_row(name: str, values: Any, names: tuple[str, ...]) -> Any:
    """As `by_name`, where a pandas DataFrame has a row for each row of the table."""
    if hasattr(values, "columns"):
        return np.asarray(values)[:, in_order(name, values.columns, names)]
    return by_name(name, values, names)


def known_noise(noise, x: np.ndarray, names: tuple[str, ...]) -> NoiseOfRows:
    """What `noise`, an argument of `from_arrays` in the order of the columns, says of the error.

    x `[n, V, d]` are the noisy rows, and `names` those of their columns.
    """
    rows, copies, dim = x.shape
    if isinstance(noise, Reliability):
        raise ValueError("a reliability is of one column, as noise={'x1': nj.reliability(0.6)}")
    exact = np.zeros((dim, dim))
    if isinstance(noise, Mapping):
        return noise_of_columns(noise, x, names)
    if isinstance(noise, StandardDeviation):
        variances = np.asarray(noise.value, np.float64) ** 2
        if variances.shape in ((), (dim,)):
            law = Gaussian(variances) if noise.gaussian else None
            return NoiseOfRows(_full(variances, dim), exact, law)
        reason = "one standard deviation for each row and column"
        check_shape("sd", variances, (rows, dim), reason)
        law = PerRound(jax.vmap(Gaussian)(variances)) if noise.gaussian else None
        return NoiseOfRows(variances[:, :, None] * np.eye(dim), exact, law)
    if noise is None:
        if copies < 2:
            known = "its variance, as 0.1 or one number a column, or replicates as x [n, V >= 2, d]"
            raise ValueError(f"noise is unknown: give {known}")
        return NoiseOfRows(None, exact)
    if isinstance(noise, CovarianceEstimate):
        error = np.asarray(non_negative("std_error", noise.std_error, shape=None), np.float64)
        check_shape("std_error", error, (dim, dim), "one number for each entry of cov")
        moves = noise.deviations
        if moves is not None:
            moves = np.asarray(number("deviations", moves, shape=None), np.float64)
            check_shape("deviations", moves[:1], (1, dim, dim), "one matrix an instance")
        return NoiseOfRows(_full(noise.cov, dim), error, cov_deviations=moves)
    if isinstance(noise, PerRound):
        check_noise(noise, None, rows)
        if noise.distribution.depends_on_x:
            raise ValueError("noise.PerRound must hold noise whose covariance does not depend on x")
        cov = jax.vmap(lambda one: one.covariance(dim))(noise.distribution)
        means = jax.vmap(lambda one: jnp.broadcast_to(one.mean, (dim,)))(noise.distribution)
        mean = np.asarray(means, np.float64)[:, None]
        return NoiseOfRows(_full(cov, dim, stacked=True), exact, noise, mean=mean)
    if isinstance(noise, Noise):
        cov, mean = _full(noise.cov, dim), np.asarray(noise.mean, np.float64)
        check_dimension("noise.mean", mean, (dim,))
        return NoiseOfRows(cov, exact, noise, mean=np.broadcast_to(mean, (dim,)))
    return NoiseOfRows(_full(noise, dim), exact)


def _full(cov, dim, *, stacked=False) -> np.ndarray:
    """`[d, d]` from a covariance in any of its forms; `[n, d, d]` from stacked ones."""
    check_covariance("noise", cov, stacked=stacked)
    cov = np.asarray(cov, np.float64)
    check_dimension("noise", cov[0] if stacked else cov, (dim,))
    rank = cov.ndim - stacked
    return cov if rank == 2 else cov.reshape(cov.shape + (1,) * (2 - rank)) * np.eye(dim)
