"""Inequalities behind the bounds of linear learners, by NumPy."""

import numpy as np
import pytest


@pytest.mark.claim("DA-Lemma3")
def test_projected_descent_keeps_its_inequality(rng):
    """Σ⟨v_t, w_t − u⟩ ≤ ‖u‖²/(2η) + ½η Σ‖v_t‖² for u in the ball; attained at u = w_{T+1}."""
    v, rate = rng.normal(size=(50, 3)), 0.1

    def slack(u, radius, v=v):
        w, inner = np.zeros(3), 0.0
        for gradient in v:
            inner += gradient @ (w - u)
            w = w - rate * gradient
            w = w * min(1, radius / np.linalg.norm(w))
        return u @ u / (2 * rate) + rate / 2 * np.sum(v**2) - inner

    inside = rng.normal(size=(200, 3))
    inside /= np.maximum(np.linalg.norm(inside, axis=1, keepdims=True), 1)
    assert min(slack(u, 1.0) for u in inside) > 0
    np.testing.assert_allclose(slack(-rate * v.sum(axis=0), 100.0), 0, atol=1e-12)
    steady = np.tile([1.0, 0.0, 0.0], (50, 1))
    assert slack(np.array([-1.0, 0.0, 0.0]), 0.1, steady) < 0  # outside the ball


@pytest.mark.claim("DA-Identity")
def test_for_the_squared_loss_convexity_is_an_identity(rng):
    """⟨∇, w − u⟩ = ℓ(w) − ℓ(u) + ⟨x, w − u⟩²."""
    x, w, u = rng.normal(size=(3, 4))
    loss = [(a @ x - 0.7) ** 2 for a in (w, u)]
    left = 2 * (w @ x - 0.7) * x @ (w - u)
    np.testing.assert_allclose(left, loss[0] - loss[1] + (x @ (w - u)) ** 2, rtol=1e-12)
