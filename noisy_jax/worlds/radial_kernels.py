"""Worlds of radial kernels under Gaussian noise: mixtures of Gaussians, truncated.

A radial kernel ∫ exp(−u r²) μ(du) has no surrogate, as some of its Gaussians are narrower than the
noise. Cut off at u_max and integrated by nodes u_q and weights w_q ≥ 0 it has an exact one:

    k(x, a) = Σ_q w_q exp(−u_q r²),
    k̂(x, a) = Σ_q w_q det(I − 2u_qΣ)^(−1/2) exp(−u_q zᵀ(I − 2u_qΣ)⁻¹z),   z = x − a,  r = ‖z‖.

The error of the quadrature changes which kernel is learned, not the surrogate's mean.

Source: Learning from Noisy Data under Distributional Assumptions, Sec. 6.1, Eq. 6 (the last
display there drops μ(u)) and Appendix E, where every σ must be σ²: as printed the surrogate is
biased. The paper's c is u_max in Eq. 6 and u_max·d in Appendix E; `cutoff` here is u_max always.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import categorical, normal
from noisy_jax.kernels import Kernel, squared_distances
from noisy_jax.kernels.kernel import expanded_distances, near_origin
from noisy_jax.linalg.matrices import PSD_SLACK, eigh
from noisy_jax.noise import Gaussian, Noise
from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.numbers import between, positive_float, whole
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import ArrayLike, array_module
from noisy_jax.varying import of_this_device
from noisy_jax.worlds.mixtures import Mixture, matern_mixture, rational_mixture
from noisy_jax.worlds.world import World, check_log_diagonal, checked_points, world_of


def rational(
    *,
    dim: int,
    noise: Noise,
    cutoff: ArrayLike,
    length_scale: ArrayLike | None = None,
    alpha: ArrayLike = 1.0,
) -> World:
    """Makes the world of a rational kernel, without its narrow parts, under Gaussian noise.

        g = (1 + r²/m)^(−α),   k = g P(α, u_max(m + r²)),   r = ‖x − a‖,   m = 2αℓ²,
        |k − g| ≤ approximation_error = 1 − P(α, m u_max),   attained at r = 0

    The rational kernel g is a mixture of Gaussians exp(−u r²) over u > 0. Those with u > u_max, the
    `cutoff`, are dropped, because the ones that are narrower than the noise have no surrogate; k is
    left. P is the regularized lower incomplete Gamma function. With 64 nodes u_q and weights w_q of
    a quadrature and the noise covariance Σ,

        k = Σ_q w_q exp(−u_q r²),   k̂ = Σ_q w_q D_q exp(−u_q zᵀ(I − 2u_qΣ)⁻¹z),   z = x − a,

    where D_q = det(I − 2u_qΣ)^(−½). `diagonal` is R² = Σ_q w_q D_q, and `ratio` is max_q D_q.

    Args:
        dim: d ≥ 1, the number of features.
        noise: `noise.Gaussian`, in each copy, with covariance Σ.
        cutoff: u_max, positive and below 1/(2‖Σ‖) (the largest eigenvalue), in the units of 1/x².
            Near this end R² is large.
        length_scale: ℓ > 0; by default √(d/2), as in the paper's case study, where m = d.
        alpha: α from 0.2 to 50; 1 by default, as in the case study.

    Returns:
        A `World`, with `kernel` k, `surrogate` k̂, E k̂(x + n, a) = k(x, a) for noise n,
        `diagonal`, `ratio`, `approximation_error`, `noise` and `spectrum`.

    Raises:
        ValueError: an argument is out of its range, or R⁴ overflows. Traced ones give NaN instead.

    Source: Learning from Noisy Data under Distributional Assumptions, Sec. 6.1, Theorem 5 (a bound
    on R² below 1/(4‖Σ‖)) and Appendix E, Eqs. 16 and 17, corrected: every σ there must be σ².

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.worlds.rational(dim=4, noise=nj.noise.Gaussian(0.36), cutoff=0.5).diagonal)
        1.1714358
    """
    dim, cutoff = whole("dim", dim), positive_float("cutoff", cutoff)
    length_scale = math.sqrt(dim / 2) if length_scale is None else length_scale
    mixture = rational_mixture(cutoff, length_scale=length_scale, alpha=alpha)
    return _world(mixture, dim, noise, cutoff)


def laplacian(*, dim: int, noise: Noise, cutoff: ArrayLike, length_scale: ArrayLike) -> World:
    """Makes the world of the Laplacian kernel, without its narrow parts, under Gaussian noise.

        g = e^(−r/ℓ),   r = ‖x − a‖,
        k = ½[e^(−r/ℓ) erfc(1/(2ℓ√c) − r√c) + e^(r/ℓ) erfc(1/(2ℓ√c) + r√c)]

    The Laplacian kernel g is a mixture of Gaussians exp(−u r²) over u > 0. Those with u > c, the
    `cutoff`, are dropped, because the ones that are narrower than the noise have no surrogate; k is
    left. The largest |k − g| is erf(1/(2ℓ√c)), at r = 0 (`approximation_error`), where g has a
    cusp: it needs a large cutoff. The surrogate of k, and its `diagonal` and `ratio`, are sums over
    64 Gaussians, by the formulas in `worlds.rational`.

    Args:
        dim: d ≥ 1, the number of features.
        noise: `noise.Gaussian`, in each copy, with covariance Σ.
        cutoff: c, positive and below 1/(2‖Σ‖) (the largest eigenvalue), in the units of 1/x².
        length_scale: ℓ > 0, in the units of x.

    Returns:
        A `World`, with `kernel` k, `surrogate` k̂, E k̂(x + n, a) = k(x, a) for noise n,
        `diagonal`, `ratio`, `approximation_error`, `noise` and `spectrum`.

    Raises:
        ValueError: an argument is out of its range, or R⁴ overflows, for R² = `diagonal`. Traced
            ones give NaN instead.

    Example:
        >>> import noisy_jax as nj
        >>> world = nj.worlds.laplacian(
        ...     dim=2, noise=nj.noise.Gaussian(0.01), cutoff=20.0, length_scale=1.0)
        >>> print(f"{world.approximation_error:.4f}")
        0.1256
    """
    return matern(dim=dim, noise=noise, cutoff=cutoff, nu=0.5, length_scale=length_scale)


def matern(
    *, dim: int, noise: Noise, cutoff: ArrayLike, nu: ArrayLike, length_scale: ArrayLike
) -> World:
    """Makes the world of a Matérn kernel, without its narrow parts, under Gaussian noise.

        g = 2^(1−ν)/Γ(ν) s^ν K_ν(s),   s = √(2ν) r/ℓ,   r = ‖x − a‖,
        |k − g| ≤ approximation_error = P(ν, ν/(2ℓ²u_max)),   attained at r = 0

    The Matérn kernel g (K_ν is a Bessel function) is a mixture of Gaussians exp(−u r²) over u > 0.
    Those with u > u_max, the `cutoff`, are dropped, because the ones that are narrower than the
    noise have no surrogate; the kernel k of the world is left. P is the regularized lower
    incomplete Gamma function. k, its surrogate, `diagonal` and `ratio` are sums over 64 Gaussians,
    by the formulas in `worlds.rational`.

    Args:
        dim: d ≥ 1, the number of features.
        noise: `noise.Gaussian`, in each copy, with covariance Σ.
        cutoff: u_max, positive and below 1/(2‖Σ‖) (the largest eigenvalue), in the units of 1/x².
        nu: smoothness ν from 0.1 to 100; ½ is the Laplacian kernel.
        length_scale: ℓ > 0, in the units of x.

    Returns:
        A `World`, with `kernel` k, `surrogate` k̂, E k̂(x + n, a) = k(x, a) for noise n,
        `diagonal`, `ratio`, `approximation_error`, `noise` and `spectrum`.

    Raises:
        ValueError: an argument is out of its range, or R⁴ overflows, for R² = `diagonal`. Traced
            ones give NaN instead.

    Example:
        >>> import noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.01)
        >>> world = nj.worlds.matern(dim=2, noise=noise, cutoff=20.0, nu=1.5, length_scale=1.0)
        >>> print(f"{world.approximation_error:.4f}")
        0.0053
    """
    dim, cutoff = whole("dim", dim), positive_float("cutoff", cutoff)
    mixture = matern_mixture(cutoff, length_scale=length_scale, nu=nu)
    return _world(mixture, dim, noise, cutoff)


def _world(mixture: Mixture, dim: int, noise: Noise, cutoff: ArrayLike) -> World:
    variances, axes = _principal_variances(noise, dim, cutoff)
    nodes, log_weights, tail = mixture
    xp = array_module(nodes, log_weights, variances)
    tiny = np.log(float(jnp.finfo(jax.dtypes.canonicalize_dtype(float)).tiny))
    if xp is np and not np.max(log_weights) > tiny:
        raise ValueError(f"cutoff must be larger than {cutoff}: the kernel has no mass below it")

    # One variance stands for d of them where the noise is isotropic.
    twice = 2 * nodes[:, None] * variances[None]

    def log_ratios_at(share):
        return -0.5 * dim / len(variances) * xp.sum(xp.log1p(-share * twice), axis=1)

    log_ratios = log_ratios_at(1)
    lifted = log_weights + log_ratios
    check_log_diagonal(
        lambda share: _log_sum_exp(log_weights + log_ratios_at(share), xp),
        "a smaller cutoff or fewer dimensions",
    )
    rates = nodes[:, None] / (1 - twice)

    def of_distance(rates, log_weights):
        """The function of (x, z) that is Σ_q w_q exp(−b_q r²), for rates b `[Q]`."""

        def gram(x, z):
            square = squared_distances(*_pair(x, z, dim))
            return _sum_over_nodes(lambda rate: rate * square, square, rates, log_weights)

        return gram

    def along_axes(x, z):
        x, z = (_rotated(points, axes) for points in near_origin(*_pair(x, z, dim)))

        def exponent(rate):
            scale = jnp.sqrt(rate)[None]
            return expanded_distances(x * scale, z * scale)

        return _sum_over_nodes(exponent, jnp.zeros((len(x), len(z)), x.dtype), rates, lifted)

    def spectrum(key, n):
        node_key, key = jax.random.split(key)
        node = categorical(node_key, jnp.asarray(lifted), shape=(n,))
        deviations = jnp.sqrt(2 * jnp.asarray(rates))[node]
        omega = normal(key, (n, dim), deviations.dtype) * deviations
        return omega if axes is None else _rotated(omega, axes.T)

    peak = xp.exp(_log_sum_exp(log_weights, xp))
    return world_of(
        Kernel(
            of_distance(nodes, log_weights),
            lambda x: jnp.full(x.shape[:-1], peak, jnp.result_type(x, float)),
        ),
        of_distance(rates[:, 0], lifted) if len(variances) == 1 else along_axes,
        dim=dim,
        diagonal=_scalar(xp.exp(_log_sum_exp(lifted, xp))),
        ratio=_scalar(xp.exp(xp.max(xp.where(log_weights > -np.inf, log_ratios, 0)))),
        approximation_error=tail,
        noise=noise,
        spectrum=spectrum,
    )


def _sum_over_nodes(exponent, like, rates, log_weights):
    """Returns Σ_q exp(log w_q − exponent(b_q)), with the shape and dtype of `like`."""
    nodes = jnp.asarray(rates, like.dtype), jnp.asarray(log_weights, like.dtype)

    def add(total, node):
        rate, log_weight = node
        return total + jnp.exp(log_weight - exponent(rate)), None

    return jax.lax.scan(add, of_this_device(jnp.zeros_like(like)), nodes)[0]


def _log_sum_exp(terms, xp):
    """Returns log Σ exp, in the namespace `xp`."""
    largest = xp.max(terms)
    return xp.log(xp.sum(xp.exp(terms - largest))) + largest


def _principal_variances(noise, dim, cutoff):
    """Returns eigenvalues of Σ, `[1]` or `[d]`, and its axes; `None` for the axes of the data."""
    instance("noise", noise, Gaussian, "for other noise use the Gaussian kernel, worlds.gaussian")
    check_dimension("noise.cov", noise.cov, (dim,))
    xp = array_module(noise.cov, cutoff)
    cov, axes = xp.asarray(noise.cov, float), None
    if cov.ndim == 2:
        variances, axes = np.linalg.eigh(cov) if xp is np else eigh(cov)
    else:
        variances = xp.reshape(cov, (-1,))
    norm = xp.max(variances)
    if xp is jnp:
        valid = (xp.min(variances) >= -PSD_SLACK * norm) & (2 * cutoff * norm < 1) & (cutoff > 0)
        return jnp.where(valid, jnp.maximum(variances, 0), jnp.nan), axes
    variances = np.maximum(variances, 0)
    if np.ptp(variances) <= 1e-12 * norm:
        variances, axes = variances[:1], None
    if norm > 0:
        between("cutoff", cutoff, 0, 1 / (2 * norm), "from 1/(2‖Σ‖) on no surrogate exists")
    return variances, axes


def _pair(x, z, dim):
    """Returns both as floating-point numbers of one type, if they have the world's dimension."""
    x, z = checked_points("x", x, dim), checked_points("z", z, dim)
    dtype = jnp.result_type(x, z, float)
    return jnp.asarray(x, dtype), jnp.asarray(z, dtype)


@jax.default_matmul_precision("highest")
def _rotated(x, axes):
    """Returns coordinates of `[n, d]` along the axes."""
    return x if axes is None else x @ jnp.asarray(axes, x.dtype)


def _scalar(value):
    """Returns a number in JAX's default precision."""
    return jnp.asarray(value, jax.dtypes.canonicalize_dtype(float))
