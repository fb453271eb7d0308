"""Claims on random truncation that no other test shows: copies used, independence of draws."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

import noisy_jax as nj
from noisy_jax.unbiased.truncation.maps import MapOrders
from tests.learners.test_random_truncation import KERNELS, estimator_of

OPTIONS = {"radius": 0.5, "x_second_moment": 0.5}


@pytest.mark.slow
@pytest.mark.claim("NK-Sub5", "NK-Sub2")
@pytest.mark.parametrize("kernel", ["exponential", "gaussian"])
def test_an_estimate_depends_on_as_many_copies_as_it_counts(rng, kernel):
    """Each power takes a copy of its own: N₂ in the tensor and 2N₁ in the envelope, none twice."""
    maps = estimator_of(KERNELS[kernel], nj.losses.squared(), **OPTIONS).maps
    copies = rng.uniform(0.5, 1.0, (maps.copies, 2))
    for tensor, envelope in itertools.product(range(3), range(3 if kernel == "gaussian" else 1)):
        orders = MapOrders(jnp.int32(tensor), jnp.int32(envelope))
        plain = maps.estimate(orders, jnp.asarray(copies))
        used = 0
        for i in range(maps.copies):
            moved = copies.copy()
            moved[i] *= 1.5
            other = maps.estimate(orders, jnp.asarray(moved))
            used += not np.array_equal(plain.factors, other.factors)
        assert used == plain.copies == tensor + 2 * envelope


@pytest.mark.claim("NK-Lemma2")
@pytest.mark.parametrize("y_largest", [0.5, 2.0])
def test_the_second_moment_of_the_derivative_is_attained_by_the_largest_target(x64, y_largest):
    """Where all values are −√(B_wB_Ψ) and y = B_y: Σ (γ_n²/p_n) (√(B_wB_Ψ) + B_y)^(2n)."""
    loss = nj.losses.smoothed_absolute(sharpness=0.3)
    estimator = estimator_of(KERNELS["exponential"], loss, y_largest=y_largest, **OPTIONS)
    derivative = estimator.derivative
    values = jnp.full(derivative.copies, -((0.25 * estimator.map_second_moment) ** 0.5))
    squares = [
        derivative.estimate(jnp.int32(order), values - y_largest) ** 2
        for order in range(derivative.copies + 1)
    ]
    exact = derivative.orders.probabilities @ np.array(squares)
    np.testing.assert_allclose(estimator.derivative_second_moment, exact, rtol=1e-10)
