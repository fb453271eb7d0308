"""Measures μ on (0, ∞) whose mixtures ∫ exp(−u r²) μ(du) are the radial kernels of all dimensions.

Each knows how to integrate over (0, cutoff] by nodes and positive weights: 64 Gauss–Legendre nodes
after a substitution that makes the integrand smooth at both ends, for distances at which the kernel
has fallen 10⁴-fold as well as for zero.

Source: Learning from Noisy Data under Distributional Assumptions, Theorem 4 (Schoenberg). As
printed, for a fixed dimension, its "only if" is false: (1 − r)₊ is positive definite for d = 1 and
no such mixture. It holds for kernels that are positive definite in every dimension.
"""

import dataclasses
import math
from collections.abc import Callable

import chex
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammainc, gammaincc, gammaln

from noisy_jax.validation import (
    array_module,
    check_finite,
    check_non_negative,
    check_positive,
    concrete,
)
from noisy_jax.worlds.mixtures import Decay, number

NUM_NODES = 64
# Where the nodes are good to 1e-6, of α and ν.
ALPHAS, NUS = (0.2, 50.0), (0.1, 100.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Measure:
    """A measure μ on (0, ∞), the mixing measure of a radial kernel.

    Attributes:
        quadrature: `cutoff -> (nodes[Q], log_weights[Q])` of μ on (0, cutoff].
        tail: `cutoff -> []`, μ((cutoff, ∞)).
        mass: `[]`, μ((0, ∞)). A world is refused where weights and tail do not add up to it.
        decay: of the whole kernel at large distances, which helps to make its mixtures fast in
            float32; `None` where it is not known.
    """

    quadrature: Callable[[chex.Numeric], tuple[chex.Array, chex.Array]]
    tail: Callable[[chex.Numeric], chex.Array]
    mass: chex.Numeric
    decay: Decay | None = None


def rational_measure(*, length_scale: chex.Numeric, alpha: chex.Numeric = 1.0) -> Measure:
    """The measure of (1 + r²/m)^(−α), m = 2αℓ²: a Gamma distribution of mass 1.

    μ(u) = m^α u^(α−1) e^(−mu)/Γ(α), of shape α and rate m; μ((c, ∞)) = Q(α, mc).

    Args:
        length_scale: ℓ > 0.
        alpha: α from 0.2 to 50. Of a smaller one the tail is too heavy for the nodes, a larger one
            is all but the Gaussian exp(−r²/2ℓ²); a traced one out of that range gives NaN.

    Raises:
        ValueError: ℓ not positive, or α out of range.

    Example:
        >>> print(f"{rational_measure(length_scale=1.0).tail(1.0):.4f}")
        0.1353
    """
    length_scale = number("length_scale", length_scale, "ℓ of the rational kernel")
    alpha = _within(
        ALPHAS,
        "alpha",
        number("alpha", alpha, "the power of the rational kernel"),
        f"below, {NUM_NODES} nodes do not reach its tail; above, it is all but exp(−r²/2ℓ²)",
    )
    m = 2 * alpha * length_scale**2

    def quadrature(cutoff):
        xp = array_module(m, alpha, cutoff)
        # u = end s^p with αp a whole number, so that u^(α−1) du is smooth at zero, and s itself
        # crowding there: the kernel's tail lives on small u. No mass to speak of is beyond the end.
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

    μ(u) = β^ν u^(−ν−1) e^(−β/u)/Γ(ν), of mass 1; μ((c, ∞)) = P(ν, β/c).

    Args:
        nu: smoothness ν from 0.1 to 100; 3/2 and 5/2 are `kernels.matern`, 1/2 is
            `kernels.laplacian`. A larger one is all but the Gaussian exp(−r²/(2ℓ²)); a traced one
            out of that range gives NaN.
        length_scale: ℓ > 0.

    Raises:
        ValueError: ℓ not positive, or ν out of range.

    Example:
        >>> print(f"{matern_measure(nu=1.5, length_scale=2.0).tail(1.0):.4f}")
        0.0546
    """
    nu = _within(
        NUS,
        "nu",
        number("nu", nu, "the smoothness ν of the Matérn kernel"),
        "below, the kernel is all but white noise; above, it is all but exp(−r²/(2ℓ²))",
    )
    length_scale = number("length_scale", length_scale, "ℓ of the Matérn kernel")
    beta = nu / (2 * length_scale**2)

    def quadrature(cutoff):
        xp = array_module(nu, length_scale, cutoff)
        # u = z^(−4) is smooth at the cutoff, and leaves out what has no mass to speak of: β/u
        # follows the Gamma distribution, of mean ν and variance ν.
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

    μ(u) = u^(−3/2) e^(−1/(4ℓ²u))/(2ℓ√π); μ((c, ∞)) = erf(1/(2ℓ√c)), which falls like 1/(ℓ√(πc))
    only: it is the cusp at r = 0 that needs a large cutoff.

    Args:
        length_scale: ℓ > 0.

    Raises:
        ValueError: ℓ not positive.

    Example:
        >>> print(f"{laplacian_measure(length_scale=1.0).tail(1.0):.4f}")
        0.5205
    """
    return matern_measure(nu=0.5, length_scale=length_scale)


def discrete_measure(nodes: chex.Array, weights: chex.Array) -> Measure:
    """Finitely many Gaussians, Σ_q w_q exp(−u_q r²); those beyond the cutoff are left out.

    Args:
        nodes: `[Q]`, u_q > 0.
        weights: `[Q]`, w_q ≥ 0.

    Raises:
        ValueError: shapes that do not match, nodes not positive, or weights negative.

    Example:
        >>> print(discrete_measure([1.0, 4.0], [0.5, 0.25]).tail(2.0))
        0.25
    """
    shape = np.shape(nodes)
    if len(shape) != 1 or shape != np.shape(weights) or 0 in shape:
        raise ValueError(
            "nodes and weights must be of one shape [Q] with Q >= 1, "
            f"got {list(shape)} and {list(np.shape(weights))}"
        )
    check_positive("nodes", nodes, "the u of exp(−u r²)")
    check_non_negative("weights", weights, "a kernel is a mixture of non-negative weights")
    xp = array_module(nodes, weights)
    nodes, weights = xp.asarray(nodes, float), xp.asarray(weights, float)

    def quadrature(cutoff):
        xp = array_module(nodes, weights, cutoff)
        kept = (nodes <= cutoff) & (weights > 0)
        # A node left out is put at zero, where nothing grows with the noise.
        log_weights = xp.where(kept, xp.log(xp.where(kept, weights, 1)), -np.inf)
        return xp.where(kept, nodes, 0), log_weights

    def tail(cutoff):
        return jnp.sum(jnp.where(nodes <= cutoff, 0, weights))

    return Measure(quadrature, tail, xp.sum(weights))


def density_measure(
    density: Callable[[chex.Array], chex.Array], *, mass: chex.Numeric, decay: Decay | None = None
) -> Measure:
    """A measure with a density of one's own, integrated in √u over (0, cutoff].

    Args:
        density: `u[Q] -> μ(u)[Q]`, non-negative; smooth on (0, cutoff], at zero at worst a power of
            √u, 1/√u included.
        mass: μ((0, ∞)), the value at r = 0 of the kernel that is asked for. What the density lacks
            of it up to the cutoff is taken for tail: too large a mass is not noticed, and adds to
            the world's `approximation_error`.
        decay: of that kernel at large distances, if it is known; without it, fewer kernels are
            fast in float32.

    Raises:
        ValueError: mass not positive; where a world is made, a density that is negative or not
            finite, or of more than that mass.

    Example:
        >>> measure = density_measure(lambda u: jnp.exp(-u), mass=1.0)  # of 1/(1 + r²)
        >>> print(f"{measure.tail(2.0):.4f}")
        0.1353
    """
    mass = number("mass", mass, "the value of the kernel at r = 0")

    def quadrature(cutoff):
        t, weights = _legendre()
        nodes = cutoff * t**2
        values = density(nodes)
        check_finite("density", values)
        xp = array_module(nodes, values)
        if xp is np:
            values = np.asarray(values, float)
            _check_density(nodes, values)
        positive = values > 0
        log_density = xp.where(positive, xp.log(xp.where(positive, values, 1)), -np.inf)
        return nodes, np.log(2 * t * weights) + xp.log(cutoff) + log_density

    def tail(cutoff):
        return jnp.maximum(mass - jnp.sum(jnp.exp(quadrature(cutoff)[1])), 0)

    return Measure(quadrature, tail, mass, decay)


def _within(bounds, name, value, reason):
    """The value; NaN if it is traced and out of bounds."""
    least, most = bounds
    if concrete(value) is None:
        return jnp.where((value >= least) & (value <= most), value, jnp.nan)
    if not least <= value <= most:
        raise ValueError(f"{name} must be from {least} to {most}, got {value}: {reason}")
    return value


def _check_density(nodes, values):
    """Refuses negative values, naming the first place."""
    bad = np.flatnonzero(np.asarray(values) < 0)
    if bad.size:
        raise ValueError(
            f"density must be >= 0, got {values[bad[0]]} at u = {nodes[bad[0]]:.6g} ({bad.size} of "
            f"{nodes.size} nodes): a kernel is a mixture of non-negative weights"
        )


def _legendre():
    """Nodes and weights of Gauss–Legendre quadrature on [0, 1]."""
    t, weights = np.polynomial.legendre.leggauss(NUM_NODES)
    return (t + 1) / 2, weights / 2


def _log_gamma(x):
    value = concrete(x)
    return gammaln(x) if value is None else math.lgamma(value)
