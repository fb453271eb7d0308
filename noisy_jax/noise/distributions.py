"""Noise distributions of independent coordinates: Laplace, uniform, Rademacher and Student's t."""

import chex
import jax
import jax.numpy as jnp

from noisy_jax.noise.distribution import Noise, register_distribution
from noisy_jax.validation import check_finite, concrete


def _scaled(omega: chex.Array, scale: chex.Numeric) -> chex.Array:
    return jnp.broadcast_to(scale, jnp.shape(omega)) * omega


def _log_product(characteristics: chex.Array) -> chex.Array:
    """Complex log of Π_i φ_i over the last axis, for real φ_i of any sign."""
    modulus = jnp.sum(jnp.log(jnp.abs(characteristics)), axis=-1)
    sign = jnp.prod(jnp.sign(characteristics), axis=-1)
    return jax.lax.complex(modulus, jnp.where(sign < 0, jnp.pi, 0.0).astype(modulus.dtype))


@register_distribution
class Laplace(Noise):
    """Independent Laplace noise with density exp(−|n_i|/b_i)/(2b_i); variance 2b².

    Args:
        scale: b > 0, `[]` or `[d]`.
        mean: `[]` or `[d]`.

    Example:
        >>> float(Laplace(0.5).cov)
        0.5
    """

    scale: chex.Numeric
    mean: chex.Numeric = 0.0

    _spread = "scale"
    excess_kurtosis = 3.0

    def check(self, *, stacked):
        """Refuses bad parameters (see `Noise.check`)."""
        super().check(stacked=stacked)
        self._check_spread("scale", stacked)

    @property
    def cov(self):
        """2b², `[]` or `[d]`."""
        return 2 * self.scale**2

    def _standard(self, key, size, dtype):
        return jax.random.laplace(key, (size,), dtype)

    def log_characteristic(self, omega):
        """−Σ_i log(1 + b_i²ω_i²) (see `Noise.log_characteristic`)."""
        scale = jnp.where(jnp.asarray(self.scale) > 0, self.scale, jnp.nan)
        real = -jnp.sum(jnp.log1p(_scaled(omega, scale) ** 2), axis=-1)
        return jax.lax.complex(real, jnp.zeros_like(real))


@register_distribution
class Uniform(Noise):
    """Independent uniform noise on [−a_i, a_i]; variance a²/3.

    Args:
        half_width: a > 0, `[]` or `[d]`.
        mean: `[]` or `[d]`.

    Example:
        >>> float(Uniform(3.0).cov)
        3.0
    """

    half_width: chex.Numeric
    mean: chex.Numeric = 0.0

    _spread = "half_width"
    excess_kurtosis = -1.2
    characteristic_vanishes = True

    def check(self, *, stacked):
        """Refuses bad parameters (see `Noise.check`)."""
        super().check(stacked=stacked)
        self._check_spread("half_width", stacked)

    @property
    def cov(self):
        """a²/3, `[]` or `[d]`."""
        return self.half_width**2 / 3

    def _standard(self, key, size, dtype):
        return jax.random.uniform(key, (size,), dtype, minval=-1, maxval=1)

    def _coloured(self, draws):
        return jnp.broadcast_to(self.half_width, draws.shape) * draws

    def log_characteristic(self, omega):
        """log Π_i sin(a_iω_i)/(a_iω_i), with zeros at a_iω_i = kπ (see `Noise`)."""
        return _log_product(jnp.sinc(_scaled(omega, self.half_width) / jnp.pi))


@register_distribution
class Rademacher(Noise):
    """Independent noise ±c_i, each sign with probability ½; variance c².

    Args:
        scale: c > 0, `[]` or `[d]`.
        mean: `[]` or `[d]`.

    Example:
        >>> float(Rademacher(2.0).cov)
        4.0
    """

    scale: chex.Numeric
    mean: chex.Numeric = 0.0

    _spread = "scale"
    excess_kurtosis = -2.0
    characteristic_vanishes = True

    def check(self, *, stacked):
        """Refuses bad parameters (see `Noise.check`)."""
        super().check(stacked=stacked)
        self._check_spread("scale", stacked)

    @property
    def cov(self):
        """c², `[]` or `[d]`."""
        return self.scale**2

    def _standard(self, key, size, dtype):
        return jax.random.rademacher(key, (size,), dtype)

    def log_characteristic(self, omega):
        """log Π_i cos(c_iω_i) (see `Noise.log_characteristic`)."""
        return _log_product(jnp.cos(_scaled(omega, self.scale)))


@register_distribution
class StudentT(Noise):
    """Independent heavy-tailed noise c_i·t_ν; variance c²ν/(ν−2).

    Its fourth moment, which the guarantee for a known covariance needs, is finite for ν > 4 only.
    Its characteristic function has no closed form here, so `log_characteristic` is `None`.

    Args:
        df: degrees of freedom ν > 2, `[]`; without a finite variance no guarantee holds.
        scale: c > 0, `[]` or `[d]`.
        mean: `[]` or `[d]`.

    Example:
        >>> float(StudentT(df=4.0, scale=1.0).cov)
        2.0
    """

    df: chex.Numeric
    scale: chex.Numeric
    mean: chex.Numeric = 0.0

    _spread = "scale"

    def check(self, *, stacked):
        """Refuses bad parameters (see `Noise.check`)."""
        super().check(stacked=stacked)
        self._check_spread("scale", stacked)
        if jnp.ndim(self.df) > stacked:
            raise ValueError(f"StudentT.df must be one number, got {self.df}")
        check_finite("StudentT.df", self.df, ": the limit is Gaussian noise")
        df = concrete(self.df)
        if df is not None and not (df > 2).all():
            raise ValueError(
                f"StudentT.df must be above 2, got {self.df}: below, the variance is infinite and "
                "no learner of this library has a guarantee"
            )

    @property
    def cov(self):
        """c²ν/(ν−2), `[]` or `[d]`."""
        return self.scale**2 * self.df / (self.df - 2)

    @property
    def excess_kurtosis(self):
        """6/(ν−4) for ν > 4, else infinite."""
        return jnp.where(self.df > 4, 6 / jnp.where(self.df > 4, self.df - 4, 1), jnp.inf)

    def _standard(self, key, size, dtype):
        return jax.random.t(key, self.df, (size,), dtype)
