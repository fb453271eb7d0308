"""Checks that a learner can learn from observed rows, and the units that it learns in."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Learner, check_targets_of
from noisy_jax.learners.wrappers.assuming import Assumed
from noisy_jax.noise import Noise, PerRound
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.identification import check_cross, check_identified
from noisy_jax.observed.fits.units import Units
from noisy_jax.observed.observations import Observations

_TOLERANCE = 0.01  # of the noise that a learner is built for, relative to the rows' noise
_ROWS = 4096


def units_for(
    learner: Learner, rows: Observations, standardize: bool, weights: np.ndarray | None = None
) -> Units:
    """Units of rows for a learner, which leave labels −1 and +1 as they are, if it needs them."""
    units = Units.of_copies(rows, standardize, weights)
    return dataclasses.replace(units, y_center=0.0, y_scale=1.0) if learner.needs.labels else units


def check_rows(
    learner: Learner, rows: Observations, *, before: int = 0, more: bool = False
) -> None:
    """Raises ValueError if a learner cannot take these rows, in any units.

    Args:
        learner: has `needs`.
        rows: a table, or a chunk of one.
        before: number of the rows of earlier chunks.
        more: whether later chunks may follow.
    """
    rows.check_each_row("a learner")
    check_targets_of(learner, "y", rows.y)
    copies = rows.x.shape[1]
    if copies < learner.needs.copies:
        raise ValueError(
            f"the learner needs {learner.needs.copies} noisy copies of each row, but there are "
            f"{copies}: use a learner that needs fewer, or replicates"
        )
    room, number = learner.needs.horizon, before + len(rows.y)
    if room is not None and number > room:
        least, horizon = ("at least ", "the number of all rows") if more else ("", number)
        raise ValueError(
            f"the table has {least}{number} rows, but the learner has room for {room}: "
            f"build it with horizon={horizon}"
        )


def check_suits(learner: Learner, rows: Observations, units: Units) -> None:
    """Raises ValueError if a learner cannot correct for the noise of the rows in these units."""
    if rows.cross_cov is not None:
        if learner.needs.targets != "any":
            raise ValueError(
                "the errors in x and y are correlated, for which the learner does not correct: use "
                "two_copies, known_covariance or the linear moments of corrected_ftrl"
            )
        copies, dim = rows.x.shape[1:]
        cross = rows.cross_cov.reshape(-1, dim).mean(axis=0)
        cov = copies * rows.means().cov.reshape(-1, dim, dim).mean(axis=0)
        check_cross(cross, cov, rows.y.var(), len(rows.y), rows.names)
    if rows.cov is not None:
        cov = rows.cov / units.products
        _check_covariance(rows, cov, units)
        _check_noise(learner, rows, cov, units.scale)


def check_takes_weights(learner: Learner) -> None:
    """Raises ValueError if weights of rows are not factors of the learner's loss."""
    if learner.needs.targets != "any":
        raise ValueError(
            "sample weights are for linear learners of the squared loss, such as two_copies, "
            "known_covariance and corrected_ftrl with linear moments"
        )


def _check_noise(learner: Learner, observations: Observations, cov, scale) -> None:
    """Raises ValueError if a learner is built for other noise than the rows have."""
    built, (law, _) = learner.needs.noise, by_round(observations.noise)
    kind = type(built.distribution) if isinstance(built, PerRound) else built
    if isinstance(kind, type):
        alike = isinstance(law, kind | None)
        name = (None if law else observations.not_gaussian()) if alike else type(law).__name__
        if name not in (None, kind.__name__):
            raise ValueError(
                f"the learner is built for {kind.__name__} noise, but the rows have {name} noise"
            )
    if not isinstance(built, Noise) or isinstance(built, Assumed):
        return
    if cov.ndim == 3:
        raise ValueError(
            f"the learner is built for one {type(built).__name__} distribution, but the noise has "
            "a covariance of its own in each row: use a learner that reads it, such as "
            "corrected_ftrl with moments.known_covariance()"
        )
    built_cov = np.asarray(built.covariance(len(scale)), np.float64)
    same = np.allclose(built_cov, cov, rtol=_TOLERANCE, atol=_TOLERANCE * np.diag(cov).max())
    size = np.sqrt(np.where(np.diag(cov) > 0, np.diag(cov), 1.0))
    omega = (np.array([0.5, 1.0, 2.0])[:, None, None] * np.diag(1 / size)).reshape(-1, len(scale))
    phi = built.log_characteristic(jnp.asarray(omega, float))
    phi_of_rows = None if law is None else law.log_characteristic(jnp.asarray(omega / scale, float))
    if phi is not None and phi_of_rows is not None:
        same = same and np.allclose(phi, phi_of_rows, rtol=2 * _TOLERANCE, atol=1e-3)
    if not same:
        units = f"{np.array2string(scale, precision=4, separator=', ', threshold=8)}"
        divided = f": x is divided by {units}, so divide the noise's scale too, or use "
        hint = ": build it for theirs" if (scale == 1).all() else f"{divided}standardize=False"
        raise ValueError(
            f"the learner is built for other {type(built).__name__} noise than the rows have{hint}"
        )


def _check_covariance(observations: Observations, cov: np.ndarray, units: Units) -> None:
    """Raises ValueError if the noise varies more than the data, by more than chance explains."""
    rows, copies, dim = observations.x.shape
    plain, mean = np.zeros((dim, dim)), np.zeros(dim)
    for start in range(0, rows, _ROWS):  # in parts that fit into a processor's cache
        x = observations.x[start : start + _ROWS].reshape(-1, dim) - units.center
        plain += x.T @ x / (rows * copies)
        mean += np.ones(len(x)) @ x / (rows * copies)
    plain = (plain - np.outer(mean, mean)) / units.products
    chance = 2 * (dim / rows) ** 0.5 + dim / rows + 5 * (2 / rows) ** 0.5  # of λ_min, Gaussian data
    gram = plain - cov.reshape(-1, dim, dim).mean(axis=0)
    check_identified(gram, plain, observations.names, units.scale, least=-chance)
