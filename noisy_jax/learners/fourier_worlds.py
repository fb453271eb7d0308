"""Kernel learning from two noisy copies on random features, in linear time and constant memory.

    g̃_t = 2(⟨w_t, N(x̃'_t)⟩ − ỹ_t),   w_{t+1} = P(w_t − η g̃_t N(x̃_t)),   prediction ⟨w_t, C(x_t)⟩

N is the noisy feature map and C the clean one, E N(x + n) = C(x) for every x: two noisy copies of a
linear regression in R^D. As D grows it becomes `parallel_worlds`; for every fixed D its own
guarantee holds, against all ⟨v, C(·)⟩ with ‖v‖ ≤ W, because ‖N‖² = R² exactly.

Source: derived for this library (the Fourier form of Learning from Noisy Data under Distributional
Assumptions, Algorithm 2).
"""

import chex
import optax

from noisy_jax.base import Learner, Sample
from noisy_jax.engine import weight_vector
from noisy_jax.engine.expansion import Round, expansion
from noisy_jax.engine.rules import squared_loss
from noisy_jax.worlds import FourierWorld
from noisy_jax.worlds.fourier import check_features


def fourier_worlds(
    features: FourierWorld,
    *,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule,
    block: int = 4,
) -> Learner:
    """Online regression on random features from two noisy copies under known noise.

    Args:
        features: noisy and clean feature maps, of `worlds.fourier`.
        radius: W > 0, the norm of the largest weights that compete.
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, …;
            `bounds.parallel_worlds` gives the theorem's.
        block: rounds that `unroll` takes at once.

    Returns:
        A `Learner` of 2 copies with O(D) time a round, whatever the round, and O(D) memory.

    Raises:
        ValueError: no `FourierWorld`; radius, rate or block not positive; data of another
            dimension than the features'.

    Example:
        >>> import jax, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise)
        >>> features = nj.worlds.fourier(world, jax.random.key(2), num_features=64)
        >>> learner = fourier_worlds(features, radius=2.0, learning_rate=0.1)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> nj.rollout(learner, stream, noise, jax.random.key(1)).predictions.shape
        (100,)
    """
    check_features(features)

    def read(sample: Sample, key: chex.PRNGKey) -> Round:
        del key  # no randomness of its own
        stored, probe = features.noisy(sample.x[:2])
        return Round(stored, probe[None], sample.y)

    learner = expansion(
        read=read,
        rule=squared_loss(learning_rate),
        memory=weight_vector(features.clean),
        copies=2,
        radius=radius,
        block=block,
        dim=features.dim,
    )
    return learner._replace(noise=features.noise)
