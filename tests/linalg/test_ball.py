"""Least squares in a ball, against the secular equation of eigenvalues."""

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

import noisy_jax as nj
from noisy_jax.linalg.ball import in_ball, largest_size, norm, root
from noisy_jax.linalg.matrices import cholesky, solve_cholesky, solve_triangular
from tests.slopes import finite_slopes

EIGENVALUES = np.array([0.01, 0.3, 1.0, 20.0])


@pytest.fixture
def problem(rng, x64):
    """A matrix with these eigenvalues, b, and ‖(A + μI)⁻¹b‖ as a function of μ."""
    vectors = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    b = rng.normal(size=4)
    matrix = vectors * EIGENVALUES @ vectors.T
    return matrix, b, lambda mu: np.linalg.norm(vectors.T @ b / (EIGENVALUES + mu))


def solve_shifted(mu, matrix, b):
    """(A + μI)⁻¹b, and what `in_ball` needs beside it."""
    factor = cholesky(matrix + mu * np.eye(4, dtype=b.dtype))
    w = solve_cholesky(factor, b)
    return w, solve_triangular(factor, w / largest_size(w))


def solved(matrix, b, start, radius, least=0.0):
    """Weights, μ, and the number of solutions that it took."""
    tried = []

    def at(mu, matrix, b):
        jax.debug.callback(tried.append, mu)
        return solve_shifted(mu, matrix, b)

    w, mu = jax.jit(lambda *start: in_ball(at, (matrix, b), *start))(start, radius, least)
    jax.effects_barrier()
    return w, mu, len(tried)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.0, 0.3, 1.001, 1e6])
def test_the_multiplier_is_the_same_from_any_start(problem, share):
    matrix, b, norm = problem
    expected = brentq(lambda mu: norm(mu) - 1, 0, 1e3, xtol=1e-14)
    for least in (0.0, min(share, 0.9) * expected):
        w, mu, tried = solved(matrix, b, share * expected, 1.0, least)
        np.testing.assert_allclose(mu, expected, rtol=1e-12)
        np.testing.assert_allclose((matrix + mu * np.eye(4)) @ w, b, rtol=1e-12)
        assert tried <= (3 if share == 1.001 else 12)


def test_a_start_far_beyond_loses_no_digits(rng):
    """With A = I/2 a step leads to the solution, but for the digits of the start that it loses."""
    b = rng.normal(size=4).astype(np.float32)
    told, radius = (0.5 * np.eye(4, dtype=np.float32), b), np.linalg.norm(b) / 2

    def multiplier(start):
        return in_ball(solve_shifted, told, start, radius)[1]

    starts = np.geomspace(1e3, 1e8, 50, dtype=np.float32)
    np.testing.assert_allclose(jax.jit(jax.vmap(multiplier))(starts), 1.5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("start", "radius"), [(0.0, 1.01), (1e6, 1.01), (0.1, np.inf)])
def test_inside_the_ball_the_multiplier_is_zero_from_any_start(problem, start, radius):
    matrix, b, norm = problem
    w, mu, _ = solved(matrix, b, start, radius * norm(0))
    assert mu == 0
    np.testing.assert_allclose(matrix @ w, b, rtol=1e-12)


def test_the_norm_of_zeros_has_the_derivative_zero():
    np.testing.assert_array_equal(finite_slopes(norm, np.zeros(3, np.float32))[0], 0)


def test_roots_and_norms_of_nan_are_nan():
    assert np.isnan(root(np.float32("nan")))
    assert np.isnan(norm(np.float32([1.0, np.nan])))
    assert root(np.float32([-1.0, 0.0, 4.0])).tolist() == [0, 0, 2]


@pytest.mark.parametrize("radius", [-1.0, np.nan])
def test_a_traced_radius_that_is_none_gives_nan(radius):
    stream = nj.Stream(np.eye(2, dtype=np.float32), np.ones(2, np.float32))
    best = jax.jit(lambda radius: nj.comparators.linear_ball(stream, radius).weights)
    assert np.isnan(best(radius)).all()
    np.testing.assert_allclose(best(1.0), [0.5**0.5] * 2, rtol=1e-5)
