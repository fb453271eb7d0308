"""Base classes of the estimators, which check rows of X and y and keep their number."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from noisy_jax.observed.fits import UndeterminedError, fit
from noisy_jax.observed.observations import Observations, from_arrays
from noisy_jax.validation.messages import given
from noisy_jax.warning import warn


def clean_score(estimator: Any, X: Any = None, y: Any = None) -> float:
    """Returns R² on clean data of a fitted estimator: a scorer for `GridSearchCV`.

    It reads `clean_score_`, which `NoisyLinearRegression`, `NoisyKernelRegression` and
    `OnlineRegressor` have: 1 − (estimated mean squared error on clean data)/(variance of y). The
    error includes the noise in y. It is estimated from the noisy rows of the fit itself, by
    cross-fitting, for `OnlineRegressor` from predictions that were made before each row. X and y,
    which a search passes, are not used. A grid may hold
    anything but `noise`: each score assumes the noise of its own fit, so that scores of different
    noise cannot be compared, and the largest noise would win.

    Args:
        estimator: a fitted estimator of `noisy_jax.sklearn`; a pipeline, whose last step is one; or
            a search, whose `best_estimator_` is one.
        X: not used.
        y: not used.

    Returns:
        R², a number; NaN if the estimated error is below 0, as can be where y has hardly any noise,
        if the learner of an `OnlineRegressor` has no estimate of its error, and where
        `NoisyLinearRegression` fell back on scikit-learn. A search ranks such a candidate last.

    Raises:
        ValueError: the estimator has no `clean_score_`.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> from sklearn.model_selection import GridSearchCV
        >>> from noisy_jax.sklearn import NoisyKernelRegression, clean_score
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, size=(3000, 1))
        >>> noisy = x + 0.3 * rng.normal(size=x.shape)
        >>> y = np.sin(2 * x[:, 0]) + 0.5 * rng.normal(size=3000)
        >>> model = NoisyKernelRegression(noise=nj.noise.Gaussian(0.09), num_features=64)
        >>> search = GridSearchCV(model, {"length_scale": [0.7, 20.0]}, scoring=clean_score, cv=2)
        >>> print(search.fit(noisy, y).best_params_)
        {'length_scale': 0.7}
    """
    if isinstance(estimator, Pipeline):
        return clean_score(estimator[-1])
    if hasattr(estimator, "best_estimator_"):
        return clean_score(estimator.best_estimator_)
    if not hasattr(estimator, "clean_score_"):
        raise ValueError(
            "clean_score reads clean_score_ of a fitted estimator of noisy_jax.sklearn, got "
            f"{given(estimator)}"
        )
    return estimator.clean_score_


def clean_score_of(risk: float, variance: float) -> float:
    """Returns R² on clean data, 1 - risk / variance; NaN and a warning if the risk is below 0."""
    if risk >= 0 or np.isnan(risk):
        return 1 - risk / variance
    warn(
        "clean_score_ is NaN, since the estimated error on clean data is below 0 (R² above 1): "
        "there are too few rows to judge the fit, or the noise is smaller than stated",
    )
    return np.nan


def seed_of(random_state: Any) -> int:
    """Returns a whole number as it is; draws one for `None`, or from a RandomState."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


class Noisy(BaseEstimator):
    """Base class of all estimators: checks rows, and makes the table of `nj.fit` from them.

    Attributes:
        noise: the error in X, an argument of each estimator.
    """

    noise: Any

    def table(self, X: Any, y: Any, *, reset: bool = True) -> Observations:
        """Checks rows X `[n, d]` and targets y `[n]`, and returns their table, with the noise.

        `fit` calls it; `reset` is False for further chunks, which must have the same columns.
        """
        options = {"reset": reset, "ensure_min_samples": 2 if reset else 1}
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, **options)
        return self.observed(X, y)

    def observed(self, X: Any, y: Any) -> Observations:
        """Returns the table (`Observations`) of rows that are already checked, with the noise."""
        table = from_arrays(X, y, noise=self.noise, names=getattr(self, "feature_names_in_", None))
        if table.categories:
            raise ValueError("noisy_jax.sklearn takes no misclassified column: use nj.fit")
        return table

    def features(self, X: Any) -> np.ndarray:
        """Checks rows X `[n, d]` to predict at, and returns them in float64; `predict` calls it."""
        check_is_fitted(self)
        rows: Any = validate_data(self, X, dtype=np.float64, reset=False)
        return rows

    def weights(self, sample_weight: Any, X: Any):
        """Checks weights `[n]` ≥ 0 of the rows X and returns them; `None` if there are none."""
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


class Affine(Noisy):
    """An estimator with coefficients."""

    def fitted(self, table: Observations, method: Any, plain: Any, weights: Any = None):
        """Fits a table by `nj.fit(table, method)`, sets the attributes, and returns the estimator.

        `fit` calls it. Without noise, rows that do not determine the coefficients go to `plain`, an
        estimator of scikit-learn, with `weights` `[n]` or `None`.
        """
        try:
            self.result_: Any = fit(table, method)
            self.coef_, self.intercept_ = self.result_.coefficients, self.result_.intercept
        except UndeterminedError as error:
            if plain is None or table.cov is None or table.cov.any():
                raise
            warn(f"{error}. The fit is of scikit-learn's {plain}", ConvergenceWarning)
            self.result_ = plain.fit(table.x[:, 0], table.y, sample_weight=weights)
            self.coef_ = np.ravel(self.result_.coef_).astype(np.float64)
            self.intercept_ = float(np.ravel(self.result_.intercept_)[0])
        return self

    def affine(self, X: Any) -> np.ndarray:
        """Returns `[n]`, intercept plus coefficients times the columns, at rows X `[n, d]`."""
        return self.features(X) @ np.ravel(self.coef_) + self.intercept_
