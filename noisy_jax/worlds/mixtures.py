"""Radial kernels as mixtures of Gaussians ∫ exp(−u r²) μ(du), cut off at u = `cutoff`.

The integral over (0, cutoff] is a sum over nodes with positive weights: 64 Gauss–Legendre nodes
after a substitution that makes the integrand smooth at both ends. They are accurate at r = 0 and at
distances where the kernel has fallen 10⁴-fold.

Source: Learning from Noisy Data under Distributional Assumptions, Theorem 4 (Schoenberg). It holds
for kernels that are positive definite in every dimension. For a fixed dimension, as printed, its
"only if" is false: (1 − r)₊ is positive definite for d = 1, but not such a mixture.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jax.scipy.special import gammainc, gammaincc, gammaln

from noisy_jax.kernels.kernel import length_scale_of
from noisy_jax.validation.numbers import positive_float, within
from noisy_jax.validation.values import ArrayLike, array_module, concrete

NUM_NODES = 64
# The α and ν for which the nodes are accurate to 1e-6.
ALPHAS, NUS = (0.2, 50.0), (0.1, 100.0)


class Mixture(NamedTuple):
    """The kernel Σ_q w_q exp(−u_q r²).

    Attributes:
        nodes: `[Q]`, u_q.
        log_weights: `[Q]`, log w_q.
        tail: `[]`, μ((cutoff, ∞)), the weight that is cut off.
    """

    nodes: Any
    log_weights: Any
    tail: Any


@np.errstate(divide="ignore", over="ignore", invalid="ignore")  # a weight may underflow
def rational_mixture(cutoff: ArrayLike, *, length_scale: ArrayLike, alpha: ArrayLike) -> Mixture:
    """Returns the mixture of (1 + r²/m)^(−α), m = 2αℓ²: a Gamma distribution of mass 1.

    μ(u) = m^α u^(α−1) e^(−mu)/Γ(α), of shape α and rate m; μ((c, ∞)) = Q(α, mc).

    Args:
        cutoff: c > 0.
        length_scale: ℓ > 0.
        alpha: α from 0.2 to 50. Below, the tail is too heavy for the nodes; above, the kernel is
            almost the Gaussian exp(−r²/2ℓ²).
    """
    length_scale = positive_float("length_scale", length_scale_of(length_scale))
    hint = f"for less, {NUM_NODES} nodes miss the tail; for more, it is almost exp(−r²/2ℓ²)"
    alpha = within("alpha", positive_float("alpha", alpha), *ALPHAS, hint)
    m = 2 * alpha * length_scale**2
    xp = array_module(m, alpha, cutoff)
    # u = end s^p with αp a whole number makes u^(α−1) du smooth at zero; the nodes s crowd there,
    # as small u make the kernel's tail. The mass beyond the end is negligible.
    end = xp.minimum(cutoff, (alpha + 9 * xp.sqrt(alpha) + 36) / m)
    order, crowding = xp.ceil(2 * alpha), 4.0
    t, weights = _legendre()
    s = np.expm1(crowding * t) / np.expm1(crowding)
    slope = crowding * np.exp(crowding * t) / np.expm1(crowding)
    nodes = end * s ** (order / alpha)
    log_constant = alpha * xp.log(m * end) + xp.log(order / alpha) - _log_gamma(alpha)
    log_slopes = np.log(weights * slope) + (order - 1) * np.log(s)
    return Mixture(nodes, log_constant + log_slopes - m * nodes, gammaincc(alpha, m * cutoff))


@np.errstate(divide="ignore", over="ignore", invalid="ignore")
def matern_mixture(cutoff: ArrayLike, *, length_scale: ArrayLike, nu: ArrayLike) -> Mixture:
    """Returns the mixture of the Matérn kernel: the inverse Gamma distribution of mass 1.

    Of shape ν and scale β = ν/(2ℓ²): μ(u) = β^ν u^(−ν−1) e^(−β/u)/Γ(ν); μ((c, ∞)) = P(ν, β/c), with
    P the regularized lower incomplete Gamma function. With ν = ½ the kernel is exp(−r/ℓ), and the
    distribution is Lévy's, whose tail falls only like 1/(ℓ√(πc)).

    Args:
        cutoff: c > 0.
        length_scale: ℓ > 0.
        nu: smoothness ν from 0.1 to 100; 3/2 and 5/2 are `kernels.matern`, 1/2 is
            `kernels.laplacian`. For larger ν the kernel is almost the Gaussian exp(−r²/2ℓ²).
    """
    hint = "for less, the kernel is almost white noise; for more, almost exp(−r²/2ℓ²)"
    nu = within("nu", positive_float("nu", nu), *NUS, hint)
    length_scale = positive_float("length_scale", length_scale_of(length_scale))
    beta = nu / (2 * length_scale**2)
    xp = array_module(nu, length_scale, cutoff)
    # u = z^(−4) is smooth at the cutoff. The range leaves out negligible mass: β/u follows a Gamma
    # distribution of mean ν and variance ν.
    bulk, spread = nu / beta, 9 * nu**0.5 / beta
    start = xp.maximum(1 / cutoff, bulk - spread) ** 0.25
    end = (1 / cutoff + bulk + spread + 36 / beta) ** 0.25
    t, weights = _legendre()
    z = start + (end - start) * t
    log_constant = xp.log(4 * (end - start)) + nu * xp.log(beta) - _log_gamma(nu)
    log_density = (4 * nu - 1) * xp.log(z) - beta * z**4
    return Mixture(z**-4, log_constant + np.log(weights) + log_density, gammainc(nu, beta / cutoff))


def _legendre():
    """Returns nodes and weights of Gauss–Legendre quadrature on [0, 1]."""
    t, weights = np.polynomial.legendre.leggauss(NUM_NODES)
    return (t + 1) / 2, weights / 2


def _log_gamma(x):
    value = concrete(x)
    return gammaln(x) if value is None else math.lgamma(value)
