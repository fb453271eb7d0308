"""Guarantees of online gradient descent on the regularised risk, in the space of a kernel (NORMA).

    f_1 = 0,   f_{t+1} = (1 − η_t λ) f_t − η_t ℓ'(f_t(x_t), y_t) k(x_t, ·)

They hold on every stream: nothing in them is an expectation. X² ≥ k(x_t, x_t) throughout.
"""

from typing import NamedTuple

import chex
import jax.numpy as jnp

from noisy_jax.validation import check_decay, check_non_negative, check_positive


class APriori(NamedTuple):
    """How large any hypothesis of a run can become.

    Attributes:
        coefficients: `[]`, c/λ ≥ Σ_i |α_i|.
        norm: `[]`, U = cX/λ ≥ ‖f_t‖.
        value: `[]`, cX²/λ ≥ |f_t(x)|.
    """

    coefficients: chex.Array
    norm: chex.Array
    value: chex.Array


class RiskGuarantee(NamedTuple):
    """What Theorems 4 and 6 promise of the regularised risk for m rounds.

    Attributes:
        learning_rate: `[]`, η of η_t = η/√t.
        regret: `[]`, bound on the cumulative regularised risk above that of the best g.
        second_moment: `[]`, 4c²X² ≥ ‖ℓ'k(x_t, ·) + λf_t‖².
    """

    learning_rate: chex.Array
    regret: chex.Array
    second_moment: chex.Array


def a_priori(
    diagonal: chex.Numeric, *, slope: chex.Numeric, regularization: chex.Numeric
) -> APriori:
    """How large a hypothesis can become: Σ_i |α_i| ≤ c/λ, ‖f_t‖ ≤ cX/λ and |f_t(x)| ≤ cX²/λ.

    They follow from S_{t+1} ≤ (1 − η_t λ)S_t + η_t c for S_t = Σ_i |α_i|, and so hold for every
    schedule η_t < 1/λ, and whatever terms are dropped. ‖ĝ‖ ≤ cX/λ for the minimiser of the
    regularised risk too. Without an offset, that is; one is not regularised, and not bounded.

    Source: Online Learning with Kernels, Eq. 17 (the norm and the value); Σ_i |α_i| here.

    Args:
        diagonal: X² > 0.
        slope: c ≥ |ℓ'|; 1 for the soft margin, logistic, ε-insensitive and Huber's loss. (The
            squared loss has none.)
        regularization: λ > 0.

    Raises:
        ValueError: an argument that is not positive.

    Example:
        >>> print(a_priori(4.0, slope=1.0, regularization=0.5).norm)
        4.0
    """
    _check_diagonal(diagonal)
    _check_slope(slope, regularization)
    ratio = jnp.asarray(slope / regularization, float)
    return APriori(ratio, ratio * jnp.sqrt(diagonal), ratio * diagonal)


def regularized_risk(
    diagonal: chex.Numeric,
    *,
    horizon: chex.Numeric,
    slope: chex.Numeric,
    regularization: chex.Numeric,
    learning_rate: chex.Numeric | None = None,
    growing_memory: bool = False,
    as_printed: bool = False,
) -> RiskGuarantee:
    """Guarantee of rates η_t = η/√t on the regularised risk, against every g.

        Σ_t [ℓ(f_t(x_t), y_t) + ½λ‖f_t‖²] ≤ m R_reg[g] + a√m + b
        a = 2λU²(2ηλ + 1/(ηλ)),   b = U²/(2η),   U = cX/λ

    ηλ = 1/√2 makes a smallest, 4√2 λU². With the slowly growing memory of Theorem 6, which keeps
    s_t = min(t, max(t_0, ⌈t^(½ + ε)⌉)) terms (`engine.growing`), a = 2λU²(6ηλ + 1/(ηλ)), smallest
    at ηλ = 1/√6.

    From independent examples with a risk in [0, L], the average f̄ = (1/m)Σ_{t=1}^m f_t has, with
    probability 1 − δ, E[ℓ(f̄(x), y)] + ½λ‖f̄‖² ≤ R_reg[g] + (a + L√(2 ln(1/δ)))/√m + b/m.
    (Corollary 5, which prints a sum to m − 1; the m hypotheses that predict are meant. f̄ is what
    `wrappers.averaged` predicts with.)

    Source: Online Learning with Kernels, Theorem 4, as printed, and Theorem 6, repaired: printed
    with 10 for 6, the proof allows ‖f_t‖ = 3U and then takes gradients for no longer than 2cX. As
    dropping terms does not add to Σ_i |α_i|, ‖f_t‖ ≤ U holds and the smaller constant with it. The
    printed s_t also falls after t_0.

    Args:
        diagonal: X² > 0.
        horizon: m > 0 rounds.
        slope: c ≥ |ℓ'|, as in `a_priori`.
        regularization: λ > 0.
        learning_rate: η < 1/λ of η_t = η/√t; the one that makes a smallest by default.
        growing_memory: for a run that drops terms as in Theorem 6.
        as_printed: the constant as printed, to compare.

    Returns:
        `RiskGuarantee`, with η, a√m + b for the regret, and 4c²X² for the second moment.

    Raises:
        ValueError: an argument that is not positive, or η ≥ 1/λ.

    Example:
        >>> options = {"slope": 1.0, "regularization": 1.0, "learning_rate": 0.5}
        >>> print(regularized_risk(1.0, horizon=100, **options).regret)
        61.0
    """
    _check_diagonal(diagonal)
    check_positive("horizon", horizon, "the number of rounds m")
    _check_slope(slope, regularization)
    gradients = (10 if as_printed else 6) if growing_memory else 2
    if learning_rate is None:
        learning_rate = 1 / (jnp.sqrt(gradients) * regularization)
    decay = _decay(learning_rate, regularization)
    square = diagonal * slope**2 / regularization  # λU²
    a = 2 * square * (gradients * decay + 1 / decay)
    regret = a * jnp.sqrt(horizon) + square / (2 * decay)
    return RiskGuarantee(jnp.asarray(learning_rate, float), regret, 4 * diagonal * slope**2)


def truncation_error(
    diagonal: chex.Numeric,
    *,
    buffer: chex.Numeric,
    slope: chex.Numeric,
    learning_rate: chex.Numeric,
    regularization: chex.Numeric,
    rounds: chex.Numeric | None = None,
    as_printed: bool = False,
) -> chex.Array:
    """How far f is, in norm, from the sum of its τ newest terms, at most, for a constant rate η.

    cXη Σ_{j=τ}^{n−1} β^j = (β^τ − β^n) cX/λ after n rounds, below β^τ cX/λ after any number, with
    β = 1 − ηλ. Attained where all x are equal and every round has the slope c. Values |f(x)| differ
    by X times as much at most.

    It compares the terms of one run. A run that truncates as it goes on has coefficients of its
    own, which may differ by more.

    Source: Online Learning with Kernels, Proposition 1, whose sum has one term too many, up to
    j = n.

    Args:
        diagonal: X² > 0.
        buffer: τ ≥ 0, the number of terms kept.
        slope: c ≥ |ℓ'|, as in `a_priori`.
        learning_rate: η < 1/λ.
        regularization: λ > 0.
        rounds: n, the examples seen; any number by default.
        as_printed: the printed sum, to compare.

    Raises:
        ValueError: an argument out of range, or η ≥ 1/λ.

    Example:
        >>> options = {"slope": 1.0, "learning_rate": 0.5, "regularization": 1.0}
        >>> print(truncation_error(1.0, buffer=2, **options))
        0.25
    """
    _check_diagonal(diagonal)
    check_non_negative("buffer", buffer, "it is the number of terms that are kept")
    _check_slope(slope, regularization)
    # β^τ by its logarithm, as 1 − ηλ rounds to one where ηλ is small.
    log_beta = jnp.log1p(-_decay(learning_rate, regularization))
    kept = jnp.exp(buffer * log_beta)
    if rounds is not None:
        check_non_negative("rounds", rounds, "it is the number of examples seen")
        last = rounds + 1 if as_printed else rounds
        kept *= -jnp.expm1(jnp.maximum(last - buffer, 0) * log_beta)
    return kept * slope * jnp.sqrt(diagonal) / regularization


def _check_diagonal(diagonal) -> None:
    check_positive("diagonal", diagonal, "X², the largest k(x, x)")


def _check_slope(slope, regularization) -> None:
    check_positive("slope", slope, "c, the largest |ℓ'|, which the squared loss has not")
    check_positive("regularization", regularization, "λ of the term ½λ‖f‖²")


def _decay(learning_rate, regularization):
    """ηλ; refused outside (0, 1), or NaN where it is traced."""
    check_positive("learning_rate", learning_rate, "η, the factor that multiplies the gradient")
    check_decay(learning_rate, regularization)
    decay = jnp.asarray(learning_rate * regularization, float)
    return jnp.where((decay > 0) & (decay < 1), decay, jnp.nan)
