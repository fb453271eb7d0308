"""Worlds of the Gaussian kernel under noise of one known distribution.

In the frequency domain, noise multiplies by its characteristic function φ. The surrogate therefore
has the spectral density p/φ, where p is the clean kernel's, and exists if R² = ∫p/φ is finite.
For k(x, a) = exp(−‖x − a‖²/2ℓ²), p is N(0, I/ℓ²), and p/φ has a closed form under the distributions
here.
"""

from __future__ import annotations

from noisy_jax import kernels
from noisy_jax.kernels.kernel import length_scale_of
from noisy_jax.noise import Noise, PerRound
from noisy_jax.noise.characteristic import characteristic_problem
from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.values import ArrayLike
from noisy_jax.worlds.surrogates import SURROGATES
from noisy_jax.worlds.world import World, world_of


def gaussian(*, dim: int, length_scale: ArrayLike, noise: Noise) -> World:
    """The world of k(x, a) = exp(−‖x − a‖²/2ℓ²) under Gaussian or Laplace noise.

    The surrogate k̂, with z = x − a, under each distribution (R², u, û and Ψ are as in `World`, W
    and B_y as in `bounds.parallel_worlds`):

    - `noise.Gaussian` with covariance Σ. The world exists only if ‖Σ‖ < ℓ²:
      k̂ = det(I − Σ/ℓ²)^(−½) exp(−½zᵀ(ℓ²I − Σ)⁻¹z). It is positive, and k̂ ≤ R²k.
    - `noise.Laplace` with any scales b_i:
      k̂ = Π_i (1 + b_i²/ℓ² − b_i²z_i²/ℓ⁴) exp(−z_i²/2ℓ²). It takes negative values and |k̂|/k is
      unbounded (`ratio` is infinite), so that ‖û‖ has no bound in terms of ‖u‖. Regret is still at
      most 2WR(WR + B_y)√T against every u = Σ_i a_i Ψ(z_i) with ‖û‖ ≤ W, where ‖û‖² is
      Σ_ij a_i a_j k̂(z_i, z_j).

    If the world does not exist, or if R⁴ overflows, concrete parameters raise ValueError. Traced
    ones give a surrogate of NaN.

    Args:
        dim: d, at least 1.
        length_scale: ℓ > 0, with ℓ² > ‖Σ‖ for Gaussian noise.
        noise: `noise.Gaussian` or `noise.Laplace`. Its mean has no effect.

    Source: Learning from Noisy Data under Distributional Assumptions, Sec. 6, Eq. 5, here for any
    Σ. Theorem 3 prints ≤ instead of ‖Σ‖ < ℓ². Laplace noise is not in the papers.

    Example:
        >>> import noisy_jax as nj
        >>> world = gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> print(world.diagonal)
        2.0
    """
    dim = whole("dim", dim)
    length_scale = length_scale_of(length_scale)
    kernel = kernels.gaussian(length_scale=length_scale)
    for distribution, parts in SURROGATES.items():
        if isinstance(noise, distribution):
            check_dimension(f"{distribution.__name__}.cov", noise.cov, (dim,))
            return world_of(kernel, **parts(dim, length_scale, noise), dim=dim, noise=noise)
    raise ValueError(_not_covered(noise, dim))


def _not_covered(noise, dim) -> str:
    covered = ", ".join(distribution.__name__ for distribution in SURROGATES)
    message = f"noise must be one of {covered}, got {type(noise).__name__}"
    if isinstance(noise, PerRound):
        return (
            f"{message}: a world is for noise of one distribution; learners.unknown_noise and "
            "learners.model take noise that changes from round to round"
        )
    if not isinstance(noise, Noise):
        return message
    if problem := characteristic_problem(noise, dim):
        return f"{message}, {problem}: no surrogate can be found"
    return f"{message}; worlds.fourier_gaussian takes any noise of known characteristic function"
