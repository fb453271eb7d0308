import jax
import numpy as np
import pytest

from noisy_jax.draws import normal


@pytest.mark.parametrize("shape", [(), (3,), (10,), (17,), (5, 10), (2, 3, 4)])
def test_draws_are_those_of_jax(shape):
    found, expected = (draw(jax.random.key(3), shape) for draw in (normal, jax.random.normal))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
