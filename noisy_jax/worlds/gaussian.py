"""Worlds of the Gaussian kernel under noise of one known distribution.

In the frequency domain, noise multiplies by its characteristic function φ. The surrogate therefore
has the spectral density p/φ, where p is the clean kernel's, and exists if R² = ∫p/φ is finite.
For k(x, a) = exp(−‖x − a‖²/2ℓ²), p is N(0, I/ℓ²), and p/φ has a closed form under the distributions
here.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import kernels
from noisy_jax.draws import bernoulli, normal
from noisy_jax.kernels import Kernel
from noisy_jax.kernels.kernel import expanded_distances, length_scale_of, near_origin
from noisy_jax.linalg.matrices import cholesky, solve_triangular
from noisy_jax.noise import Gaussian, Laplace, Noise, PerRound
from noisy_jax.noise.characteristic import characteristic_problem
from noisy_jax.noise.gaussian import sound_covariance
from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.numbers import between, whole
from noisy_jax.validation.values import ArrayLike, concrete
from noisy_jax.varying import of_this_device
from noisy_jax.worlds.world import World, check_log_diagonal, world_of


def gaussian(*, dim: int, length_scale: ArrayLike, noise: Noise) -> World:
    """Makes the world of the Gaussian kernel under Gaussian or Laplace noise.

        k(x, a) = exp(−‖z‖²/2ℓ²),   E k̂(x + n, a) = k(x, a),   z = x − a

    The surrogate k̂ has values at noisy copies that are right on average. For `noise.Gaussian` with
    covariance Σ, whose largest eigenvalue ‖Σ‖ must be below ℓ², it is

        k̂ = R² exp(−½zᵀ(ℓ²I − Σ)⁻¹z),   R² = det(I − Σ/ℓ²)^(−½),

    and its `diagonal` and its `ratio` are R². For `noise.Laplace` with any scales b_i it is

        k̂ = Π_i (1 + b_i²/ℓ² − b_i²z_i²/ℓ⁴) exp(−z_i²/2ℓ²),   R² = Π_i (1 + b_i²/ℓ²).

    It takes negative values, so that its `ratio` is infinite: take the radius of a learner from
    `comparators.world_ball`, as `bounds.surrogate_radius` raises ValueError.

    For other noise `worlds.fourier_gaussian` has random features of this kernel.

    Args:
        dim: d ≥ 1, the number of features.
        length_scale: ℓ > 0, in the units of x.
        noise: `noise.Gaussian` or `noise.Laplace`, in each copy. Its mean has no effect.

    Returns:
        A `World`, with `kernel` k, `surrogate` k̂, `diagonal` R² = k̂(x, x), `ratio`, `noise` and
        `spectrum`, and an `approximation_error` of zero.

    Raises:
        ValueError: ‖Σ‖ ≥ ℓ², other noise, or R⁴ overflows. Traced parameters give NaN instead.

    Source: Learning from Noisy Data under Distributional Assumptions, Sec. 6, Eq. 5, here for any
    Σ. Theorem 3 prints ≤ instead of ‖Σ‖ < ℓ². Laplace noise is not in the papers.

    Example:
        >>> import noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> print(world.diagonal)
        2.0
        >>> learner = nj.learners.parallel_worlds(world, horizon=1000, radius=1.0)
    """
    dim = whole("dim", dim)
    length_scale = length_scale_of(length_scale)
    kernel = kernels.gaussian(length_scale=length_scale)
    if isinstance(noise, Gaussian):
        check_dimension("Gaussian.cov", noise.cov, (dim,))
        return _under_gaussian(kernel, dim, length_scale, noise)
    if isinstance(noise, Laplace):
        check_dimension("Laplace.cov", noise.cov, (dim,))
        return _under_laplace(kernel, dim, length_scale, noise)
    raise ValueError(_not_covered(noise, dim))


def _not_covered(noise, dim) -> str:
    message = f"noise must be one of Gaussian, Laplace, got {type(noise).__name__}"
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


def _under_gaussian(kernel: Kernel, dim, length_scale, noise: Gaussian) -> World:
    if (cov := concrete(noise.cov)) is not None:
        variances = np.linalg.eigvalsh(cov) if cov.ndim == 2 else cov
        least = float(variances.max()) ** 0.5
        hint = "up to √‖Σ‖, the largest standard deviation of the noise, no surrogate exists"
        length_scale = between("length_scale", length_scale, least, np.inf, hint)
        _check_diagonal(dim, length_scale, variances, lambda share: -0.5 * np.log1p(-share))
    whitening, log_diagonal = _whitening(dim, length_scale, noise.cov)
    diagonal = jnp.exp(log_diagonal)
    scaled = whitening.T * (math.sqrt(0.5) / jnp.asarray(length_scale, float))

    def surrogate(x, z):
        x, z = near_origin(x, z)
        return diagonal * jnp.exp(-expanded_distances(_times(x, scaled), _times(z, scaled)))

    def spectrum(key, n):
        clean = normal(key, (n, dim)) / jnp.asarray(length_scale, float)
        return _times(clean, whitening)

    return world_of(
        kernel,
        surrogate,
        dim=dim,
        diagonal=diagonal,
        ratio=diagonal,
        noise=noise,
        spectrum=spectrum,
    )


def _whitening(dim, length_scale, cov):
    """Returns L⁻¹ of LLᵀ = I − Σ/ℓ², in the form of Σ, and log det(LLᵀ)^(−½); NaN without L."""
    share = sound_covariance(cov) / length_scale**2
    if share.ndim < 2:
        share = jnp.where(share < 1, share, jnp.nan)
        logs = jnp.broadcast_to(jnp.log1p(-share), (dim,))
        return 1 / jnp.sqrt(1 - share), -jnp.sum(logs) / 2
    factor = cholesky(jnp.eye(dim) - share)
    inverse = solve_triangular(factor, jnp.eye(dim))
    return inverse, -jnp.sum(jnp.log(jnp.diag(factor)))


def _times(x, factor):
    """Returns rows of `[n, d]` times a factor `[]`, `[d]` (diagonal) or `[d, d]`."""
    if factor.ndim == 2:
        return jnp.matmul(x, factor, precision="highest")
    return x * jnp.broadcast_to(factor, x.shape)


def _under_laplace(kernel: Kernel, dim, length_scale, noise: Laplace) -> World:
    if concrete(noise.scale) is not None:
        _check_diagonal(dim, length_scale, np.square(noise.scale), np.log1p)
    scale = jnp.asarray(noise.scale, float)
    scale = jnp.broadcast_to(jnp.where(scale > 0, scale, jnp.nan), (dim,))
    excess = (scale / length_scale) ** 2
    diagonal = jnp.exp(jnp.sum(jnp.log1p(excess)))

    def surrogate(x, z):
        # Each factor has its exp, as the product of the polynomials alone overflows far apart. One
        # coordinate at a time keeps [n, m, d] numbers out of memory.
        def one_coordinate(product, coordinate):
            x, z, excess = coordinate
            square = ((x[:, None] - z[None]) / length_scale) ** 2
            return product * (1 + excess - excess * square) * jnp.exp(-square / 2), None

        ones = of_this_device(jnp.ones((len(x), len(z)), jnp.result_type(x, z, excess)))
        return jax.lax.scan(one_coordinate, ones, (x.T, z.T, excess))[0]

    def spectrum(key, n):
        # Each coordinate's density ∝ (1 + b²ω²) exp(−ℓ²ω²/2) mixes a normal with ±χ of 3 degrees.
        choice_key, key = jax.random.split(key)
        normals = normal(key, (3, n, dim))
        weighted = jnp.copysign(jnp.sqrt(jnp.sum(normals**2, axis=0)), normals[0])
        plain = bernoulli(choice_key, 1 / (1 + excess)[None], (n, dim))
        return jnp.where(plain, normals[0], weighted) / jnp.asarray(length_scale, float)

    return world_of(kernel, surrogate, dim=dim, diagonal=diagonal, noise=noise, spectrum=spectrum)


def _check_diagonal(dim, length_scale, variances, log_factor):
    """Raises ValueError if the square of R² = exp(Σ_i log_factor(variance_i/ℓ²)) overflows."""
    if (scale := concrete(length_scale)) is not None:
        dtype = jax.dtypes.canonicalize_dtype(float)
        shares = np.broadcast_to(variances / scale**2, (dim,)).astype(dtype)
        advice = "a larger length_scale or fewer dimensions"
        check_log_diagonal(lambda most: np.sum(log_factor(most * shares)), advice)
