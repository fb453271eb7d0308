"""Noise laws: what stands between the clean data and the learner.

Every law is a pytree of its parameters, so that `vmap` sweeps over them; `PerRound` marks a law
whose leaves are stacked along a leading axis of T rounds. A law may have a known mean, which
`observe` subtracts: the papers' reduction to zero-mean noise.
"""

import dataclasses
from typing import TypeVar

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation import (
    PSD_SLACK,
    check_covariance,
    check_dimension,
    check_finite,
    check_positive,
    concrete,
)

_T = TypeVar("_T", bound=type)


def _law(cls: _T) -> _T:
    """Registers a frozen dataclass as a pytree whose unflattening checks nothing.

    Its leaves may then be tracers, arrays stacked over rounds, or JAX's placeholders; checks run
    where a person constructs the law.
    """
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    names = tuple(field.name for field in dataclasses.fields(cls))

    def flatten_with_keys(law):
        return tuple((jax.tree_util.GetAttrKey(name), getattr(law, name)) for name in names), None

    def unflatten(_, leaves):
        law = object.__new__(cls)
        for name, leaf in zip(names, leaves, strict=True):
            object.__setattr__(law, name, leaf)
        return law

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten)
    return cls


class Noise:
    """What every law offers; coordinates are independent unless a law says otherwise.

    Attributes:
        mean: `[]` or `[d]`, the known mean.
        cov: covariance Σ as `[]`, `[d]` or `[d, d]`, the most compact form that holds it.
        excess_kurtosis: E n⁴/σ⁴ − 3 of one coordinate.
    """

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (list, tuple)):
                object.__setattr__(self, field.name, np.asarray(value))
        self.check(stacked=False)

    def check(self, *, stacked: bool) -> None:
        """Refuses bad parameters, where they are concrete; `stacked` ones lead with an axis T."""
        self._check_vector("mean", self.mean, stacked)
        check_finite(self._name("mean"), self.mean)

    def _name(self, parameter: str) -> str:
        return f"{type(self).__name__}.{parameter}"

    def _check_vector(self, parameter, value, stacked):
        if jnp.ndim(value) > 1 + stacked:
            raise ValueError(
                f"{self._name(parameter)} must have shape [] or [d], got {list(jnp.shape(value))}"
            )

    def _check_spread(self, parameter, stacked):
        value = getattr(self, parameter)
        self._check_vector(parameter, value, stacked)
        check_positive(self._name(parameter), value, "the spread of the noise on each coordinate")

    @jax.default_matmul_precision("highest")
    def sample(self, key: chex.PRNGKey, x: chex.Array) -> chex.Array:
        """A noisy copy x + mean + n of `x`.

        Args:
            key: the randomness of this copy.
            x: `[..., d]` clean instances, or `[]` a clean target (then the law must be scalar).

        Returns:
            An array of the shape of `x`.
        """
        copy = self.centred(key, x)
        return copy + jnp.broadcast_to(self.mean, copy.shape)

    @jax.default_matmul_precision("highest")
    def centred(self, key: chex.PRNGKey, x: chex.Array) -> chex.Array:
        """The same noisy copy with the known mean subtracted: x + n, as a learner is shown it."""
        x = jnp.asarray(x)
        x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        for field in dataclasses.fields(self):
            check_dimension(self._name(field.name), getattr(self, field.name), x.shape)
        # Drawn flat: XLA fills arrays of several small axes with random bits much more slowly.
        draws = self._standard(key, x.size, x.dtype).reshape(x.shape)
        return x + self._coloured(draws)

    def covariance(self, dim: int) -> chex.Array:
        """The full covariance matrix Σ, `[dim, dim]`."""
        check_dimension(self._name("cov"), self.cov, (dim,))
        cov = jnp.asarray(self.cov)
        return cov if cov.ndim == 2 else jnp.diag(jnp.broadcast_to(cov, (dim,)))

    def fourth_moment(self, dim: int) -> chex.Array:
        """E‖n‖⁴ of the centred noise, `[]`: (tr Σ)² + 2‖Σ‖²_F + κ Σ_i Σ_ii².

        κ is the excess kurtosis of one coordinate.
        """
        cov = self.covariance(dim)
        variances = jnp.diag(cov)
        return (
            jnp.sum(variances) ** 2
            + 2 * jnp.sum(cov**2)
            + self.excess_kurtosis * jnp.sum(variances**2)
        )

    def log_characteristic(self, omega: chex.Array) -> chex.Array | None:
        """log E exp(i⟨ω, n⟩) of the centred noise n, as the learners see it.

        Args:
            omega: `[..., d]` frequencies.

        Returns:
            `[...]` complex: log modulus in the real part (−∞ at a zero of the characteristic
            function), argument in the imaginary part. `None` where no closed form is known.
        """
        return None

    def _standard(self, key: chex.PRNGKey, size: int, dtype) -> chex.Array:
        """`[size]` independent draws of the law at unit scale, centred."""
        raise AssertionError(f"{type(self).__name__} defines no sampler")

    def _coloured(self, draws: chex.Array) -> chex.Array:
        """Noise of the law's covariance from standard draws, `[..., d]` to `[..., d]`."""
        return jnp.broadcast_to(self.scale, draws.shape) * draws


def covariance_times(cov: chex.Array, vectors: chex.Array) -> chex.Array:
    """Σv for Σ given as `[]`, `[d]` or `[d, d]` and vectors `[..., d]`, without filling up Σ."""
    if jnp.ndim(cov) == 2:
        return jnp.matmul(vectors, cov, precision="highest")
    return jnp.broadcast_to(cov, jnp.shape(vectors)) * vectors


def _scaled(omega: chex.Array, scale: chex.Numeric) -> chex.Array:
    return jnp.broadcast_to(scale, jnp.shape(omega)) * omega


def _log_product(characteristics: chex.Array) -> chex.Array:
    """Complex log of Π_i φ_i over the last axis, for real φ_i of any sign."""
    modulus = jnp.sum(jnp.log(jnp.abs(characteristics)), axis=-1)
    sign = jnp.prod(jnp.sign(characteristics), axis=-1)
    return jax.lax.complex(modulus, jnp.where(sign < 0, jnp.pi, 0.0).astype(modulus.dtype))


@_law
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
        real = -0.5 * jnp.sum(omega * covariance_times(self.cov, omega), axis=-1)
        return jax.lax.complex(real, jnp.zeros_like(real))


@_law
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
        real = -jnp.sum(jnp.log1p(_scaled(omega, self.scale) ** 2), axis=-1)
        return jax.lax.complex(real, jnp.zeros_like(real))


@_law
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

    excess_kurtosis = -1.2

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


@_law
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

    excess_kurtosis = -2.0

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


@_law
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


@_law
class PerRound:
    """A law that changes from round to round: every leaf of `law` is stacked along T rounds.

    Args:
        law: a law built by `jax.vmap` over its parameters, so that each leaf is `[T, ...]`.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> PerRound(jax.vmap(Gaussian)(jnp.linspace(0.1, 0.2, 5))).law.cov.shape
        (5,)
    """

    law: Noise

    def __post_init__(self):
        if not isinstance(self.law, Noise):
            raise ValueError(
                f"PerRound needs a noise law whose parameters are stacked, got {self.law!r}; "
                "build it as PerRound(jax.vmap(Gaussian)(covs))"
            )
        self.law.check(stacked=True)
