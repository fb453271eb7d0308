"""Gaussian noise of any covariance, in every round or only in some."""

from __future__ import annotations

import functools
from typing import Any, Self

import jax
import jax.numpy as jnp

from noisy_jax.draws import bernoulli
from noisy_jax.features import sine
from noisy_jax.linalg.matrices import PSD_SLACK, eigh, eigvalsh
from noisy_jax.noise.base import Noise, covariance_times, parameter, register_distribution
from noisy_jax.validation.arrays import real_array, widened
from noisy_jax.validation.numbers import non_negative, whole, within
from noisy_jax.validation.values import ArrayLike
from noisy_jax.xla import random_bits


@functools.partial(jax.jit, static_argnums=(1, 2), inline=True)
def standard_normal(key: jax.Array, size: int, dtype) -> jax.Array:
    """Draws `[size]` numbers from N(0, 1), in float32 faster on CPUs than `jax.random.normal`.

    A rollout of `learners.two_copies` on 10 features is 4 to 6 times as fast. Two independent draws
    are r cos φ and r sin φ, with r = √(−2 log u), u uniform in (0, 1] and φ uniform on the circle,
    of 32 random bits each. Hence |n| ≤ √(64 log 2) = 6.66, which N(0, 1) exceeds with probability
    3e-11.

    Source: Box and Muller, A Note on the Generation of Random Normal Deviates (1958).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> n = standard_normal(jax.random.key(0), 1_000_000, jnp.float32)
        >>> print(f"moments {(n**2).mean():.2f} and {(n**4).mean():.2f}")
        moments 1.00 and 3.00
    """
    if dtype != jnp.float32:
        return standard_normal(key, size, jnp.float32).astype(dtype)
    half = -(-size // 2)
    bits = random_bits(key, 2 * half)
    first, second = bits[:half], bits[half:]
    r = jnp.sqrt(-2 * jnp.log((first.astype(dtype) + 1) * 2**-32))
    # In cycles: two bits of φ choose an axis and its sign, the others the angle to it.
    angle = jax.lax.bitcast_convert_type(second << 2, jnp.int32).astype(dtype) * 2**-34
    r, swap = jnp.where(second >> 31 == 1, -r, r), (second >> 30) & 1 == 1
    other = 0.25 - jnp.abs(angle)  # cos 2πa = sin 2π(¼ − |a|)
    turns = jnp.where(swap, angle, other), jnp.where(swap, other, angle)
    return jnp.concatenate([r * sine(turn) for turn in turns])[:size]


class _Normal(Noise):
    """Noise made of Gaussian draws, whose covariance is the parameter named `_spread`."""

    _spread = "cov"

    @classmethod
    def from_variance(cls, variance: ArrayLike, **parameters: Any) -> Self:
        """Returns the distribution with given variances, `[]` or `[d]`, or covariance `[d, d]`.

        Other parameters, such as the `probability` of contaminated noise, are given by name.
        """
        unit = cls(**{cls._spread: 1.0}, **parameters).cov
        if not isinstance(variance, float | int):
            variance = real_array(f"variance of {cls.__name__}", variance)
        return cls(**{cls._spread: variance / unit}, **parameters)

    def _copies(self, key, x):
        return x + self._scaled(standard_normal(key, x.size, x.dtype).reshape(x.shape))

    def _scaled(self, draws):
        """√Σ n for standard draws n, `[..., d]`."""
        cov = getattr(self, self._spread)
        if jnp.ndim(cov) < 2:
            return jnp.broadcast_to(jnp.sqrt(cov), draws.shape) * draws
        # Not by Cholesky, which singular covariances do not have.
        variances, axes = eigh(jnp.asarray(cov, draws.dtype))
        # A traced matrix was not checked: NaN if it is not PSD.
        sound = variances >= -PSD_SLACK * variances[-1]
        # Of a variance that is zero but for rounding, the root would not be small.
        resolved = variances > len(variances) * jnp.finfo(draws.dtype).eps * variances[-1]
        scale = jnp.where(resolved, jnp.sqrt(jnp.where(resolved, variances, 1)), 0)
        scale = jnp.where(sound, scale, jnp.nan)
        return jnp.matmul(draws, (axes * scale[None]).T, precision="highest")


def sound_covariance(cov: ArrayLike) -> jax.Array:
    """Σ as `[]`, `[d]` or `[d, d]`; NaN if it is not PSD, for traced ones, which no check sees."""
    cov = jnp.asarray(cov, float)
    if cov.ndim < 2:
        return jnp.where(cov >= 0, cov, jnp.nan)
    variances = eigvalsh(cov)
    return jnp.where(variances[0] >= -PSD_SLACK * variances[-1], cov, jnp.nan)


@register_distribution
class Gaussian(_Normal):
    """Gaussian noise N(mean, Σ).

    A copy is x + mean + √Σ g with standard normal g `[d]`. So where a variance is 0, the derivative
    of a copy by this variance is infinite.

    Args:
        cov: Σ, in the squared unit of x: `[]` ≥ 0 (the same variance for all d features), `[d]` ≥ 0
            (variances) or `[d, d]`, positive semidefinite.
        mean: `[]` or `[d]`, the known mean, in the unit of x; 0 by default.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.noise.Gaussian(0.25).covariance(2))
        [[0.25 0.  ]
         [0.   0.25]]
    """

    cov: ArrayLike = parameter(non_negative, matrix=True)
    mean: ArrayLike = 0.0

    excess_kurtosis = 0.0

    def log_characteristic(self, omega: Any) -> Any:
        """Returns −½ ωᵀΣω, `[...]`, at ω `[..., d]` (see `Noise.log_characteristic`)."""
        real = -0.5 * jnp.sum(omega * covariance_times(sound_covariance(self.cov), omega), axis=-1)
        return jax.lax.complex(real, jnp.zeros_like(real))

    def cloned(self, copies: int) -> Gaussian:
        """Returns the noise N(mean, VΣ) of each of V independent copies made from one copy.

        `wrappers.cloned` makes these copies from a single x̃. They are x̃ + ξ_v with ξ_v ~ N(0, (V
        − 1)Σ) and Cov(ξ_u, ξ_v) = −Σ for u ≠ v: their noises are uncorrelated and jointly Gaussian,
        hence independent. For V = 2 they are x̃ ± ξ with ξ ~ N(0, Σ).

        Args:
            copies: V ≥ 1, number of copies to make.

        Example:
            >>> import noisy_jax as nj
            >>> nj.noise.Gaussian(0.25).cloned(2).cov
            0.5
        """
        return Gaussian(whole("copies", copies) * widened(self.cov), self.mean)


@register_distribution
class ContaminatedGaussian(_Normal):
    """Noise N(0, Σ) on the whole vector with probability q, and no noise otherwise.

    Its covariance is qΣ. Coordinates are dependent: either all of them are noisy or none.

    Args:
        outlier_cov: Σ, the covariance of a noisy vector, in the squared unit of x: `[]` ≥ 0, `[d]`
            ≥ 0 or `[d, d]`, positive semidefinite.
        probability: q in [0, 1], `[]`.
        mean: `[]` or `[d]`, a known shift of every vector, noisy or not; 0 by default.

    Example:
        >>> import noisy_jax as nj
        >>> nj.noise.ContaminatedGaussian(4.0, probability=0.25).cov
        1.0
    """

    outlier_cov: ArrayLike = parameter(non_negative, matrix=True)
    probability: ArrayLike = parameter(within, 0, 1, scalar=True)
    mean: ArrayLike = 0.0

    _spread = "outlier_cov"

    @property
    def cov(self):
        """The covariance qΣ, of the shape of `outlier_cov`."""
        return self.probability * self.outlier_cov

    @property
    def excess_kurtosis(self):
        """3/q − 3 for each coordinate, infinite for q = 0."""
        return 3 / jnp.asarray(self.probability, float) - 3

    def _copies(self, key, x):
        hit_key, noise_key = jax.random.split(key)
        noisy = super()._copies(noise_key, x)
        hit = bernoulli(hit_key, self.probability, noisy.shape[:-1])
        unsound = 0 * jnp.asarray(self.probability, noisy.dtype)  # NaN if the probability is
        return jnp.where(hit[..., None] if noisy.ndim else hit, noisy, x) + unsound

    def fourth_moment(self, dim: int) -> Any:
        """Returns E‖n‖⁴ = q((tr Σ)² + 2‖Σ‖²_F), `[]` (see `Noise.fourth_moment`)."""
        return self.probability * Gaussian(self.outlier_cov).fourth_moment(dim)

    def log_characteristic(self, omega: Any) -> Any:
        """Returns log(1 − q + q exp(−½ ωᵀΣω)), `[...]` (see `Noise.log_characteristic`)."""
        log_gaussian = Gaussian(self.outlier_cov).log_characteristic(omega).real
        q = jnp.asarray(self.probability, log_gaussian.dtype)
        # Each form has a gradient in its own part only. The last one is precise where exp(−ωᵀΣω/2)
        # is not small, and exact where there is always noise.
        rarely, always = q < 0.5, q == 1
        near = (log_gaussian > -30) | always
        rare, frequent = jnp.where(rarely, q, 0.5), jnp.where(rarely | always, 0.5, q)
        share = jnp.where(rarely, 0.5, q)
        growth = jnp.exp(jnp.minimum(-log_gaussian, 60))
        real = jnp.where(
            rarely,
            jnp.log1p(rare * jnp.expm1(log_gaussian)),
            jnp.where(
                near,
                log_gaussian + jnp.log(share + (1 - share) * growth),
                jnp.logaddexp(jnp.log1p(-frequent), jnp.log(frequent) + log_gaussian),
            ),
        )
        return jax.lax.complex(real, jnp.zeros_like(real))
