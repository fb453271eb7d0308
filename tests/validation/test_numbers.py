"""Numbers in a range: concrete values raise one clear line, traced ones become NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from noisy_jax.validation import numbers
from tests.errors import raises


@pytest.mark.parametrize(
    ("parse", "good", "bad"),
    [
        (numbers.positive, [1e-9, 5.0], [0.0, -1.0]),
        (numbers.non_negative, [0.0, 5.0], [-1e-9]),
        (lambda *a, **o: numbers.between(*a, 0, 1, **o), [0.5], [0.0, 1.0]),
        (lambda *a, **o: numbers.within(*a, 0, 1, **o), [0.0, 1.0], [-0.1, 1.1]),
    ],
    ids=["positive", "non_negative", "between", "within"],
)
def test_numbers_out_of_range_raise_and_become_nan_where_traced(parse, good, bad):
    for value in good:
        assert parse("rate", value) == value
    for value in [*bad, np.nan, np.inf]:
        raises(r"^rate must be .*, got ", parse, "rate", value)
    traced = jax.jit(lambda values: parse("rates", values, shape=None))(jnp.array(good + bad))
    np.testing.assert_array_equal(np.isnan(traced), [False] * len(good) + [True] * len(bad))
    np.testing.assert_allclose(traced[: len(good)], good, rtol=1e-6)


def test_an_array_names_the_first_bad_place_and_how_many_there_are():
    with pytest.raises(ValueError, match=r"sizes must be .*, but sizes\[1, 0\] is -2.0 \(2 in al"):
        numbers.positive("sizes", np.array([[1.0, 3.0], [-2.0, 0.0]]), shape=None)
    with pytest.raises(ValueError, match=r"got shape \[2\]; use jax.vmap for several values"):
        numbers.positive("size", [1.0, 2.0])


def test_traced_numbers_are_real_as_well():
    with pytest.raises(ValueError, match=r"^size must be real, got "):
        jax.jit(lambda value: numbers.positive("size", value))(1j)


def test_lists_become_arrays_and_numbers_and_columns_stay():
    assert isinstance(numbers.positive("sizes", [1.0, 2.0], shape=None), np.ndarray)
    assert isinstance(numbers.positive("sizes", pd.Series([1.0, 2.0]), shape=None), pd.Series)
    assert type(numbers.positive("size", 2)) is int


def test_truth_values_of_any_library_are_no_numbers():
    for value in (True, np.True_, np.array(True), jnp.array(True)):
        raises("^size must be numbers, got ", numbers.positive, "size", value)
    with pytest.raises(ValueError, match=r"^size must be numbers, got "):
        jax.jit(lambda value: numbers.positive("size", value))(True)


def test_numbers_of_short_types_are_computed_with_in_wider_ones():
    assert numbers.positive("size", np.uint8(200)) ** 2 == 40_000
    assert -numbers.positive("size", np.uint64(3)) == -3
    assert numbers.positive("size", jnp.int32(100_000)) ** 2 == 1e10
    for kind in (np.float16, jnp.bfloat16):
        size = jnp.asarray(512, kind)
        assert numbers.positive("size", size) ** 2 == 2**18
        assert jax.jit(lambda v: numbers.positive("size", v) ** 2)(size) == 2**18
    column = numbers.positive("sizes", pd.Series([100], ["a"], np.int8), shape=None)
    assert (column**2).to_dict() == {"a": 10_000}
    masked = np.ma.array([1.0, 2.0], mask=[False, False])
    assert type(numbers.positive("sizes", masked, shape=None)) is np.ndarray


@pytest.mark.parametrize("value", [3, np.int64(3), np.array(3), jnp.int32(3)])
def test_whole_numbers_of_any_kind_become_integers(value):
    assert type(numbers.whole("count", value)) is int
    assert numbers.whole("count", value) == 3


@pytest.mark.parametrize("value", [True, jnp.array(True), 2.0, jnp.float32(2), "2", 0, None, [3]])
def test_whole_numbers_are_integers_from_the_least_on(value):
    raises("count must be a whole number of at least 1, got ", numbers.whole, "count", value)


def test_finite_numbers_are_looked_at_where_they_are(monkeypatch):
    """Arrays of short types are not copied into wider ones, which nobody reads."""
    monkeypatch.setattr(numbers, "widened", lambda value: pytest.fail("copied"))
    numbers.check_finite("x", np.ones(3, np.uint8))
    jax.jit(lambda x: numbers.check_finite("x", x))(jnp.ones(3, jnp.int32))
    raises(r"^x must be finite, but x\[1\] is nan", numbers.check_finite, "x", [1.0, np.nan])
    with pytest.raises(ValueError, match=r"^x must be real, got "):
        jax.jit(lambda x: numbers.check_finite("x", x))(1j)


def test_a_positive_number_of_any_library_becomes_a_python_float():
    for value in (2, np.float32(2), np.int64(2), np.array(2.0), jnp.bfloat16(2)):
        assert type(numbers.positive_float("size", value)) is float
    assert jax.jit(lambda value: numbers.positive_float("size", value))(2.0) == 2
