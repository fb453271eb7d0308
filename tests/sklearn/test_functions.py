import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from noisy_jax.sklearn import NoisyKernelRegression, clean_score


@pytest.mark.slow
def test_equals_fit_and_a_grid_chooses_its_length_scale(rng):
    x = rng.uniform(-2, 2, size=(600, 1))
    noisy, y = x + 0.3 * rng.normal(size=x.shape), np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=600)
    noise = nj.noise.Gaussian(0.09)
    model = NoisyKernelRegression(noise, num_features=32, random_state=3)
    grid = GridSearchCV(model, {"length_scale": [0.7, 50.0]}, scoring=clean_score, cv=2)
    best = grid.fit(noisy, y).best_estimator_
    assert best.length_scale == 0.7
    method = nj.methods.Fourier(length_scale=0.7, num_features=32, seed=3)
    expected = nj.fit(from_arrays(noisy, y, noise=noise), method)
    np.testing.assert_allclose(best.predict(x), expected.predict(x), rtol=1e-12)
    assert best.clean_score_ == 1 - expected.risk.corrected / expected.risk.variance
