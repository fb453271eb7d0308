"""Noise whose variance depends on the instance: missing and hidden features, factors, counts.

A noisy copy x̃ still has the mean x. Its variance is not known, as x is not, but each copy gives an
unbiased estimate of it, E[Σ̂(x̃) | x] = Var(x̃ | x). All that is linear in the covariance of the noise
stays unbiased with Σ̂ in its place: `learners.known_covariance`, `moments.known_covariance` and
`fit`. Worlds and Fourier features need one distribution for all instances, and raise ValueError.

The bounds of `bounds.known_covariance` hold, because ‖x̃x̃ᵀ − Σ̂‖ is at most ‖x̃‖² (for `Attributes`
a multiple of it, which `square_fourth_moment` contains).

Source: corrected least squares (Fuller, 1987) with estimated variances; missing and multiplicative
noise: Loh and Wainwright (2012).
"""

from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.noise.base import Noise, register_distribution
from noisy_jax.validation import check_dimension, concrete, non_negative, within


class Dependent(Noise):
    """Noise whose variance depends on x: `cov` is NaN, and `estimated_cov` takes its place."""

    mean = 0.0
    cov = np.nan
    depends_on_x = True

    def read_table(self, x: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Noisy copies `[n, V, d]` of mean x and their covariances `[n, d, d]`, from a table.

        Args:
            x: `[n, V, d]` what was measured, in float64.
            names: of the d columns, for messages.
        """
        self._check_dimension(x.shape[2:])
        self._check_table(x, names)
        return x, self._estimated(x)

    def _check_dimension(self, shape: tuple[int, ...]) -> None:
        for name in self._fields():
            check_dimension(f"{type(self).__name__}.{name}", getattr(self, name), shape)

    def _check_table(self, x: np.ndarray, names: Sequence[str]) -> None:
        """Raises ValueError if a table `[n, V, d]` is wrong; for `_Hidden`, of what is seen."""
        for row, _, column in np.argwhere(np.isnan(x)).tolist():
            raise ValueError(f"row {row} of {names[column]!r} is missing: drop or impute it first")

    def _estimated(self, x):
        """The mean of `estimated_cov` over the copies, `[n, d, d]`."""
        with jax.enable_x64(True):
            cov = np.asarray(jax.vmap(jax.vmap(self.estimated_cov))(x)).mean(axis=1)
        return cov if cov.ndim == 3 else cov[:, :, None] * np.eye(x.shape[2])

    def _moments(self, x):
        """E x̃² and E x̃⁴ of each coordinate, `[d]` each."""
        raise NotImplementedError

    def covariance_at(self, x):
        """Var(x̃ | x), `[d, d]` (see `Noise.covariance_at`)."""
        return jnp.diag(self._moments(x)[0] - x**2)

    def square_fourth_moment(self, x):
        """(Σ_i E x̃_i²)² + Σ_i Var x̃_i² (see `Noise.square_fourth_moment`)."""
        second, fourth = self._moments(x)
        return jnp.sum(second) ** 2 + jnp.sum(fourth - second**2)


class _Hidden(Dependent):
    """Noise that hides features, which a table holds as NaN."""

    def read_table(self, x, names):
        """As `Dependent.read_table`; NaN are filled with the mean of what is seen of a column."""
        self._check_dimension(x.shape[2:])
        seen = ~np.isnan(x)
        for column in np.flatnonzero(~seen.any(axis=(0, 1))).tolist():
            raise ValueError(f"column {names[column]!r} has no value: drop it")
        self._check_table(seen, names)
        center = np.nanmean(x, axis=(0, 1))
        copies = np.where(seen, x - center, 0) / np.asarray(self._share(x.shape[2]), np.float64)
        return center + copies, self._estimated(copies)

    def _share(self, dim):
        """Probability that a feature is seen, `[]` or `[d]`."""
        raise NotImplementedError


@register_distribution
class Missing(_Hidden):
    """Features that are missing at random, each with a known probability: x̃_i = m_i x_i/p_i.

    m_i is 1 with probability p_i and 0 otherwise, independent for all features and of their values.
    Missing features are 0, the others are divided by p_i, so that E x̃ = x. The unbiased estimate of
    the variance is Σ̂ = diag((1 − p_i) x̃_i²). It is smallest for features of mean zero, so that
    `observations.from_arrays`, which reads NaN as missing, puts the means c of the columns there,
    x̃_i = c_i + m_i (x_i − c_i)/p_i. The uncorrected fit is for such x̃, not for rows only filled.

    Args:
        keep: p in (0, 1], `[]` (the same for all d features) or `[d]`, probability that a feature
            is not missing. If it is not known, take the share that is observed in the table,
            `1 - np.isnan(x).mean(axis=0)`; intervals of `fit` do not contain its uncertainty.

    Example:
        >>> import jax, noisy_jax as nj
        >>> sample = nj.noise.observe(
        ...     jax.random.key(1), jax.numpy.ones(5), 1.0, Missing(0.5), copies=1)
        >>> print(sample.x[0], sample.cov)
        [2. 2. 0. 0. 0.] [2. 2. 0. 0. 0.]
    """

    keep: chex.Numeric

    _spread = "keep"

    def check(self, *, stacked):
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        super().check(stacked=stacked)
        self._parse("keep", within, stacked, 1e-6, 1)

    def _copies(self, key, x):
        draws = jax.random.uniform(key, (x.size,), x.dtype).reshape(x.shape)
        keep = jnp.broadcast_to(self.keep, x.shape)
        return jnp.where(draws < keep, x, 0) / keep

    def estimated_cov(self, copy):
        """(1 − p_i) x̃_i², `[d]` (see `Noise.estimated_cov`)."""
        return (1 - jnp.broadcast_to(self.keep, copy.shape)) * copy**2

    def _moments(self, x):
        keep = jnp.broadcast_to(self.keep, x.shape)
        return x**2 / keep, x**4 / keep**3

    def _share(self, dim):
        return self.keep

    def _check_table(self, x, names):
        found, keep = x.mean(axis=(0, 1)), np.broadcast_to(self.keep, len(names))
        error = np.sqrt(keep * (1 - keep) / x[..., 0].size)
        for j in np.flatnonzero(np.abs(found - keep) > 6 * error + 1e-6).tolist():
            raise ValueError(
                f"noise.Missing says that a share {keep[j]:.4g} of {names[j]!r} is observed, but "
                f"it is {found[j]:.4g}: missing values must be NaN, and keep their true share"
            )


@register_distribution
class Multiplicative(Dependent):
    """Noise that multiplies each feature by an independent factor: x̃_i = x_i (1 + e_i).

    The e_i are Gaussian with mean zero and known variances v_i. The unbiased estimate of the
    variance is Σ̂ = diag(x̃_i² v_i/(1 + v_i)).

    Args:
        variance: v ≥ 0, `[]` (the same for all d features) or `[d]`; the square of the relative
            error.

    Example:
        >>> print(Multiplicative(0.25).estimated_cov(jnp.array([1.0, 10.0])))
        [ 0.2 20. ]
    """

    variance: chex.Numeric

    _spread = "variance"

    def check(self, *, stacked):
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        super().check(stacked=stacked)
        self._parse("variance", non_negative, stacked)

    def _copies(self, key, x):
        draws = jax.random.normal(key, (x.size,), x.dtype).reshape(x.shape)
        return x * (1 + jnp.sqrt(jnp.broadcast_to(self.variance, x.shape)) * draws)

    def estimated_cov(self, copy):
        """x̃_i² v_i/(1 + v_i), `[d]` (see `Noise.estimated_cov`)."""
        v = jnp.broadcast_to(self.variance, copy.shape)
        return copy**2 * (v / (1 + v))

    def _moments(self, x):
        v = jnp.broadcast_to(self.variance, x.shape)
        return x**2 * (1 + v), x**4 * (1 + 6 * v + 3 * v**2)


@register_distribution
class Poisson(Dependent):
    """Counts instead of rates: independent x̃_i with the Poisson distribution of mean x_i ≥ 0.

    The unbiased estimate of the variance x_i is the count itself, Σ̂ = diag(x̃_i). Instances must be
    in the units of the counts, without centring or scaling. A negative rate gives NaN.

    Example:
        >>> import jax, noisy_jax as nj
        >>> print(Poisson().centred(jax.random.key(0), jax.numpy.array([0.5, 3.0, 100.0])))
        [ 0.  0. 87.]
    """

    def _check_table(self, x, names):
        super()._check_table(x, names)
        for row, _, column in np.argwhere((x < 0) | (x != np.round(x))).tolist():
            raise ValueError(
                f"noise.Poisson is for counts, but {names[column]!r} is not a count in row {row}: "
                "give counts as they are, without scaling"
            )

    def _copies(self, key, x):
        counts = jax.random.poisson(key, x.reshape(-1)).reshape(x.shape).astype(x.dtype)
        return jnp.where(x >= 0, counts, jnp.nan)

    def estimated_cov(self, copy):
        """x̃_i, `[d]` (see `Noise.estimated_cov`)."""
        return copy

    def _moments(self, x):
        return x + x**2, x**4 + 6 * x**3 + 7 * x**2 + x


@register_distribution
class Attributes(_Hidden):
    """Only k of the d features are seen, drawn at random: x̃_i = (d/k) x_i if seen, 0 otherwise.

    Each copy draws its own features, without replacement. With the share of pairs
    r = d(k − 1)/(k(d − 1)), E x̃_i x̃_j = r x_i x_j for i ≠ j and E x̃_i² = (d/k) x_i², so that
    Σ̂_ij = (1 − 1/r) x̃_i x̃_j and Σ̂_ii = (1 − k/d) x̃_i² is the unbiased estimate of the variance.
    One feature shows no product of two: with k = 1 the best linear predictor is not identified.

    Args:
        seen: k ≥ 2, `[]`, the number of features that are seen, at most d.

    Source: Cesa-Bianchi, Shalev-Shwartz and Shamir, Efficient Learning with Partially Observed
    Attributes (2010).

    Example:
        >>> import jax
        >>> print(Attributes(2).centred(jax.random.key(0), jax.numpy.array([1.0, 2.0, 3.0, 4.0])))
        [0. 0. 6. 8.]
    """

    seen: chex.Numeric

    def check(self, *, stacked):
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        super().check(stacked=stacked)
        hint = "one feature a round does not show how two depend on each other"
        self._parse_scalar("seen", within, stacked, 2, np.inf, hint=hint)
        seen = concrete(self.seen)
        if seen is not None and np.any(seen != np.round(seen)):
            raise ValueError(f"Attributes.seen must be a whole number, got {self.seen}")

    def _sizes(self, dim: int):
        """k, d and r, as numbers; ValueError if k > d, NaN if k is traced."""
        seen = concrete(self.seen)
        if seen is not None and np.any(seen > dim):
            raise ValueError(f"Attributes.seen must be at most the {dim} features, got {self.seen}")
        k = jnp.where(jnp.asarray(self.seen) <= dim, self.seen, jnp.nan)
        return k, dim, dim * (k - 1) / (k * max(dim - 1, 1))

    def _copies(self, key, x):
        k, d, _ = self._sizes(x.shape[-1] if x.ndim else 1)
        draws = jax.random.uniform(key, (x.size,)).reshape(x.shape)
        ranks = jnp.argsort(jnp.argsort(draws, axis=-1), axis=-1)
        return (jnp.where(ranks < self.seen, x, 0) * (d / k)).astype(x.dtype)

    def estimated_cov(self, copy):
        """Σ̂, `[d, d]` (see `Noise.estimated_cov`)."""
        k, d, pairs = self._sizes(copy.shape[-1])
        shares = jnp.where(jnp.eye(d, dtype=bool), 1 - k / d, 1 - 1 / pairs)
        return shares * jnp.outer(copy, copy)

    def _share(self, dim):
        k, d, _ = self._sizes(dim)
        return k / d

    def _check_table(self, x, names):
        self._sizes(len(names))
        for row, copy in np.argwhere(x.sum(axis=2) != self.seen).tolist():
            raise ValueError(
                f"noise.Attributes says that {self.seen} features are seen, but row {row} has "
                f"{x[row, copy].sum()} values that are not NaN"
            )

    def covariance_at(self, x):
        """Var(x̃ | x), `[d, d]` (see `Noise.covariance_at`)."""
        k, d, pairs = self._sizes(x.size)
        return jnp.where(jnp.eye(d, dtype=bool), d / k - 1, pairs - 1) * jnp.outer(x, x)

    def square_fourth_moment(self, x):
        """E‖x̃‖⁴/r², which bounds E‖x̃x̃ᵀ − Σ̂‖² (see `Noise.square_fourth_moment`)."""
        k, d, pairs = self._sizes(x.size)
        single, square = jnp.sum(x**4), jnp.sum(x**2) ** 2
        return (d / k) ** 4 * (k / d) * (single + (k - 1) / (d - 1) * (square - single)) / pairs**2
