"""ALMA₂, the approximate large margin algorithm, with a kernel: it learns the margin it asks for.

    f_t(x) = ⟨w_t, k(x, ·)⟩/√k(x, x),   instances of norm one
    where y_t f_t(x_t) ≤ θ/√k:   w_{t+1} = P(w_t + (C/√k) y_t k(x_t, ·)/√k(x_t, x_t)),   k ← k + 1

k = 1, 2, … counts updates, not rounds, and P is the projection on the unit ball. Of Gentile's
parameters only θ = (1 − α)B and C play a part. B = √8/α and C = √2, that is θ = √8(1 − α)/α, end on
separable data in a margin of at least (1 − α) of the largest; C² + 2θC = 1 is the condition of the
mistake bound; θ = 0 is ALMA with zero margin, "ALMA₀".

Source: Gentile, A New Approximate Maximal Margin Classification Algorithm (2001), p = 2, the rival
in Online Learning with Kernels, Sec. VI.A.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample
from noisy_jax.engine import Space
from noisy_jax.engine.expansion import Round, expansion
from noisy_jax.engine.rules import Rule, Update
from noisy_jax.kernels.kernel import Kernel, check_kernel
from noisy_jax.learners.buffers import Buffer, memory_of
from noisy_jax.learners.labels import checking_labels
from noisy_jax.losses.loss import sound_labels
from noisy_jax.validation import check_non_negative, check_one_number, check_positive


class AlmaState(NamedTuple):
    """What ALMA counts beside w.

    Attributes:
        squared_norm: `[]`, ‖w‖² ≤ 1.
        updates: `[]`, how many updates there were, k − 1.
    """

    squared_norm: chex.Array
    updates: chex.Array


def alma(
    kernel: Kernel,
    *,
    threshold: chex.Numeric,
    scale: chex.Numeric = 2**0.5,
    buffer: Buffer,
    block: int = 64,
) -> Learner:
    """Kernel ALMA₂, for labels ±1.

    Args:
        kernel: any of `kernels`; instances are normalised by √k(x, x), and one of k(x, x) = 0
            counts for nothing.
        threshold: θ ≥ 0, the margin that is asked for before the first update; zero for ALMA₀.
        scale: C > 0, the step of the first update.
        buffer: as for `norma`. ‖w‖ is followed by its recursion, which is exact as long as nothing
            has been dropped: let τ reach back to where terms are negligible.
        block: rounds that `unroll` takes at once, cut to what the memory takes.

    Returns:
        A `Learner` whose state's field `rule` is an `AlmaState`; predictions f(x), in [−1, 1], a
        mistake where y f(x) ≤ 0. Where a label is not ±1, or a traced θ or C out of range, the run
        ends in NaN.

    Raises:
        ValueError: θ negative, C not positive, no kernel, τ < 1; when it runs, labels other than
            ±1, where `step` or `unroll` are called with concrete ones.

    Example:
        >>> import noisy_jax as nj
        >>> alpha = 0.5
        >>> kernel = nj.kernels.gaussian(length_scale=0.5)
        >>> alma(kernel, threshold=8**0.5 * (1 - alpha) / alpha, buffer=500).copies
        1
    """
    check_one_number("threshold", threshold)
    check_one_number("scale", scale)
    check_non_negative("threshold", threshold, "θ = (1 − α)B; zero asks for no margin")
    check_positive("scale", scale, "C, the step of the first update")
    check_kernel(kernel)

    def unit(x):
        squares = kernel.diagonal(x)
        return jnp.where(squares > 0, jax.lax.rsqrt(jnp.where(squares > 0, squares, 1)), 0)

    def gram(x, z):
        return kernel(x, z) * unit(x)[:, None] * unit(z)[None]

    def read(sample: Sample, key: chex.PRNGKey) -> Round:
        del key  # no randomness of its own
        x = sample.x[0]
        return Round(x, None, (sample.y, kernel.diagonal(x[None])[0] > 0))

    def update(state: AlmaState, values, target, t) -> Update:
        del t  # rounds do not count
        y, counts = sound_labels(target[0]), target[1]
        root = jnp.sqrt(state.updates + 1.0)
        margin = y * values[0]
        # Times |y|, as a comparison alone would hide the NaN of what is no label.
        step = jnp.where(counts & (margin <= threshold / root), scale / root, 0.0) * jnp.abs(y)
        step = jnp.where((threshold >= 0) & (scale > 0), step, jnp.nan)
        squared_norm = state.squared_norm + 2 * step * margin + step**2
        size = jnp.sqrt(jnp.maximum(squared_norm, 1))
        state = AlmaState(squared_norm / size**2, state.updates + (step > 0))
        return Update(step * y / size, 1 / size, state)

    memory = memory_of(kernel, Space(gram, gram), buffer)
    learner = expansion(
        read=read,
        rule=Rule(lambda: AlmaState(jnp.zeros(()), jnp.int32(0)), update),
        memory=memory,
        copies=1,
        block=min(block, memory.longest_block or block),
    )
    return checking_labels(learner)
