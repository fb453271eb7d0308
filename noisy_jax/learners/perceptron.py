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

        f_{t+1} = f_t + y_t k(x_t, ·)   if y_t (f_t(x_t) + b_t) ≤ 0, a mistake; else f_{t+1} = f_t

    The prediction is f_t(x) + b_t, whose sign is the class. The start is f_1 = 0 and b_1 = 0. The
    offset b stays 0, or with `offset=True` changes by y_t at each mistake.

    Args:
        kernel: one of `kernels`, evaluated at the noisy copy as if it were clean; for noisy inputs
            a world (`worlds`), where f is evaluated at a second copy, or its random features
            (`worlds.fourier`).
        buffer: τ ≥ 1, number of newest rounds (not mistakes) whose terms are kept, or a memory such
            as `engine.everything(T)`. Required, but `None` with random features.
        offset: True to learn b; False by default.
        block: number of rounds that `unroll` plays at once, for speed only; by default at most 64.

    Returns:
        A `Learner` with O(τ) kernel evaluations a round, of 1 copy with a kernel and of 2 copies
        otherwise. On clean data with a kernel `bounds.mistakes` bounds the number of mistakes, if
        no term is dropped. With a world, or its random features, it has `clean_estimates`
        (unbiased estimates of f(x) and f(x)² at the clean x). Labels other than ±1 raise
        ValueError; traced ones give NaN.

    Source: Online Learning with Kernels, Secs. III.A and IV.B.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> learner = nj.learners.perceptron(nj.kernels.gaussian(length_scale=0.5), buffer=1000)
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
