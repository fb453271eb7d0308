"""Messages of the parsers, and of functions that call them."""

import numpy as np
import pytest

import noisy_jax as nj
import noisy_jax.sklearn
from noisy_jax.validation import messages
from tests.errors import raises


def test_long_values_are_shortened_in_messages():
    assert len(messages.given("x" * 10_000)) < 200
    assert messages.given(np.zeros((2, 3))) == "an array [2, 3] of float64"
    assert messages.listed([f"x{i}" for i in range(12)]).endswith("… (12 in all)")


TABLE = {"a": np.arange(12.0) ** 2, "y": np.arange(12.0)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: nj.table(TABLE, target="y", noise={"a": True}), "must be numbers, got True"),
        (lambda t: nj.fit(t, weights="a"), "'a' is a feature of this table: name it where"),
        (lambda t: nj.fit(t, weights=-t.y), r"weights must be .*, but weights\[1\] is -1"),
        (lambda t: nj.fit(t).predict("a"), "x must be numbers, got 'a'"),
        (lambda t: nj.fit(t, nj.methods.SIMEX(lambda x, y: "a")), "of <lambda> must be numbers"),
        (lambda t: nj.csv(3, target="y"), "path must be a CSV file's path, got 3"),
        (lambda t: nj.bounds.two_copies(t, horizon=8, radius=1.0), "moments must be a DataMom"),
        (lambda t: nj.bounds.self_bounding(t, horizon=8, radius=1.0), "moments must be a DataM"),
        (lambda t: nj.plots.regret(t), "study must be a Study, got Observations"),
        (lambda t: noisy_jax.sklearn.clean_score(t), "clean_score_ of a fitted estimator"),
    ],
)
def test_wrong_inputs_are_named(call, message):
    raises(message, call, nj.table(TABLE, target="y", noise={"a": 1e-6}))
