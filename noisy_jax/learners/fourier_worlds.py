"""Kernel learning from two noisy copies on random features, in linear time and constant memory.

    g̃_t = 2(⟨w_t, N(x̃'_t)⟩ − ỹ_t),   w_{t+1} = P(w_t − η g̃_t N(x̃_t)),   prediction ⟨w_t, C(x_t)⟩

N is the feature map of noisy copies and C that of clean instances, with E N(x + n) = C(x) for every
x. This is linear regression from two noisy copies in R^D. As D grows it converges to
`parallel_worlds`. For every fixed D it has its own guarantee, against all ⟨v, C(·)⟩ with ‖v‖ ≤ W,
because ‖N‖² = R² exactly.

Source: the Fourier form of Learning from Noisy Data under Distributional Assumptions, Algorithm 2;
not in the papers.
"""

import chex
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.engine import Round, expansion, squared_loss, weight_vector
from noisy_jax.worlds import FourierWorld
from noisy_jax.worlds.fourier import check_features


def fourier_worlds(
    features: FourierWorld,
    *,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule | None = None,
    block: int = 4,
) -> Learner:
    """Online regression on random features from two noisy copies under known noise.

    Args:
        features: noisy and clean feature maps, from `worlds.fourier`.
        radius: W > 0, norm of the largest weights that compete.
        learning_rate: adaptive by default; η > 0, or a schedule, as in `parallel_worlds`.
        block: number of rounds that `unroll` plays at once.

    Returns:
        A `Learner` of 2 copies with O(D) time a round and O(D) memory, and with unbiased readings.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise)
        >>> features = nj.worlds.fourier(jax.random.key(2), world, num_features=64)
        >>> learner = fourier_worlds(features, radius=2.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(learner, stream, noise, jax.random.key(1))
        >>> loss = (run.predictions - stream.y) ** 2
        >>> print(f"mean squared loss {loss.mean():.2f}, zero's {jnp.mean(stream.y**2):.2f}")
        mean squared loss 0.03, zero's 0.20
    """
    check_features(features)

    def read(sample: Sample, key: chex.PRNGKey) -> Round:
        del key  # it draws nothing
        copies = jnp.asarray(features.noisy(sample.x[:2]))
        return Round(copies[0], copies[1:], sample.y)

    return expansion(
        read=read,
        rule=squared_loss(learning_rate, radius=radius),
        memory=weight_vector(features.clean),
        copies=2,
        radius=radius,
        block=block,
        dim=features.dim,
        noise=features.noise,
        readings=True,
    )
