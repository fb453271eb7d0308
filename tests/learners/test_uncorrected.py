"""What the noise costs a learner that ignores it, by NumPy."""

import numpy as np
import pytest

import noisy_jax as nj


@pytest.mark.claim("DA-Thm5", "DA-Lemma7", "DA-Lemma9")
def test_norm_of_noisy_copies_of_the_case_study():
    """App. E, Lemma 7: k̂(x, x) ≤ exp(2σ²c); with σ in place of σ² it is exceeded."""
    for dim, sigma, c in ((10, 1.0, 2.475), (50, 3.0, 1.38)):
        world = nj.worlds.rational(dim=dim, noise=nj.noise.Gaussian(sigma**2), cutoff=c / dim)
        tight = (1 - 2 * sigma**2 * c / dim) ** (-dim / 2) * (1 - np.exp(-c))
        assert world.diagonal <= tight <= np.exp(2 * sigma**2 * c)
        assert sigma == 1 or world.diagonal > np.exp(2 * sigma * c)


@pytest.mark.claim("NK-AppA")
def test_regret_on_noisy_instances_is_linear():
    """min_w E(⟨w, x̃⟩ − 1)² = 1/(1 + xᵀΣ⁻¹x), where on clean instances nothing need be lost."""
    x, cov = np.array([0.6, 0.8]), np.diag([0.2, 0.5])
    w = np.linalg.solve(np.outer(x, x) + cov, x)
    floor = (w @ x - 1) ** 2 + w @ cov @ w
    np.testing.assert_allclose(floor, 1 / (1 + x @ np.linalg.solve(cov, x)), rtol=1e-12)
    assert floor == pytest.approx(0.24509803921568626)
    best = 2 * x
    assert ((best @ (best / (best @ best)) - 1) ** 2) == pytest.approx(0)
    assert ((best @ (best / np.linalg.norm(best)) - 1) ** 2) == pytest.approx(1)  # as printed
