"""Least squares in a ball, by the secular equation.

    min_{‖v‖ ≤ B} Σ_i (s_i v_i − c_i)²

The minimizer of least norm, v = c/s, is the solution if it lies in the ball. Otherwise the solution
has a multiplier μ > 0 with v_i = s_i c_i/(s_i² + μ), ‖v(μ)‖ = B: the secular equation. Newton's
method on 1/‖v(μ)‖ − 1/B, which is concave and increasing, reaches it from μ = 0 without
overshooting.
"""

from typing import Any

import chex
import jax
import jax.numpy as jnp

RANK_ROUNDINGS = 8
"""Singular values below so many roundings, scaled by the size, count as zero."""
_NEWTON_STEPS = 64  # five or so suffice; badly scaled features take one more for each scale


def precision(array) -> Any:
    """ε of an array's dtype."""
    return jnp.finfo(array.dtype).eps


def secular(s: jax.Array, c: jax.Array, radius: chex.Numeric) -> tuple[jax.Array, jax.Array]:
    """The least-norm minimizer `[n]` of Σ_i (s_i v_i − c_i)² over ‖v‖ ≤ radius, and its μ `[]`."""
    kept = s > 0
    largest, unit = largest_size(s), largest_size(c)
    sigma, target, reach = s / largest, c / unit, radius * (largest / unit)

    def coordinates(mu):
        return sigma * target / jnp.where(kept, sigma**2 + mu, 1)

    def newton(_, mu):
        v = coordinates(mu)
        scaled = v / largest_size(v)  # the squares of v may underflow
        square = jnp.sum(scaled**2)
        slope = jnp.sum(scaled**2 / jnp.where(kept, sigma**2 + mu, 1))
        step = (norm(v) / reach - 1) * square / jnp.where(slope > 0, slope, 1)
        return jnp.where(step > 0, mu + step, mu)  # no step inside the ball, nor at convergence

    mu = jax.lax.fori_loop(0, _NEWTON_STEPS, newton, jnp.zeros_like(largest))
    return coordinates(mu) * (unit / largest), mu * largest**2


def norm(v: jax.Array) -> jax.Array:
    """‖v‖, `[]`, also where squares of its entries overflow or underflow."""
    size = largest_size(v)
    return size * jnp.sqrt(jnp.sum((v / size) ** 2))


def largest_size(v: jax.Array) -> jax.Array:
    """max |v_i|, `[]`, or 1 if all are zero."""
    size = jnp.max(jnp.abs(v))
    return jnp.where(size > 0, size, 1)
