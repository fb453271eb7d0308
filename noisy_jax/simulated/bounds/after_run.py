"""Guarantees known after a run, from the learner's state, and guarantees of the adaptive rate."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax.engine.expansion import ExpansionState
from noisy_jax.engine.rules import AdaptiveState
from noisy_jax.learners.corrected_ftrl import CorrectedState
from noisy_jax.learners.parameter_free import ParameterFreeState
from noisy_jax.learners.wrappers.mixture import MixtureState
from noisy_jax.simulated.bounds.guarantee import AnyGuarantee, grown
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import ArrayLike


def adaptive_rate(state: Any, *, radius: ArrayLike) -> Any:
    """Bound `[]` on the estimated regret of a learner at the adaptive rate, from its last state.

        Σ_t ⟨g_t, w_t − u⟩ ≤ 2√2 B √(Σ_t ‖g_t‖²)   for all u in the ball, and all vectors g_t

    With unbiased gradient estimates g_t of a convex loss, the expectation of the left side is at
    least the expected regret on clean data, against every u that does not depend on the noise.

    Args:
        state: after the last round, of a learner with `learning_rate=None`, or of a wrapper of one.
        radius: B > 0 of the learner's ball.

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

    rates = [node for node in jax.tree.leaves(state, is_leaf=is_rate) if is_rate(node)]
    if len(rates) != 1:
        raise ValueError(
            f"state must hold one adaptive rate, as that of a learner with learning_rate=None, got "
            f"{given(state)} with {len(rates)}"
        )
    return 8**0.5 * positive("radius", radius) * jnp.sqrt(rates[0].squares)


def at_adaptive_rate(guarantee: AnyGuarantee) -> AnyGuarantee:
    """Turns a guarantee at the theorem's learning rate into one at the adaptive rate.

        E Σ_t ⟨g_t, w_t − u⟩ ≤ 2√2 B √(Σ_t E‖g_t‖²) ≤ 2√2 B √(GT)

    The bound is 2√2 times as large, but the adaptive rate needs neither G nor T. If the guarantee
    contains a bias (random truncation), the bias stays the same. The learning rate is NaN, because
    it changes in each round.

    Args:
        guarantee: at the theorem's rate η = B/√(GT), such as one of `two_copies`,
            `parallel_worlds` or `random_truncation`.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
        >>> print(f"{theory.regret:.1f} {at_adaptive_rate(theory).regret:.1f}")
        40.0 113.1
    """
    return grown(guarantee, 8**0.5)._replace(learning_rate=jnp.array(jnp.nan))


def exponentiated_gradient(state: Any, *, radius: ArrayLike) -> Any:
    """Bound `[]` on the estimated regret of `learners.exponentiated_gradient`, after a run.

        Σ_t ⟨g_t, w_t − u⟩ ≤ 2BΔ_T ≤ 2B√(ln(2d) Σ_t ‖g_t‖∞²) + 4B max_t ‖g_t‖∞   for ‖u‖₁ ≤ B

    Here g_t are the gradient estimates, w_t the weights, and Δ_T is `state.optimizer.gap`. The
    result is 2BΔ_T, which is a bound for all vectors g_t. If these are unbiased gradients of a
    convex loss, its expectation bounds the expected regret on clean data.

    Args:
        state: the learner's state after the last round.
        radius: B > 0 of the learner's l1 ball.

    Source: de Rooij, van Erven, Grünwald and Koolen (2014); see the learner's module.
    """
    corners = getattr(state, "optimizer", None)
    if not isinstance(corners, MixtureState):
        raise ValueError(
            f"state must be that after a run of learners.exponentiated_gradient, got {given(state)}"
        )
    return 2 * positive("radius", radius) * corners.gap


def mixture(state: MixtureState) -> Any:
    """Bound `[]` on the estimated loss of `wrappers.mixture` minus the loss of its best learner.

        Σ_t Σ_k q_{t,k} ℓ̂_{t,k} − min_j Σ_t ℓ̂_{t,j} ≤ 2Δ_T

    Here q_{t,k} is the share of learner k in round t, ℓ̂_{t,k} the estimate of its squared error on
    clean data, and Δ_T is `state.gap`. The expectation of the left side is at least the expected
    loss of the mixture on clean data minus the expected loss of any of its learners.

    Args:
        state: the state of the mixture after a run, such as `run.state`.

    Source: de Rooij, van Erven, Grünwald and Koolen (2014), Theorem 8.
    """
    return 2 * instance("state", state, MixtureState, "such as run.state of a mixture").gap


def corrected_ftrl(state: CorrectedState, *, comparator_norm: ArrayLike) -> Any:
    """Bound on the estimated regret of `learners.corrected_ftrl`, from its state after the run.

        Σ_t f̂_t(w_t) − f̂_t(u) ≤ max_i Λ_{T,ii} ‖u‖² + ¼ Σ_t g_tᵀ (S_t + Λ_{t−1})⁻¹ g_t

    f̂_t is the estimated squared loss of block t of `solve_every` rounds, up to a constant, g_t its
    gradient at the weights w_t, S_t the sum of the estimated second moments of the features up to
    that block, and Λ_t the diagonal matrix of the ridge penalty. The expectation of the left side
    is the regret on clean data (squared loss), as far as the moments are unbiased. The inequality
    holds for every draw of the noise. For `moments.fourier`, whose negative eigenvalues are set to
    zero, it is not proved, and the number is only a diagnostic.

    Args:
        state: the learner's state after the last round. If the run ends within a block of
            `solve_every` rounds, pass `learner.finish(state)`, which counts these rounds.
        comparator_norm: ‖u‖ ≥ 0, of the predictor that the learner is compared with.

    Returns:
        `[]`; NaN if S_t + Λ_{t−1} was not positive definite in some round, or if the last block
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
    bound = jnp.max(state.regularization) * norm**2 + state.penalty
    return jnp.where(state.pending.count > 0, jnp.nan, bound)


def parameter_free(state: ExpansionState, *, comparator_norm: ArrayLike) -> Any:
    """Bound on the estimated regret of `learners.parameter_free`, from its state after a run.

        Σ_t ⟨g_t, f_t − u⟩ ≤ ε h_1 + 2‖u‖√(V ln₊(2‖u‖V/(ε h_1²))) ∨ 4h‖u‖ ln₊(4h‖u‖√V/(ε h_1²))
                             + Σ_t (‖g_t‖ − h_t)₊ ‖f_t‖ + (h − h_1)‖u‖

    for all vectors g_t, where ε is the learner's `unit`, h_1 the norm of the first g_t that is not
    zero, h_t the largest norm before round t and h the largest of all, V = h_1² + Σ_t ‖ĝ_t‖² for
    g_t clipped to norm h_t, ln₊ = max(0, ln), a₊ = max(0, a), and a ∨ b the larger. With unbiased
    gradients g_t of a convex loss, the expectation of the left side is at least the expected
    regret.

    Args:
        state: after the last round, of `learners.parameter_free`.
        comparator_norm: ‖u‖ ≥ 0, of the predictor that the learner is compared with.

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
