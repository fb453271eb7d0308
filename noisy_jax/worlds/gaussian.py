"""Worlds of the Gaussian kernel under noise of one known distribution.

In the frequency domain noise multiplies by its characteristic function φ, so that the surrogate has
the clean kernel's spectral density p divided by it, p/φ. It is a kernel where R² = ∫p/φ is finite.
For k(x, a) = exp(−‖x − a‖²/2ℓ²), p is N(0, I/ℓ²), and p/φ has a closed form under the distributions
here.
"""

import chex
import jax.numpy as jnp

from noisy_jax import kernels
from noisy_jax.kernels.kernel import length_scale_of
from noisy_jax.noise import Noise, PerRound
from noisy_jax.validation import check_at_least, check_dimension
from noisy_jax.worlds.surrogates import PARTS
from noisy_jax.worlds.world import World


def gaussian(*, dim: int, length_scale: chex.Numeric, noise: Noise) -> World:
    """The world of k(x, a) = exp(−‖x − a‖²/2ℓ²) under Gaussian, Laplace or contaminated noise.

    With z = x − a:

    - `noise.Gaussian`, only where ‖Σ‖ < ℓ²:
      k̂ = det(I − Σ/ℓ²)^(−½) exp(−½zᵀ(ℓ²I − Σ)⁻¹z). It is positive, with k̂ ≤ R²k.
    - `noise.Laplace`, at any scales b_i:
      k̂ = Π_i (1 + b_i²/ℓ² − b_i²z_i²/ℓ⁴) exp(−z_i²/2ℓ²). It takes negative values and |k̂|/k is
      unbounded, so that no norm ‖û‖ follows from ‖u‖ and the angle between the parts of u
      (`ratio` is infinite). What remains: regret at most 2WR(WR + B_y)√T against every
      u = Σ_i a_i Ψ(z_i) with ‖û‖² = aᵀK̂a ≤ W².
    - `noise.ContaminatedGaussian`, at any Σ, for q < ½:
      k̂ = (1 − q)⁻¹ Σ_j (−q/(1 − q))^j det(I + jΣ/ℓ²)^(−½) exp(−½zᵀ(ℓ²I + jΣ)⁻¹z). It takes
      negative values far from zero, yet φ ≥ 1 − q gives ‖û‖² ≤ ‖u‖²/(1 − q) for every u
      (`norm_ratio`), so that no angle is needed. The alternating series is summed with Chebyshev
      weights, a dozen terms to float32 rounding and two dozen to float64, whatever q.

    The length scale and the distribution's parameters may be traced. Then nothing is refused, and a world that
    does not exist has a surrogate of NaN.

    Args:
        dim: d, at least 1.
        length_scale: ℓ > 0, `[]`.
        noise: distribution of the noise; its known mean plays no part, `noise.observe` subtracts it.

    Returns:
        A `World` with a spectrum. With zero noise its surrogate is the clean kernel exactly.

    Raises:
        ValueError: a distribution without closed form here; ℓ not positive, or ℓ² not above ‖Σ‖ for
            Gaussian noise; q not below ½; R² so large that R⁴ overflows; dimensions that do not match.

    Source: Learning from Noisy Data under Distributional Assumptions, Sec. 6, Eq. 5, for any Σ by a
    Cholesky factor instead of a rotation, and with ‖Σ‖ < ℓ² strictly, where Theorem 3 prints ≤.
    Laplace and contaminated noise are in none of the papers.

    Example:
        >>> import noisy_jax as nj
        >>> world = gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> print(world.diagonal)
        2.0
    """
    check_at_least("dim", dim, 1, "the dimension of the data")
    length_scale = length_scale_of(length_scale)
    kernel = kernels.gaussian(length_scale=length_scale)
    for distribution, parts in PARTS.items():
        if isinstance(noise, distribution):
            check_dimension(f"{distribution.__name__}.cov", noise.cov, (dim,))
            return World(dim, kernel, noise=noise, **parts(dim, length_scale, noise))
    raise ValueError(_not_covered(noise, dim))


def _not_covered(noise, dim) -> str:
    name = type(noise).__name__
    covered = ", ".join(distribution.__name__ for distribution in PARTS)
    message = f"noise must be one of {covered}, got {name}: the surrogate has no closed form here"
    if isinstance(noise, PerRound):
        return f"{message}; Gaussian noise that changes from round to round: worlds.heteroscedastic"
    if not isinstance(noise, Noise):
        return message
    if noise.characteristic_vanishes:
        return (
            f"noise must be one of {covered}, got {name}: its characteristic function has zeros, "
            "frequencies that it wipes out of the data, and no surrogate exists"
        )
    if noise.log_characteristic(jnp.zeros(dim)) is None:
        return f"{message}, nor is its characteristic function known"
    return f"{message}; worlds.fourier_gaussian takes any distribution of known characteristic function"
