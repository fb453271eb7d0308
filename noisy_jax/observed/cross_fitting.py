"""Squared errors on clean rows of learners and fits that were trained on other rows."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from noisy_jax.base import Learner, check_one_prediction
from noisy_jax.learners.wrappers.assuming import Assumed
from noisy_jax.noise import Noise
from noisy_jax.observed.compiled import compiled_learner
from noisy_jax.observed.fits.clean_errors import errors_of
from noisy_jax.observed.fits.groups import dealt
from noisy_jax.observed.fits.judged import Judged, of_folds, of_rows
from noisy_jax.observed.fits.units import check_varies
from noisy_jax.observed.learning import learn
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.categories import recorded_means
from noisy_jax.observed.suitability import check_rows, check_suits, units_for
from noisy_jax.validation.messages import given

Judge = Callable[[np.ndarray, np.ndarray, jax.Array], Judged]
"""Trains on the rows at some places of a table, and judges the rows at other places."""


class Folds(NamedTuple):
    """Units of the rows of a table, rows or clusters in a random order, and their folds.

    Attributes:
        units: `[n]`, the number of each row's unit.
        trained: of each fold, the places of the rows of the other folds.
        judged: of each fold, the places of its own rows.
    """

    units: np.ndarray
    trained: list[np.ndarray]
    judged: list[np.ndarray]

    @classmethod
    def of(cls, table: Observations, clusters: np.ndarray | None, count: int) -> Folds:
        """`count` folds; unit u belongs to fold u mod `count`.

        All folds have equally many training rows: learners are compiled once for all.
        """
        most, kind = len(table.y), "rows"
        if clusters is not None:
            most, kind = int(clusters.max()) + 1, "clusters"
        if count > most:
            raise ValueError(f"folds must be at most {most}, the number of {kind}, got {count}")
        units = dealt(table.x, table.y, clusters)
        trained = [np.flatnonzero(units % count != fold) for fold in range(count)]
        if clusters is None:
            trained = [rows[: min(map(len, trained))] for rows in trained]
        judged = [np.flatnonzero(units % count == fold) for fold in range(count)]
        return cls(units, trained, judged)

    def judge(self, judge: Judge, key: jax.Array) -> Judged:
        """One candidate, judged on all rows; fold k uses `fold_in(key, k)`."""
        parts = [
            judge(others, rows, jax.random.fold_in(key, fold))
            for fold, (others, rows) in enumerate(zip(self.trained, self.judged, strict=True))
        ]
        return of_folds(parts, self.judged, self.units)


def function_judge(make, observations: Observations) -> tuple[Judge, Callable[[], Any]]:
    """Returns the judge of a function `observations -> fit`, and a function that fits all rows.

    An estimator as of scikit-learn is fitted to the means of the copies.
    """
    if hasattr(make, "fit") and hasattr(make, "predict") and not isinstance(make, type):
        make = functools.partial(_fitted_to_means, make)
    if str(getattr(make, "__module__", "")).startswith("noisy_jax.learners."):
        name = getattr(make, "__name__", type(make).__name__)
        raise ValueError(f"must be a learner, got the function {name}, which makes one: call it")
    if not callable(make) or isinstance(make, type):
        raise ValueError(
            "must be a learner, a function observations -> fit, or an estimator with the methods "
            f"fit and predict, got {given(make)}"
        )

    def judge(others, held_out, key):
        return errors_of(make(observations.rows(others)), observations.rows(held_out), observations)

    return judge, lambda: make(observations)


def _fitted_to_means(estimator, rows: Observations):
    """A copy that is fitted to the means of copies, with categories as they were recorded."""
    return copy.deepcopy(estimator).fit(recorded_means(rows), rows.y)


def learner_judge(
    learner: Learner, observations: Observations, key: jax.Array, standardize: bool
) -> tuple[Judge, Callable[[], Any]]:
    """Returns the judge of a learner, and a function that runs `learn` on all rows."""
    built = isinstance(learner.needs.noise, Noise) and not isinstance(learner.needs.noise, Assumed)
    if standardize and built:
        raise ValueError(
            f"the learner is built for one {type(learner.needs.noise).__name__} distribution, but "
            "each fold has its own units: use standardize=False, with the noise in units of the "
            "table"
        )
    copies, dim = observations.x.shape[1:]
    check_rows(learner, observations)
    check_varies(observations.x.reshape(-1, dim), observations.y, observations)
    check_suits(learner, observations, units_for(learner, observations, standardize))
    compiled = compiled_learner(learner)
    missing = (
        "noisy rows do not show its error on clean data: use a learner that corrects for the "
        "noise; in place of a mixture, use its learners"
    )
    if learner.clean_estimates is None:
        raise ValueError(f"of this learner {missing}")
    check_one_prediction(learner, dim, "the learner")
    if observations.uncertainty()[0].any() and learner.needs.noise is not None:
        raise ValueError(
            "the learner is built for an estimated covariance and hides how uncertain it is: use "
            "one that reads it from the rows, or give the rows noise.Gaussian(estimate.cov)"
        )

    def judge(others, held_out, key):
        train_key, read_key = jax.random.split(key)
        trained = observations.rows(others)
        units = units_for(learner, trained, standardize)  # without the rows that are judged
        state = compiled.train(trained.scaled(units), train_key)
        rows = observations.rows(held_out).scaled(units)
        errors, slope, square = compiled.errors(state, rows, read_key), 0.0, units.y_scale**2
        if np.isnan(errors).any() and np.isnan(compiled.errors(learner.init(dim), rows, key)).any():
            raise ValueError(f"of this learner one copy of unknown noise is too few: {missing}")
        if observations.uncertainty()[0].any():
            slope = compiled.slope(state, rows, read_key) * copies / units.products / len(held_out)
        return of_rows(errors * square, slope=slope * square)

    refit_key = jax.random.fold_in(key, len(observations.y))
    return judge, lambda: learn(learner, observations, refit_key, standardize=standardize)
