"""Surrogates of the Gaussian kernel in closed form, a function for each noise distribution.

`gaussian` has their equations. Each function returns arguments of `world_of`. It
raises ValueError if the surrogate does not exist or its diagonal is too large.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import bernoulli, normal
from noisy_jax.kernels.kernel import expanded_distances, near_origin
from noisy_jax.linalg.matrices import cholesky, solve_triangular
from noisy_jax.noise import Gaussian, Laplace
from noisy_jax.noise.gaussian import sound_covariance
from noisy_jax.validation.numbers import between
from noisy_jax.validation.values import concrete
from noisy_jax.varying import of_this_device
from noisy_jax.worlds.world import check_log_diagonal


def _gaussian_noise(dim, length_scale, noise):
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
        return _times(_clean_spectrum(key, n, dim, length_scale), whitening)

    return {
        "surrogate": surrogate,
        "diagonal": diagonal,
        "ratio": diagonal,
        "spectrum": spectrum,
    }


def _whitening(dim, length_scale, cov):
    """Returns L⁻¹ of LLᵀ = I − Σ/ℓ², in the form of Σ, and log det(LLᵀ)^(−½); NaN without L."""
    share = sound_covariance(cov) / length_scale**2
    if share.ndim < 2:
        share = jnp.where(share < 1, share, jnp.nan)
        return 1 / jnp.sqrt(1 - share), -_sum_over(dim, jnp.log1p(-share)) / 2
    factor = cholesky(jnp.eye(dim) - share)
    inverse = solve_triangular(factor, jnp.eye(dim))
    return inverse, -jnp.sum(jnp.log(jnp.diag(factor)))


def _sum_over(dim, values):
    """Returns Σ_i over d coordinates of `[..., d]`, or of `[..., 1]` or `[]` if all are equal."""
    return jnp.sum(jnp.broadcast_to(values, (*values.shape[:-1], dim)), axis=-1)


def _times(x, factor):
    """Returns rows of `[n, d]` times a factor `[]`, `[d]` (diagonal) or `[d, d]`."""
    if factor.ndim == 2:
        return jnp.matmul(x, factor, precision="highest")
    return x * jnp.broadcast_to(factor, x.shape)


def _clean_spectrum(key, n, dim, length_scale):
    return normal(key, (n, dim)) / jnp.asarray(length_scale, float)


def _laplace_noise(dim, length_scale, noise):
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

    return {"surrogate": surrogate, "diagonal": diagonal, "spectrum": spectrum}


def _check_diagonal(dim, length_scale, variances, log_factor):
    """Raises ValueError if the square of R² = exp(Σ_i log_factor(variance_i/ℓ²)) overflows."""
    if (scale := concrete(length_scale)) is not None:
        dtype = jax.dtypes.canonicalize_dtype(float)
        shares = np.broadcast_to(variances / scale**2, (dim,)).astype(dtype)
        advice = "a larger length_scale or fewer dimensions"
        check_log_diagonal(lambda most: np.sum(log_factor(most * shares)), advice)


SURROGATES = {
    Gaussian: _gaussian_noise,
    Laplace: _laplace_noise,
}
"""`(dim, length_scale, noise) -> arguments of world_of`, by the distribution of the noise."""
