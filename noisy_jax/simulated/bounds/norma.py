"""Guarantees of online gradient descent on the regularized risk, in the space of a kernel (NORMA).

    f_1 = 0,   f_{t+1} = (1 − η_t λ) f_t − η_t ℓ'(f_t(x_t), y_t) k(x_t, ·)

They hold on every stream: nothing in them is an expectation, except in `online_to_batch`. Arguments
of all of them:

- `diagonal`: X² ≥ k(x_t, x_t), positive;
- `slope`: c ≥ |ℓ'|, positive; 1 for the hinge, logistic, ε-insensitive and Huber's loss. The
  squared loss has no such bound;
- `regularization`: λ > 0, and `learning_rate`: η < 1/λ;
- `horizon`: m > 0 rounds.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.validation.numbers import between, non_negative, number, positive
from noisy_jax.validation.objects import switch
from noisy_jax.validation.values import Array, ArrayLike


class RiskGuarantee(NamedTuple):
    """The guarantee of `regularized_risk` in m rounds; all `[]`.

    Attributes:
        learning_rate: η of η_t = η/√t.
        regret: a√m + b, bound on the cumulative regularized risk minus the best g's.
        second_moment: 4c²X² ≥ ‖ℓ'k(x_t, ·) + λf_t‖².
    """

    learning_rate: Array
    regret: Array
    second_moment: Array


def regularized_risk(
    diagonal: ArrayLike,
    *,
    horizon: ArrayLike,
    slope: ArrayLike,
    regularization: ArrayLike,
    learning_rate: ArrayLike | None = None,
    growing_memory: bool = False,
) -> RiskGuarantee:
    """Guarantee of rates η_t = η/√t on the regularized risk, against every g.

        Σ_t [ℓ(f_t(x_t), y_t) + ½λ‖f_t‖²] ≤ m R_reg[g] + a√m + b
        a = 2λU²(2ηλ + 1/(ηλ)),   b = U²/(2η),   U = cX/λ

    where R_reg[g] = (1/m)Σ_t ℓ(g(x_t), y_t) + ½λ‖g‖². With the slowly growing memory of Theorem 6,
    which keeps s_t = min(t, max(t_0, ⌈t^(½ + ε)⌉)) terms (`engine.growing`), 6ηλ stands for 2ηλ.

    For f_t = Σ_i α_i k(x_i, ·), U bounds all ‖f_t‖, c/λ all Σ_i |α_i| and cX²/λ all |f_t(x)|,
    whichever terms are dropped, at every schedule η_t < 1/λ: S_{t+1} ≤ (1 − η_t λ)S_t + η_t c for
    S_t = Σ_i |α_i| (Eq. 17). The minimizer of R_reg has a norm of at most U too. An offset is not
    regularized and has no bound.

    Source: Online Learning with Kernels, Theorem 4, and Theorem 6, repaired: dropping terms does
    not increase Σ_i |α_i|, so that ‖f_t‖ ≤ U holds, and with it a smaller constant than printed.

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        horizon: m > 0, number of rounds.
        slope: c > 0, the largest |ℓ'|; the squared loss has none.
        regularization: λ > 0.
        learning_rate: η < 1/λ; by default the rate with the smallest a, 1/(√2 λ), or 1/(√6 λ) with
            a growing memory.
        growing_memory: for a run that drops terms as in Theorem 6.

    Example:
        >>> options = {"slope": 1.0, "regularization": 1.0, "learning_rate": 0.5}
        >>> print(regularized_risk(1.0, horizon=100, **options).regret)
        61.0
    """
    return risk_guarantee(
        diagonal,
        horizon=horizon,
        slope=slope,
        regularization=regularization,
        learning_rate=learning_rate,
        gradients=6 if switch("growing_memory", growing_memory) else 2,
    )


def risk_guarantee(
    diagonal, *, horizon, slope, regularization, learning_rate=None, gradients
) -> RiskGuarantee:
    """a√m + b with a = 2λU²(`gradients` · ηλ + 1/(ηλ))."""
    diagonal, horizon = positive("diagonal", diagonal), positive("horizon", horizon)
    slope, regularization = positive("slope", slope), positive("regularization", regularization)
    if learning_rate is None:
        learning_rate = 1 / (jnp.sqrt(gradients) * regularization)
    decay = _decay(learning_rate, regularization)
    square = diagonal * slope**2 / regularization  # λU²
    a = 2 * square * (gradients * decay + 1 / decay)
    regret = a * jnp.sqrt(horizon) + square / (2 * decay)
    return RiskGuarantee(jnp.asarray(learning_rate, float), regret, 4 * diagonal * slope**2)


def online_to_batch(
    diagonal: ArrayLike,
    *,
    horizon: ArrayLike,
    slope: ArrayLike,
    regularization: ArrayLike,
    largest_risk: ArrayLike,
    failure_probability: ArrayLike,
    learning_rate: ArrayLike | None = None,
) -> Array:
    """Returns a bound `[]` on the risk of NORMA's average function minus the sample's best risk.

        E[ℓ(f̄(x), y)] + ½λ‖f̄‖² ≤ R_reg[g] + (a + L√(2 ln(1/δ)))/√m + b/m

    This holds for every g with probability 1 − δ over m independent examples. The expectation is
    over a new example, and f̄ = (1/m)Σ_{t=1}^m f_t is the average of the functions that NORMA
    predicts with (`wrappers.averaged`). R_reg, a and b: see `regularized_risk`.

    Source: Online Learning with Kernels, Corollary 5, where the printed sum in f̄ stops at m − 1.

    Args:
        diagonal: X² > 0, the largest k(x, x).
        horizon: m > 0, number of rounds.
        slope: c > 0, the largest slope of the loss.
        regularization: λ > 0 of the risk.
        learning_rate: η of the rates η/√t, with the default of `regularized_risk`.
        largest_risk: L ≥ ℓ(f(x), y) + ½λ‖f‖² for all f with ‖f‖ ≤ cX/λ. For the hinge loss
            with ρ ≤ X²/λ, L = 5X²/(2λ) is enough.
        failure_probability: δ in (0, 1).

    Example:
        >>> options = {"slope": 1.0, "regularization": 1.0, "largest_risk": 2.5}
        >>> bound = online_to_batch(1.0, horizon=100, failure_probability=0.05, **options)
        >>> print(f"{bound:.3f}")
        1.185
    """
    risk = regularized_risk(
        diagonal,
        horizon=horizon,
        slope=slope,
        regularization=regularization,
        learning_rate=learning_rate,
    )
    largest_risk = positive("largest_risk", largest_risk)
    delta = between("failure_probability", failure_probability, 0, 1)
    return risk.regret / horizon + largest_risk * jnp.sqrt(-2 * jnp.log(delta) / horizon)


def truncation_error(
    diagonal: ArrayLike,
    *,
    buffer: ArrayLike,
    slope: ArrayLike,
    learning_rate: ArrayLike,
    regularization: ArrayLike,
    rounds: ArrayLike | None = None,
) -> Array:
    """Bound `[]` on ‖f − f_τ‖ for NORMA, where f_τ is the sum of the τ newest terms of f.

    At a constant learning rate η, with β = 1 − ηλ, it is cXη Σ_{j=τ}^{n−1} β^j = (β^τ − β^n) cX/λ
    after n rounds; without `rounds` it is β^τ cX/λ, which holds for all n. It is attained if all x
    are equal and the slope is c in every round. The
    values f(x) and f_τ(x) differ by at most X times the bound. A run that drops terms while it
    learns has other coefficients, and may differ by more.

    Source: Online Learning with Kernels, Proposition 1.

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        buffer: τ ≥ 0, the number of terms kept.
        slope: c > 0, the largest slope of the loss.
        learning_rate: η, 0 < η < 1/λ.
        regularization: λ > 0.
        rounds: n ≥ 0, the number of examples seen; by default the bound holds for all n.

    Example:
        >>> options = {"slope": 1.0, "learning_rate": 0.5, "regularization": 1.0}
        >>> print(truncation_error(1.0, buffer=2, **options))
        0.25
    """
    diagonal = positive("diagonal", diagonal)
    buffer = jnp.asarray(non_negative("buffer", buffer))
    slope, regularization = positive("slope", slope), positive("regularization", regularization)
    # β^τ by its logarithm, as 1 − ηλ rounds to one where ηλ is small.
    log_beta = jnp.log1p(-_decay(learning_rate, regularization))
    kept = jnp.exp(buffer * log_beta)
    if rounds is not None:
        examples = jnp.asarray(non_negative("rounds", rounds))
        kept *= -jnp.expm1(jnp.maximum(examples - buffer, 0) * log_beta)
    return kept * slope * jnp.sqrt(diagonal) / regularization


def _decay(learning_rate, regularization) -> jax.Array:
    """ηλ, in (0, 1)."""
    learning_rate = number("learning_rate", learning_rate)
    name, hint = "learning_rate * regularization", "the decay factor 1 − ηλ must be positive"
    return jnp.asarray(between(name, learning_rate * regularization, 0, 1, hint), float)
