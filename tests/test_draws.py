import jax
import numpy as np
import pytest

from noisy_jax.draws import normal


@pytest.mark.parametrize("shape", [(), (3,), (10,), (17,), (5, 10), (2, 3, 4)])
def test_draws_are_those_of_jax(shape):
    key = jax.random.key(3)
    np.testing.assert_allclose(
        normal(key, shape), jax.random.normal(key, shape), rtol=1e-5, atol=1e-6
    )
