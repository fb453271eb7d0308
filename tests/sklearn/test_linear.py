import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from noisy_jax.sklearn import (
    SIMEX,
    NoisyLinearRegression,
    NoisyLogisticRegression,
    NoisyPoissonRegressor,
)
from tests.errors import raises

NOISE = [0.2, 0.1]
METHODS = {
    NoisyLinearRegression: nj.methods.Linear,
    NoisyLogisticRegression: nj.methods.Logistic,
    NoisyPoissonRegressor: nj.methods.Poisson,
}


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.__name__)
def test_equals_fit(rng, kind):
    x = rng.normal(size=(800, 2))
    y = x @ [0.8, -0.4] + rng.normal(size=800)
    targets = {
        NoisyLogisticRegression: rng.uniform(size=800) < expit(y),
        NoisyPoissonRegressor: rng.poisson(np.exp(x @ [0.5, -0.2])),
    }
    y = targets.get(kind, y).astype(float)
    noisy = x + np.sqrt(NOISE) * rng.normal(size=x.shape)
    weights = rng.integers(0, 3, size=800).astype(float)
    model = kind(noise=NOISE).fit(noisy, y, sample_weight=weights)
    expected = nj.fit(from_arrays(noisy, y, noise=NOISE), METHODS[kind](weights=weights))
    np.testing.assert_allclose(np.ravel(model.coef_), expected.coefficients, rtol=1e-12)
    np.testing.assert_allclose(np.ravel(model.intercept_), expected.intercept, rtol=1e-12)
    predicted = model.predict(x)
    if kind is NoisyLogisticRegression:
        predicted = model.predict_proba(x)[:, 1]
        np.testing.assert_array_equal(model.predict(x), predicted > 0.5)
    np.testing.assert_allclose(predicted, expected.predict(x), rtol=1e-12)


def test_equals_fit_also_around_a_pipeline(rng):
    x = rng.normal(size=(300, 2))
    noisy, y = x + 0.4 * rng.normal(size=x.shape), x @ [2.0, -1.0] + 3
    model = SIMEX(LinearRegression(), noise=0.16, draws=4).fit(noisy, y)
    method = nj.methods.SIMEX(LinearRegression(), draws=4, errors="jackknife")
    expected = nj.fit(from_arrays(noisy, y, noise=0.16), method)
    np.testing.assert_allclose(model.coef_, expected.coefficients, rtol=1e-12)
    assert np.isnan(model.result_.std_error).all()
    assert np.isfinite(expected.std_error).all()
    piped = SIMEX(make_pipeline(StandardScaler(), LinearRegression()), noise=0.16, draws=4)
    np.testing.assert_allclose(piped.fit(noisy, y).predict(x), model.predict(x), rtol=1e-9)
    curved = SIMEX(make_pipeline(PolynomialFeatures(), LinearRegression()), noise=0.16)
    raises("predictions that are linear in x", curved.fit, noisy, y)
    raises("takes a regressor, got a classifier", SIMEX(LogisticRegression()).fit, noisy, y > 0)


def test_seeds_are_as_everywhere_in_scikit_learn(rng):
    noisy, y = rng.normal(size=(2, 100, 1))
    states = [np.random.RandomState(0), np.random.RandomState(0), None]
    models = [SIMEX(LinearRegression(), 0.1, draws=4, random_state=state) for state in states]
    fits = [model.fit(noisy, y[:, 0]) for model in models]
    assert fits[0].coef_ == fits[1].coef_ != fits[2].coef_
