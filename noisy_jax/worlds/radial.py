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

import math

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import normal
from noisy_jax.kernels import Kernel, squared_distances
from noisy_jax.kernels.kernel import near_origin
from noisy_jax.matrices import PSD_SLACK, eigh
from noisy_jax.noise import Gaussian, Noise, PerRound
from noisy_jax.validation import (
    array_module,
    between,
    check_dimension,
    check_made_for,
    concrete,
    instance,
    whole,
)
from noisy_jax.worlds.measures import Measure, laplacian_measure, matern_measure, rational_measure
from noisy_jax.worlds.mixtures import log_sum_exp, of_difference, of_distance, positive_float
from noisy_jax.worlds.world import World, check_log_diagonal, world_of


def radial(measure: Measure, *, dim: int, noise: Noise, cutoff: chex.Numeric) -> World:
    """The world of the kernel ∫ exp(−u r²) μ(du), cut off at u_max.

    R² = k̂(x, x) = Σ_q w_q det(I − 2u_qΣ)^(−1/2), and κ = max_q det(I − 2u_qΣ)^(−1/2). The
    truncation error (`approximation_error`) is largest at r = 0, where it is μ((u_max, ∞)).

    A Gram matrix is a sum over the nodes. In float32, if Σ is isotropic and nothing is traced, an
    interpolant with a relative error of about 1e-6 replaces the sum, at a tenth of its cost: for
    speed, build worlds outside `jit` and `vmap`. The sum remains if no interpolant is accurate: for
    few nodes far apart, and in dozens of dimensions if Σ is close to its limit.

    Args:
        measure: μ, with mass below the cutoff, such as `rational_measure(length_scale=1.0)`.
        dim: d, at least 1.
        noise: `noise.Gaussian`.
        cutoff: u_max, positive and below 1/(2‖Σ‖), from where on there is no surrogate. Theorem 5
            bounds R² if it is below 1/(4‖Σ‖); above, R² is exact too, but may be large, and raises
            ValueError if R⁴ overflows.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> measure = laplacian_measure(length_scale=1.0)
        >>> world = radial(measure, dim=2, noise=nj.noise.Gaussian(0.01), cutoff=20.0)
        >>> world.surrogate(jnp.zeros((3, 2)), jnp.ones((4, 2))).shape
        (3, 4)
    """
    measure = instance("measure", measure, Measure, "worlds.rational_measure makes one")
    dim = whole("dim", dim)
    cutoff = positive_float("cutoff", cutoff)
    variances, axes = _principal_variances(noise, dim, cutoff)
    # What underflows here raises below.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        nodes, log_weights = measure.quadrature(cutoff)
    tail = measure.tail(cutoff)
    xp = array_module(nodes, log_weights, variances)
    if xp is np:
        _check_mass(measure, cutoff, log_weights, tail)

    # One variance stands for d of them where the noise is isotropic.
    twice = 2 * nodes[:, None] * variances[None]

    def log_ratios_at(share):
        return -0.5 * dim / len(variances) * xp.sum(xp.log1p(-share * twice), axis=1)

    log_ratios = log_ratios_at(1)
    lifted = log_weights + log_ratios
    check_log_diagonal(
        lambda share: log_sum_exp(log_weights + log_ratios_at(share), xp),
        "a smaller cutoff or fewer dimensions",
    )
    rates = nodes[:, None] / (1 - twice)

    clean = of_distance(nodes, log_weights, measure.decay)

    def kernel(x, z):
        return clean(squared_distances(*_pair(x, z, dim)))

    if len(variances) == 1:
        noisy = of_distance(rates[:, 0], lifted, measure.decay)

        def surrogate(x, z):
            return noisy(squared_distances(*_pair(x, z, dim)))
    else:
        mixture = of_difference(rates, lifted)

        def surrogate(x, z):
            x, z = near_origin(*_pair(x, z, dim))
            return mixture(_rotated(x, axes), _rotated(z, axes))

    def spectrum(key, n):
        node_key, key = jax.random.split(key)
        node = jax.random.categorical(node_key, jnp.asarray(lifted), shape=(n,))
        deviations = jnp.sqrt(2 * jnp.asarray(rates))[node]
        omega = normal(key, (n, dim), deviations.dtype) * deviations
        return omega if axes is None else _rotated(omega, axes.T)

    peak = xp.exp(log_sum_exp(log_weights, xp))
    return world_of(
        Kernel(kernel, lambda x: jnp.full(x.shape[:-1], peak, jnp.result_type(x, float))),
        surrogate,
        dim=dim,
        diagonal=_scalar(xp.exp(log_sum_exp(lifted, xp))),
        ratio=_scalar(xp.exp(xp.max(xp.where(log_weights > -np.inf, log_ratios, 0)))),
        approximation_error=tail,
        noise=noise,
        spectrum=spectrum,
    )


def rational(
    *,
    dim: int,
    noise: Noise,
    cutoff: chex.Numeric,
    length_scale: chex.Numeric | None = None,
    alpha: chex.Numeric = 1.0,
) -> World:
    """The world of the truncated rational kernel; by default the paper's case study.

    With m = 2αℓ², k = g P(α, u_max(m + r²)), g = (1 + r²/m)^(−α) and P the incomplete Gamma
    function. With α = 1 and m = d that is g(1 − exp(−c/g)), c = u_max·d (Appendix E, Eq. 16), and

        k̂ = d ∫_0^u_max (1 − 2σ²u)^(−d/2) exp(−u r²/(1 − 2σ²u) − ud) du   (Eq. 17, corrected).

    Its truncation error is Q(α, m u_max), e^(−c) in the case study. Arguments are those of
    `radial`; ℓ > 0, by default √(d/2), as in the case study; and α from 0.2 to 50.

    Example:
        >>> import noisy_jax as nj
        >>> print(rational(dim=4, noise=nj.noise.Gaussian(0.36), cutoff=0.5).diagonal)
        1.1714358
    """
    dim = whole("dim", dim)
    length_scale = math.sqrt(dim / 2) if length_scale is None else length_scale
    measure = rational_measure(length_scale=length_scale, alpha=alpha)
    return radial(measure, dim=dim, noise=noise, cutoff=cutoff)


def laplacian(*, dim: int, noise: Noise, cutoff: chex.Numeric, length_scale: chex.Numeric) -> World:
    """The world of the Laplacian kernel exp(−r/ℓ), r = ‖x − a‖, truncated at c = u_max.

    k = ½[e^(−r/ℓ) erfc(1/(2ℓ√c) − r√c) + e^(r/ℓ) erfc(1/(2ℓ√c) + r√c)]; its truncation error is
    erf(1/(2ℓ√c)) at r = 0, and falls at least like e^(−cr²). Arguments are those of `radial`, and
    ℓ > 0.

    Example:
        >>> import noisy_jax as nj
        >>> world = laplacian(dim=2, noise=nj.noise.Gaussian(0.01), cutoff=20.0, length_scale=1.0)
        >>> print(f"{world.approximation_error:.4f}")
        0.1256
    """
    return radial(laplacian_measure(length_scale=length_scale), dim=dim, noise=noise, cutoff=cutoff)


def matern(
    *, dim: int, noise: Noise, cutoff: chex.Numeric, nu: chex.Numeric, length_scale: chex.Numeric
) -> World:
    """The world of the truncated Matérn kernel of smoothness ν from 0.1 to 100.

    Its truncation error is P(ν, ν/(2ℓ²u_max)). Arguments are those of `radial`, and ℓ > 0.

    Example:
        >>> import noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.01)
        >>> world = matern(dim=2, noise=noise, cutoff=20.0, nu=1.5, length_scale=1.0)
        >>> print(f"{world.approximation_error:.4f}")
        0.0053
    """
    return radial(
        matern_measure(nu=nu, length_scale=length_scale), dim=dim, noise=noise, cutoff=cutoff
    )


def _principal_variances(noise, dim, cutoff):
    """Eigenvalues of Σ, `[1]` if isotropic else `[d]`; its axes, `None` if they are the data's."""
    changing = "worlds.heteroscedastic_radial takes Gaussian noise that changes by round"
    other = "for other noise use the Gaussian kernel, worlds.gaussian"
    hint = {PerRound: changing}.get(type(noise), other)
    instance("noise", noise, Gaussian, hint)
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


def _check_mass(measure, cutoff, log_weights, tail):
    """Raises ValueError if there is no mass below the cutoff, or nodes and tail miss the mass."""
    tiny = np.log(float(jnp.finfo(jax.dtypes.canonicalize_dtype(float)).tiny))
    if not np.max(log_weights) > tiny:
        raise ValueError(f"cutoff must be larger than {cutoff}: the measure has no mass below it")
    below, mass = np.sum(np.exp(log_weights)), measure.mass
    missing = concrete(below + tail - mass)
    if missing is not None and not abs(missing) <= 1e-4 * mass:
        parts = f"nodes up to the cutoff, {below:.6g}, and tail, {tail:.6g}"
        raise ValueError(f"measure.mass must be that of its {parts}, got {mass:.6g}")


def _pair(x, z, dim):
    """Both as floating-point numbers of one type, if they have the world's dimension."""
    for points in (x, z):
        check_made_for(dim, jnp.shape(points))
    dtype = jnp.result_type(x, z, float)
    return jnp.asarray(x, dtype), jnp.asarray(z, dtype)


@jax.default_matmul_precision("highest")
def _rotated(x, axes):
    """Coordinates of `[n, d]` along the axes."""
    return x if axes is None else x @ jnp.asarray(axes, x.dtype)


def _scalar(value):
    """A number in JAX's default precision."""
    return jnp.asarray(value, jax.dtypes.canonicalize_dtype(float))
