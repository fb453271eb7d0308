"""Parsers of arguments: concrete values raise one clear line, traced ones become NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
import noisy_jax.sklearn
from noisy_jax import validation
from tests.errors import raises


@pytest.mark.parametrize(
    ("parse", "good", "bad"),
    [
        (validation.positive, [1e-9, 5.0], [0.0, -1.0]),
        (validation.non_negative, [0.0, 5.0], [-1e-9]),
        (lambda *a, **o: validation.between(*a, 0, 1, **o), [0.5], [0.0, 1.0]),
        (lambda *a, **o: validation.within(*a, 0, 1, **o), [0.0, 1.0], [-0.1, 1.1]),
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
        validation.positive("sizes", np.array([[1.0, 3.0], [-2.0, 0.0]]), shape=None)
    with pytest.raises(ValueError, match=r"got shape \[2\]; use jax.vmap for several values"):
        validation.positive("size", [1.0, 2.0])


@pytest.mark.parametrize("value", [True, 2.0, "2", 0, None])
def test_whole_numbers_are_integers_from_the_least_on(value):
    assert validation.whole("count", np.int64(3)) == 3
    raises("count must be a whole number of at least 1, got ", validation.whole, "count", value)


def test_choices_and_classes_are_named():
    with pytest.raises(ValueError, match=r"^errors must be 'a', 'b' or 'c', got 'd'$"):
        validation.choice("errors", "d", ("a", "b", "c"))
    raises(r"^x must be an int, got 'd': write 1$", validation.instance, "x", "d", int, "write 1")


def test_long_values_are_shortened_in_messages():
    assert len(validation.given("x" * 10_000)) < 200
    assert validation.given(np.zeros((2, 3))) == "an array [2, 3] of float64"
    assert validation.listed([f"x{i}" for i in range(12)]).endswith("… (12 in all)")


def test_masked_numbers_are_nan():
    masked = np.ma.array([1, -999], mask=[False, True])
    np.testing.assert_array_equal(validation.unmasked(masked), [1.0, np.nan])


def test_keys_are_told_from_numbers():
    assert validation.is_key(jax.random.key(0))
    assert validation.is_key(jax.random.PRNGKey(0))
    assert not validation.is_key(3)
    raises("key must be a key such as", validation.check_key, 0)


TABLE = {"a": np.arange(12.0) ** 2, "y": np.arange(12.0)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: nj.table(TABLE, target="y", noise={"a": True}), "must be numbers, got True"),
        (lambda t: nj.fit(t, weights="a"), r"weights must be \[12\], one number a row"),
        (lambda t: nj.fit(t, weights=-t.y), r"weights must be .*, but weights\[1\] is -1"),
        (lambda t: nj.fit(t).predict("a"), "x must be numbers, got 'a'"),
        (lambda t: nj.fit(t, nj.methods.SIMEX(lambda x, y: "a")), "returns must be numbers"),
        (lambda t: nj.csv(3, target="y"), "path must be a CSV file's path, got 3"),
        (lambda t: nj.bounds.two_copies(t, horizon=8, radius=1.0), "moments must be a DataMom"),
        (lambda t: nj.bounds.self_bounding(t, horizon=8, radius=1.0), "moments must be a DataM"),
        (lambda t: nj.plots.regret(t), "study must be a Study, got Observations"),
        (lambda t: noisy_jax.sklearn.clean_score(t), "clean_score_ of a fitted estimator"),
    ],
)
def test_wrong_inputs_are_named(call, message):
    raises(message, call, nj.table(TABLE, target="y", noise={"a": 1e-6}))
