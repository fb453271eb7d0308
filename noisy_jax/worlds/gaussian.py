"""Worlds of the Gaussian kernel under noise of one known distribution.

In the frequency domain, noise multiplies by its characteristic function φ. The surrogate therefore
has the spectral density p/φ, where p is the clean kernel's, and exists if R² = ∫p/φ is finite.
For k(x, a) = exp(−‖x − a‖²/2ℓ²), p is N(0, I/ℓ²), and p/φ has a closed form under the distributions
here.
"""

import chex

from noisy_jax import kernels
from noisy_jax.kernels.kernel import length_scale_of
from noisy_jax.noise import Noise, PerRound
from noisy_jax.noise.base import characteristic_problem
from noisy_jax.validation import check_dimension, whole
from noisy_jax.worlds.surrogates import PARTS
from noisy_jax.worlds.world import World


def gaussian(*, dim: int, length_scale: chex.Numeric, noise: Noise) -> World:
    """The world of k(x, a) = exp(−‖x − a‖²/2ℓ²) under Gaussian, Laplace or contaminated noise.

    With z = x − a:

    - `noise.Gaussian`, only where ‖Σ‖ < ℓ²:
      k̂ = det(I − Σ/ℓ²)^(−½) exp(−½zᵀ(ℓ²I − Σ)⁻¹z). It is positive, with k̂ ≤ R²k.
    - `noise.Laplace`, at any scales b_i:
      k̂ = Π_i (1 + b_i²/ℓ² − b_i²z_i²/ℓ⁴) exp(−z_i²/2ℓ²). It takes negative values and |k̂|/k is
      unbounded (`ratio` is infinite), so that ‖û‖ has no bound in terms of ‖u‖. Regret is still at
      most 2WR(WR + B_y)√T against every u = Σ_i a_i Ψ(z_i) with ‖û‖² = aᵀK̂a ≤ W².
    - `noise.ContaminatedGaussian`, at any Σ, for q < ½:
      k̂ = (1 − q)⁻¹ Σ_j (−q/(1 − q))^j det(I + jΣ/ℓ²)^(−½) exp(−½zᵀ(ℓ²I + jΣ)⁻¹z). It takes
      negative values far from zero, but φ ≥ 1 − q gives ‖û‖² ≤ ‖u‖²/(1 − q) for every u
      (`norm_ratio`). The alternating series is summed with Chebyshev weights: a dozen terms for
      float32 and two dozen for float64, for any q.

    The length scale and the distribution's parameters may be traced. A traced world that does not
    exist has a surrogate of NaN; a concrete one raises ValueError, also if R⁴ overflows.

    Args:
        dim: d, at least 1.
        length_scale: ℓ > 0, with ℓ² > ‖Σ‖ for Gaussian noise.
        noise: `noise.Gaussian`, `noise.Laplace`, or `noise.ContaminatedGaussian` with q < ½. Its
            mean is ignored, as `noise.observe` subtracts it.

    Returns:
        A `World` with a spectrum. With zero noise its surrogate is the clean kernel.

    Source: Learning from Noisy Data under Distributional Assumptions, Sec. 6, Eq. 5, for any Σ,
    and with ‖Σ‖ < ℓ² strictly, where Theorem 3 prints ≤. Laplace and contaminated noise are in none
    of the papers.

    Example:
        >>> import noisy_jax as nj
        >>> world = gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> print(world.diagonal)
        2.0
    """
    dim = whole("dim", dim)
    length_scale = length_scale_of(length_scale)
    kernel = kernels.gaussian(length_scale=length_scale)
    for distribution, parts in PARTS.items():
        if isinstance(noise, distribution):
            check_dimension(f"{distribution.__name__}.cov", noise.cov, (dim,))
            return World(dim, kernel, noise=noise, **parts(dim, length_scale, noise))
    raise ValueError(_not_covered(noise, dim))


def _not_covered(noise, dim) -> str:
    covered = ", ".join(distribution.__name__ for distribution in PARTS)
    message = f"noise must be one of {covered}, got {type(noise).__name__}"
    if isinstance(noise, PerRound):
        return f"{message}; worlds.heteroscedastic takes Gaussian noise that changes by round"
    if not isinstance(noise, Noise):
        return message
    if problem := characteristic_problem(noise, dim):
        return f"{message}, {problem}: no surrogate can be found"
    return f"{message}; worlds.fourier_gaussian takes any noise of known characteristic function"
