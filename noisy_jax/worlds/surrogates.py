"""Surrogates of the Gaussian kernel in closed form, a function for each noise distribution.

`gaussian` has their equations. Each function gives what a `World` has beside its clean kernel, and
refuses noise under which the surrogate does not exist, or has too large a diagonal.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.kernels.kernel import expanded_distances, near_origin
from noisy_jax.noise import ContaminatedGaussian, Gaussian, Laplace
from noisy_jax.noise.base import sound_covariance
from noisy_jax.validation import concrete
from noisy_jax.worlds.world import check_log_diagonal


def _gaussian_noise(dim, length_scale, noise):
    _check_length_scale(dim, length_scale, noise.cov)
    whitening, log_diagonal = _whitening(dim, length_scale, noise.cov)
    diagonal = jnp.exp(log_diagonal)
    scaled = whitening.T * (math.sqrt(0.5) / jnp.asarray(length_scale, float))

    def surrogate(x, z):
        x, z = near_origin(x, z)
        return diagonal * jnp.exp(-expanded_distances(_times(x, scaled), _times(z, scaled)))

    def spectrum(key, n):
        return _times(_clean_spectrum(key, n, dim, length_scale), whitening)

    def read(weights, x, z, points):
        # One product for both kernels, which are functions of the same distances; queries, fewer
        # than pairs, carry all scales.
        noisy = jnp.arange(len(z) + len(points)) < len(z)
        rates = jnp.where(noisy, whitening**2, 1) / (2 * length_scale**2)
        peaks = jnp.where(noisy, log_diagonal, 0)
        x, others = near_origin(x, jnp.concatenate([z, points]))
        exponent = jnp.matmul(x, (2 * rates[:, None] * others).T, precision="highest")
        exponent -= jnp.sum(x**2, axis=1)[:, None] * rates[None]
        exponent -= (rates * jnp.sum(others**2, axis=1) - peaks)[None]
        values = weights @ jnp.exp(jnp.minimum(exponent, peaks[None]))
        return values[: len(z)], values[len(z) :]

    return {
        "surrogate": surrogate,
        "diagonal": diagonal,
        "ratio": diagonal,
        "read": read if whitening.ndim == 0 else None,
        "spectrum": spectrum,
    }


def _whitening(dim, length_scale, cov):
    """L⁻¹ for LLᵀ = I − Σ/ℓ², in the form of Σ, and log det(LLᵀ)^(−½); NaN where there is no L."""
    share = sound_covariance(cov) / length_scale**2
    if share.ndim < 2:
        share = jnp.where(share < 1, share, jnp.nan)
        return 1 / jnp.sqrt(1 - share), -_sum_over(dim, jnp.log1p(-share)) / 2
    factor = jnp.linalg.cholesky(jnp.eye(dim) - share)
    inverse = jax.scipy.linalg.solve_triangular(factor, jnp.eye(dim), lower=True)
    return inverse, -jnp.sum(jnp.log(jnp.diag(factor)))


def _sum_over(dim, values):
    """Σ_i over d coordinates of values `[..., d]`, or `[..., 1]` or `[]` where all are alike."""
    return jnp.sum(jnp.broadcast_to(values, (*values.shape[:-1], dim)), axis=-1)


def _times(x, factor):
    """Rows of `[n, d]` times a factor `[]`, `[d]` (diagonal) or `[d, d]`."""
    if factor.ndim == 2:
        return jnp.matmul(x, factor, precision="highest")
    return x * jnp.broadcast_to(factor, x.shape)


def _clean_spectrum(key, n, dim, length_scale):
    return jax.random.normal(key, (n, dim)) / jnp.asarray(length_scale, float)


def _laplace_noise(dim, length_scale, noise):
    _check_excess(dim, length_scale, noise.scale)
    scale = jnp.asarray(noise.scale, float)
    scale = jnp.broadcast_to(jnp.where(scale > 0, scale, jnp.nan), (dim,))
    excess = (scale / length_scale) ** 2
    diagonal = jnp.exp(jnp.sum(jnp.log1p(excess)))

    def surrogate(x, z):
        # One exp in each factor: far apart, the product of the polynomials alone overflows. One
        # coordinate at a time: [n, m, d] numbers are never in memory.
        def one_coordinate(product, coordinate):
            x, z, excess = coordinate
            square = ((x[:, None] - z[None]) / length_scale) ** 2
            return product * (1 + excess - excess * square) * jnp.exp(-square / 2), None

        ones = jnp.ones((len(x), len(z)), jnp.result_type(x, z, excess))
        return jax.lax.scan(one_coordinate, ones, (x.T, z.T, excess))[0]

    def spectrum(key, n):
        # Each coordinate's density ∝ (1 + b²ω²) exp(−ℓ²ω²/2) mixes a normal with ±χ of 3 degrees.
        choice_key, key = jax.random.split(key)
        normals = jax.random.normal(key, (3, n, dim))
        weighted = jnp.copysign(jnp.sqrt(jnp.sum(normals**2, axis=0)), normals[0])
        plain = jax.random.bernoulli(choice_key, 1 / (1 + excess)[None], (n, dim))
        return jnp.where(plain, normals[0], weighted) / jnp.asarray(length_scale, float)

    return {"surrogate": surrogate, "diagonal": diagonal, "spectrum": spectrum}


def _contaminated_noise(dim, length_scale, noise):
    _check_probability(noise.probability)
    q = jnp.asarray(noise.probability, float)
    odds = jnp.where((q >= 0) & (q < 0.5), q / (1 - q), jnp.nan)
    weights = jnp.asarray(_alternating_weights(jnp.finfo(q.dtype).eps), q.dtype)
    j = jnp.arange(len(weights), dtype=q.dtype)
    variances, axes = sound_covariance(noise.outlier_cov), jnp.ones(())
    if variances.ndim == 2:
        variances, axes = jnp.linalg.eigh(variances)
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

        zeros = jnp.zeros((len(x), len(z)), jnp.result_type(x, z, weights))
        return jax.lax.scan(one_term, zeros, (weights, shrinkage))[0]

    def spectrum(key, n):
        # Draws from the clean density stand with probability (1 − q)/φ(ω) ≥ 1 − q > ½, so that a
        # frequency is still not settled after 64 rounds with probability below 2⁻⁶⁴.
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

        start = 0, jnp.zeros((n, dim)), jnp.zeros(n, bool)
        return jax.lax.while_loop(unsettled, propose, start)[1]

    return {
        "surrogate": surrogate,
        "diagonal": jnp.sum(weights),
        "norm_ratio": 1 / (1 - q),
        "spectrum": spectrum,
    }


def _alternating_weights(error):
    """Coefficients w_j of a polynomial with |1/(1 + y) − Σ_j w_j y^j| < error for all y in [0, 1].

    It is (1 − P(y)/P(−1))/(1 + y) with P(y) = T_n(2y − 1). With y = ρ exp(−½ωᵀΣω), ρ = q/(1 − q),
    it stands for 1/φ up to the factor 1 − q, whatever ρ ≤ 1 is, to 0.77 n digits; the geometric
    series would give n log₁₀(1/ρ) digits.

    Source: Cohen, Rodriguez Villegas and Zagier, Convergence Acceleration of Alternating Series.
    """
    n = int(np.ceil(np.log(16 / error) / np.log(3 + np.sqrt(8))))
    chebyshev = np.polynomial.Chebyshev.basis(n, domain=[0, 1])
    numerator = 1 - chebyshev.convert(kind=np.polynomial.Polynomial) / chebyshev(-1)
    signs = (-1.0) ** np.arange(n + 1)
    return (signs * np.cumsum(signs * numerator.coef))[:n]  # division by 1 + y


def _check_length_scale(dim, length_scale, cov):
    """Refuses Gaussian noise that has no surrogate, or one of too large a diagonal."""
    variances, length_scale = concrete(cov), concrete(length_scale)
    if variances is None or length_scale is None:
        return
    if variances.ndim == 2:
        variances = np.linalg.eigvalsh(variances)
    square = length_scale**2
    share = (variances / square).astype(jax.dtypes.canonicalize_dtype(float))
    if share.max() >= 1:
        raise ValueError(
            f"length_scale must be above √‖Σ‖ = {variances.max() ** 0.5:.6g}, the largest standard "
            f"deviation of the Gaussian noise, got {length_scale:.6g}: no surrogate exists; a "
            f"wider kernel would do, or noise of variance below length_scale² = {square:.6g}"
        )
    _check_diagonal(
        -0.5 * np.log1p(-np.broadcast_to(share, (dim,))),
        "variance",
        lambda log: -np.expm1(-2 * log) * square,
    )


def _check_excess(dim, length_scale, scale):
    """Refuses Laplace noise whose surrogate has too large a diagonal."""
    scale, length_scale = concrete(scale), concrete(length_scale)
    if scale is None or length_scale is None:
        return
    _check_diagonal(
        np.log1p(np.broadcast_to((scale / length_scale) ** 2, (dim,))),
        "scale",
        lambda log: np.sqrt(np.expm1(log)) * length_scale,
    )


def _check_diagonal(logs, spread, spread_at):
    """Refuses R² = exp(Σ_i logs_i) whose square overflows."""
    dim = len(logs)
    check_log_diagonal(
        logs.sum(),
        lambda limit: (
            f"with noise like this from dimension {int(limit / logs.mean()) + 1} on, in dimension "
            f"{dim} from a {spread} of {spread_at(limit / dim):.4g} on each coordinate on; a wider "
            "kernel (length_scale) or less noise"
        ),
    )


def _check_probability(probability):
    value, dtype = concrete(probability), jax.dtypes.canonicalize_dtype(float)
    if value is not None and value.astype(dtype) >= 0.5:
        raise ValueError(
            f"ContaminatedGaussian.probability must be below 1/2 in {dtype}, got {value}: the "
            "surrogate's series diverges; worlds.fourier_gaussian takes any probability"
        )


PARTS = {
    Gaussian: _gaussian_noise,
    Laplace: _laplace_noise,
    ContaminatedGaussian: _contaminated_noise,
}
