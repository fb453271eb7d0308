"""Gaussian noise of any covariance, in every round or only in some."""

import chex
import jax
import jax.numpy as jnp

from noisy_jax.matrices import PSD_SLACK, check_covariance
from noisy_jax.noise.distribution import (
    Noise,
    covariance_times,
    register_distribution,
    sound_covariance,
)
from noisy_jax.validation import check_at_least, concrete


@register_distribution
class Gaussian(Noise):
    """Gaussian noise N(mean, Σ).

    Args:
        cov: Σ as `[]` (σ² on every coordinate), `[d]` (diagonal) or `[d, d]`; PSD.
        mean: `[]` or `[d]`.

    Raises:
        ValueError: `cov` is not a covariance, or something is not finite.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> Gaussian(0.25).sample(jax.random.key(0), jnp.zeros(3)).shape
        (3,)
    """

    cov: chex.Numeric
    mean: chex.Numeric = 0.0

    excess_kurtosis = 0.0

    def check(self, *, stacked):
        """Refuses bad parameters (see `Noise.check`)."""
        super().check(stacked=stacked)
        check_covariance("Gaussian.cov", self.cov, stacked=stacked)

    def _standard(self, key, size, dtype):
        return jax.random.normal(key, (size,), dtype)

    def _coloured(self, draws):
        if jnp.ndim(self.cov) < 2:
            return jnp.broadcast_to(jnp.sqrt(self.cov), draws.shape) * draws
        # Not by Cholesky, which singular covariances do not have.
        variances, axes = jnp.linalg.eigh(jnp.asarray(self.cov, draws.dtype))
        # A traced matrix was not checked: one that is not PSD gives NaN, not some other noise.
        sound = variances >= -PSD_SLACK * variances[-1]
        scale = jnp.where(sound, jnp.sqrt(jnp.maximum(variances, 0)), jnp.nan)
        return draws @ (axes * scale[None]).T

    def log_characteristic(self, omega):
        """−½ ωᵀΣω (see `Noise.log_characteristic`)."""
        real = -0.5 * jnp.sum(omega * covariance_times(sound_covariance(self.cov), omega), axis=-1)
        return jax.lax.complex(real, jnp.zeros_like(real))

    def cloned(self, copies: int) -> "Gaussian":
        """The distribution of each of several independent copies made out of one: N(mean, copies·Σ).

        x̃ + ξ_i with ξ_i ~ N(0, (copies − 1)Σ) and Cov(ξ_i, ξ_j) = −Σ have uncorrelated, hence
        independent, noise; two of them are x̃ ± ξ with ξ ~ N(0, Σ).

        Args:
            copies: how many are made, at least 1.

        Raises:
            ValueError: `copies` is no whole number of at least 1.

        Example:
            >>> Gaussian(0.25).cloned(2).cov
            0.5
        """
        check_at_least("copies", copies, 1, "the number of copies made out of one")
        return Gaussian(copies * self.cov, self.mean)


@register_distribution
class ContaminatedGaussian(Noise):
    """Noise N(0, Σ) on the whole vector with probability q, and none otherwise.

    Its covariance is qΣ. Coordinates are dependent: a vector is hit in all of them or in none.

    Args:
        outlier_cov: Σ, the covariance where the noise hits, as `[]`, `[d]` or `[d, d]`; PSD.
        probability: q in [0, 1], `[]`.
        mean: `[]` or `[d]`; it shifts every vector, hit or not.

    Raises:
        ValueError: `outlier_cov` is not a covariance, `probability` is none, or something is not
            finite.

    Example:
        >>> ContaminatedGaussian(4.0, probability=0.25).cov
        1.0
    """

    outlier_cov: chex.Numeric
    probability: chex.Numeric
    mean: chex.Numeric = 0.0

    _spread = "outlier_cov"

    def check(self, *, stacked):
        """Refuses bad parameters (see `Noise.check`)."""
        super().check(stacked=stacked)
        check_covariance("ContaminatedGaussian.outlier_cov", self.outlier_cov, stacked=stacked)
        probability = concrete(self.probability)
        if jnp.ndim(self.probability) > stacked or (
            probability is not None and not ((probability >= 0) & (probability <= 1)).all()
        ):
            raise ValueError(
                "ContaminatedGaussian.probability must be one number in [0, 1], "
                f"got {self.probability}"
            )

    @property
    def cov(self):
        """qΣ, `[]`, `[d]` or `[d, d]`."""
        return self.probability * self.outlier_cov

    @property
    def excess_kurtosis(self):
        """3/q − 3, infinite where the noise never hits."""
        return 3 / jnp.asarray(self.probability, float) - 3

    def centred(self, key, x):
        """A noisy copy (see `Noise.centred`)."""
        hit_key, noise_key = jax.random.split(key)
        noisy = super().centred(noise_key, x)
        hit = jax.random.bernoulli(hit_key, self.probability, noisy.shape[:-1])
        return jnp.where(hit[..., None] if noisy.ndim else hit, noisy, x)

    def _standard(self, key, size, dtype):
        return jax.random.normal(key, (size,), dtype)

    def _coloured(self, draws):
        return Gaussian(self.outlier_cov)._coloured(draws)

    def fourth_moment(self, dim):
        """q((tr Σ)² + 2‖Σ‖²_F) (see `Noise.fourth_moment`)."""
        return self.probability * Gaussian(self.outlier_cov).fourth_moment(dim)

    def log_characteristic(self, omega):
        """log(1 − q + q exp(−½ ωᵀΣω)) (see `Noise.log_characteristic`)."""
        log_gaussian = Gaussian(self.outlier_cov).log_characteristic(omega).real
        q = jnp.asarray(self.probability, log_gaussian.dtype)
        q = jnp.where((q >= 0) & (q <= 1), q, jnp.nan)
        # Each form has a gradient at its own end of q's range alone.
        rarely = q < 0.5
        rare, frequent = jnp.where(rarely, q, 0.5), jnp.where(rarely, 0.5, q)
        real = jnp.where(
            rarely,
            jnp.log1p(rare * jnp.expm1(log_gaussian)),
            jnp.logaddexp(jnp.log1p(-frequent), jnp.log(frequent) + log_gaussian),
        )
        return jax.lax.complex(real, jnp.zeros_like(real))
