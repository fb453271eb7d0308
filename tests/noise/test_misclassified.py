"""Misclassified categories: exact means over all categories that may be recorded."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import noisy_jax as nj
from noisy_jax.noise import Misclassified
from tests.errors import raises
from tests.keys import key
from tests.noise.cases import Case, check_bound, check_unbiased

TWO = np.array([[0.9, 0.1], [0.2, 0.8]])
FOUR = np.array(
    [[0.7, 0.1, 0.1, 0.1], [0.0, 0.8, 0.2, 0.0], [0.2, 0.1, 0.6, 0.1], [0.05, 0.05, 0.1, 0.8]]
)
CASES = {
    "binary columns": (TWO, np.array([1.0, 0.0, 1.0])),
    "first of four": (FOUR, np.array([0.0, 0.0, 0.0])),
    "third of four": (FOUR, np.array([0.0, 1.0, 0.0])),
}


def copies_of(matrix, x):
    """All copies `[m, 3]` of x, and their probabilities, in NumPy's float64."""
    inverse = np.linalg.inv(matrix)
    if len(matrix) == 2:
        recorded = np.array(list(itertools.product([0, 1], repeat=3)))
        return inverse[recorded][..., 1], matrix[x.astype(int), recorded].prod(axis=1)
    return inverse[:, 1:], matrix[int(np.append(1 - x.sum(), x).argmax())]


@pytest.fixture(params=CASES, ids=str, name="case")
def case_(request):
    matrix, x = CASES[request.param]
    return Case(Misclassified(matrix), x, *copies_of(matrix, x))


@pytest.mark.slow
@pytest.mark.claim("EXT-Misclassified")
def test_copies_covariances_and_gradients_are_unbiased(x64, case):
    check_unbiased(case, atol=1e-12, gradients=len(case.noise.matrix) == 2)  # or variances < 0


def test_moments_of_the_bound_contain_the_exact_ones(x64, case):
    squares = np.sum(case.copies**2, axis=1)
    fourth = squares**2 + squares
    check_bound(case, fourth, np.sqrt(fourth), rtol=1e-12)


@pytest.mark.statistical
def test_drawn_copies_have_the_enumerated_frequencies(case):
    noise, x, copies, p = case
    drawn = np.asarray(jax.jit(noise.sample)(key(), np.tile(x, (40_000, 1)).astype(np.float32)))
    same = np.isclose(drawn[:, None], copies, atol=1e-5).all(-1)
    assert same.any(axis=1).all()
    error = np.sqrt(p * (1 - p) / len(drawn))
    assert np.all(np.abs(same.mean(axis=0) - p) <= 5 * error)


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
