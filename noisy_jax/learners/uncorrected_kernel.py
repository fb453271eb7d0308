"""Online kernel regression that treats the noisy copy as clean: the usual baseline.

    f_{t+1} = P(f_t − 2η(f_t(x̃_t) − ỹ_t) k(x̃_t, ·)),   P the projection on {‖f‖ ≤ W}

It minimises the loss on noisy instances, whose best predictor differs from that on clean ones, so
its regret on clean data grows linearly. Without noise it is the textbook learner, and shows what
the noise costs the others.
"""

import chex
import optax

from noisy_jax.base import Learner
from noisy_jax.engine import atoms_and_memory, everything, expansion, reading, squared_loss
from noisy_jax.kernels.kernel import Kernel, check_kernel


def uncorrected_kernel(
    kernel: Kernel,
    *,
    horizon: int,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule | None = None,
    block: int = 64,
) -> Learner:
    """Online kernel regression that treats one noisy copy as the clean instance.

    It takes any of `kernels`; the other arguments are those of `parallel_worlds`, where W bounds
    norms in the kernel's own space.

    Returns:
        A `Learner` of 1 copy with O(t) kernel evaluations in round t and O(T) memory. It has no
        sub-linear bound on its regret on clean data, unless the copies are clean, and no unbiased
        readings.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> kernel = nj.kernels.gaussian(length_scale=0.5**0.5)
        >>> learner = uncorrected_kernel(kernel, horizon=1000, radius=2.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=3)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1))
        >>> loss = (run.predictions - stream.y) ** 2
        >>> print(f"mean squared loss {loss.mean():.2f}, zero's {jnp.mean(stream.y**2):.2f}")
        mean squared loss 0.04, zero's 0.20
    """
    check_kernel(kernel)
    atom, memory = atoms_and_memory(kernel, lambda space: everything(space, horizon))
    return expansion(
        read=reading(atom, 1),
        rule=squared_loss(learning_rate, radius=radius),
        memory=memory,
        copies=1,
        radius=radius,
        block=block,
    )
