"""Noise of targets: correlated with the noise in the features, and flips of class labels."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.draws import uniform
from noisy_jax.noise.base import Noise, register_distribution
from noisy_jax.validation.arrays import check_axes, check_shape, real
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import number, positive, sound_labels, within
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import Array, collected


@register_distribution
class Correlated(Noise):
    """Noise in y that depends on the noise n in the first copy of x: n^y = ⟨a, n⟩ + e.

    An example is one instrument that measures both. Give it as `y_noise` to `nj.rollout` or
    `noise.observe`; `sample.cross_cov` is then Cov(n, n^y) = Σa `[d]`, with the covariance Σ of n.
    `learners.two_copies`, `learners.known_covariance`, `learners.exponentiated_gradient` and
    `learners.corrected_ftrl` with linear features correct for it. `learners.uncorrected` runs
    without a correction. A rollout of a learner whose `needs.targets` is not "any" raises
    ValueError.

    Args:
        slopes: a, `[d]`, in units of y per unit of x.
        rest: distribution of e with scalar parameters, independent of n; `None`, the default, for
            e = 0.

    Source: Fuller, Measurement Error Models (1987), for regression with correlated errors.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> y_noise = nj.noise.Correlated(jnp.array([1.0, 0.0]))
        >>> sample = nj.noise.observe(
        ...     jax.random.key(0), jnp.zeros(2), 0.0, nj.noise.Rademacher(0.5), copies=1,
        ...     y_noise=y_noise)
        >>> print(sample.x[0, 0] == sample.y, sample.cross_cov)
        True [0.25 0.  ]
    """

    slopes: Array
    rest: Noise | None = None

    mean = 0.0

    @property
    def cov(self):
        """Raises ValueError: it depends on the noise in x."""
        raise ValueError("noise.Correlated is noise of y: give it as y_noise")

    def centred(self, key: jax.Array, x: Any) -> Any:
        """Raises ValueError: `observe` draws it together with the noise in x."""
        return self.cov

    def check(self, *, stacked: bool) -> None:
        """Raises ValueError if parameters are wrong (see `Noise.check`)."""
        name = "Correlated.slopes"
        slopes = real(name, self.slopes)
        check_axes(name, slopes, "[T, d]" if stacked else "[d]")
        object.__setattr__(self, "slopes", number(name, slopes, shape=None))
        if self.rest is not None:
            instance("Correlated.rest", self.rest, Noise, "noise.Gaussian(0.1) is one")


@register_distribution
class Flip(Noise):
    """Labels y = ±1 that are flipped to −y with known probabilities: a distribution for `y_noise`.

    A label y = +1 is seen as ỹ = −1 with probability ρ₊, and y = −1 as +1 with probability ρ₋. This
    is not noise of mean zero: E ỹ = (1 − ρ₊ − ρ₋)y + ρ₋ − ρ₊. It has no covariance, as the variance
    of ỹ depends on y: `bounds.moments` and its use as the noise of x raise ValueError.

    - Learners with a loss of the margin: give them the loss of `losses.flipped`.
    - Learners of the squared loss are biased under flips: their rollouts raise ValueError.
    - Tables: use `nj.methods.Logistic(flips=…)`; for a linear fit under equal rates ρ, divide the
      noisy labels by 1 − 2ρ. For columns of x there is `noise.Misclassified`.

    Args:
        rate: (ρ₊, ρ₋) ≥ 0 with ρ₊ + ρ₋ < 1, or one number ρ in [0, ½) for both. It is kept as a
            pair.

    Source: Natarajan, Dhillon, Ravikumar and Tewari, Learning with noisy labels (2013).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> flip = nj.noise.Flip((0.3, 0.1))
        >>> keys = jax.random.split(jax.random.key(0), 50_000)
        >>> for label in (1.0, -1.0):
        ...     noisy = jax.vmap(flip.sample, (0, None))(keys, label)
        ...     print(f"{jnp.mean(noisy != label):.2f}")
        0.30
        0.10
    """

    rate: Any

    mean = 0.0

    def __post_init__(self) -> None:
        rate = collected(self.rate)
        pair = tuple(rate) if isinstance(rate, (tuple, list)) or np.ndim(rate) else (rate, rate)
        if len(pair) != 2:
            raise ValueError(f"Flip.rate must be one number or a pair, got {given(rate)}")
        ones, others = (within("Flip.rate", share, 0, 1) for share in pair)
        hint = "labels flipped as often as kept hold no information"
        left = positive("1 − ρ₊ − ρ₋ of Flip.rate", 1 - ones - others, hint)
        object.__setattr__(self, "rate", (ones + 0 * left, others + 0 * left))  # NaN if that is

    @property
    def cov(self):
        """Raises ValueError."""
        raise ValueError("noise.Flip has no covariance: it is y_noise, for losses.flipped")

    def centred(self, key: jax.Array, x: Array) -> jax.Array:
        """Returns the noisy label, x or −x, of one label x, `[]`."""
        check_shape("x", x, (), "one label (noise.Flip is for y_noise)")
        y = jnp.asarray(sound_labels(x), float)
        rate = jnp.where(y > 0, *self.rate)
        flips = uniform(parsed_key(key)) < rate
        return jnp.where(flips, -y, y) + 0 * rate  # NaN if the rate is
