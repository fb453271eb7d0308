"""One round as a learner sees it: noisy copies of a clean example."""

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Sample
from noisy_jax.noise.base import Noise, covariance_times
from noisy_jax.noise.correlated import Correlated
from noisy_jax.noise.rounds import check_noise
from noisy_jax.validation import check_axes, check_dimension, check_key, whole


def observe(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    noise: Noise,
    *,
    copies: int,
    y_noise: Noise | None = None,
) -> Sample:
    """One round as a learner sees it: independent noisy copies, with known means subtracted.

    With JAX's default keys, copy v depends on the key and on v only: learners that read different
    numbers of copies see the same noise in the copies that they share.

    Args:
        key: the randomness of this round's noise.
        x: `[d]` clean instance.
        y: `[]` clean target.
        noise: distribution of the noise in each copy of `x`.
        copies: V ≥ 1, how many noisy copies to draw.
        y_noise: scalar distribution of the noise in `y`, or `noise.Correlated`; none by default.

    Returns:
        `Sample` with `x` of shape `[V, d]`, the covariance of the noise (estimated from the first
        copy, if it depends on x), and its covariance with the noise in y if they are correlated.

    Example:
        >>> import noisy_jax as nj
        >>> key, x = jax.random.key(0), jnp.zeros(2)
        >>> sample = observe(key, x, 1.0, nj.noise.Rademacher(0.5), copies=3)
        >>> print(abs(sample.x), sample.cov)
        [[0.5 0.5]
         [0.5 0.5]
         [0.5 0.5]] 0.25
    """
    check_key(key)
    check_axes("x", x, "[d]", "; batch rounds with jax.vmap")
    check_axes("y", y, "[]", "; batch rounds with jax.vmap")
    check_noise(noise, y_noise)
    copies = whole("copies", copies)
    x, y = jnp.asarray(x), jnp.asarray(y)
    x_key, y_key = jax.random.split(key)
    shown = noise.centred(x_key, jnp.broadcast_to(x, (copies, *x.shape)))
    cov, cross = noise.estimated_cov(shown[0]), None
    if isinstance(y_noise, Correlated):
        check_dimension("y_noise.slopes", y_noise.slopes, x.shape)
        y = y + jnp.vdot(y_noise.slopes, shown[0] - x)
        cross = covariance_times(cov, y_noise.slopes)
        y_noise = y_noise.rest
    if y_noise is not None:
        y = y_noise.centred(y_key, y)
    return Sample(shown, y, cov, cross)
