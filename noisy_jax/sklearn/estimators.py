"""What the estimators have in common: rows in, rows out."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from noisy_jax.observed.fits import UndeterminedError, fit
from noisy_jax.observed.observations import Observations, from_arrays


def clean_score(estimator: Any, X: Any = None, y: Any = None) -> float:
    """A scorer: the `clean_score_` of an estimator, or of the last step of a pipeline.

    It is estimated from the rows of the fit, which are cross-fitted; X and y are not used.
    """
    last: Any = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    return last.clean_score_


class Noisy(BaseEstimator):
    """What all estimators here do: rows in, rows out.

    Attributes:
        noise: an argument of each.
    """

    noise: Any

    def table(self, X, y, *, reset: bool = True) -> Observations:
        """The rows with what is known of their noise."""
        X, y = validate_data(
            self, X, y, dtype=np.float64, y_numeric=True, reset=reset, ensure_min_samples=2
        )
        return self.observed(X, y)

    def observed(self, X, y) -> Observations:
        """The table of rows that are already checked."""
        table = from_arrays(X, y, noise=self.noise, names=getattr(self, "feature_names_in_", None))
        if table.categories:
            raise ValueError("noisy_jax.sklearn takes no misclassified column: use nj.fit")
        return table

    def features(self, X) -> np.ndarray:
        """Rows `[n, d]` to predict at."""
        check_is_fitted(self)
        rows: Any = validate_data(self, X, dtype=np.float64, reset=False)
        return rows

    def weights(self, sample_weight, X):
        """Checked weights `[n]`, or `None`."""
        if sample_weight is None:
            return None
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)


class Affine(Noisy):
    """An estimator with coefficients."""

    def fitted(self, table: Observations, method: Any, plain: Any, weights: Any = None):
        """Takes the coefficients of `nj.fit`, or without noise those of scikit-learn's estimator.

        The latter where rows do not determine the coefficients.
        """
        try:
            self.result_: Any = fit(table, method)
            self.coef_, self.intercept_ = self.result_.coefficients, self.result_.intercept
        except UndeterminedError as error:
            if plain is None or table.cov is None or table.cov.any():
                raise
            warnings.warn(
                f"{error}. The fit is of scikit-learn's {plain}", ConvergenceWarning, stacklevel=3
            )
            self.result_ = plain.fit(table.x[:, 0], table.y, sample_weight=weights)
            self.coef_ = np.ravel(self.result_.coef_).astype(np.float64)
            self.intercept_ = float(np.ravel(self.result_.intercept_)[0])
        return self

    def affine(self, X) -> np.ndarray:
        """The linear predictor `[n]`."""
        return self.features(X) @ np.ravel(self.coef_) + self.intercept_
