"""Surrogates of the Gaussian kernel in closed form, a function for each noise distribution.

`gaussian` has their equations. Each function returns arguments of `world_of`. It
raises ValueError if the surrogate does not exist or its diagonal is too large.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import normal
from noisy_jax.kernels.kernel import expanded_distances, near_origin
from noisy_jax.matrices import cholesky, eigh, solve_triangular
from noisy_jax.noise import ContaminatedGaussian, Gaussian, Laplace
from noisy_jax.noise.base import sound_covariance
from noisy_jax.validation import between, concrete
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

    def values(weights, x, z, points):
        # Both kernels need the same distances: one product serves them. Queries, fewer than pairs,
        # carry the scales.
        noisy = jnp.arange(len(z) + len(points)) < len(z)
        rates = jnp.where(noisy, whitening**2, 1) / (2 * length_scale**2)
        peaks = jnp.where(noisy, log_diagonal, 0)
        x, others = near_origin(x, jnp.concatenate([z, points]))
        exponent = jnp.matmul(x, (2 * rates[:, None] * others).T, precision="highest")
        exponent -= jnp.sum(x**2, axis=1)[:, None] * rates[None]
        exponent -= (rates * jnp.sum(others**2, axis=1) - peaks)[None]
        found = weights @ jnp.exp(jnp.minimum(exponent, peaks[None]))
        return found[: len(z)], found[len(z) :]

    return {
        "surrogate": surrogate,
        "diagonal": diagonal,
        "ratio": diagonal,
        "values": values if whitening.ndim == 0 else None,
        "spectrum": spectrum,
    }


def _whitening(dim, length_scale, cov):
    """L⁻¹ for LLᵀ = I − Σ/ℓ², in the form of Σ, and log det(LLᵀ)^(−½); NaN if L does not exist."""
    share = sound_covariance(cov) / length_scale**2
    if share.ndim < 2:
        share = jnp.where(share < 1, share, jnp.nan)
        return 1 / jnp.sqrt(1 - share), -_sum_over(dim, jnp.log1p(-share)) / 2
    factor = cholesky(jnp.eye(dim) - share)
    inverse = solve_triangular(factor, jnp.eye(dim))
    return inverse, -jnp.sum(jnp.log(jnp.diag(factor)))


def _sum_over(dim, values):
    """Σ_i over d coordinates of values `[..., d]`, or `[..., 1]` or `[]` if all are equal."""
    return jnp.sum(jnp.broadcast_to(values, (*values.shape[:-1], dim)), axis=-1)


def _times(x, factor):
    """Rows of `[n, d]` times a factor `[]`, `[d]` (diagonal) or `[d, d]`."""
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
        plain = jax.random.bernoulli(choice_key, 1 / (1 + excess)[None], (n, dim))
        return jnp.where(plain, normals[0], weighted) / jnp.asarray(length_scale, float)

    return {"surrogate": surrogate, "diagonal": diagonal, "spectrum": spectrum}


def _contaminated_noise(dim, length_scale, noise):
    q = jnp.asarray(noise.probability, float)
    known = concrete(noise.probability)
    if known is not None and known.astype(q.dtype) >= 0.5:
        raise ValueError(
            f"ContaminatedGaussian.probability must be below 1/2 in {q.dtype}, got {known}, as the "
            "surrogate's series diverges; worlds.fourier_gaussian takes any probability"
        )
    odds = jnp.where((q >= 0) & (q < 0.5), q / (1 - q), jnp.nan)
    weights = jnp.asarray(alternating_weights(jnp.finfo(q.dtype).eps), q.dtype)
    j = jnp.arange(len(weights), dtype=q.dtype)
    variances, axes = sound_covariance(noise.outlier_cov), jnp.ones(())
    if variances.ndim == 2:
        variances, axes = eigh(variances)
    growth = j[:, None] * jnp.atleast_1d(variances)[None] / length_scale**2
    powers = jnp.cumprod(jnp.where(j > 0, odds, 1))  # a power's own gradient is NaN at q = 0
    weights = weights * powers / (1 - q) * jnp.exp(-_sum_over(dim, jnp.log1p(growth)) / 2)
    shrinkage = math.sqrt(0.5) / jnp.asarray(length_scale, float) / jnp.sqrt(1 + growth)

    def surrogate(x, z):
        x, z = (_times(points, axes) for points in near_origin(x, z))

        def one_term(total, term):
            weight, decay = term
            distances = expanded_distances(_times(x, decay), _times(z, decay))
            return total + weight * jnp.exp(-distances), None

        zeros = of_this_device(jnp.zeros((len(x), len(z)), jnp.result_type(x, z, weights)))
        return jax.lax.scan(one_term, zeros, (weights, shrinkage))[0]

    def spectrum(key, n):
        # Rejection sampling: a draw from the clean density is kept with probability (1 − q)/φ(ω),
        # above ½. After 64 rounds a frequency is missing with probability below 2⁻⁶⁴.
        def unsettled(state):
            rounds, _, settled = state
            return (rounds < 64) & ~jnp.all(settled)

        def propose(state):
            rounds, omega, settled = state
            omega_key, uniform_key = jax.random.split(jax.random.fold_in(key, rounds))
            proposal = _clean_spectrum(omega_key, n, dim, length_scale)
            threshold = (1 - q) * jnp.exp(-noise.log_characteristic(proposal).real)
            stands = jax.random.uniform(uniform_key, (n,)) < threshold
            omega = jnp.where(settled[:, None], omega, proposal)
            return rounds + 1, omega, settled | stands

        start = of_this_device((0, jnp.zeros((n, dim)), jnp.zeros(n, bool)))
        return jax.lax.while_loop(unsettled, propose, start)[1]

    return {
        "surrogate": surrogate,
        "diagonal": jnp.sum(weights),
        "norm_ratio": 1 / (1 - q),
        "spectrum": spectrum,
    }


def alternating_weights(error):
    """Coefficients w_j of a polynomial with |1/(1 + y) − Σ_j w_j y^j| < error for all y in [0, 1].

    It is (1 − P(y)/P(−1))/(1 + y) with P(y) = T_n(2y − 1). With y = ρ exp(−½ωᵀΣω), ρ = q/(1 − q),
    it gives 1/φ up to the factor 1 − q, to 0.77 n digits for any ρ ≤ 1; the geometric series would
    give n log₁₀(1/ρ) digits.

    Source: Cohen, Rodriguez Villegas and Zagier, Convergence Acceleration of Alternating Series.
    """
    n = int(np.ceil(np.log(16 / error) / np.log(3 + np.sqrt(8))))
    chebyshev = np.polynomial.Chebyshev.basis(n, domain=[0, 1])
    numerator = 1 - chebyshev.convert(kind=np.polynomial.Polynomial) / chebyshev(-1)
    signs, coefficients = (-1.0) ** np.arange(n + 1), np.asarray(numerator.coef, float)
    return (signs * np.cumsum(signs * coefficients))[:n]  # division by 1 + y


def _check_diagonal(dim, length_scale, variances, log_factor):
    """Raises ValueError if the square of R² = exp(Σ_i log_factor(variance_i/ℓ²)) overflows."""
    if (scale := concrete(length_scale)) is not None:
        dtype = jax.dtypes.canonicalize_dtype(float)
        shares = np.broadcast_to(variances / scale**2, (dim,)).astype(dtype)
        advice = "a larger length_scale or fewer dimensions"
        check_log_diagonal(lambda most: np.sum(log_factor(most * shares)), advice)


PARTS = {
    Gaussian: _gaussian_noise,
    Laplace: _laplace_noise,
    ContaminatedGaussian: _contaminated_noise,
}
