"""Misclassified categories: what they may be; their moments are in `test_dependent.py`."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.noise import Misclassified
from tests.errors import raises
from tests.keys import key
from tests.noise.cases import FOUR, TWO


@pytest.mark.slow
def test_a_perfect_matrix_gives_x_itself_and_other_x_give_nan():
    exact = Misclassified(np.eye(2))
    x = jnp.array([[0.0, 1.0, 1.0]])
    np.testing.assert_array_equal(exact.centred(key(), x), x)
    assert exact.centred(key(), jnp.array(1.0)).shape == ()
    found = Misclassified(TWO).centred(key(), jnp.array([0.5, 1.0]))
    assert np.isnan(found).tolist() == [True, False]
    assert np.isnan(Misclassified(FOUR).centred(key(), jnp.array([1.0, 1.0, 0.0]))).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Misclassified(None), "Misclassified.matrix must be"),
        (lambda: Misclassified([0.9, 0.1]), r"must be \[K, K\]"),
        (lambda: Misclassified([[0.9, 0.2], [0.2, 0.8]]), "add up to 1"),
        (lambda: Misclassified([[0.9, 0.2], [0.1, 0.8]]), "transpose it"),
        (lambda: Misclassified([[1.1, -0.1], [0.2, 0.8]]), r"in \[0, 1\]"),
        (lambda: Misclassified([[0.5, 0.5], [0.5, 0.5]]), "determinant"),
        (lambda: Misclassified([[0.2, 0.8], [0.9, 0.1]]), "another order"),
        (lambda: Misclassified(TWO, categories=["a", "b", "c"]), "2 different categories"),
        (lambda: Misclassified(TWO, categories=["a", "a"]), "2 different categories"),
        (lambda: Misclassified(TWO, categories="ab"), "2 different categories"),
        (lambda: Misclassified(TWO, categories=2), "2 different categories"),
        (lambda: Misclassified(TWO, categories=np.array("ab")), "2 different categories"),
        (lambda: Misclassified(TWO, categories=[["a"], ["a"]]), "2 different categories"),
        (lambda: Misclassified(FOUR).centred(key(), jnp.ones(2)), "4 categories"),
        (lambda: nj.worlds.gaussian(dim=3, length_scale=1.0, noise=Misclassified(TWO)), "noise"),
    ],
)
def test_bad_input_raises(make, message):
    raises(message, make)


def test_a_missing_value_may_be_a_category():
    assert Misclassified(TWO, categories=[pd.NA, "a"]).categories == (pd.NA, "a")
    raises("2 different", Misclassified, TWO, categories=[pd.NA, pd.NA])


def test_categories_are_no_leaves():
    noise = Misclassified(TWO, categories=["no", "yes"])
    assert len(jax.tree.leaves(noise)) == 1
    assert jax.tree.map(lambda leaf: leaf, noise).categories == ("no", "yes")
