"""Estimators of functions, by `nj.fit`."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from noisy_jax.observed.fits import fit, methods
from noisy_jax.sklearn.estimators import Noisy, clean_score_of, seed_of


class NoisyKernelRegression(RegressorMixin, Noisy):
    """Kernel regression on noisy features: `nj.methods.Fourier`.

    Args:
        noise: the distribution of the error in X, such as `nj.noise.Gaussian(0.1)` (see
            `help(noisy_jax.sklearn)`). A variance alone is not enough.
        length_scale: ℓ > 0, in standard deviations of the noisy columns; or "auto", to choose it by
            estimated errors on clean data, as in `nj.methods.Fourier`.
        num_features: number of random features, even.
        random_state: seed of the random frequencies, or as everywhere in scikit-learn.

    Attributes:
        result_: the `nj.fits.FourierFit`: print it for estimated errors; `result_.band(x)` is a
            band.
        clean_score_: R² on clean data, cross-fitted; it contains the noise in y.

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
