"""Functions, switches, choices and objects of a class."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from noisy_jax.validation import objects
from tests.errors import raises, told


def test_choices_and_classes_are_named():
    with pytest.raises(ValueError, match=r"^errors must be 'a', 'b' or 'c', got 'd'$"):
        objects.choice("errors", "d", ("a", "b", "c"))
    for order in (np.array(2), jnp.int32(2)):
        assert type(objects.choice("order", order, (1, 2))) is int
    raises("order must be 1 or 2, got True", objects.choice, "order", True, (1, 2))
    raises(r"^x must be an int, got 'd': write 1$", objects.instance, "x", "d", int, "write 1")
    has_items = functools.partial(objects.instance, attribute="items")
    assert has_items("x", {}, "a mapping") == {}
    raises(r"^x must be a mapping, got 'd'$", has_items, "x", "d", "a mapping")


@pytest.mark.parametrize("value", [1 + 0j, np.complex64(1), [[1], [1, 2]], pd.NA, {1}, None])
def test_only_texts_and_real_numbers_are_choices(value):
    raises("^order must be 1 or 2, got ", objects.choice, "order", value, (1, 2))


def test_a_list_of_a_traced_number_is_no_choice():
    with pytest.raises(ValueError, match=r"^order must be 1 or 2, got list"):
        jax.jit(lambda order: objects.choice("order", [order], (1, 2)))(1)


@pytest.mark.parametrize("value", ["no", 1, None, np.ones(2)])
def test_switches_and_functions(value):
    with told("value", "True or False"):
        objects.switch("value", value)
    with told("value", "a function"):
        objects.function("value", value)
    with told("value", "'a' or 'b'"):
        objects.choice("value", value, ("a", "b"))
    with told("value", "'a' or 'b'"):
        objects.choice("value", jax.random.key(0), ("a", "b"))
    assert objects.switch("value", np.True_) is True
