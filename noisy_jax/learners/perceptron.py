"""The kernel perceptron: each mistake adds its own term, and nothing decays.

    f_{t+1} = f_t + y_t k(x_t, ·)   where y_t f_t(x_t) ≤ 0

It is NORMA with the soft margin ρ = 0 and λ = 0; then η is but the unit of f, and no parameter is
left. Where some g has y g(x) ≥ μ in every round, it makes at most ‖g‖² max k(x, x)/μ² mistakes.

Source: Online Learning with Kernels, Secs. III.A and IV.B.
"""

from noisy_jax.base import Learner
from noisy_jax.kernels import Kernel
from noisy_jax.learners.buffers import Buffer
from noisy_jax.learners.norma import norma
from noisy_jax.losses import soft_margin
from noisy_jax.worlds import FourierWorld, World


def perceptron(
    kernel: Kernel | World | FourierWorld,
    *,
    buffer: Buffer | None = None,
    offset: bool = False,
    block: int = 64,
) -> Learner:
    """The kernel perceptron, for labels ±1.

    Args:
        kernel: as for `norma`.
        buffer: as for `norma`: τ counts rounds, not mistakes.
        offset: whether to learn an offset b, by y_t at each mistake.
        block: rounds that `unroll` takes at once.

    Returns:
        A `Learner`; predictions f(x) + b, whose sign is the class (zero counts as a mistake).

    Raises:
        ValueError: as `norma`.

    Example:
        >>> import noisy_jax as nj
        >>> perceptron(nj.kernels.linear(), buffer=1000).copies
        1
    """
    return norma(
        kernel,
        soft_margin(margin=0.0),
        learning_rate=1.0,
        regularization=0.0,
        buffer=buffer,
        offset=offset,
        block=block,
    )
