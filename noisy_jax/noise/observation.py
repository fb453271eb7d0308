"""One round as a learner sees it: noisy copies of a clean example."""

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Sample
from noisy_jax.noise.distribution import Noise, check_noise
from noisy_jax.validation import check_at_least, check_axes, check_key


def observe(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    noise: Noise,
    *,
    copies: int,
    y_noise: Noise | None = None,
) -> Sample:
    """One round as a learner sees it: `copies` independent noisy copies, known means subtracted.

    With JAX's default keys, copy v depends on the key and on v alone, so that learners which read
    different numbers of copies see the same noise in the copies that they share.

    Args:
        key: the randomness of this round's noise.
        x: `[d]` clean instance.
        y: `[]` clean target.
        noise: distribution of the noise in each copy of `x`.
        copies: V, at least 1.
        y_noise: scalar distribution of the noise in `y`; none by default.

    Returns:
        `Sample` with `x` of shape `[V, d]` and the distribution's covariance, `None` where it has none.

    Raises:
        ValueError: what is no key, no single round or no distribution of a single round, or no copies.

    Example:
        >>> import noisy_jax as nj
        >>> key, x, y = jax.random.key(0), jnp.zeros(3), jnp.ones(())
        >>> sample = observe(key, x, y, nj.noise.Gaussian(0.1), copies=2)
        >>> sample.x.shape, float(sample.y)
        ((2, 3), 1.0)
    """
    check_key(key)
    check_axes("x", x, "[d]", "; batch rounds with jax.vmap")
    check_axes("y", y, "[]", "; batch rounds with jax.vmap")
    check_noise(noise, y_noise)
    check_at_least("copies", copies, 1, "the number of noisy copies in one round")
    x, y = jnp.asarray(x), jnp.asarray(y)
    x_key, y_key = jax.random.split(key)
    copies = noise.centred(x_key, jnp.broadcast_to(x, (copies, *x.shape)))
    if y_noise is not None:
        y = y_noise.centred(y_key, y)
    return Sample(copies, y, noise.cov)
