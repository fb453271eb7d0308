"""The kernel perceptron: each mistake adds a term, and nothing decays.

    f_{t+1} = f_t + y_t k(x_t, ·)   where y_t f_t(x_t) ≤ 0

It is NORMA with the hinge loss of margin ρ = 0 and λ = 0. Then η only sets the unit of f, and no
parameter is left. If some g has y g(x) ≥ μ in every round, the perceptron makes at most ‖g‖² max
k(x, x)/μ² mistakes.

Source: Online Learning with Kernels, Secs. III.A and IV.B.
"""

from __future__ import annotations

from noisy_jax.base import Learner
from noisy_jax.engine.function_space import Buffer
from noisy_jax.kernels import Kernel
from noisy_jax.learners.norma import norma
from noisy_jax.losses import hinge
from noisy_jax.worlds import World
from noisy_jax.worlds.fourier import FourierWorld


def perceptron(
    kernel: Kernel | World | FourierWorld,
    *,
    buffer: Buffer | None = None,
    offset: bool = False,
    block: int | None = None,
) -> Learner:
    """The kernel perceptron, for labels ±1.

    The buffer counts rounds, not mistakes. An offset b, if there is one, changes by y_t at each
    mistake.

    Args:
        kernel: any of `kernels`; for noisy inputs a world (`worlds`), or its random features.
        buffer: number of newest rounds whose terms are kept, or a memory, as in `norma`.
        offset: whether to learn b.
        block: number of rounds that `unroll` plays at once, by default as in `engine.expansion`.

    Returns:
        A `Learner` with O(τ) kernel evaluations a round for a buffer of τ rounds, and a bound on
        its mistakes on clean data (`bounds.mistakes`). Predictions are f(x) + b, whose sign is the
        class (zero counts as a mistake).
        It has clean estimates as `norma` has.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> learner = perceptron(nj.kernels.gaussian(length_scale=0.5), buffer=1000)
        >>> stream = nj.streams.drifting(jax.random.key(0), horizon=1000)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        >>> print(f"share of mistakes {jnp.mean(run.predictions * stream.y <= 0):.2f}")
        share of mistakes 0.11
    """
    return norma(
        kernel,
        hinge(margin=0.0),
        learning_rate=1.0,
        regularization=0.0,
        buffer=buffer,
        offset=offset,
        block=block,
    )
