"""SIMEX around an estimator of scikit-learn, by `nj.fit`."""

from typing import Any, Self

from sklearn.base import MetaEstimatorMixin, RegressorMixin, is_classifier

from noisy_jax.observed.fits import methods
from noisy_jax.sklearn.estimators import Affine, seed_of


class SIMEX(MetaEstimatorMixin, RegressorMixin, Affine):
    """SIMEX of a regressor with affine predictions, such as a pipeline's: `nj.methods.SIMEX`.

    Args:
        estimator: a regressor with `coef_` and `intercept_`, or with predictions affine in X, such
            as a `Pipeline` of a scaler and a linear regressor. It is cloned, and fitted to NumPy
            arrays.
        noise: what is known of the error in X; see the module.
        levels: as in `nj.methods.SIMEX`; so are the others.
        draws: see there.
        extrapolation: see there.
        errors: see there; "none", the default, is the fastest.
        random_state: seed of the draws, or as everywhere in scikit-learn.

    Attributes:
        coef_: `[d]`, extrapolated coefficients.
        intercept_: the constant term.
        result_: the `nj.fits.SimexFit`: print it; `nj.plots.extrapolation` draws it.

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
        """Predictions `[n]` at clean features X `[n, d]`."""
        return self.affine(X)
