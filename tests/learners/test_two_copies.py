"""Claims on estimates from two copies and more."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import i0

import noisy_jax as nj
from noisy_jax.learners.several_copies import gradient_estimate
from tests.residuals import residuals, signs


@pytest.mark.claim("EXT-Rescue1")
@pytest.mark.parametrize("variance", [0.0, 0.5])
def test_residuals_of_two_copies_are_small_on_average(variance):
    """EXT-Rescue1: S ≤ (ΣEỹ² + ΣE wᵀΣw)/(1 − 2ηB_x²), and so is G as printed, on average."""
    x, y, rate = np.ones((5, 1, 1)), (-1.0) ** np.arange(5), 0.1
    copies = x + np.sqrt(variance) * np.array([-1.0, 1.0])[None, :, None]
    second = 1 + variance
    total, spread = residuals(copies, y, rate, radius=2.0)
    bound = (y @ y + spread) / (1 - 2 * rate * second)
    assert 0.75 * bound < total <= bound
    assert total > y @ y + spread  # which the bound without its denominator is


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.claim("EXT-Symmetrised")
def test_means_over_all_orders_of_the_copies_vary_less(x64, rng):
    """The same mean, a smaller second moment, and a smaller one still from three copies."""
    w, x, y = *rng.normal(size=(2, 2)), 0.3
    root, second_moments = rng.normal(size=(2, 2)), []
    for count in (2, 3):
        copies = x + signs(2 * count).reshape(-1, count, 2) @ root.T
        samples = nj.Sample(jnp.asarray(copies), jnp.full(len(copies), y))
        found = jax.vmap(gradient_estimate, (None, 0))(jnp.asarray(w), samples)
        one, *others = (
            2 * (copies[:, i] @ w - y)[:, None] * copies[:, j]
            for i, j in itertools.permutations(range(count), 2)
        )
        np.testing.assert_allclose(found, np.mean([one, *others], axis=0), atol=1e-12)
        np.testing.assert_allclose(found.mean(axis=0), 2 * (w @ x - y) * x, atol=1e-12)
        second_moments.append(np.mean(np.sum(found**2, axis=1)))
    plain, (two, three) = np.mean(np.sum(one**2, axis=1)), second_moments
    assert three < two < plain
    given = np.sum(x**2) + np.trace(root @ root.T)
    assert plain <= 4 * given * (np.linalg.norm(w) * np.sqrt(given) + abs(y)) ** 2


@pytest.mark.claim("NK-Sec3.1", "NK-Sec3.3")
def test_one_copy_will_do_for_a_linear_loss_and_two_for_a_quadratic_map():
    """E c x̃ = c x, printed without c; E x̃ ⊗ x̃' = x ⊗ x, and E x̃ ⊗ x̃ is not."""
    x, c = np.array([0.5, -1.0]), 0.3
    copies = x + signs(2) * np.array([0.4, 0.7])
    np.testing.assert_allclose(np.mean(c * copies, axis=0), c * x, atol=1e-15)
    two = np.einsum("ni,mj->ij", copies, copies) / len(copies) ** 2
    one = np.einsum("ni,nj->ij", copies, copies) / len(copies)
    np.testing.assert_allclose(two, np.outer(x, x), atol=1e-15)
    np.testing.assert_allclose(one - two, np.diag([0.16, 0.49]), atol=1e-15)


@pytest.mark.claim("NK-tradeoff")
def test_fewer_copies_do_not_always_mean_a_larger_second_moment(x64):
    """At B_x/σ² = ¼ the moment of the Gaussian map is smallest in between."""

    def moment(unit, p):
        maps = nj.unbiased.kernel_gradient(
            nj.kernels.gaussian(length_scale=0.5**0.5), nj.losses.squared(), radius=1.0,
            x_second_moment=unit, kernel_order=60, p=p,
        ).maps  # fmt: skip
        exact = (p / (p - 1)) ** 2 * i0(2 * p**0.5 * unit) * np.exp(2 * p * unit)
        assert maps.second_moment(unit) == pytest.approx(exact, rel=1e-9)
        return exact

    large, small = ([moment(unit, p) for p in (1.5, 2.0, 4.0)] for unit in (1.0, 0.25))
    np.testing.assert_allclose(large, [572, 929, 5.99e4], rtol=2e-3)
    np.testing.assert_allclose(small, [20.9, 12.3, 16.6], rtol=5e-3)
