"""Estimators with coefficients, by `nj.fit`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, RegressorMixin, is_classifier
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from noisy_jax.observed.fits import methods
from noisy_jax.sklearn.estimators import Affine, clean_score_of, seed_of


class NoisyLinearRegression(RegressorMixin, Affine):
    """Linear regression on features with measurement error: `nj.fit(table)`.

    Where the rows do not determine the coefficients (fewer rows than columns, a constant column),
    it raises `nj.fits.UndeterminedError`, a ValueError; without noise it warns, and is the
    `LinearRegression()` of scikit-learn.

    Args:
        noise: error in X: a variance, a covariance, a distribution or a mapping (see
            `help(noisy_jax.sklearn)`).

    Attributes:
        coef_: `[d]`, corrected coefficients.
        intercept_: the constant term.
        result_: the `nj.fits.LinearFit`: print it for standard errors and intervals;
            `result_.uncorrected` predicts from features that are as noisy as X.
        clean_score_: R² on clean data, cross-fitted; it contains the noise in y.

    Example:
        >>> import numpy as np
        >>> from noisy_jax.sklearn import NoisyLinearRegression
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(20_000, 2))
        >>> noisy, y = x + 0.7 * rng.normal(size=x.shape), x @ [2, -1] + rng.normal(size=20_000)
        >>> model = NoisyLinearRegression(noise=0.49).fit(noisy, y)
        >>> print(model.coef_.round(1), round(model.clean_score_, 1), round(model.score(x, y), 1))
        [ 2. -1.] 0.8 0.8
    """

    def __init__(self, noise=0.0):
        self.noise = noise

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fits rows X `[n, d]` and targets y `[n]`, with weights `[n]` of the rows if given."""
        table = self.table(X, y)
        weights = self.weights(sample_weight, table.x[:, 0])
        self.fitted(table, methods.Linear(weights=weights), LinearRegression(), weights)
        risk = getattr(self.result_, "risk", None)
        self.clean_score_ = clean_score_of(risk.corrected, risk.variance) if risk else np.nan
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Returns predictions `[n]` at clean features X `[n, d]`."""
        return self.affine(X)


class NoisyLogisticRegression(ClassifierMixin, Affine):
    """Logistic regression of two classes on noisy features: `nj.methods.Logistic`.

    Where the rows do not determine the coefficients, as where a column separates the classes, it
    raises `nj.fits.UndeterminedError`, a ValueError; without noise it warns, and is the
    `LogisticRegression()` of scikit-learn, with a penalty.

    Args:
        noise: Gaussian error in X: a variance, a covariance or a mapping (see
            `help(noisy_jax.sklearn)`).

    Attributes:
        classes_: `[2]`, the labels.
        coef_: `[1, d]`, corrected coefficients.
        intercept_: `[1]`.
        result_: the `nj.fits.Fit`: print it for standard errors and intervals.

    Example:
        >>> import numpy as np
        >>> from noisy_jax.sklearn import NoisyLogisticRegression
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(40_000, 1))
        >>> label = np.where(rng.uniform(size=40_000) < 1 / (1 + np.exp(-x[:, 0])), "yes", "no")
        >>> noisy = x + 0.7 * rng.normal(size=x.shape)
        >>> print(NoisyLogisticRegression(noise=0.49).fit(noisy, label).coef_.round(1))
        [[1.]]
    """

    def __init__(self, noise=0.0):
        self.noise = noise

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fits rows X `[n, d]` and labels y `[n]`, with weights `[n]` of the rows if given."""
        X, y = validate_data(self, X, y, dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind != "binary":
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {kind}."
            )
        weights = self.weights(sample_weight, X)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(np.unique(y if weights is None else y[weights > 0])) < 2:
            raise ValueError("y must have two classes in rows of positive weight, got one class")
        table = self.observed(X, y)
        self.fitted(table, methods.Logistic(weights=weights), LogisticRegression(), weights)
        self.coef_, self.intercept_ = self.coef_[None], np.array([self.intercept_])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Returns logarithms `[n]` of the odds of the second class at clean features X `[n, d]`."""
        return self.affine(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Returns probabilities `[n, 2]` of the classes at clean features X `[n, d]`."""
        odds = self.decision_function(X)
        return np.exp(-np.logaddexp(0, np.column_stack([odds, -odds])))

    def predict(self, X: Any) -> np.ndarray:
        """Returns the more probable labels `[n]` at clean features X `[n, d]`."""
        second = self.decision_function(X) > 0
        return self.classes_[second.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


class NoisyPoissonRegressor(RegressorMixin, Affine):
    """Poisson regression of counts on noisy features: `nj.methods.Poisson`.

    Where the rows do not determine the coefficients, it raises `nj.fits.UndeterminedError`, a
    ValueError; without noise it warns, and is the `PoissonRegressor` of scikit-learn, with its
    penalty.

    Args:
        noise: Gaussian error in X: a variance, a covariance or a mapping (see
            `help(noisy_jax.sklearn)`).

    Attributes:
        coef_: `[d]`, corrected coefficients.
        intercept_: the constant term.
        result_: the `nj.fits.Fit`: print it for standard errors and intervals.

    Example:
        >>> import numpy as np
        >>> from noisy_jax.sklearn import NoisyPoissonRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(20_000, 1))
        >>> counts = rng.poisson(np.exp(0.5 * x[:, 0]))
        >>> noisy = x + 0.7 * rng.normal(size=x.shape)
        >>> print(NoisyPoissonRegressor(noise=0.49).fit(noisy, counts).coef_.round(1))
        [0.5]
    """

    def __init__(self, noise=0.0):
        self.noise = noise

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fits rows X `[n, d]` and counts y `[n]`, with weights `[n]` of the rows if given."""
        table = self.table(X, y)
        weights = self.weights(sample_weight, table.x[:, 0])
        plain = PoissonRegressor(solver="newton-cholesky", tol=1e-12)
        return self.fitted(table, methods.Poisson(weights=weights), plain, weights)

    def predict(self, X: Any) -> np.ndarray:
        """Returns mean counts `[n]` at clean features X `[n, d]`."""
        return np.exp(self.affine(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


class SIMEX(MetaEstimatorMixin, RegressorMixin, Affine):
    """SIMEX of a regressor with affine predictions, such as a pipeline's: `nj.methods.SIMEX`.

    Args:
        estimator: a regressor with `coef_` and `intercept_`, or with predictions affine in X, such
            as a `Pipeline` of a scaler and a linear regressor. It is cloned, and fitted to NumPy
            arrays.
        noise: error in X: a variance, a covariance, a distribution or a mapping (see
            `help(noisy_jax.sklearn)`).
        levels: λ > 0, at least two: multiples of the error's covariance that are added.
        draws: draws of added noise at each level, at least two.
        extrapolation: "quadratic", or "rational" for a + b/(c + λ).
        errors: standard errors: "extrapolated", "jackknife", or "none", the fastest, the default.
            `nj.methods.SIMEX` describes all of these options.
        random_state: seed of the draws, or as everywhere in scikit-learn.

    Attributes:
        coef_: `[d]`, extrapolated coefficients.
        intercept_: the constant term.
        result_: the `nj.fits.SimexFit`: print it.

    Example:
        >>> import numpy as np
        >>> from sklearn.linear_model import HuberRegressor
        >>> from noisy_jax.sklearn import SIMEX
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(2000, 1))
        >>> noisy = x + 0.4 * rng.normal(size=x.shape)
        >>> model = SIMEX(HuberRegressor(), noise=0.16, draws=10).fit(noisy, 2 * x[:, 0])
        >>> print(model.coef_.round(1), model.result_.uncorrected.coefficients.round(1))
        [2.] [1.7]
    """

    def __init__(
        self,
        estimator,
        noise=0.0,
        levels=(0.5, 1.0, 1.5, 2.0),
        draws=100,
        extrapolation="quadratic",
        errors="none",
        random_state=0,
    ):
        self.estimator = estimator
        self.noise = noise
        self.levels = levels
        self.draws = draws
        self.extrapolation = extrapolation
        self.errors = errors
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fits rows X `[n, d]` and targets y `[n]`."""
        method = methods.SIMEX(
            self.estimator,
            levels=self.levels,
            draws=self.draws,
            extrapolation=self.extrapolation,
            errors=self.errors,
            seed=seed_of(self.random_state),
        )
        if is_classifier(self.estimator):
            raise ValueError(
                "SIMEX takes a regressor, got a classifier: use NoisyLogisticRegression, or for "
                "its coefficients nj.fit(table, nj.methods.SIMEX(estimator))"
            )
        return self.fitted(self.table(X, y), method, None)

    def predict(self, X: Any) -> Any:
        """Returns predictions `[n]` at clean features X `[n, d]`."""
        return self.affine(X)
