"""Kernel learning from two noisy copies, in the Hilbert space of a surrogate kernel.

    g̃_t = 2(f̂_t(x̃'_t) − ỹ_t),   f̂_t(x̃') = Σ_{i<t} α_i k̂(x̃_i, x̃')
    ŵ_{t+1} = P(ŵ_t − η g̃_t Ψ̂(x̃_t)),   P the projection on {‖ŵ‖ ≤ W}

The surrogate k̂ has E k̂(x̃, a) = k(x, a), so that gradients on noisy copies are unbiased. Their
coefficient belongs to the first copy; their residual comes from the second. Predictions on clean
data use the clean kernel, Σ_{i<t} α_i k(x̃_i, x).

Source: Learning from Noisy Data under Distributional Assumptions, Algorithm 2 and Theorem 3 (right
as printed except for the constants, see `bounds.parallel_worlds`). Its double sum for ‖ŵ‖² is
replaced by a recursion (`engine.expansion`).
"""

import chex
import optax

from noisy_jax.base import Learner
from noisy_jax.engine import atoms_and_memory, everything, expansion, reading, squared_loss
from noisy_jax.worlds import World
from noisy_jax.worlds.world import check_world


def parallel_worlds(
    world: World,
    *,
    horizon: int,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule | None = None,
    block: int = 64,
) -> Learner:
    """Online kernel regression from two noisy copies, if the distribution of the noise is known.

    It learns with the squared loss; `random_truncation` takes other analytic losses in a world.

    Args:
        world: the clean kernel and its surrogate under the noise, such as `worlds.gaussian` gives.
        horizon: T, the largest number of rounds. `nj.rollout` raises ValueError for more.
        radius: W > 0, radius of the ball that holds the learner's function and its competitors, in
            the norm of the surrogate's space: `bounds.surrogate_radius` or a comparator's
            `lifted_norm`.
        learning_rate: by default adaptive, √2 W/√(Σ ‖g̃Ψ̂‖²), which needs no horizon
            (`bounds.adaptive_rate`). Or η > 0, or an optax schedule of rounds 0, 1, …;
            `bounds.parallel_worlds` gives the theorem's.
        block: number of rounds that `unroll` computes at once. It changes the speed, and results
            only by rounding.

    Returns:
        A `Learner` of 2 copies, with O(t) kernel evaluations in round t and O(T) memory, and with
        unbiased readings. At the theorem's learning rate its expected regret for the squared loss
        on clean data is at most 2WR(WR + B_y)√T, with R² = `world.diagonal` and B_y² ≥ E ỹ² for
        the targets ỹ (`bounds.parallel_worlds`), at the adaptive rate 2√2 times that.

    Source: Learning from Noisy Data under Distributional Assumptions, Algorithm 2.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=3, length_scale=0.5**0.5, noise=noise)
        >>> learner = parallel_worlds(world, horizon=1000, radius=2.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(learner, stream, noise, jax.random.key(1))
        >>> loss = (run.predictions - stream.y) ** 2
        >>> print(f"squared loss {loss.mean():.2f}, of predicting 0 {jnp.mean(stream.y**2):.2f}")
        squared loss 0.03, of predicting 0 0.20
    """
    check_world(world)
    atom, memory = atoms_and_memory(world, lambda space: everything(space, horizon))
    return expansion(
        read=reading(atom, 2),
        rule=squared_loss(learning_rate, radius=radius),
        memory=memory,
        copies=2,
        radius=radius,
        block=block,
        dim=world.dim,
        noise=world.noise,
        readings=True,
    )
