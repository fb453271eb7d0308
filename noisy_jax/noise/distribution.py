"""What every noise distribution offers, and distributions that change from round to round.

Every distribution is a pytree of its parameters, so that `vmap` sweeps over them; `PerRound` marks a distribution
whose leaves are stacked along a leading axis of T rounds. A distribution may have a known mean, which
`observe` subtracts: the papers' reduction to zero-mean noise.
"""

import dataclasses
from typing import TypeVar

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.matrices import PSD_SLACK
from noisy_jax.validation import (
    check_at_least,
    check_dimension,
    check_finite,
    check_key,
    check_positive,
    given,
)

_T = TypeVar("_T", bound=type)


def register_distribution(cls: _T) -> _T:
    """Registers a frozen dataclass as a pytree whose unflattening checks nothing.

    Its leaves may then be tracers, arrays stacked over rounds, or JAX's placeholders; checks run
    where a person constructs the distribution.
    """
    cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
    names = tuple(field.name for field in dataclasses.fields(cls))

    def flatten_with_keys(distribution):
        return tuple(
            (jax.tree_util.GetAttrKey(name), getattr(distribution, name)) for name in names
        ), None

    def unflatten(_, leaves):
        distribution = object.__new__(cls)
        for name, leaf in zip(names, leaves, strict=True):
            object.__setattr__(distribution, name, leaf)
        return distribution

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten)
    return cls


class Noise:
    """What every distribution offers; coordinates are independent unless a distribution says otherwise.

    A distribution of one's own is a subclass under `register_distribution` with fields for its parameters, `mean` and
    `cov` among them or as properties, and a method `centred`. A method `log_characteristic` besides
    opens the worlds that need it, and `excess_kurtosis` the bounds of learners from one copy:
    without it the fourth moment is NaN. Parameters may have any shapes; `mean` and `cov` must agree
    on d.

    Attributes:
        mean: `[]` or `[d]`, the known mean.
        cov: covariance Σ as `[]`, `[d]` or `[d, d]`, the most compact form that holds it.
        excess_kurtosis: E n⁴/σ⁴ − 3 of one coordinate, `[]`; NaN where nobody knows.
        characteristic_vanishes: whether the characteristic function has zeros, frequencies that
            the noise wipes out of the data.

    Example:
        >>> import jax, noisy_jax as nj
        >>> @nj.noise.register_distribution
        ... class Logistic(nj.noise.Noise):
        ...     mean: float = 0.0
        ...     cov = jax.numpy.pi**2 / 3
        ...     def centred(self, key, x):
        ...         return x + jax.random.logistic(key, x.shape)
        >>> Logistic().sample(jax.random.key(0), jax.numpy.zeros(3)).shape
        (3,)
    """

    excess_kurtosis = np.nan
    characteristic_vanishes = False
    _spread = "cov"
    """The parameter that must have the mean's dimension; built-in distributions compute `cov` out of it."""

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (list, tuple)):
                object.__setattr__(self, field.name, np.asarray(value))
        self.check(stacked=False)

    def check(self, *, stacked: bool) -> None:
        """Refuses bad parameters, where they are concrete; `stacked` ones lead with an axis T."""
        fields = {field.name for field in dataclasses.fields(self)}
        # A property is written for one distribution: of stacked parameters it is nothing, or wrong.
        names = [name for name in (self._spread, "mean") if name in fields or not stacked]
        values = {name: getattr(self, name) for name in names}
        if "mean" in values:
            self._check_vector("mean", self.mean, stacked)
            check_finite(self._name("mean"), self.mean)
        shapes = {n: list(np.shape(v)) for n, v in values.items() if np.ndim(v) > stacked}
        if len({shape[-1] for shape in shapes.values()}) > 1:
            raise ValueError(
                f"{type(self).__name__} must have parameters of one dimension d, got {shapes}"
            )

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
            x: `[..., d]` clean instances, or `[]` a clean target (then the distribution must be scalar).

        Returns:
            An array of the shape of `x`.
        """
        check_key(key)
        copy = self.centred(key, x)
        return copy + jnp.broadcast_to(self.mean, copy.shape)

    @jax.default_matmul_precision("highest")
    def centred(self, key: chex.PRNGKey, x: chex.Array) -> chex.Array:
        """The same noisy copy with the known mean subtracted: x + n, as a learner is shown it."""
        x = jnp.asarray(x)
        x = x.astype(jnp.promote_types(x.dtype, jnp.float32))
        for field in getattr(self, "__dataclass_fields__", ()):
            check_dimension(self._name(field), getattr(self, field), x.shape)
        # Drawn flat: XLA fills arrays of several small axes with random bits much more slowly.
        draws = self._standard(key, x.size, x.dtype).reshape(x.shape)
        return x + self._coloured(draws)

    def covariance(self, dim: int) -> chex.Array:
        """The full covariance matrix Σ, `[dim, dim]`."""
        check_at_least("dim", dim, 1, "the number of features")
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
        """`[size]` independent draws of the distribution at unit scale, centred."""
        raise NotImplementedError(
            f"{type(self).__name__} must define centred(self, key, x), which draws x + n"
        )

    def _coloured(self, draws: chex.Array) -> chex.Array:
        """Noise of the distribution's covariance from standard draws, `[..., d]` to `[..., d]`."""
        return jnp.broadcast_to(self.scale, draws.shape) * draws


def covariance_times(cov: chex.Array, vectors: chex.Array) -> chex.Array:
    """Σv for Σ given as `[]`, `[d]` or `[d, d]` and vectors `[..., d]`, without filling up Σ.

    Example:
        >>> print(covariance_times(jnp.array([0.5, 2.0]), jnp.ones(2)))
        [0.5 2. ]
    """
    if jnp.ndim(cov) == 2:
        return jnp.matmul(vectors, cov, precision="highest")
    return jnp.broadcast_to(cov, jnp.shape(vectors)) * vectors


def sound_covariance(cov: chex.Array) -> chex.Array:
    """Σ as `[]`, `[d]` or `[d, d]`; NaN where it is none, for traced ones, which no check saw."""
    cov = jnp.asarray(cov, float)
    if cov.ndim < 2:
        return jnp.where(cov >= 0, cov, jnp.nan)
    variances = jnp.linalg.eigvalsh(cov)
    return jnp.where(variances[0] >= -PSD_SLACK * variances[-1], cov, jnp.nan)


@register_distribution
class PerRound:
    """A distribution that changes from round to round: every leaf of `distribution` is stacked along T rounds.

    Args:
        distribution: a distribution built by `jax.vmap` over its parameters, so that each leaf is `[T, ...]`.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> PerRound(jax.vmap(nj.noise.Gaussian)(jnp.linspace(0.1, 0.2, 5))).distribution.cov.shape
        (5,)
    """

    distribution: Noise

    def __post_init__(self):
        if not isinstance(self.distribution, Noise):
            raise ValueError(
                f"PerRound needs a noise distribution whose parameters are stacked, got {given(self.distribution)}; "
                "build it as PerRound(jax.vmap(Gaussian)(covs))"
            )
        self.distribution.check(stacked=True)
        shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(self.distribution)]
        rounds = {shape[:1] for shape in shapes}
        if len(rounds) > 1 or () in rounds:
            raise ValueError(
                f"PerRound needs every parameter stacked along the rounds, got shapes {shapes}; "
                "build it as PerRound(jax.vmap(Gaussian)(covs))"
            )


def check_noise(noise: Noise | PerRound, y_noise: Noise | None, horizon: int | None = None) -> None:
    """Refuses what is no noise distribution, and stacked distributions that do not fit the rounds.

    Args:
        noise: of x. `PerRound` is for several rounds alone.
        y_noise: of y, or `None`.
        horizon: T; `None` for a single round.
    """
    if not isinstance(noise, Noise if horizon is None else Noise | PerRound):
        raise ValueError(
            f"noise must be a distribution such as noise.Gaussian(0.1), got {given(noise)}"
        )
    if y_noise is not None and not isinstance(y_noise, Noise):
        raise ValueError(f"y_noise must be a scalar distribution or None, got {given(y_noise)}")
    shapes = [list(jnp.shape(leaf)) for leaf in jax.tree.leaves(y_noise)]
    if any(shapes):
        raise ValueError(
            f"y_noise must be a scalar distribution, got parameters of shapes {shapes}"
        )
    if isinstance(noise, PerRound):
        shapes = [jnp.shape(leaf) for leaf in jax.tree.leaves(noise.distribution)]
        if {shape[:1] for shape in shapes} != {(horizon,)}:
            raise ValueError(
                f"noise.PerRound needs every parameter stacked along the {horizon} rounds of the "
                f"stream, got shapes {shapes}; build it as PerRound(jax.vmap(Gaussian)(covs))"
            )
