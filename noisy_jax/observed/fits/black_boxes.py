"""Estimators of others: of scikit-learn, of statsmodels, or any function of x and y."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from noisy_jax.columns import index_of
from noisy_jax.observed.fits.errors import affine_of
from noisy_jax.validation import given, real_numbers

_WANTED = (
    "a linear estimator of scikit-learn, or a function of x [n, d] and y [n] that returns numbers, "
    "numbers and their covariance, or a result of statsmodels"
)

_OF_SKLEARN = {
    "linear": "LinearRegression()",
    "logistic": "LogisticRegression(C=1e9)",
    "poisson": "PoissonRegressor(alpha=0)",
}
"""Estimators of scikit-learn for models that version 0.3 took by these names."""


def check_estimator(estimator: Any) -> None:
    """Raises ValueError unless it is an estimator that `BlackBox` takes."""
    if isinstance(estimator, str):
        call = _OF_SKLEARN.get(estimator, _OF_SKLEARN["linear"])
        raise ValueError(
            f"estimator must be {_WANTED}, such as nj.methods.SIMEX({call}), got {given(estimator)}"
        )
    if isinstance(estimator, type) or not (_is_of_sklearn(estimator) or callable(estimator)):
        raise ValueError(f"estimator must be {_WANTED}, got {given(estimator)}")


def _is_of_sklearn(estimator: Any) -> bool:
    return hasattr(estimator, "fit") and hasattr(estimator, "get_params")


class BlackBox:
    """An estimator that is called with rows, and names for its numbers.

    Attributes:
        names: of the numbers, known after the first call.
        intercept: whether the first number is an intercept and the others are coefficients of the
            columns, whose names `names` then holds.
    """

    def __init__(self, estimator: Any, columns: tuple[str, ...]):
        self.estimator, self.columns = estimator, columns
        self.intercept = _is_of_sklearn(estimator)
        self.names: tuple[str, ...] = columns if self.intercept else ()
        self.title = getattr(estimator, "__name__", type(estimator).__name__)

    def refit(self, x: np.ndarray, y: np.ndarray):
        """See `added_noise.Refit`."""
        found = [self._one(rows, y) for rows in x]
        theta = np.array([values for values, _ in found])
        covariances = [cov for _, cov in found if cov is not None]
        return theta, np.array(covariances) if covariances else None

    def _one(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        values, cov = self._of_sklearn(x, y) if self.intercept else self._of_function(x, y)
        size = len(self.names) + self.intercept
        if values.shape != (size,) or not np.isfinite(values).all():
            raise ValueError(
                f"{self.title} must return {size} finite numbers for each x, got {given(values)}"
                f"{'' if np.isfinite(values).all() else ' that are not all finite'}"
            )
        if cov is not None:
            cov = np.asarray(cov, np.float64)
            if cov.shape != (size, size):
                raise ValueError(
                    f"the covariance that {self.title} returns must be {[size, size]}, as it "
                    f"returns {size} numbers, got {list(cov.shape)}"
                )
        return values, cov

    def _of_sklearn(self, x, y):
        from sklearn.base import clone

        copy: Any = clone(self.estimator)
        made = copy.fit(x, y)
        if not hasattr(made, "coef_"):
            found = affine_of(made.predict, x)
            if found is None:
                raise ValueError(
                    f"{self.title} must have coef_ after fit, or predictions that are affine in "
                    "x; for others give a function, such as lambda x, y: model.fit(x, y)[-1].coef_"
                )
            return found, None
        if np.size(made.coef_) != len(self.columns):
            raise ValueError(
                f"{self.title} must have one coef_ for each of {len(self.columns)} columns after "
                "fit; for others give a function, such as lambda x, y: model.fit(x, y)[-1].coef_"
            )
        intercept = np.ravel(getattr(made, "intercept_", 0.0))
        return np.append(intercept, np.ravel(made.coef_)).astype(np.float64), None

    def _of_function(self, x, y):
        found: Any = self.estimator(x, y)
        values, cov, labels = found, None, None
        if hasattr(found, "params") and hasattr(found, "cov_params"):
            values, cov = found.params, found.cov_params()
            labels = getattr(getattr(found, "model", None), "exog_names", None)
        elif isinstance(found, tuple) and len(found) == 2 and np.ndim(found[1]) == 2:
            values, cov = found
        if isinstance(values, Mapping):
            labels, values = list(values), list(values.values())
        elif (index := index_of(values)) is not None:
            labels = list(index)
        values = np.asarray(real_numbers(f"what {self.title} returns", values), np.float64)
        if not self.names:
            if values.ndim != 1 or not values.size:
                raise ValueError(
                    f"{self.title} must return a vector of numbers, got {given(values)}"
                )
            if labels is None or len(labels) != len(values):
                own = len(values) == len(self.columns)
                labels = self.columns if own else [f"theta{k}" for k in range(len(values))]
            self.names = tuple(map(str, labels))
        return values, cov
