"""Plain online kernel regression that trusts the noisy copy: the baseline that everybody uses.

    f_{t+1} = P(f_t − 2η(f_t(x̃_t) − ỹ_t) k(x̃_t, ·)),   P the projection on {‖f‖ ≤ W}

It descends on the loss of noisy instances, whose best predictor is another one than that of the
clean instances it is judged on: its regret grows linearly. On clean data (noise of variance zero)
it is the textbook's learner, and the reference for what the noise costs.
"""

import chex
import optax

from noisy_jax.base import Learner
from noisy_jax.engine import Space, everything
from noisy_jax.engine.expansion import expansion, reading
from noisy_jax.engine.rules import squared_loss
from noisy_jax.kernels.kernel import Kernel, check_kernel


def uncorrected_kernel(
    kernel: Kernel,
    *,
    horizon: int,
    radius: chex.Numeric,
    learning_rate: optax.ScalarOrSchedule,
    block: int = 64,
) -> Learner:
    """Online kernel regression that takes one noisy copy for the truth.

    Args:
        kernel: any of `kernels`.
        horizon: T, the number of rounds that there is room for.
        radius: W > 0, the norm of the largest predictor that competes.
        learning_rate: η > 0, or an optax schedule of rounds 0, 1, ….
        block: rounds that `unroll` takes at once.

    Returns:
        A `Learner` of 1 copy with O(t) kernel evaluations in round t and O(T) memory. There is no
        sub-linear bound on its regret on clean data, unless the copies are clean.

    Raises:
        ValueError: no kernel; horizon, radius, rate or block not positive; more rounds than the
            horizon.

    Example:
        >>> import jax, noisy_jax as nj
        >>> kernel = nj.kernels.gaussian(length_scale=0.5**0.5)
        >>> learner = uncorrected_kernel(kernel, horizon=100, radius=2.0, learning_rate=0.1)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=100, dim=3)
        >>> nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1)).predictions.shape
        (100,)
    """
    check_kernel(kernel)
    return expansion(
        read=reading(lambda x, cov: x, 1),
        rule=squared_loss(learning_rate),
        memory=everything(Space(kernel.gram, kernel.gram), horizon),
        copies=1,
        radius=radius,
        block=block,
    )
