"""Kernel learning from two noisy copies, in the Hilbert space of a surrogate kernel.

    g̃_t = 2(f̂_t(x̃'_t) − ỹ_t),   f̂_t(x̃') = Σ_{i<t} α_i k̂(x̃_i, x̃')
    ŵ_{t+1} = P(ŵ_t − η g̃_t Ψ̂(x̃_t)),   P the projection on {‖ŵ‖ ≤ W}

The learner descends in the noisy world, where E k̂(x̃, a) = k(x, a) makes its gradients right on
average, and predicts in the clean one, Σ_{i<t} α_i k(x̃_i, x). Its coefficient goes to the first
copy, its residual comes from the second.

Source: Learning from Noisy Data under Distributional Assumptions, Algorithm 2 and Theorem 3 (right
as printed but for the constants, see `bounds.parallel_worlds`); the double sum for ‖ŵ‖² is replaced
by its recursion (`expansion`).
"""

import chex
import optax

from noisy_jax.base import Learner
from noisy_jax.engine import Space, everything
from noisy_jax.engine.expansion import expansion, reading
from noisy_jax.engine.rules import squared_loss
from noisy_jax.worlds import World
from noisy_jax.worlds.world import check_world


def parallel_worlds(
    world: World,
    *,
    horizon: int,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule,
    block: int = 64,
) -> Learner:
    """Online kernel regression from two noisy copies under known noise (Algorithm 2).

    Args:
        world: the clean kernel and its surrogate under the noise, such as `worlds.gaussian` gives.
        horizon: T, the number of rounds that there is room for.
        radius: W > 0, the norm of the largest predictor that competes, in the surrogate's space
            (`bounds.surrogate_radius`, or a comparator's `lifted_norm`).
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, …;
            `bounds.parallel_worlds` gives the theorem's, which is far on the safe side.
        block: rounds that `unroll` takes at once.

    Returns:
        A `Learner` of 2 copies with O(t) kernel evaluations in round t and O(T) memory. Its regret
        for the squared loss on clean data is at most 2WR(WR + B_y)√T (`bounds.parallel_worlds`).

    Raises:
        ValueError: no `World`; horizon, radius, rate or block not positive; data of another
            dimension than the world's; more rounds than the horizon.

    Example:
        >>> import jax, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise)
        >>> learner = parallel_worlds(world, horizon=100, radius=2.0, learning_rate=0.1)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> nj.rollout(learner, stream, noise, jax.random.key(1)).predictions.shape
        (100,)
    """
    check_world(world)
    learner = expansion(
        read=reading(world.atom, 2),
        rule=squared_loss(learning_rate),
        memory=everything(Space(world.surrogate, world.evaluate, read=world.read), horizon),
        copies=2,
        radius=radius,
        block=block,
        dim=world.dim,
    )
    return learner._replace(noise=world.noise)
