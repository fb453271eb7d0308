"""Two adversaries that a learner from one noisy copy cannot tell apart."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import Stream
from noisy_jax.draws import rademacher
from noisy_jax.noise import Gaussian, Noise, Rademacher
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.numbers import whole


class Adversary(NamedTuple):
    """The clean rounds and the noise that an adversary chooses in advance.

    Attributes:
        stream: clean rounds.
        noise: distribution of the noise in each copy of an instance.
    """

    stream: Stream
    noise: Noise


class OneCopyAdversaries(NamedTuple):
    """The adversaries A, `noiseless`, and B, `noisy`, of `one_copy_adversaries`."""

    noiseless: Adversary
    noisy: Adversary


def one_copy_adversaries(key: jax.Array, horizon: int) -> OneCopyAdversaries:
    """Returns two adversaries, A and B, that one noisy copy a round cannot tell apart.

    An adversary chooses clean rounds and a distribution of the noise in advance. In A the instances
    are x_t = 3 or −1, with probability ½ each, without noise. In B they are x_t = 1, with noise ±2,
    each sign with probability ½. In both y_t = 1, and a copy is 3 or −1 with probability ½ each, so
    that the weights of a learner that reads one copy a round, and knows nothing else, have the same
    distribution. But the best weights differ: for the squared loss 1/5 in A and 1 in B. So the
    expected regret of this learner in one of them grows like T (`bounds.one_copy_lower_bound` says
    how fast). Two copies tell A from B, because they are equal in A.

    Args:
        key: a key of `jax.random.key`, for the instances of A.
        horizon: T ≥ 1, number of rounds.

    Returns:
        A named tuple `(noiseless, noisy)`, A and B. Each is a named tuple of `stream`, a `Stream`
        with x `[T, 1]` and y `[T]`, and `noise`, a distribution that `rollout` takes.

    Source: Online Learning of Noisy Data with Kernels, Theorems 3 and 5, Appendices E and F, with
    d = 1. Corrected: Theorem 3 is stated for any compact convex set of competitors. It is false for
    some, such as {0} or [0, 0.1], whose best member is the same in both; it holds for a ball where
    the two minimisers differ.

    Example:
        >>> import jax, noisy_jax as nj
        >>> noiseless, noisy = nj.streams.one_copy_adversaries(jax.random.key(0), horizon=1000)
        >>> print(noiseless.noise.cov, noisy.noise.cov, noisy.stream.x[0], noisy.stream.y[0])
        0.0 4.0 [1.] 1.0
        >>> learner = nj.learners.uncorrected(radius=1.5)
        >>> run = nj.rollout(learner, noisy.stream, noisy.noise, jax.random.key(1))
    """
    key = parsed_key(key)
    horizon = whole("horizon", horizon)
    mean = jnp.ones((horizon, 1))
    signs = rademacher(key, mean.shape, mean.dtype)
    labels = jnp.ones(horizon)
    return OneCopyAdversaries(
        noiseless=Adversary(Stream(mean + 2 * signs, labels), Gaussian(0.0)),
        noisy=Adversary(Stream(mean, labels), Rademacher(2.0)),
    )
