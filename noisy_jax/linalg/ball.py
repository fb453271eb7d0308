"""Least squares in a ball, by the secular equation.

    min_{‖w‖ ≤ B} wᵀAw − 2⟨b, w⟩

with a positive definite A has the solution w(μ) = (A + μI)⁻¹b, where μ = 0 if w(0) lies in the
ball; otherwise ‖w(μ)‖ = B, the secular equation. Newton's method on 1/‖w(μ)‖ − 1/B, which is
concave and increasing, reaches it from any μ with ‖w(μ)‖ ≥ B without overshooting. From a larger
μ its first step leads there, up to rounding.

Source: Moré and Sorensen, SIAM Journal on Scientific and Statistical Computing 4 (1983).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax.validation.values import ArrayLike

RANK_ROUNDINGS = 8
"""Singular values below so many roundings, scaled by the size, count as zero."""
_NORM_ROUNDINGS = 4
_NEWTON_STEPS = 64  # five or so suffice; badly scaled features take one more for each scale


def precision(array) -> Any:
    """Returns ε of an array's dtype."""
    return jnp.finfo(array.dtype).eps


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def in_ball(
    at: Callable[..., Any],
    parameters: tuple[jax.Array, ...],
    start: jax.Array,
    radius: ArrayLike,
    least: ArrayLike = 0.0,
) -> tuple[jax.Array, jax.Array]:
    """Returns the weights w(μ) `[n]` in the ball, and their multiplier μ `[]`.

    Both modes differentiate them by the parameters and the radius.

    Args:
        at: `(μ, *parameters) -> (w, L⁻¹w/max |w_i|)` with w = w(μ), where A + μI = LLᵀ.
        parameters: all that w(μ) depends on, other than μ.
        start: a guess of μ, ≥ `least`; a good one saves steps.
        radius: B > 0.
        least: 0, or a larger lower bound of μ.
    """

    def with_flag(w_and_half, mu, mu_before, steps):
        """Returns the carry, with a flag that the loop goes on.

        `vmap` computes a loop's condition twice, to stop the loop and to choose the lanes that it
        changes. If these computed ‖w‖ with two roundings, the loop might never end.
        """
        w, _ = w_and_half
        size, slack = norm(w), _NORM_ROUNDINGS * precision(w)
        # A step that leaves less than half of μ may have lost its digits.
        beyond = (size < radius * (1 - slack)) & (mu > least) & (mu < mu_before / 2)
        outside = (size > radius * (1 + slack)) & (steps < _NEWTON_STEPS)
        return w_and_half, mu, steps, outside | beyond

    def newton(carry):
        (w, half), mu, steps, _ = carry
        unit = w / largest_size(w)  # the squares of w may underflow
        new = jnp.maximum(mu + (norm(w) / radius - 1) * (unit @ unit / (half @ half)), least)
        return with_flag(at(new, *parameters), new, mu, steps + 1)

    first = with_flag(at(start, *parameters), start, jnp.inf, 0)
    (w, _), mu, *_ = jax.lax.while_loop(lambda carry: carry[-1], newton, first)
    return jnp.where(jnp.isnan(radius), jnp.nan, w), mu  # no comparison holds with NaN


@in_ball.defjvp
def _(at, primals, tangents):
    """dw = ∂w + w'(μ) dμ, with dμ = 0 inside the ball, and ⟨w, dw⟩ = B dB on its boundary."""
    parameters, _, radius, _ = primals
    w, mu = in_ball(at, *primals)
    free = jax.jvp(lambda *p: at(mu, *p)[0], parameters, tangents[0])[1]
    along = jax.jvp(lambda mu: at(mu, *parameters)[0], (mu,), (jnp.ones_like(mu),))[1]
    bound = mu > 0
    change = (radius * tangents[2] - w @ free) / jnp.where(bound, w @ along, 1)
    change = jnp.where(bound, change, 0)
    return (w, mu), (free + change * along, change)


def secular(s: jax.Array, c: jax.Array, radius: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Returns the least-norm minimizer `[n]` of Σ_i (s_i v_i − c_i)² over ‖v‖ ≤ radius, and μ `[]`.

    v_i(μ) = s_i c_i/(s_i² + μ), and 0 where s_i = 0.
    """
    largest, unit = largest_size(s), largest_size(c)

    def coordinates(mu, sigma, target):
        shifted = jnp.where(sigma > 0, sigma**2 + mu, 1)
        v = sigma * target / shifted
        return v, v / largest_size(v) / jnp.sqrt(shifted)

    scaled = s / largest, c / unit
    start = jnp.zeros_like(largest)
    v, mu = in_ball(coordinates, scaled, start, radius * (largest / unit))
    return v * (unit / largest), mu * largest**2


def root(a: jax.Array) -> jax.Array:
    """Returns √max(a, 0), with the derivative 0 instead of infinity where it is 0; NaN at NaN."""
    positive = ~(a <= 0)
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, a, 1)), 0)


def norm(v: jax.Array) -> jax.Array:
    """Returns the root of the sum of all squares, also where squares overflow or underflow."""
    size = jax.lax.stop_gradient(largest_size(v))  # the product does not depend on it
    return size * root(jnp.sum((v / size) ** 2))


def largest_size(v: jax.Array) -> jax.Array:
    """Returns max |v_i|, `[]`, or 1 if all are zero."""
    size = jnp.max(jnp.abs(v))
    return jnp.where(size > 0, size, 1)
