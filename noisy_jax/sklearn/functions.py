"""Estimators of functions, by `nj.fit`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from noisy_jax.observed.fits import fit, methods
from noisy_jax.sklearn.estimators import Noisy, clean_score_of, seed_of


class NoisyKernelRegression(RegressorMixin, Noisy):
    """Kernel regression on noisy features, for scikit-learn: `nj.methods.Fourier`.

    It fits a curve of any smooth shape, with random Fourier features of the Gaussian kernel
    exp(−r²/(2ℓ²)), whose second moments are corrected for the error in X. `fit(X, y)` takes noisy
    rows; `predict(X)` is for CLEAN features. `score` is R² at the X that it is given, which it
    takes as clean; use `clean_score_`.

    Args:
        noise: the distribution of the error in one row of X, in the units of the X that the
            estimator sees, such as `nj.noise.Gaussian(0.1)`, `nj.sd(0.3, gaussian=True)` or
            `nj.noise.Laplace(0.3)`; or a mapping from names of columns to distributions, where
            other columns are exact. A variance alone raises ValueError. 0.0, the default, corrects
            nothing.
        length_scale: ℓ > 0, in standard deviations of the noisy columns; or "auto", the default,
            which tries up to five and takes the one with the least estimated error on clean data.
        num_features: number of random features, even, at least 2.
        random_state: seed of the random frequencies: a whole number; `None` or a `RandomState` to
            draw one.

    Attributes:
        result_: the `nj.fits.FourierFit`: print it for estimated errors; `result_.band(x)` returns
            lower and upper ends of a 95% band for the curve.
        clean_score_: R² = 1 − error/variance of y on clean data, where the mean squared error
            (with the noise in y) is estimated from noisy rows that a fit did not see. NaN with a
            warning if the error is estimated below 0.

    Example:
        >>> import numpy as np
        >>> import noisy_jax as nj
        >>> from noisy_jax.sklearn import NoisyKernelRegression
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, size=(4000, 1))
        >>> noisy = x + 0.4 * rng.normal(size=x.shape)
        >>> model = NoisyKernelRegression(noise=nj.noise.Gaussian(0.16), length_scale=0.7)
        >>> print(model.fit(noisy, np.sin(2 * x[:, 0])).predict([[0.8]]).round(1))
        [1.]
    """

    def __init__(self, noise=0.0, length_scale="auto", num_features=256, random_state=0):
        self.noise = noise
        self.length_scale = length_scale
        self.num_features = num_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fits rows X `[n, d]` and targets y `[n]`."""
        method = methods.Fourier(
            length_scale=self.length_scale,
            num_features=self.num_features,
            seed=seed_of(self.random_state),
        )
        self.result_: Any = fit(self.table(X, y), method)
        risk = self.result_.risk
        self.clean_score_ = clean_score_of(risk.corrected, risk.variance)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Returns predictions `[n]` at clean features X `[n, d]`."""
        X = self.features(X)
        return np.asarray(self.result_.predict(X), np.float64)
