"""Noise in the target that is correlated with the noise in the features."""

from typing import Any

import chex

from noisy_jax.noise.base import Noise, register_distribution
from noisy_jax.validation import check_axes, instance


@register_distribution
class Correlated(Noise):
    """Noise in y that depends on the noise n in the first copy of x: n^y = ⟨a, n⟩ + e.

    An example is one instrument that measures both. `Sample.cross_cov` is Cov(n, n^y) = Σa, `[d]`.
    `learners.two_copies`, `learners.known_covariance` and the moments of linear features correct
    for it; other learners raise ValueError.

    Args:
        slopes: a, `[d]`.
        rest: scalar distribution of e, independent of n; none by default.

    Source: Fuller, Measurement Error Models (1987), for regression with correlated errors.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> sample = nj.noise.observe(
        ...     jax.random.key(0), jnp.zeros(2), 0.0, nj.noise.Rademacher(0.5), copies=1,
        ...     y_noise=Correlated(jnp.array([1.0, 0.0])))
        >>> print(sample.x[0, 0] == sample.y, sample.cross_cov)
        True [0.25 0.  ]
    """

    slopes: chex.Array
    rest: Noise | None = None

    mean = 0.0

    @property
    def cov(self):
        """Raises ValueError: it depends on the noise in x."""
        raise ValueError("noise.Correlated is noise of y: give it as y_noise")

    def centred(self, key: chex.PRNGKey, x: Any) -> Any:
        """Raises ValueError: `observe` draws it together with the noise in x."""
        return self.cov

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        check_axes("Correlated.slopes", self.slopes, "[T, d]" if stacked else "[d]")
        if self.rest is not None:
            instance("Correlated.rest", self.rest, Noise, "noise.Gaussian(0.1) is one")
