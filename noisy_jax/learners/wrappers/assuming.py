"""A learner that takes the noise to have a covariance of one's own."""

import chex
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_learner, unrolled
from noisy_jax.matrices import check_covariance
from noisy_jax.noise import Gaussian
from noisy_jax.noise.distribution import register_distribution


@register_distribution
class Assumed(Gaussian):
    """Noise that `assuming` tells a learner of; other noise in a rollout is no cause to warn."""


def assuming(learner: Learner, cov: chex.Numeric) -> Learner:
    """The learner that is told this covariance of the noise in every round, whatever it is.

    For an estimate in place of a covariance that nobody knows, and to see what a wrong one costs:
    with `known_covariance`, zero makes it `uncorrected`, and Σ/2 is the paper's misprint.

    Args:
        learner: any learner that reads `sample.cov`.
        cov: Σ as `[]`, `[d]` or `[d, d]`, such as the `cov` of `noise.estimate_covariance`.

    Returns:
        A `Learner` built for `noise.Gaussian(cov)`, unless the given one was built for a distribution
        already, which stays in it; in all else as that one.

    Raises:
        ValueError: what is no learner or covariance.

    Example:
        >>> import noisy_jax as nj
        >>> informed = nj.learners.known_covariance(radius=1.0, learning_rate=0.05)
        >>> assuming(informed, 0.1).copies
        1
    """
    check_learner(learner)
    check_covariance("cov", cov)
    cov = jnp.asarray(cov, float)

    def told(samples: Sample) -> Sample:
        return samples._replace(cov=jnp.broadcast_to(cov, jnp.shape(samples.y) + cov.shape))

    def step(state, sample, key):
        return learner.step(state, told(sample), key)

    def unroll(state, samples, x, keys):
        return unrolled(learner)(state, told(samples), x, keys)

    noise = Assumed(cov) if learner.noise is None else learner.noise
    return learner._replace(step=step, unroll=unroll, noise=noise)
