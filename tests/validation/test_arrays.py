"""Arrays of real numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.validation import arrays, numbers
from noisy_jax.validation.values import concrete
from tests.errors import told

DURATIONS = np.ones(2, "timedelta64[D]")
RECORDS = np.ones(2, [("x", float)])
WRONG = ["1", [[1.0], [1.0, 2.0]], ["a"], 1j, None, jax.random.key(0), DURATIONS, RECORDS]


@pytest.mark.parametrize("value", WRONG)
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


@pytest.mark.parametrize("kind", [np.int64, np.uint64, ">f8", np.longdouble])
def test_numbers_that_jax_cuts_off_or_refuses_become_float64(kind):
    value = np.array([3_000_000_000, 1], kind)
    predicted = nj.learners.uncorrected(radius=1.0).predict
    state = nj.learners.uncorrected(radius=1.0).init(2)._replace(weights=jnp.array([1.0, 0.0]))
    assert jnp.asarray(arrays.real_array("x", value)).tolist() == [3e9, 1]
    assert predicted(state, value) == 3e9
    assert jnp.asarray(numbers.positive("sizes", [3_000_000_000], shape=None)).tolist() == [3e9]
    for size in value[0], 3_000_000_000:
        assert jnp.asarray(numbers.positive("size", size)) == 3e9
        assert nj.losses.absolute()(jnp.zeros(1), size) == 3e9


@pytest.mark.parametrize("number", [jnp.int32(2), jnp.bfloat16(2)])
def test_concrete_numbers_of_jax_stay_concrete_inside_jit(number):
    kernel, loss = nj.kernels.gaussian(length_scale=1.0), nj.losses.logistic()

    options = {"learning_rate": 1.0, "regularization": number, "buffer": 9}

    def norma(rate):
        nj.learners.norma(kernel, loss, **options)
        return rate

    assert concrete(arrays.widened(number)) == 2
    with pytest.raises(ValueError, match="learning_rate"):
        jax.jit(norma)(1.0)

    def scaled(factor):
        size = {"dim": 2, "horizon": 100, "radius": 1.0, "y_second_moment": 1.0}
        noise = nj.noise.Gaussian(0.1)
        return factor * nj.bounds.unknown_noise(noise, length_scale=number, **size).regret

    np.testing.assert_allclose(jax.jit(scaled)(1.0), scaled(1.0), rtol=1e-6)
