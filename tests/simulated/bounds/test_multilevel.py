"""Moments of `unbiased.multilevel`: exact ones by closed forms and enumeration, and their bound."""

import jax
import numpy as np
import pytest

import noisy_jax as nj
from tests.quadrature import tensor

LEVELS, OPTIONS = 3, {"continue_with": 0.6, "ratio": 0.4}
PROBABILITIES = np.array([0.6 * 0.6, 0.6 * 0.6 * 0.4, 0.6 * 0.4**2])
FACTORS = np.array([1, 1, 2]) / PROBABILITIES


def exact_of_the_kernel(variances, length_scale, base):
    """E‖B̂‖²: ‖Ψ(m) − ½Ψ(a) − ½Ψ(b)‖² = 3/2 + ½k(a, b) − 2k(m, a), over Gaussian a − b."""
    total = 0.0
    for level in range(LEVELS):
        spread = 2 * variances / (base * 2**level)
        # Means of e^(−‖a − b‖²/8ℓ²) and e^(−‖a − b‖²/2ℓ²).
        near, far = (np.prod(1 + c * spread / length_scale**2) ** -0.5 for c in (0.25, 1.0))
        total += FACTORS[level] ** 2 * PROBABILITIES[level] * (1.5 + far / 2 - 2 * near)
    return total


@pytest.mark.claim("EXT-Multilevel")
@pytest.mark.parametrize("base", [1, 2])
@pytest.mark.parametrize("variance", [0.001, 0.05, 0.3])
def test_the_bound_of_the_gaussian_kernel_holds_and_is_close(variance, base):
    """Measured over bound is at most 1 and at least .4, and near 1 for small noise."""
    variances = variance * np.linspace(0.5, 1.5, 10)
    sizes = {"dim": 10, "length_scale": 1.2, "levels": LEVELS, "base": base}
    found = nj.bounds.multilevel(nj.noise.Gaussian(variances), **sizes, **OPTIONS)
    share = exact_of_the_kernel(variances, 1.2, base) / found.correction
    assert (0.97 if variance == 0.001 else 0.4) < share <= 1
    np.testing.assert_allclose(found.second_moment, (1 + found.correction**0.5) ** 2)


@pytest.mark.slow
@pytest.mark.claim("EXT-Multilevel")
@pytest.mark.parametrize(
    ("law", "nodes", "base"),
    [(nj.noise.Rademacher, 2, 1), (nj.noise.Rademacher, 2, 2), (nj.noise.Gaussian, 5, 1)],
)
def test_a_quadratic_attains_the_bound(x64, law, nodes, base):
    """½Lx² by enumeration of two-point noise, and by quadrature over Gaussian noise."""
    lipschitz, sigma = 1.7, 0.8
    sizes = {"levels": 2, "base": base, **OPTIONS}
    g = nj.unbiased.multilevel(lambda x: lipschitz * x**2 / 2, **sizes)
    points, weights = np.polynomial.hermite_e.hermegauss(nodes)  # ±1 if there are two
    law = law(sigma if nodes == 2 else sigma**2)
    errors, shares = tensor(sigma * points, weights / weights.sum(), 4 * base)
    keys = jax.random.split(jax.random.key(0), 400)
    needed = np.asarray(jax.vmap(g.copies_needed)(keys))
    total, values = 0.0, lipschitz * (0.3 + errors[:, :base].mean(axis=1)) ** 2 / 2
    for level, probability in ((1, 0.6 * 0.6), (2, 0.6 * 0.4)):
        key = keys[np.flatnonzero(needed == base * 2**level)[0]]
        estimates = jax.jit(jax.vmap(lambda copies, key=key: g(copies, key=key)))(0.3 + errors)
        total += probability * shares @ (np.asarray(estimates) - values) ** 2
    found = nj.bounds.multilevel(law, dim=1, lipschitz=lipschitz, first=1.0, **sizes)
    np.testing.assert_allclose(total, found.correction, rtol=1e-6)
    np.testing.assert_allclose(found.copies, g.mean_copies)


def test_the_best_options_are_the_best_of_a_grid():
    noise, settings = nj.noise.Laplace(0.2), {"dim": 5, "length_scale": 1.0, "levels": 8}
    for price in (0.1, 10.0):
        best = nj.bounds.multilevel(noise, price=price, **settings)
        cost = best.second_moment * (1 + price * best.copies)
        for q in (0.1, 0.5, 1.0):
            for r in (0.1, 2**-1.5, 0.7):
                other = nj.bounds.multilevel(noise, continue_with=q, ratio=r, **settings)
                assert cost <= 1.001 * other.second_moment * (1 + price * other.copies)
