"""A learner that is told a fixed noise covariance."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_learner, estimates_through, unrolled
from noisy_jax.learners.wrappers.dependence import depends
from noisy_jax.linalg.matrices import check_covariance
from noisy_jax.noise import Gaussian
from noisy_jax.noise.base import register_distribution
from noisy_jax.validation.values import ArrayLike, collected


@register_distribution
class Assumed(Gaussian):
    """The noise that `assuming` tells a learner; `rollout` does not warn if the noise differs."""

    def __repr__(self) -> str:
        """Returns the text of the distribution, for messages."""
        return f"Gaussian(cov={self.cov!r}, mean={self.mean!r})"


def assuming(learner: Learner, cov: ArrayLike) -> Learner:
    """Returns the given learner, told one fixed noise covariance instead of the true one.

    Use it with an estimated covariance, where the true one is unknown, or to measure the effect of
    a wrong one. `sample.cov` is replaced in each round; `rollout` does not warn that the noise
    differs. With `learners.known_covariance` and the true covariance Σ, telling 0 gives
    `uncorrected`, and telling Σ/2 gives the formula that the paper prints.

    Args:
        learner: a learner that reads `sample.cov`. If it does not, its `init`, which `rollout`
            calls, raises ValueError.
        cov: the covariance to tell, in the squared unit of x: `[]` (the same variance for all
            features), `[d]` (variances) or `[d, d]`; positive semidefinite. An example is the `cov`
            of `noise.estimate_covariance`.

    Returns:
        A `Learner` with the same states and predictions. Its `needs.noise` is
        `noise.Gaussian(cov)`, unless the given learner was built for a distribution.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream, noise = nj.streams.linear(jax.random.key(0), 10_000, 3), nj.noise.Gaussian(0.5)
        >>> learner = nj.learners.known_covariance(radius=1.0)
        >>> for cov in (0.0, 0.4, 0.5):
        ...     told = nj.wrappers.assuming(learner, cov)
        ...     run = nj.rollout(told, stream, noise, jax.random.key(1))
        ...     loss = jnp.mean((run.predictions - stream.y) ** 2)
        ...     print(f"told {cov}: mean squared loss {loss:.2f}")
        told 0.0: mean squared loss 0.10
        told 0.4: mean squared loss 0.03
        told 0.5: mean squared loss 0.01
    """
    check_learner(learner)
    cov = collected(cov)
    check_covariance("cov", cov)
    cov = jnp.asarray(cov, float)

    def init(dim: int):
        state = learner.init(dim)

        def after(cov):
            sample = Sample(jnp.zeros((learner.needs.copies, dim)), jnp.ones(()), cov)
            return learner.step(state, sample, jax.random.key(0))

        if not any(jax.tree.leaves(depends(after, cov))):
            raise ValueError(
                "assuming needs a learner that reads sample.cov, such as known_covariance, but "
                "this one ignores it: build its world, or the learner, for that covariance instead"
            )
        return state

    def told(samples: Sample) -> Sample:
        return samples._replace(cov=jnp.broadcast_to(cov, jnp.shape(samples.y) + cov.shape))

    def step(state, sample, key):
        return learner.step(state, told(sample), key)

    def unroll(state, samples, x, keys):
        return unrolled(learner)(state, told(samples), x, keys)

    needs = learner.needs
    if needs.noise is None:
        needs = needs._replace(noise=Assumed(cov))
    clean_estimates = estimates_through(
        learner, lambda state, sample, key: (state, told(sample), key)
    )
    return learner._replace(
        init=init, step=step, unroll=unroll, needs=needs, clean_estimates=clean_estimates
    )
