"""Pairs of copies of Gaussian noise: exact, by quadrature."""

import numpy as np
import pytest

import noisy_jax as nj
from tests.unbiased.cases import ENTIRE, X, over_noise, polynomial

pytestmark = pytest.mark.usefixtures("x64")


@pytest.mark.slow
@pytest.mark.claim("EXT-Pair")
@pytest.mark.parametrize("name", ENTIRE)
def test_pair_is_exact_under_gaussian_noise(name):
    f = ENTIRE[name]
    np.testing.assert_allclose(over_noise(nj.unbiased.pair(f), 2, 11), f(X), rtol=1e-6)
    assert abs(over_noise(lambda copies: f(copies.mean(axis=0)), 2, 11) - f(X)) > 1e-3


@pytest.mark.claim("EXT-Pair")
def test_pair_is_exact_from_three_copies():
    found = over_noise(nj.unbiased.pair(polynomial), 3, 5)
    np.testing.assert_allclose(found, polynomial(X), rtol=1e-10)
