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
    """Returns two adversaries that one noisy copy a round cannot tell apart.

    (A) x_t = 3 or −1, independently with probability ½ each, without noise. (B) x_t = 1 with noise
    n = ±2, each sign with probability ½. In both y_t = 1, and a copy x_t + n is 3 or −1 with
    probability ½ each, independently in every round. The weights of a learner that reads one copy
    and knows nothing else therefore have the same distribution in both. But the best weights
    differ: for the squared loss w = 1/5 in A and w = 1 in B. By convexity the mean w̄ of the weights
    has regret of at least T max(excess_A(w̄), excess_B(w̄)) in one of the two, linear in T, where
    excess(w) is what w loses in a round more than the best weight (`bounds.one_copy_lower_bound`).
    Two copies tell A from B, because they are equal in A.

    Source: Online Learning of Noisy Data with Kernels, Theorems 3 and 5, Appendices E and F, with
    d = 1. Corrected: Theorem 3 is stated for any compact convex set of competitors. It is false
    for some, such as {0} or [0, 0.1], whose best member is the same in both; it holds for a ball
    where the two minimisers differ.

    Args:
        key: randomness of the instances of A, `[T, 1]`.
        horizon: T ≥ 1 rounds.

    Example:
        >>> import jax
        >>> noiseless, noisy = one_copy_adversaries(jax.random.key(0), horizon=1000)
        >>> print(noiseless.noise.cov, noisy.noise.cov, noisy.stream.x[0], noisy.stream.y[0])
        0.0 4.0 [1.] 1.0
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
