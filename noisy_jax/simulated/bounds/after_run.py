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
    """Computes a bound on the regret of a learner at the adaptive rate, from its state after a run.

        Σ_t ⟨g_t, w_t − u⟩ ≤ 2√2 B √(Σ_t ‖g_t‖²)   for all u with ‖u‖ ≤ B

    g_t is the learner's gradient estimate in round t and w_t its weights (or its function, in the
    norm of its kernel's space). The adaptive rate is η_t = √2 B/√(Σ_{s ≤ t} ‖g_s‖²). The inequality
    holds in every run. If the g_t are unbiased estimates of the gradient of a convex loss, the
    expectation of the left side is at least the expected regret on clean data. So the mean of the
    bound over runs bounds the expected regret, against every u that does not depend on the noise.

    Args:
        state: the state after the last round, `run.state`, of a learner that was made with
            `learning_rate=None`, its default, or of a wrapper of one such learner.
        radius: B > 0, the `radius` that the learner was made with.

    Returns:
        The right side, `[]`, for all rounds together.

    Raises:
        ValueError: the state holds no adaptive rate, or several, as under `wrappers.mixture`.

    Source: Streeter and McMahan (2010); Duchi, Hazan and Singer (2011).

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> learner = nj.learners.two_copies(radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1))
        >>> bound = nj.bounds.adaptive_rate(run.state, radius=1.0)
        >>> print(f"at most {bound:.0f}; that of predicting zero is {(stream.y**2).sum():.0f}")
        at most 106; that of predicting zero is 821
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

        E Σ_t ⟨g_t, w_t − u⟩ ≤ 2√2 B √(GT)   at the rate   η_t = √2 B/√(Σ_{s ≤ t} ‖g_s‖²)

    Here g_t are the gradient estimates of T rounds, G = `guarantee.second_moment` ≥ E‖g_t‖², and B
    is the radius of the ball that holds the weights w_t and the competitors u. This is the rate of
    learners with `learning_rate=None`; it needs neither G nor T. The bound is 2√2 times as large. A
    part of it that is due to a bias (`bias`, of `bounds.random_truncation`) stays as it is.

    Args:
        guarantee: at the theorem's rate η = B/√(GT): a result of `bounds.two_copies`,
            `known_covariance`, `uncorrected`, `parallel_worlds` or `random_truncation`. A result of
            `bounds.self_bounding`, or of this function, raises ValueError.

    Returns:
        The guarantee with a larger `regret`; its `learning_rate` is NaN, as it changes in each
        round.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.parallel_worlds(1.0, horizon=100, radius=1.0, y_second_moment=1.0)
        >>> adaptive = nj.bounds.at_adaptive_rate(theory)
        >>> print(f"{theory.regret:.1f} {adaptive.regret:.1f}")
        40.0 113.1
    """
    return grown(guarantee, 8**0.5)._replace(learning_rate=jnp.array(jnp.nan))


def exponentiated_gradient(state: Any, *, radius: ArrayLike) -> Any:
    """Computes a bound on the regret of `learners.exponentiated_gradient` from its last state.

        Σ_t ⟨g_t, w_t − u⟩ ≤ 2BΔ_T ≤ 2B√(ln(2d) Σ_t ‖g_t‖∞²) + 4B max_t ‖g_t‖∞   for ‖u‖₁ ≤ B

    g_t `[d]` is the learner's gradient estimate in round t and w_t its weights. Δ_T is a sum that
    the learner keeps, `state.optimizer.gap`. The inequality holds in every run. If the g_t are
    unbiased estimates of the gradient of a convex loss, the mean of the bound over runs bounds the
    expected regret on clean data, against every u that does not depend on the noise.

    Args:
        state: the learner's state after the last round, `run.state`.
        radius: B > 0, the `radius` that the learner was made with, of a ball in the l1 norm.

    Returns:
        2BΔ_T, `[]`, for all rounds together.

    Raises:
        ValueError: the state is not one of this learner, or the number is out of its range.

    Source: de Rooij, van Erven, Grünwald and Koolen, Follow the leader if you can, hedge if you
    must (2014), for Δ_T.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> learner = nj.learners.exponentiated_gradient(radius=2.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.1), jax.random.key(1))
        >>> print(f"{nj.bounds.exponentiated_gradient(run.state, radius=2.0):.0f}")
        110
    """
    corners = getattr(state, "optimizer", None)
    if not isinstance(corners, MixtureState):
        raise ValueError(
            f"state must be that after a run of learners.exponentiated_gradient, got {given(state)}"
        )
    return 2 * positive("radius", radius) * corners.gap


def mixture(state: MixtureState) -> Any:
    """Computes a bound on the loss of `wrappers.mixture` above its best learner's, after a run.

        Σ_t Σ_k q_{t,k} ℓ̂_{t,k} − min_j Σ_t ℓ̂_{t,j} ≤ 2Δ_T

    q_{t,k} is the share of learner k in round t, and ℓ̂_{t,k} the estimate of its squared error on
    clean data, from the noisy copies. Δ_T is a sum that the mixture keeps, `state.gap`. The
    inequality holds in every run. If the estimates are unbiased, the mean of 2Δ_T over runs bounds
    the expected clean loss of the mixture, summed over all rounds, minus the expected clean loss of
    any of its learners.

    Args:
        state: the state of the mixture after a run, `run.state`.

    Returns:
        2Δ_T, `[]`.

    Source: de Rooij, van Erven, Grünwald and Koolen, Follow the leader if you can, hedge if you
    must (2014), Theorem 8.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> small, large = (nj.learners.two_copies(radius=radius) for radius in (0.1, 1.0))
        >>> mixed = nj.wrappers.mixture(small, large)
        >>> run = nj.rollout(mixed, stream, nj.noise.Gaussian(0.1), jax.random.key(1))
        >>> print(f"{nj.bounds.mixture(run.state):.2f}")
        0.23
    """
    return 2 * instance("state", state, MixtureState, "such as run.state of a mixture").gap


def corrected_ftrl(state: CorrectedState, *, comparator_norm: ArrayLike) -> Any:
    """Computes a bound on the regret of `learners.corrected_ftrl`, from its state after a run.

        Σ_t f̂_t(w_t) − f̂_t(u) ≤ max_i Λ_{T,ii} ‖u‖² + ¼ Σ_t g_tᵀ (S_t + Λ_{t−1})⁻¹ g_t

    t counts blocks of `solve_every` rounds, after which the learner computes its weights w_t again.
    f̂_t is an estimate of the squared loss of block t on clean data (up to a constant), g_t its
    gradient at w_t, S_t the sum of the estimated second moments of the features up to that block,
    and Λ_t the diagonal matrix of the ridge penalty. The inequality holds in every run, for all
    weights u (with ‖u‖ ≤ B if the learner has a radius B). If the moments are unbiased, the mean of
    the bound over runs bounds the expected regret on clean data. With `moments.fourier`, whose
    negative eigenvalues are set to zero, it is not proved, and the number is only a diagnostic.

    Args:
        state: the state after the last round. If the run ends within a block, pass
            `learner.finish(run.state)`, which counts these rounds.
        comparator_norm: ‖u‖ ≥ 0, of the weights that the learner is compared with.

    Returns:
        The right side, `[]`, for all rounds together; NaN if S_t + Λ_{t−1} was not positive
        definite in some block, or if the last block is not complete.

    Raises:
        ValueError: the state is not one of this learner, or the norm is negative.

    Source: McMahan, A survey of algorithms and analysis for adaptive online learning (2017),
    applied to unbiased quadratics.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.2), jax.random.key(1))
        >>> state = learner.finish(run.state)
        >>> print(f"{nj.bounds.corrected_ftrl(state, comparator_norm=1.0):.1f}")
        10.6
    """
    instance("state", state, CorrectedState, "the state after a run of learners.corrected_ftrl")
    norm = non_negative("comparator_norm", comparator_norm)
    bound = jnp.max(state.regularization) * norm**2 + state.penalty
    return jnp.where(state.pending.count > 0, jnp.nan, bound)


def parameter_free(state: ExpansionState, *, comparator_norm: ArrayLike) -> Any:
    """Computes a bound on the regret of `learners.parameter_free`, from its state after a run.

        Σ_t ⟨g_t, f_t − u⟩ ≤ ε h_1 + 2‖u‖√(V ln₊(2‖u‖V/(ε h_1²))) ∨ 4h‖u‖ ln₊(4h‖u‖√V/(ε h_1²))
                             + Σ_t (‖g_t‖ − h_t)₊ ‖f_t‖ + (h − h_1)‖u‖

    f_t is the learner's function in round t, g_t the gradient of the loss at f_t in the kernel's
    space, u any function of that space, and ε the learner's `unit`. h_1 is the norm of the first
    g_t that is not zero, h_t the largest norm before round t, and h the largest of all.
    V = h_1² + Σ_t ‖ĝ_t‖² for g_t clipped to norm h_t. ln₊ = max(0, ln), a₊ = max(0, a), and a ∨ b
    is the larger. The state holds all of these. The inequality holds in every run. If the g_t are
    unbiased estimates of the gradient of a convex loss, the mean of the bound over runs bounds the
    expected regret.

    Args:
        state: the learner's state after the last round, `run.state`.
        comparator_norm: ‖u‖ ≥ 0 in the kernel's space, for the linear kernel the norm of weights.

    Returns:
        The right side, `[]`, for all rounds together; NaN if f has overflowed.

    Raises:
        ValueError: the state is not one of this learner, or the number is out of its range.

    Source: Mhammedi and Koolen (2020), Cutkosky (2019).

    Example:
        >>> import jax, noisy_jax as nj
        >>> learner = nj.learners.parameter_free(
        ...     nj.kernels.linear(), nj.losses.huber(),
        ...     buffer=nj.engine.weight_vector())
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        >>> for norm in (0.0, 1.0, 100.0):
        ...     print(f"{nj.bounds.parameter_free(run.state, comparator_norm=norm):.1f}")
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
