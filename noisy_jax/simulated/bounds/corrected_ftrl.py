"""The guarantee of the corrected leader, known after a run."""

from typing import Any

import chex
import jax.numpy as jnp

from noisy_jax.learners.corrected_ftrl import CorrectedState
from noisy_jax.validation import instance, non_negative


def corrected_ftrl(state: CorrectedState, *, comparator_norm: chex.Numeric) -> Any:
    """Bound on the estimated regret of `learners.corrected_ftrl`, from its state after the run.

        Σ_t f̂_t(w_t) − f̂_t(u) ≤ λ_T ‖u‖² + ¼ Σ_t g_tᵀ (S_t + λ_{t−1} I)⁻¹ g_t

    The expectation of the left side is the regret on clean data (squared loss), as far as the
    moments are unbiased. The inequality holds for every draw of the noise. For `moments.fourier`,
    whose negative eigenvalues are set to zero, it is not proved, and the number is only a
    diagnostic.

    Args:
        state: after the last round. If the run ends within a block of `solve_every` rounds, pass
            `learner.finish(state)`, which counts these rounds.
        comparator_norm: ‖u‖ ≥ 0, of the predictor that the learner is compared with.

    Returns:
        `[]`; NaN if S_t + λ_{t−1} I was not positive definite in some round, or if the last block
        is not complete.

    Source: McMahan, A survey of algorithms and analysis for adaptive online learning (2017),
    applied to unbiased quadratics.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.2), jax.random.key(1))
        >>> bool(corrected_ftrl(run.state, comparator_norm=1.0) < 4096 * (stream.y**2).mean())
        True
    """
    instance("state", state, CorrectedState, "the state after a run of learners.corrected_ftrl")
    norm = non_negative("comparator_norm", comparator_norm)
    bound = state.regularization * norm**2 + state.penalty
    return jnp.where(state.pending.count > 0, jnp.nan, bound)
