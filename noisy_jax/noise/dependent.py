"""Noise whose variance depends on the instance: factors, counts, and features that are hidden.

A noisy copy x̃ still has the mean x. Its variance is not known, as x is not, but each copy gives an
unbiased estimate of it, E[Σ̂(x̃) | x] = Var(x̃ | x). All that is linear in the covariance of the noise
stays unbiased with Σ̂ in its place: `learners.known_covariance`, `moments.known_covariance` and
`fit`. Worlds and Fourier features need one distribution for all instances, and raise ValueError.

The bounds of `bounds.known_covariance` hold, because ‖x̃x̃ᵀ − Σ̂‖ is at most ‖x̃‖² (for `Attributes`
a multiple of it, which `square_fourth_moment` contains).

Source: corrected least squares (Fuller, 1987) with estimated variances; missing and multiplicative
noise: Loh and Wainwright (2012).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import normal, poisson, uniform
from noisy_jax.noise.base import Noise, parameter, register_distribution
from noisy_jax.validation.numbers import non_negative, within
from noisy_jax.validation.values import ArrayLike, concrete


class Dependent(Noise):
    """Noise whose variance depends on x: `cov` is NaN, and `estimated_cov` takes its place."""

    mean = 0.0
    cov = np.nan
    depends_on_x = True

    def _moments(self, x):
        """E x̃² and E x̃⁴ of each coordinate, `[d]` each."""
        raise NotImplementedError

    def covariance_at(self, x: Any) -> Any:
        """Returns the covariance matrix `[d, d]` of a copy of the clean x `[d]`."""
        return jnp.diag(self._moments(x)[0] - x**2)

    def square_fourth_moment(self, x: Any) -> Any:
        """Returns E‖x̃‖⁴ = (Σ_i E x̃_i²)² + Σ_i Var x̃_i² for a clean x `[d]`, `[]`."""
        second, fourth = self._moments(x)
        return jnp.sum(second) ** 2 + jnp.sum(fourth - second**2)


@register_distribution
class Multiplicative(Dependent):
    """Noise that multiplies each feature by an independent factor: x̃_i = x_i (1 + e_i).

    The e_i are Gaussian with mean zero and known variances v_i. The covariance diag(x_i² v_i) of
    the noise in x̃ depends on x. Its unbiased estimate from one copy is diag(v_i x̃_i²/(1 + v_i)),
    which `noise.observe` puts into `sample.cov`.

    Args:
        variance: v ≥ 0, without a unit: `[]` (the same for all d features) or `[d]`. √v is the
            relative error of a feature, 0.1 for 10%.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> print(nj.noise.Multiplicative(0.25).estimated_cov(jnp.array([1.0, 10.0])))
        [ 0.2 20. ]
    """

    variance: ArrayLike = parameter(non_negative)

    def _copies(self, key, x):
        draws = normal(key, x.shape, x.dtype)
        return x * (1 + jnp.sqrt(jnp.broadcast_to(self.variance, x.shape)) * draws)

    def estimated_cov(self, copy: Any) -> Any:
        """Returns x̃_i² v_i/(1 + v_i), `[d]`, for a copy x̃ `[d]` (see `Noise.estimated_cov`)."""
        v = jnp.broadcast_to(self.variance, copy.shape)
        return copy**2 * (v / (1 + v))

    def _moments(self, x):
        v = jnp.broadcast_to(self.variance, x.shape)
        return x**2 * (1 + v), x**4 * (1 + 6 * v + 3 * v**2)


@register_distribution
class Poisson(Dependent):
    """Counts instead of rates: independent x̃_i with the Poisson distribution of mean x_i ≥ 0.

    The variance of x̃_i is x_i; its unbiased estimate is the count itself, Σ̂ = diag(x̃_i), which
    `noise.observe` puts into `sample.cov`. There are no parameters. Instances must be in the unit
    of the counts, without centring or scaling. A negative rate gives NaN.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> print(nj.noise.Poisson().centred(jax.random.key(0), jnp.array([0.5, 3.0, 100.0])))
        [ 0.  0. 87.]
    """

    def _copies(self, key, x):
        counts = poisson(key, x.reshape(-1), x.dtype).reshape(x.shape)
        return jnp.where(x >= 0, counts, jnp.nan)

    def estimated_cov(self, copy: Any) -> Any:
        """Returns the copy x̃ itself, `[d]` (see `Noise.estimated_cov`)."""
        return copy

    def _moments(self, x):
        return x + x**2, x**4 + 6 * x**3 + 7 * x**2 + x


@register_distribution
class Missing(Dependent):
    """Features that are missing at random, each with a known probability: x̃_i = m_i x_i/p_i.

    m_i is 1 with probability p_i and 0 otherwise, independent for all features and of their values.
    So a missing feature is 0, the others are divided by p_i, and E x̃ = x. The covariance of x̃
    given x depends on x; its unbiased estimate from one copy is Σ̂ = diag((1 − p_i) x̃_i²), which
    `noise.observe` puts into `sample.cov`. It is smallest for features of mean zero. It is noise of
    streams; `nj.table` takes complete rows.

    Args:
        keep: p in (0, 1], probability that a feature is not missing: `[]` (the same for all d
            features) or `[d]`.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> noise = nj.noise.Missing(0.5)
        >>> sample = nj.noise.observe(jax.random.key(1), jnp.ones(5), 1.0, noise, copies=1)
        >>> print(sample.x[0], sample.cov)
        [2. 2. 0. 0. 0.] [2. 2. 0. 0. 0.]
    """

    keep: ArrayLike = parameter(within, 1e-6, 1)

    def _copies(self, key, x):
        draws = uniform(key, (x.size,), x.dtype).reshape(x.shape)
        keep = jnp.broadcast_to(self.keep, x.shape)
        return jnp.where(draws < keep, x, 0) / keep

    def estimated_cov(self, copy: Any) -> Any:
        """Returns (1 − p_i) x̃_i², `[d]`, for a copy x̃ `[d]` (see `Noise.estimated_cov`)."""
        return (1 - jnp.broadcast_to(self.keep, copy.shape)) * copy**2

    def _moments(self, x):
        keep = jnp.broadcast_to(self.keep, x.shape)
        return x**2 / keep, x**4 / keep**3


@register_distribution
class Attributes(Dependent):
    """Only k of the d features are seen, drawn at random: x̃_i = (d/k) x_i if seen, 0 otherwise.

    Each copy draws its own k features, without replacement, so that E x̃ = x. The covariance of x̃
    given x depends on x; its unbiased estimate from one copy is

        Σ̂_ij = (1 − 1/r) x̃_i x̃_j for i ≠ j,   Σ̂_ii = (1 − k/d) x̃_i²,   r = d(k − 1)/(k(d − 1)),

    because E x̃_i x̃_j = r x_i x_j for i ≠ j and E x̃_i² = (d/k) x_i². With k = 1 no product of two
    features is ever seen, and the best linear predictor is not identified. It is noise of streams,
    for learners of linear predictors that read `sample.cov`; `nj.table` takes complete rows.

    Args:
        seen: k, a whole number `[]` with 2 ≤ k ≤ d; else ValueError.

    Source: Cesa-Bianchi, Shalev-Shwartz and Shamir, Efficient Learning with Partially Observed
    Attributes (2010).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> noise = nj.noise.Attributes(2)
        >>> print(noise.centred(jax.random.key(0), jnp.array([1.0, 2.0, 3.0, 4.0])))
        [0. 0. 6. 8.]
    """

    seen: ArrayLike = parameter(
        within, 2, np.inf, scalar=True,
        hint="one feature a round does not show how two depend on each other",
    )  # fmt: skip

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        super().check(stacked=stacked)
        number = concrete(self.seen)
        if number is not None and np.any(number != np.round(number)):
            raise ValueError(f"Attributes.seen must be a whole number, got {self.seen}")

    def _sizes(self, dim: int):
        """k, d and r, as numbers; ValueError if k > d, NaN if k is traced."""
        number = concrete(self.seen)
        if number is not None and np.any(number > dim):
            raise ValueError(f"Attributes.seen must be at most the {dim} features, got {self.seen}")
        k = jnp.where(jnp.asarray(self.seen) <= dim, self.seen, jnp.nan)
        return k, dim, dim * (k - 1) / (k * max(dim - 1, 1))

    def _copies(self, key, x):
        k, d, _ = self._sizes(x.shape[-1] if x.ndim else 1)
        draws = uniform(key, (x.size,)).reshape(x.shape)
        ranks = jnp.argsort(jnp.argsort(draws, axis=-1), axis=-1)
        return (jnp.where(ranks < self.seen, x, 0) * (d / k)).astype(x.dtype)

    def estimated_cov(self, copy: Any) -> Any:
        """Returns Σ̂, `[d, d]`, for a copy x̃ `[d]` (see `Noise.estimated_cov`)."""
        k, d, pairs = self._sizes(copy.shape[-1])
        shares = jnp.where(jnp.eye(d, dtype=bool), 1 - k / d, 1 - 1 / pairs)
        return shares * jnp.outer(copy, copy)

    def covariance_at(self, x: Any) -> Any:
        """Returns the covariance matrix `[d, d]` of a copy of the clean x `[d]`."""
        k, d, pairs = self._sizes(x.size)
        return jnp.where(jnp.eye(d, dtype=bool), d / k - 1, pairs - 1) * jnp.outer(x, x)

    def square_fourth_moment(self, x: Any) -> Any:
        """Returns E‖x̃‖⁴/r² for a clean x `[d]`, `[]`, which bounds E‖x̃x̃ᵀ − Σ̂‖²."""
        k, d, pairs = self._sizes(x.size)
        single, square = jnp.sum(x**4), jnp.sum(x**2) ** 2
        return (d / k) ** 4 * (k / d) * (single + (k - 1) / (d - 1) * (square - single)) / pairs**2
