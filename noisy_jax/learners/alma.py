"""ALMA₂, the approximate large margin algorithm, with a kernel.

    f_t(x) = ⟨w_t, k(x, ·)⟩/√k(x, x),   so that instances have norm one
    if y_t f_t(x_t) ≤ θ/√k:   w_{t+1} = P(w_t + (C/√k) y_t k(x_t, ·)/√k(x_t, x_t)),   k ← k + 1

k = 1, 2, … counts updates, not rounds, and P is the projection on the unit ball. Gentile's
parameters α and B enter only through θ = (1 − α)B. With B = √8/α and C = √2, that is
θ = √8(1 − α)/α, ALMA ends on separable data in a margin of at least (1 − α) times the largest.
C² + 2θC = 1 is the condition of its mistake bound. θ = 0 gives ALMA with zero margin, "ALMA₀".

Source: Gentile, A New Approximate Maximal Margin Classification Algorithm (2001), p = 2. Online
Learning with Kernels, Sec. VI.A, compares NORMA with it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, exportable
from noisy_jax.engine import Round, Rule, Update, expansion
from noisy_jax.engine.function_space import Buffer, memory_of
from noisy_jax.engine.memory import Space
from noisy_jax.kernels.kernel import Kernel, check_kernel
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.values import ArrayLike


@exportable
class AlmaState(NamedTuple):
    """State of ALMA besides w: field `rule` of its `ExpansionState`.

    Attributes:
        squared_norm: `[]`, ‖w‖² ≤ 1.
        updates: `[]`, number of updates so far, k − 1.
    """

    squared_norm: jax.Array
    updates: jax.Array


def alma(
    kernel: Kernel,
    *,
    threshold: ArrayLike,
    scale: ArrayLike = 2**0.5,
    buffer: Buffer,
    block: int | None = None,
) -> Learner:
    """The approximate large margin algorithm (ALMA₂) with a kernel, for labels ±1.

    f_t(x) = ⟨w_t, φ(x)⟩ with the unit features φ(x) of k(x, z)/√(k(x, x) k(z, z)), and w_1 = 0. The
    k-th update is made in the first round with y_t f_t(x_t) ≤ θ/√k after the update before it:

        w_{t+1} = P(w_t + (C/√k) y_t φ(x_t)),   P the projection on the unit ball {‖w‖ ≤ 1}

    A round with y_t f_t(x_t) ≤ 0 counts as a mistake. It treats its copy x_t as clean.

    Args:
        kernel: one of `kernels`. A point with k(x, x) = 0 changes nothing.
        threshold: θ ≥ 0; 0 for ALMA₀, which updates at mistakes only.
        scale: C > 0; √2 by default.
        buffer: τ ≥ 1, the number of newest rounds whose terms of w are kept, or a memory such as
            `engine.everything(T)`. ‖w‖ is exact as long as no term has been dropped: choose τ so
            large that dropped terms are negligible.
        block: number of rounds that `unroll` plays at once, for speed only; by default at most 64.

    Returns:
        A `Learner` of 1 copy with O(τ) kernel evaluations a round. As long as no term has been
        dropped, predictions f_t(x) are in [−1, 1], and `bounds.alma` bounds the number of mistakes
        on clean data. `state.rule.updates` counts the updates. Labels other than ±1 and θ or C out
        of range raise ValueError; traced ones give NaN.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> alpha = 0.5  # share of the largest margin that is asked for, 1 − α
        >>> kernel = nj.kernels.gaussian(length_scale=0.5)
        >>> learner = nj.learners.alma(
        ...     kernel, threshold=8**0.5 * (1 - alpha) / alpha, buffer=1000)
        >>> stream = nj.streams.drifting(jax.random.key(0), horizon=1000)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        >>> print(f"share of mistakes {jnp.mean(run.predictions * stream.y <= 0):.2f}")
        share of mistakes 0.11
    """
    check_kernel(kernel)
    threshold = non_negative("threshold", threshold, "θ = (1 − α)B; zero asks for no margin")
    scale = positive("scale", scale, "C, the step size of the first update")

    def unit(x):
        squares = kernel.diagonal(x)
        return jnp.where(squares > 0, jax.lax.rsqrt(jnp.where(squares > 0, squares, 1)), 0)

    def gram(x, z):
        return kernel(x, z) * unit(x)[:, None] * unit(z)[None]

    def round_of(sample: Sample, key: jax.Array) -> Round:
        del key  # it draws nothing
        x = sample.x[0]
        return Round(x, None, (sample.y, jnp.any(kernel.diagonal(x[None]) > 0)))

    def update(state: AlmaState, values, target, t, square) -> Update:
        del t, square  # updates count, not rounds
        y, counts = target
        root = jnp.sqrt((state.updates + 1).astype(float))
        margin = y * values[0]
        # A comparison is False with NaN: the factors bring NaN back for a bad y or threshold.
        sound = jnp.abs(y) + 0 * threshold
        step = jnp.where(counts & (margin <= threshold / root), scale / root, 0 * scale) * sound
        squared_norm = state.squared_norm + 2 * step * margin + step**2
        size = jnp.sqrt(jnp.maximum(squared_norm, 1))
        updates = state.updates + (step > 0).astype(state.updates.dtype)
        state = AlmaState(squared_norm / size**2, updates)
        return Update(step * y / size, 1 / size, state)

    return expansion(
        round_of=round_of,
        rule=Rule(lambda: AlmaState(jnp.zeros(()), jnp.int32(0)), update),
        memory=memory_of(kernel, Space(gram, gram), buffer),
        copies=1,
        block=block,
        labels=True,
        flips=(0.0, 0.0),
    )
