"""Noise whose variance depends on the instance: factors and counts; and see `hidden.py`.

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
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import normal, poisson
from noisy_jax.noise.base import Noise, register_distribution
from noisy_jax.validation import non_negative


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

    def _check_table(self, x: np.ndarray, names: Sequence[str]) -> None:
        """Raises ValueError if values of a table `[n, V, d]` cannot be what they should."""

    def _estimated(self, x):
        """The mean of `estimated_cov` over the copies, `[n, d, d]`."""
        with jax.enable_x64(True):
            cov = np.asarray(jax.vmap(jax.vmap(self.estimated_cov))(x)).mean(axis=1)
        return cov if cov.ndim == 3 else cov[:, :, None] * np.eye(x.shape[2])

    def _moments(self, x):
        """E x̃² and E x̃⁴ of each coordinate, `[d]` each."""
        raise NotImplementedError

    def covariance_at(self, x: Any) -> Any:
        """Var(x̃ | x), `[d, d]` (see `Noise.covariance_at`)."""
        return jnp.diag(self._moments(x)[0] - x**2)

    def square_fourth_moment(self, x: Any) -> Any:
        """(Σ_i E x̃_i²)² + Σ_i Var x̃_i² (see `Noise.square_fourth_moment`)."""
        second, fourth = self._moments(x)
        return jnp.sum(second) ** 2 + jnp.sum(fourth - second**2)


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

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        super().check(stacked=stacked)
        self._parse("variance", non_negative, stacked)

    def _copies(self, key, x):
        draws = normal(key, x.shape, x.dtype)
        return x * (1 + jnp.sqrt(jnp.broadcast_to(self.variance, x.shape)) * draws)

    def estimated_cov(self, copy: Any) -> Any:
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
        for row, _, column in np.argwhere((x < 0) | (x != np.round(x))).tolist():
            raise ValueError(
                f"noise.Poisson is for counts, but {names[column]!r} is not a count in row {row}: "
                "give counts as they are, without scaling"
            )

    def _copies(self, key, x):
        counts = poisson(key, x.reshape(-1), x.dtype).reshape(x.shape)
        return jnp.where(x >= 0, counts, jnp.nan)

    def estimated_cov(self, copy: Any) -> Any:
        """x̃_i, `[d]` (see `Noise.estimated_cov`)."""
        return copy

    def _moments(self, x):
        return x + x**2, x**4 + 6 * x**3 + 7 * x**2 + x
