"""Estimators from elsewhere: of scikit-learn, of statsmodels, or any function of x and y."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from noisy_jax.observed.fits.estimates import labels_of_line
from noisy_jax.tabular.columns import ROUNDING, index_of
from noisy_jax.validation.arrays import real_numbers
from noisy_jax.validation.messages import given

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


_AFFINE = 1e-4  # share of the range of a function that is rounding, also of float32
_WEIGHTS = "sample_weight", "weights"
_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


class BlackBox:
    """An estimator that is called with rows, and names for its numbers.

    Attributes:
        line: whether the numbers are an intercept and, behind it, coefficients of the columns.
        labels: names of the numbers; of functions they are known after the first call.
        title: its name.
    """

    def __init__(self, estimator: Any, columns: tuple[str, ...]):
        self.estimator, self.columns = estimator, columns
        self.line = _is_of_sklearn(estimator)
        self.labels: tuple[str, ...] = labels_of_line(columns) if self.line else ()
        self.title = getattr(estimator, "__name__", type(estimator).__name__)

    @property
    def by_column(self) -> bool:
        """True if there is one number for each column, and at most an intercept before them."""
        return self.labels[self.line :] == self.columns

    def check_takes_weights(self) -> None:
        """Raises ValueError if the estimator cannot be called with weights of the rows."""
        takes = self.estimator.fit if self.line else self.estimator
        names = _WEIGHTS[:1] if self.line else _WEIGHTS
        place = _place_of_weights(takes, names)
        if place is None or (self.line and not place):
            way = (
                "a function, such as lambda x, y, weights: model.fit(x, y, "
                "scaler__sample_weight=weights)[-1].coef_"
                if self.line
                else "a function of x, y and weights [n], its third argument"
            )
            method = "fit of " if self.line else ""
            raise ValueError(f"{method}{self.title} takes no weights of the rows: give {way}")

    def refit(
        self, x: np.ndarray, y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Its numbers `[p]` from rows x `[n, d]`, and their covariance `[p, p]` if it has one."""
        call = self._of_sklearn if self.line else self._of_function
        values, cov = call(x, y, weights)
        size = len(self.labels)
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

    def _of_sklearn(self, x, y, weights):
        from sklearn.base import clone

        copy: Any = clone(self.estimator)
        fitted = copy.fit(x, y) if weights is None else copy.fit(x, y, sample_weight=weights)
        if not hasattr(fitted, "coef_"):
            line = affine_of(fitted.predict, x)
            if line is None:
                raise ValueError(
                    f"{self.title} must have coef_ after fit, or predictions that are linear in "
                    "x; otherwise give a function, such as lambda x, y: model.fit(x, y)[-1].coef_"
                )
            return line, None
        if np.size(fitted.coef_) != len(self.columns):
            raise ValueError(
                f"{self.title} must have one coef_ for each of {len(self.columns)} columns after "
                "fit; otherwise give a function, such as lambda x, y: model.fit(x, y)[-1].coef_"
            )
        intercept = np.ravel(getattr(fitted, "intercept_", 0.0))
        return np.append(intercept, np.ravel(fitted.coef_)).astype(np.float64), None

    def _of_function(self, x, y, weights):
        rows = (x, y) if weights is None else (x, y, weights)
        name = "" if weights is None else _place_of_weights(self.estimator, _WEIGHTS)
        result: Any = self.estimator(x, y, **{name: weights}) if name else self.estimator(*rows)
        values, cov, labels = result, None, None
        if hasattr(result, "params") and hasattr(result, "cov_params"):
            values, cov = result.params, result.cov_params()
            labels = getattr(getattr(result, "model", None), "exog_names", None)
        elif isinstance(result, tuple) and len(result) == 2 and np.ndim(result[1]) == 2:
            values, cov = result
        if isinstance(values, Mapping):
            labels, values = list(values), list(values.values())
        elif (index := index_of(values)) is not None:
            labels = list(index)
        values = np.asarray(real_numbers(f"the result of {self.title}", values), np.float64)
        if not self.labels:
            if values.ndim != 1 or not values.size:
                raise ValueError(
                    f"{self.title} must return a vector of numbers, got {given(values)}"
                )
            if labels is None or len(labels) != len(values):
                one_a_column = len(values) == len(self.columns)
                labels = self.columns if one_a_column else [f"theta{k}" for k in range(len(values))]
            self.labels = tuple(map(str, labels))
        return values, cov


def _place_of_weights(function: Callable[..., Any], names: tuple[str, ...]) -> str | None:
    """The argument of a function that takes weights, "" for a third one, or `None`."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:  # of some functions in C
        return None
    for name in names:
        if name in parameters:
            return name
    third = list(parameters.values())[2:3]
    return (
        ""
        if any(
            parameter.kind in _POSITIONAL and parameter.default is parameter.empty
            for parameter in third
        )
        else None
    )


def affine_of(predict: Callable[[Any], Any], x: np.ndarray) -> np.ndarray | None:
    """`[1 + d]`, intercept and coefficients of a function `[n, d] -> [n]`, such as a pipeline's.

    `None` if it is not affine between the rows x `[n, d]`.
    """
    dim = x.shape[1]
    at, step = x.mean(axis=0), x.std(axis=0)
    step = np.where(step > 0, step, 1.0)
    values = np.asarray(predict(np.vstack([at, at + np.diag(step), x])), np.float64)
    if values.size != 1 + dim + len(x):
        shape = list(values.shape)
        raise ValueError(f"predict must give one number a row, got {shape} for {1 + dim + len(x)}")
    values = values.ravel()
    slopes = (values[1 : 1 + dim] - values[0]) / step
    apart = values[1 + dim :] - values[0] - (x - at) @ slopes
    if np.abs(apart).max() > _AFFINE * np.ptp(values) + ROUNDING * np.abs(values).max():
        return None
    return np.append(values[0] - at @ slopes, slopes)
