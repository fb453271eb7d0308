"""Squared errors on clean rows of learners and fits that were trained on other rows."""

import copy
import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from noisy_jax.base import Learner, check_one_prediction
from noisy_jax.learners.wrappers.assuming import Assumed
from noisy_jax.noise import Noise
from noisy_jax.observed.compiled import compiled_learner
from noisy_jax.observed.fits.coefficients import Coefficients
from noisy_jax.observed.fits.errors import (
    affine_of,
    fourier_errors,
    linear_errors,
)
from noisy_jax.observed.fits.functions import FourierPredictor
from noisy_jax.observed.fits.groups import dealt
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import check_varies
from noisy_jax.observed.learning import learn
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.categories import recorded_means
from noisy_jax.observed.observations.products import expanded
from noisy_jax.observed.suitability import check_suits, units_for
from noisy_jax.validation import given


class Judged(NamedTuple):
    """Estimated squared errors on the clean rows of a fold."""

    errors: np.ndarray  # [n]
    slope: Any = 0.0  # [d, d], derivative of their sum in the covariance of the error of row means
    hidden: Any = 0.0  # [2, m], what readings of kernel fits leave out, as in `fits.hidden`


def units_of(observations: Observations, labels: np.ndarray | None, folds: int) -> np.ndarray:
    """The number of the unit of each row, `[n]`: rows, or clusters, in a random order.

    Unit u belongs to fold u mod `folds`. `labels` `[n]` are numbers from 0 of clusters.
    """
    rows = len(observations.y)
    count, kind = (rows, "rows") if labels is None else (int(labels.max()) + 1, "clusters")
    if folds > count:
        raise ValueError(f"folds must be at most {count}, the number of {kind}, got {folds}")
    return dealt(observations.x, observations.y, labels)


def mean_and_error(errors, slopes, units, observations) -> tuple[np.ndarray, np.ndarray]:
    """Means `[K]` of errors `[K, n]`, and their standard errors from sums over units."""
    mean, count = errors.mean(axis=1), int(units.max()) + 1
    sums = np.array([np.bincount(units, row, count) for row in errors - mean[:, None]])
    variance = np.sum(sums**2, axis=1) * count / (count - 1) / errors.shape[1] ** 2
    if observations.cov_std_error.any():  # as in `Comparison`: each error contains the covariance
        variance += np.diag(UncertainNoise(observations).covariance(slopes))
    return mean, np.sqrt(variance)


def function_judge(make, observations: Observations):
    """How a function `observations -> fit` is judged on a fold, and its fit to all rows.

    An estimator as of scikit-learn is fitted to the means of the copies.
    """
    if hasattr(make, "fit") and hasattr(make, "predict") and not isinstance(make, type):
        make = functools.partial(_fitted_to_means, make)
    if not callable(make) or isinstance(make, type):
        raise ValueError(
            "must be a learner, a function observations -> fit, or an estimator with the methods "
            f"fit and predict, got {given(make)}"
        )

    def judge(others, held_out, key):
        fit, rows = make(observations.rows(others)), observations.rows(held_out)
        if isinstance(fit, FourierPredictor):
            errors, left_out = fourier_errors(fit, rows, observations)
            return Judged(errors, hidden=left_out)  # such noise is known exactly
        predict = getattr(fit, "predict", None)
        if not callable(predict):
            raise ValueError(
                "must return a fit such as nj.fit returns, or what has a method predict, but it "
                f"returned {given(fit)}"
            )
        if isinstance(fit, Coefficients) and type(fit).predict is Coefficients.predict:
            line = np.append(fit.intercept, fit.coefficients)
            if fit.products:  # their covariance is known exactly too
                return Judged(linear_errors(line, expanded(rows)))
        else:
            line = affine_of(predict, rows.averaged()[0])
        if line is None:
            raise ValueError(
                "its predictions are not affine in x, so that noisy rows alone do not show their "
                "errors on clean data: take linear candidates, nj.methods.Fourier(…).fitted, or "
                "learners with unbiased readings"
            )
        return Judged(linear_errors(line, rows), -np.outer(line[1:], line[1:]) * len(held_out))

    return judge, lambda: make(observations)


def _fitted_to_means(estimator, rows: Observations):
    """A copy that is fitted to the means of copies, with categories as they were recorded."""
    return copy.deepcopy(estimator).fit(recorded_means(rows), rows.y)


def learner_judge(learner: Learner, observations: Observations, key, standardize):
    """How a learner is judged on a fold, and `learn` on all rows."""
    built = isinstance(learner.needs.noise, Noise) and not isinstance(learner.needs.noise, Assumed)
    if standardize and built:
        raise ValueError(
            f"the learner is built for one {type(learner.needs.noise).__name__} distribution, but "
            "each fold has its own units: use standardize=False, with the noise in units of the "
            "table"
        )
    copies, dim = observations.x.shape[1:]
    check_varies(observations.x.reshape(-1, dim), observations.y, observations)
    whole = units_for(learner, observations, standardize)
    check_suits(learner, observations, whole)
    made = compiled_learner(learner)
    missing = (
        "so that its risk cannot be estimated: use a learner that corrects for the noise; in place "
        "of a mixture, use its learners"
    )
    if learner.read is None:
        raise ValueError(f"the learner has no unbiased readings, {missing}")
    check_one_prediction(learner, dim, "the learner")
    if observations.cov_std_error.any() and learner.needs.noise is not None:
        raise ValueError(
            "the learner is built for an estimated covariance and hides how uncertain it is: use "
            "one that reads it from the rows, or give the rows noise.Gaussian(estimate.cov)"
        )

    def judge(others, held_out, key):
        train_key, read_key = jax.random.split(key)
        trained = observations.rows(others)
        units = units_for(learner, trained, standardize)  # without the rows that are judged
        state = made.train(units.table(trained), train_key)
        rows = units.table(observations.rows(held_out))
        errors, slope = made.errors(state, rows, read_key), 0.0
        if np.isnan(errors).any() and np.isnan(made.errors(learner.init(dim), rows, key)).any():
            raise ValueError(
                f"the learner has no unbiased readings from one copy of unknown noise, {missing}"
            )
        if observations.cov_std_error.any():
            slope = made.slope(state, rows, read_key) * copies / units.products
        return Judged(errors * units.y_scale**2, slope * units.y_scale**2)

    refit_key = jax.random.fold_in(key, len(observations.y))
    return judge, lambda: learn(learner, observations, refit_key, standardize=standardize)
