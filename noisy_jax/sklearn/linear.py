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
    """Linear regression on features with measurement error, for scikit-learn: `nj.fit(table)`.

    `fit(X, y)` takes noisy rows, and corrects the coefficients for their error, which has mean zero
    and is independent of the clean features. `predict(X)` is for CLEAN features. `score` is R² on
    the X that it is given, and does not know that they are noisy; use `clean_score_`.

    If the rows do not determine the coefficients (fewer rows than columns, a constant column),
    `fit` raises `nj.fits.UndeterminedError`, a ValueError; without noise it warns, and the fit is
    the `LinearRegression()` of scikit-learn, which is then `result_`, and `clean_score_` is NaN.

    Args:
        noise: the error in one row of X, in the units of the X that the estimator sees: a variance
            (for all columns), variances `[d]`, a covariance `[d, d]`, standard deviations by
            `nj.sd(…)`, a distribution such as `nj.noise.Laplace(0.3)`, or a mapping from names of
            columns to such, where other columns are exact. It is the same in all rows. 0.0, the
            default, corrects nothing.

    Attributes:
        coef_: `[d]`, corrected coefficients, in the units of X and y.
        intercept_: the constant term, a number.
        result_: the `nj.fits.LinearFit`: print it for standard errors and intervals;
            `result_.uncorrected` predicts from features that are as noisy as X.
        clean_score_: R² = 1 − error/variance of y on clean data, where the mean squared error
            (with the noise in y) is estimated from noisy rows that a fit did not see. NaN with a
            warning if the error is estimated below 0.

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
        """Fits rows X `[n, d]` and targets y `[n]`, with weights `[n]` of the rows if given.

        The weights mean the same as in `nj.methods.Linear`: they are not counts of equal rows.
        """
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
    """Logistic regression of two classes on noisy features, for scikit-learn.

    `fit(X, y)` takes noisy rows, and corrects the coefficients for their error by
    `nj.methods.Logistic`, consistently for Gaussian error. There is no penalty. Predictions are at
    CLEAN features. `score` is the accuracy at the X that it is given, which it takes as clean.

    If the rows do not determine the coefficients, as if a column separates the classes, `fit`
    raises `nj.fits.UndeterminedError`, a ValueError; without noise it warns, and the fit is the
    `LogisticRegression()` of scikit-learn, with its penalty, which is then `result_`. More than two
    classes, or one, raise ValueError.

    Args:
        noise: the Gaussian error in one row of X, in the units of the X that the estimator sees: a
            variance (for all columns), variances `[d]`, a covariance `[d, d]`, standard deviations
            by `nj.sd(…)`, `nj.noise.Gaussian(…)`, or a mapping from names of columns to such, where
            other columns are exact. It is the same in all rows. 0.0, the default, corrects nothing.

    Attributes:
        classes_: `[2]`, the labels, sorted.
        coef_: `[1, d]`, corrected coefficients of the log odds of the second class.
        intercept_: `[1]`, the constant term of the log odds.
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
    """Poisson regression of counts on noisy features, for scikit-learn.

    The mean of y at clean x is exp(intercept + ⟨coefficients, x⟩). `fit(X, y)` takes noisy rows and
    counts y ≥ 0, and corrects the coefficients for the error in X by `nj.methods.Poisson`,
    consistently for Gaussian error. There is no penalty. `predict` returns mean counts at CLEAN
    features. `score` is scikit-learn's R² at the X that it is given, which it takes as clean.

    If the rows do not determine the coefficients, `fit` raises `nj.fits.UndeterminedError`, a
    ValueError; without noise it warns, and the fit is the `PoissonRegressor` of scikit-learn, with
    its penalty, which is then `result_`.

    Args:
        noise: the Gaussian error in one row of X, in the units of the X that the estimator sees: a
            variance (for all columns), variances `[d]`, a covariance `[d, d]`, standard deviations
            by `nj.sd(…)`, `nj.noise.Gaussian(…)`, or a mapping from names of columns to such, where
            other columns are exact. It is the same in all rows. 0.0, the default, corrects nothing.

    Attributes:
        coef_: `[d]`, corrected coefficients of the logarithm of the mean count.
        intercept_: the constant term of this logarithm, a number.
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
    """Simulation and extrapolation of a linear regressor of scikit-learn, for noisy features.

    `fit(X, y)` takes noisy rows. It adds more noise to X, `draws` times at each level λ, refits the
    regressor, and extends the curve of its mean coefficients over λ to λ = −1, no noise
    (`nj.methods.SIMEX`). This is approximate: the curve is an assumption, and a bias stays in large
    tables. `predict(X)` is for CLEAN features. `score` is R² at the X that it is given, which it
    takes as clean. Classifiers raise ValueError.

    Args:
        estimator: a regressor with `coef_` and `intercept_`, or with predictions affine in X, such
            as a `Pipeline` of a scaler and a linear regressor. It is cloned, and fitted to NumPy
            arrays.
        noise: the error in one row of X, in the units of the X that the estimator sees: a variance
            (for all columns), variances `[d]`, a covariance `[d, d]`, standard deviations by
            `nj.sd(…)`, a distribution such as `nj.noise.Laplace(0.3)`, or a mapping from names of
            columns to such, where other columns are exact. It is the same in all rows. 0.0, the
            default, corrects nothing.
        levels: λ > 0, at least two: multiples of the error's covariance that are added.
        draws: number of draws of added noise at each level, at least two.
        extrapolation: the curve: "quadratic", a + bλ + cλ², or "rational", a + b/(c + λ).
        errors: the kind of standard errors in `result_`: "none", the default and the fastest, or
            "jackknife", which refits without one of 32 groups of rows at a time. ("extrapolated"
            needs an estimator that returns covariances.)
        random_state: seed of the draws: a whole number; `None` or a `RandomState` to draw one.

    Attributes:
        coef_: `[d]`, extrapolated coefficients.
        intercept_: the constant term, extrapolated.
        result_: the `nj.fits.SimexFit`: print it; `result_.uncorrected` has the coefficients
            without correction.

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
