"""Guarantees of the adaptive rate √2 B/√(Σ ‖g_s‖²) and of mixtures, mostly known after a run."""

from typing import Any

import chex
import jax
import jax.numpy as jnp

from noisy_jax.engine import AdaptiveState
from noisy_jax.learners.wrappers import MixtureState
from noisy_jax.simulated.bounds.guarantee import AnyGuarantee, grown
from noisy_jax.validation import given, instance, positive


def adaptive_rate(state: Any, *, radius: chex.Numeric) -> Any:
    """Bound on the estimated regret of a learner at the adaptive rate, from its state after a run.

        Σ_t ⟨g_t, w_t − u⟩ ≤ 2√2 B √(Σ_t ‖g_t‖²)   for all u in the ball, and all vectors g_t

    With unbiased gradient estimates g_t of a convex loss, the expectation of the left side is at
    least the expected regret on clean data, against every u that does not depend on the noise.

    Args:
        state: after the last round, of a learner with `learning_rate=None`, or of a wrapper of one.
        radius: B > 0 of the learner's ball.

    Returns:
        `[]`.

    Source: Streeter and McMahan (2010); Duchi, Hazan and Singer (2011).

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> learner = nj.learners.two_copies(radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1))
        >>> bool(adaptive_rate(run.state, radius=1.0) < 4096 * (stream.y**2).mean())
        True
    """

    def is_rate(node) -> bool:
        return isinstance(node, AdaptiveState)

    found = [node for node in jax.tree.leaves(state, is_leaf=is_rate) if is_rate(node)]
    if len(found) != 1:
        raise ValueError(
            f"state must hold one adaptive rate, as that of a learner with learning_rate=None, got "
            f"{given(state)} with {len(found)}"
        )
    return 8**0.5 * positive("radius", radius) * jnp.sqrt(found[0].squares)


def at_adaptive_rate(guarantee: AnyGuarantee) -> AnyGuarantee:
    """Turns a guarantee at the theorem's learning rate into one at the adaptive rate.

        E Σ_t ⟨g_t, w_t − u⟩ ≤ 2√2 B √(Σ_t E‖g_t‖²) ≤ 2√2 B √(GT)

    The bound is 2√2 times as large, but the adaptive rate needs neither G nor T. If the guarantee
    contains a bias (random truncation), the bias stays the same.

    Args:
        guarantee: at the theorem's rate η = B/√(GT), such as one of `two_copies`,
            `parallel_worlds` or `random_truncation`.

    Returns:
        The new guarantee. Its learning rate is NaN, because the rate changes in each round.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
        >>> print(f"{theory.regret:.1f} {at_adaptive_rate(theory).regret:.1f}")
        40.0 113.1
    """
    return grown(guarantee, 8**0.5)._replace(learning_rate=jnp.array(jnp.nan))


def mixture(state: MixtureState) -> Any:
    """Bound on the estimated loss of `wrappers.mixture` minus the loss of its best learner.

        Σ_t Σ_k q_{t,k} ℓ̂_{t,k} − min_j Σ_t ℓ̂_{t,j} ≤ 2Δ_T

    The expectation of the left side is at least the expected loss of the mixture on clean data
    minus the loss of any of its learners.

    Args:
        state: of the mixture, after a run.

    Returns:
        `[]`.

    Source: de Rooij, van Erven, Grünwald and Koolen (2014), Theorem 8.
    """
    return 2 * instance("state", state, MixtureState, "such as run.state of a mixture").gap
