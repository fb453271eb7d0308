"""Measures μ on (0, ∞) whose mixtures ∫ exp(−u r²) μ(du) are the radial kernels of all dimensions.

Each measure integrates over (0, cutoff] by nodes and positive weights: 64 Gauss–Legendre nodes
after a substitution that makes the integrand smooth at both ends. They are accurate at r = 0 and at
distances where the kernel has fallen 10⁴-fold.

Source: Learning from Noisy Data under Distributional Assumptions, Theorem 4 (Schoenberg). It holds
for kernels that are positive definite in every dimension. For a fixed dimension, as printed, its
"only if" is false: (1 − r)₊ is positive definite for d = 1, but not such a mixture.
"""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import chex
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, gammaincc, gammaln

from noisy_jax.validation import array_module, concrete, non_negative, positive, within
from noisy_jax.worlds.mixtures import Decay, positive_float

NUM_NODES = 64
# The α and ν for which the nodes are accurate to 1e-6.
ALPHAS, NUS = (0.2, 50.0), (0.1, 100.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Measure:
    """A measure μ on (0, ∞), the mixing measure of a radial kernel.

    Attributes:
        quadrature: `cutoff -> (nodes[Q], log_weights[Q])` of μ on (0, cutoff].
        tail: `cutoff -> []`, μ((cutoff, ∞)).
        mass: `[]`, μ((0, ∞)), to which weights and tail must add up.
        decay: of the whole kernel at large distances, if known; it makes more kernels fast in
            float32.
    """

    quadrature: Callable[[chex.Numeric], tuple[Any, Any]]
    tail: Callable[[chex.Numeric], chex.Array]
    mass: chex.Numeric
    decay: Decay | None = None


def rational_measure(*, length_scale: chex.Numeric, alpha: chex.Numeric = 1.0) -> Measure:
    """The μ with ∫ exp(−u r²) μ(du) = (1 + r²/m)^(−α), m = 2αℓ²: a Gamma distribution of mass 1.

    μ(u) = m^α u^(α−1) e^(−mu)/Γ(α), of shape α and rate m; μ((c, ∞)) = Q(α, mc).

    Args:
        length_scale: ℓ > 0.
        alpha: α from 0.2 to 50. Below, the tail is too heavy for the nodes; above, the kernel is
            almost the Gaussian exp(−r²/2ℓ²).

    Example:
        >>> print(f"{rational_measure(length_scale=1.0).tail(1.0):.4f}")
        0.1353
    """
    length_scale = positive_float("length_scale", length_scale)
    hint = f"for less, {NUM_NODES} nodes miss the tail; for more, it is almost exp(−r²/2ℓ²)"
    alpha = within("alpha", positive_float("alpha", alpha), *ALPHAS, hint)
    m = 2 * alpha * length_scale**2

    def quadrature(cutoff):
        xp = array_module(m, alpha, cutoff)
        # u = end s^p with αp a whole number makes u^(α−1) du smooth at zero; the nodes s crowd
        # there, as small u make the kernel's tail. The mass beyond the end is negligible.
        end = xp.minimum(cutoff, (alpha + 9 * xp.sqrt(alpha) + 36) / m)
        order, crowding = xp.ceil(2 * alpha), 4.0
        t, weights = _legendre()
        s = np.expm1(crowding * t) / np.expm1(crowding)
        slope = crowding * np.exp(crowding * t) / np.expm1(crowding)
        nodes = end * s ** (order / alpha)
        log_constant = alpha * xp.log(m * end) + xp.log(order / alpha) - _log_gamma(alpha)
        log_slopes = np.log(weights * slope) + (order - 1) * np.log(s)
        return nodes, log_constant + log_slopes - m * nodes

    return Measure(
        quadrature, lambda cutoff: gammaincc(alpha, m * cutoff), 1.0, Decay(2 * alpha, 0.0)
    )


def matern_measure(*, nu: chex.Numeric, length_scale: chex.Numeric) -> Measure:
    """The Matérn kernel's measure: the inverse Gamma distribution of shape ν, scale β = ν/(2ℓ²).

    μ(u) = β^ν u^(−ν−1) e^(−β/u)/Γ(ν), of mass 1; μ((c, ∞)) = P(ν, β/c), with P the regularized
    lower incomplete Gamma function.

    Args:
        nu: smoothness ν from 0.1 to 100; 3/2 and 5/2 are `kernels.matern`, 1/2 is
            `kernels.laplacian`. For larger ν the kernel is almost the Gaussian exp(−r²/2ℓ²).
        length_scale: ℓ > 0.

    Example:
        >>> print(f"{matern_measure(nu=1.5, length_scale=2.0).tail(1.0):.4f}")
        0.0546
    """
    hint = "for less, the kernel is almost white noise; for more, almost exp(−r²/2ℓ²)"
    nu = within("nu", positive_float("nu", nu), *NUS, hint)
    length_scale = positive_float("length_scale", length_scale)
    beta = nu / (2 * length_scale**2)

    def quadrature(cutoff):
        xp = array_module(nu, length_scale, cutoff)
        # u = z^(−4) is smooth at the cutoff. The range leaves out negligible mass: β/u follows a
        # Gamma distribution of mean ν and variance ν.
        bulk, spread = nu / beta, 9 * nu**0.5 / beta
        start = xp.maximum(1 / cutoff, bulk - spread) ** 0.25
        end = (1 / cutoff + bulk + spread + 36 / beta) ** 0.25
        t, weights = _legendre()
        z = start + (end - start) * t
        log_constant = xp.log(4 * (end - start)) + nu * xp.log(beta) - _log_gamma(nu)
        log_density = (4 * nu - 1) * xp.log(z) - beta * z**4
        return z**-4, log_constant + np.log(weights) + log_density

    decay = Decay(0.5 - nu, (2 * nu) ** 0.5 / length_scale)
    return Measure(quadrature, lambda cutoff: gammainc(nu, beta / cutoff), 1.0, decay)


def laplacian_measure(*, length_scale: chex.Numeric) -> Measure:
    """The measure of exp(−r/ℓ), Lévy's distribution: the Matérn one with ν = 1/2.

    μ(u) = u^(−3/2) e^(−1/(4ℓ²u))/(2ℓ√π); μ((c, ∞)) = erf(1/(2ℓ√c)), which falls only
    like 1/(ℓ√(πc)): the cusp at r = 0 needs a large cutoff.

    Example:
        >>> print(f"{laplacian_measure(length_scale=1.0).tail(1.0):.4f}")
        0.5205
    """
    return matern_measure(nu=0.5, length_scale=length_scale)


def discrete_measure(nodes: chex.Array, weights: chex.Array) -> Measure:
    """The measure of a kernel that is a sum of Q Gaussians, Σ_q w_q exp(−u_q r²) with r = ‖x − a‖.

    Args:
        nodes: `[Q]`, u_q > 0. `worlds.radial` leaves out the Gaussians with u_q above its `cutoff`.
        weights: `[Q]`, w_q ≥ 0.

    Example:
        >>> print(discrete_measure([1.0, 4.0], [0.5, 0.25]).tail(2.0))
        0.25
    """
    shape, other = np.shape(nodes), np.shape(weights)
    if len(shape) != 1 or shape != other or 0 in shape:
        raise ValueError(f"nodes and weights must be of one shape [Q], got {shape} and {other}")
    nodes = positive("nodes", nodes, shape=None)
    weights = non_negative("weights", weights, shape=None)
    xp = array_module(nodes, weights)
    nodes, weights = xp.asarray(nodes, float), xp.asarray(weights, float)

    def quadrature(cutoff):
        xp = array_module(nodes, weights, cutoff)
        kept = (nodes <= cutoff) & (weights > 0)
        # The node of a weight of zero is put at zero, where it does not grow with the noise.
        log_weights = xp.where(kept, xp.log(xp.where(kept, weights, 1)), -np.inf)
        return xp.where(kept, nodes, 0), log_weights

    def tail(cutoff):
        return jnp.sum(jnp.where(nodes <= cutoff, 0, weights))

    return Measure(quadrature, tail, xp.sum(weights))


def density_measure(
    density: Callable[[chex.Array], chex.Array], *, mass: chex.Numeric, decay: Decay | None = None
) -> Measure:
    """The measure of a custom density, integrated in √u over (0, cutoff].

    Args:
        density: `u[Q] -> μ(u)[Q]`, non-negative and finite; smooth on (0, cutoff], where at zero it
            may grow like 1/√u.
        mass: μ((0, ∞)) > 0, the value of the kernel at r = 0. What the density lacks of it up to
            the cutoff counts as tail: too large a mass cannot be noticed, and adds to the world's
            `approximation_error`.
        decay: of that kernel at large distances, if known; without it, fewer kernels are fast in
            float32.

    Example:
        >>> measure = density_measure(lambda u: jnp.exp(-u), mass=1.0)  # of 1/(1 + r²)
        >>> print(f"{measure.tail(2.0):.4f}")
        0.1353
    """
    mass = positive_float("mass", mass)

    def quadrature(cutoff):
        t, weights = _legendre()
        nodes = cutoff * t**2
        hint = f"its values at {NUM_NODES} increasing nodes u up to the cutoff"
        values = non_negative("density", density(nodes), hint, shape=None)
        xp = array_module(nodes, values)
        values = xp.asarray(values, float)
        log_density = xp.where(values == 0, -np.inf, xp.log(xp.where(values == 0, 1, values)))
        return nodes, np.log(2 * t * weights) + xp.log(cutoff) + log_density

    def tail(cutoff):
        return jnp.maximum(mass - jnp.sum(jnp.exp(quadrature(cutoff)[1])), 0)

    return Measure(quadrature, tail, mass, decay)


def _legendre():
    """Nodes and weights of Gauss–Legendre quadrature on [0, 1]."""
    t, weights = np.polynomial.legendre.leggauss(NUM_NODES)
    return (t + 1) / 2, weights / 2


def _log_gamma(x):
    value = concrete(x)
    return gammaln(x) if value is None else math.lgamma(value)
