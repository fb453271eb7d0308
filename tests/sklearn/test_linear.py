import numpy as np
import pytest
from scipy.special import expit

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from noisy_jax.sklearn import NoisyLinearRegression, NoisyLogisticRegression, NoisyPoissonRegressor

NOISE = [0.2, 0.1]
METHODS = {
    NoisyLinearRegression: nj.methods.Linear,
    NoisyLogisticRegression: nj.methods.Logistic,
    NoisyPoissonRegressor: nj.methods.Poisson,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.__name__)
def test_equals_fit(rng, kind, weighted):
    x = rng.normal(size=(800, 2))
    y = x @ [0.8, -0.4] + rng.normal(size=800)
    targets = {
        NoisyLogisticRegression: rng.uniform(size=800) < expit(y),
        NoisyPoissonRegressor: rng.poisson(np.exp(x @ [0.5, -0.2])),
    }
    y = targets.get(kind, y).astype(float)
    noisy = x + np.sqrt(NOISE) * rng.normal(size=x.shape)
    weights = rng.integers(0, 3, size=800).astype(float) if weighted else None
    model = kind(noise=NOISE).fit(noisy, y, sample_weight=weights)
    expected = nj.fit(from_arrays(noisy, y, noise=NOISE), METHODS[kind](weights=weights))
    np.testing.assert_allclose(np.ravel(model.coef_), expected.coefficients, rtol=1e-12)
    np.testing.assert_allclose(np.ravel(model.intercept_), expected.intercept, rtol=1e-12)
    predicted = model.predict(x)
    if kind is NoisyLogisticRegression:
        predicted = model.predict_proba(x)[:, 1]
        np.testing.assert_array_equal(model.predict(x), predicted > 0.5)
    np.testing.assert_allclose(predicted, expected.predict(x), rtol=1e-12)
