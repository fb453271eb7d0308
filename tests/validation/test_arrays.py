"""Arrays of real numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.validation import arrays, numbers
from tests.errors import told


@pytest.mark.parametrize("value", ["1", [[1.0], [1.0, 2.0]], ["a"], 1j, None, jax.random.key(0)])
def test_an_array_of_real_numbers_is_nothing_else(value):
    with told("value", "array"):
        arrays.real_array("value", value)
    for parser in numbers.number, numbers.positive:
        with told("value", "must be"):
            parser("value", value, shape=None)


def test_arrays_of_real_numbers_may_be_lists_and_traced():
    for value in ([1, 2], iter([1, 2]), np.array([1, 2]), jnp.array([1, 2])):
        assert arrays.real_array("value", value).tolist() == [1, 2]
    traced = jax.jit(lambda a: (arrays.real_array("a", [a, 2 * a]), nj.noise.Gaussian([a, a])))
    assert traced(1.0)[0].tolist() == [1, 2]
    assert traced(1.0)[1].cov.tolist() == [1, 1]
