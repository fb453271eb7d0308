"""One round as a learner sees it: noisy copies of a clean example."""

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Sample
from noisy_jax.noise.law import Noise
from noisy_jax.validation import check_at_least


def observe(
    key: chex.PRNGKey,
    x: chex.Array,
    y: chex.Array,
    noise: Noise,
    *,
    views: int,
    y_noise: Noise | None = None,
) -> Sample:
    """One round as a learner sees it: `views` independent noisy copies, known means subtracted.

    With JAX's default keys, view v depends on the key and on v alone, so that learners which read
    different numbers of views see the same noise in the views that they share.

    Args:
        key: the randomness of this round's noise.
        x: `[d]` clean instance.
        y: `[]` clean target.
        noise: law of the noise in each copy of `x`.
        views: V, at least 1.
        y_noise: scalar law of the noise in `y`; none by default.

    Returns:
        `Sample` with `x` of shape `[V, d]` and the law's covariance, `None` where it has none.
    """
    chex.assert_rank([x, y], [1, 0])
    check_at_least("views", views, 1, "the number of noisy copies in one round")
    x_key, y_key = jax.random.split(key)
    copies = noise.centred(x_key, jnp.broadcast_to(x, (views, *x.shape)))
    if y_noise is not None:
        y = y_noise.centred(y_key, y)
    return Sample(copies, y, noise.cov)
