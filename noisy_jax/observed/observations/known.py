"""Error objects from the argument `noise`: by the names of columns, or by their positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.linalg.matrices import check_covariance
from noisy_jax.noise import CovarianceEstimate, Gaussian, Noise, PerRound
from noisy_jax.noise.dependent import Dependent
from noisy_jax.noise.rounds import check_noise
from noisy_jax.observed.observations.dependent import covariances
from noisy_jax.observed.observations.described import (
    Reliability,
    StandardDeviation,
    check_complete,
    error_of,
)
from noisy_jax.observed.observations.errors import Errors, Known, Replicates, Unreliable
from noisy_jax.validation.arrays import check_dimension, check_shape
from noisy_jax.validation.messages import listed
from noisy_jax.validation.numbers import non_negative, number

UNKNOWN = (
    "noise is unknown: give its variance, as 0.1 or one number a column, or replicates as "
    "x [n, V >= 2, d]"
)
"""Message where the errors are neither given nor can be estimated."""


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
    found = {}
    for j, name in enumerate(names):
        if name in noise:
            own = error_of(name, noise[name], x[:, :, j] if replicated[j] else x[:, :1, j])
            if own.mean:
                x[:, :, j] -= own.mean
            if np.any(own.variance):
                found[j] = own
    errors: list[Errors] = []
    known = tuple(j for j, one in found.items() if not one.unreliability)
    if known:
        own = [found[j] for j in known]
        by_row = any(np.ndim(one.variance) for one in own)
        cov = np.zeros((len(x),) * by_row + (len(known), len(known)))
        for k, one in enumerate(own):
            cov[..., k, k] = one.variance
        deviations = np.diag([one.std_error for one in own])
        error = deviations if deviations.any() else None
        each_row = not any(one.in_sums for one in own)
        errors.append(Known(known, cov, tuple(one.law for one in own), error, each_row=each_row))
    if unreliable := tuple(j for j in found if j not in known):
        errors.append(
            Unreliable(unreliable, np.array([found[j].unreliability for j in unreliable]))
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

    def known(cov, law=None, **more) -> list[Errors]:
        return [Known(tuple(range(dim)), cov, law, **more)]

    check_complete("noise", noise)
    if isinstance(noise, Reliability):
        call = f"noise={{{names[0]!r}: nj.reliability(0.6)}}"
        raise ValueError(f"a reliability is of one column, as {call}")
    if isinstance(noise, StandardDeviation):
        if noise.value is None:
            raise ValueError("noise names a column: nj.table takes such noise, by a mapping")
        variances = np.asarray(noise.value, np.float64) ** 2
        if variances.shape in ((), (dim,)):
            return known(_full(variances, dim), Gaussian(variances) if noise.gaussian else None)
        reason = "one standard deviation for each row and column"
        check_shape("sd", variances, (rows, dim), reason)
        law = PerRound(jax.vmap(Gaussian)(variances)) if noise.gaussian else None
        return known(variances[:, :, None] * np.eye(dim), law)
    if noise is None:
        raise ValueError(UNKNOWN)
    if isinstance(noise, CovarianceEstimate):
        error = np.asarray(non_negative("std_error", noise.std_error, shape=None), np.float64)
        check_shape("std_error", error, (dim, dim), "one number for each entry of cov")
        moves = noise.deviations
        if moves is not None:
            moves = np.asarray(number("deviations", moves, shape=None), np.float64)
            check_shape("deviations", moves[:1], (1, dim, dim), "one matrix an instance")
        return known(_full(noise.cov, dim), std_error=error, deviations=moves)
    if isinstance(noise, PerRound):
        check_noise(noise, None, rows)
        if noise.distribution.depends_on_x:
            raise ValueError("noise.PerRound must hold noise whose covariance does not depend on x")
        cov = jax.vmap(lambda one: one.covariance(dim))(noise.distribution)
        means = jax.vmap(lambda one: jnp.broadcast_to(one.mean, (dim,)))(noise.distribution)
        x -= np.asarray(means, np.float64)[:, None]
        return known(_full(cov, dim, stacked=True), noise)
    if isinstance(noise, Dependent):
        return known(covariances(noise, x, names), noise)
    if isinstance(noise, Noise):
        cov, mean = _full(noise.cov, dim), np.asarray(noise.mean, np.float64)
        check_dimension("noise.mean", mean, (dim,))
        if mean.any():
            x -= mean
        return known(cov, noise)
    cov = _full(noise, dim)
    return known(cov) if cov.any() else []


def _full(cov, dim, *, stacked=False) -> np.ndarray:
    """`[d, d]` from a covariance in any of its forms; `[n, d, d]` from stacked ones."""
    check_covariance("noise", cov, stacked=stacked)
    cov = np.asarray(cov, np.float64)
    check_dimension("noise", cov[0] if stacked else cov, (dim,))
    rank = cov.ndim - stacked
    return cov if rank == 2 else cov.reshape(cov.shape + (1,) * (2 - rank)) * np.eye(dim)
