"""The guarantee of the parameter-free learner, known after a run."""

from typing import Any

import chex
import jax.numpy as jnp

from noisy_jax.engine import ExpansionState
from noisy_jax.learners.parameter_free import ParameterFreeState
from noisy_jax.validation import given, non_negative


def parameter_free(state: ExpansionState, *, comparator_norm: chex.Numeric) -> Any:
    """Bound on the estimated regret of `learners.parameter_free`, from its state after a run.

        Σ_t ⟨g_t, f_t − u⟩ ≤ ε h_1 + 2‖u‖√(V ln₊(2‖u‖V/(ε h_1²))) ∨ 4h‖u‖ ln₊(4h‖u‖√V/(ε h_1²))
                             + Σ_t (‖g_t‖ − h_t)₊ ‖f_t‖ + (h − h_1)‖u‖

    for all vectors g_t (see `learners.parameter_free`, also for the symbols). With unbiased
    gradients of a convex loss, the expectation of the left side is at least the expected regret.

    Args:
        state: after the last round, of `learners.parameter_free`.
        comparator_norm: ‖u‖ ≥ 0, of the predictor that the learner is compared with.

    Returns:
        `[]`; NaN if the run ended in NaN.

    Source: Mhammedi and Koolen (2020), Cutkosky (2019).

    Example:
        >>> import jax, noisy_jax as nj
        >>> learner = nj.learners.parameter_free(
        ...     nj.kernels.linear(), nj.losses.huber(),
        ...     buffer=nj.engine.weight_vector())
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        >>> for norm in (0.0, 1.0, 100.0):
        ...     print(f"{parameter_free(run.state, comparator_norm=norm):.1f}")
        0.7
        7.1
        1989.7
    """
    rule = getattr(state, "rule", None)
    if not isinstance(rule, ParameterFreeState):
        raise ValueError(
            f"state must be that after a run of learners.parameter_free, got {given(state)}"
        )
    norm = non_negative("comparator_norm", comparator_norm)
    first = jnp.where(rule.first > 0, rule.first, 1)
    root, hint, relative = jnp.sqrt(rule.squares) / first, rule.hint / first, norm / rule.unit

    def log(a):
        return jnp.log(jnp.maximum(a, 1))

    small = 2 * root * jnp.sqrt(log(2 * relative * root**2))
    large = 4 * hint * log(4 * hint * relative * root)
    bound = rule.unit * rule.first + norm * rule.first * jnp.maximum(small, large)
    bound += rule.excess + (rule.hint - rule.first) * norm
    return jnp.where(jnp.all(jnp.isfinite(state.weights)), bound, jnp.nan)
