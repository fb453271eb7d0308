"""Least squares in a ball, by the secular equation.

    min_{‖v‖ ≤ B} Σ_i (s_i v_i − c_i)²

The least-norm minimiser v = c/s serves where it lies in the ball. Else the minimiser has a
multiplier μ > 0 with v_i = s_i c_i/(s_i² + μ), ‖v(μ)‖ = B: the secular equation. Newton's method on
1/‖v(μ)‖ − 1/B, which is concave and increasing, climbs to it from μ = 0 without overshooting.
"""

import chex
import jax
import jax.numpy as jnp

RANK_ROUNDINGS = 8
"""Singular values below so many roundings, scaled by the size, count as zero."""
_NEWTON_STEPS = 64  # five or so suffice; badly scaled features take one more for each scale


def precision(array) -> chex.Array:
    """ε of an array's dtype."""
    return jnp.finfo(array.dtype).eps


def secular(s, c, radius):
    """The least-norm minimiser `[n]` of Σ_i (s_i v_i − c_i)² over ‖v‖ ≤ radius, and its μ `[]`."""
    kept = s > 0
    largest = jnp.where(jnp.any(kept), jnp.max(s), 1)
    sigma, target = s / largest, c / largest

    def coordinates(mu):
        return sigma * target / jnp.where(kept, sigma**2 + mu, 1)

    def newton(_, mu):
        v = coordinates(mu)
        norm = jnp.linalg.norm(v)
        slope = jnp.sum(v**2 / jnp.where(kept, sigma**2 + mu, 1))
        step = (norm / radius - 1) * norm**2 / jnp.where(slope > 0, slope, 1)
        return jnp.where(step > 0, mu + step, mu)  # no step inside the ball, nor at convergence

    mu = jax.lax.fori_loop(0, _NEWTON_STEPS, newton, jnp.zeros_like(largest))
    return coordinates(mu), mu * largest**2
