"""Which fits have estimated errors on clean rows; those of linear and kernel fits: see these."""

import jax
import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import noisy_jax as nj
from noisy_jax.observed.observations import from_arrays
from tests.errors import raises


@pytest.mark.parametrize(
    "candidate",
    [RandomForestRegressor(3, random_state=0), nj.methods.Logistic().fitted],
    ids=["forest", "logistic"],
)
def test_predictions_that_are_not_affine_are_one_clear_line(candidate):
    rng = np.random.default_rng(0)
    rows = from_arrays(rng.normal(size=(400, 2)), rng.integers(0, 2, 400), noise=0.09)
    message = r"candidate 'a': its predictions are not linear in x.* nj.methods.Fourier\(…\).fitted"
    raises(message, nj.select, {"line": nj.fit, "a": candidate}, rows, jax.random.key(0))
