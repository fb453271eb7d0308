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
        regret: a√m + b, bound on the cumulative regularized risk minus the best function's.
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
    """Returns a learning rate for `learners.norma`, and a bound on its regularized risk.

        Σ_t [ℓ(f_t(x_t), y_t) + ½λ‖f_t‖²] ≤ m R_reg[g] + a√m + b
        a = 2λU²(2ηλ + 1/(ηλ)),   b = U²/(2η),   U = cX/λ

    f_t is the learner's function in round t = 1, …, m, g any function in the space of its kernel,
    and R_reg[g] = (1/m)Σ_t ℓ(g(x_t), y_t) + ½λ‖g‖² the regularized risk, which
    `comparators.regularized` minimizes. The bound holds in every run on clean data, for a convex
    loss ℓ with |ℓ'| ≤ c, at the rates η_t = η/√t, without an offset, with all terms kept
    (`engine.everything(m)`). With a memory of `engine.growing` instead, 6ηλ takes the place of 2ηλ.

    At every schedule η_t < 1/λ, whichever terms are dropped, ‖f_t‖ ≤ U, |f_t(x)| ≤ cX²/λ, and the
    coefficients have Σ_i |α_i| ≤ c/λ: in a step this sum S becomes at most (1 − η_t λ)S + η_t c.

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        horizon: m > 0, number of rounds.
        slope: c > 0, the largest |ℓ'|: 1 for the hinge, the logistic and the absolute loss. The
            squared loss has none.
        regularization: λ > 0.
        learning_rate: η, 0 < η < 1/λ. The default makes a smallest: 1/(√2 λ), or 1/(√6 λ) with a
            growing memory.
        growing_memory: whether the run drops terms, by `engine.growing`; False by default.

    Returns:
        A named tuple of numbers `[]`: `learning_rate` η; `regret`, the bound a√m + b on the sum
        minus m R_reg[g]; and `second_moment`, a bound 4c²X² on the squared norm of each gradient.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Online Learning with Kernels, Theorem 4, and Theorem 6, repaired: dropping terms does
    not increase Σ_i |α_i|, so that ‖f_t‖ ≤ U holds, and with it a smaller constant than printed.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.regularized_risk(
        ...     1.0, horizon=100, slope=1.0, regularization=1.0, learning_rate=0.5)
        >>> print(theory.regret)
        61.0
        >>> learner = nj.learners.norma(
        ...     nj.kernels.gaussian(length_scale=1.0), nj.losses.hinge(), regularization=1.0,
        ...     learning_rate=lambda t: 0.5 / (t + 1) ** 0.5, buffer=nj.engine.everything(100))
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
    """Returns a bound on the risk, on new examples, of the average function of `learners.norma`.

        E[ℓ(f̄(x), y)] + ½λ‖f̄‖² ≤ R_reg[g] + (a + L√(2 ln(1/δ)))/√m + b/m

    f̄ = (1/m)Σ_t f_t is the average of the functions with which the learner predicts in m rounds
    (`wrappers.averaged`), g any function in the space of its kernel, and R_reg[g] = (1/m)Σ_t
    ℓ(g(x_t), y_t) + ½λ‖g‖² its regularized risk on these rounds. With probability 1 − δ over m
    independent clean examples of one distribution, the inequality holds for all g; the expectation
    on the left is over a new example. a = 2λU²(2ηλ + 1/(ηλ)) and b = U²/(2η), with U = cX/λ, as in
    `regularized_risk`. Its conditions apply: a convex loss, rates η/√t, no offset, and all terms
    kept.

    Args:
        diagonal: X² > 0, the largest k(x, x).
        horizon: m > 0, number of rounds.
        slope: c > 0, the largest |ℓ'|, such as 1 for the hinge loss.
        regularization: λ > 0.
        largest_risk: L ≥ ℓ(f(x), y) + ½λ‖f‖² for all examples and all f with ‖f‖ ≤ cX/λ. For
            `losses.hinge(margin=ρ)` with ρ ≤ X²/λ, L = 5X²/(2λ) is enough.
        failure_probability: δ in (0, 1).
        learning_rate: η, 0 < η < 1/λ; 1/(√2 λ) by default.

    Returns:
        The right side minus R_reg[g], `[]`.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Online Learning with Kernels, Corollary 5, where the printed sum in f̄ stops at m − 1.

    Example:
        >>> import noisy_jax as nj
        >>> options = {"slope": 1.0, "regularization": 1.0, "largest_risk": 2.5}
        >>> bound = nj.bounds.online_to_batch(1.0, horizon=100, failure_probability=0.05, **options)
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
    """Returns a bound on the change of a function of `learners.norma` if old terms are dropped.

        ‖f − f_τ‖ ≤ cXη Σ_{j=τ}^{n−1} β^j = (β^τ − β^n) cX/λ,   β = 1 − ηλ

    f = Σ_i α_i k(x_i, ·) is the learner's function after n rounds at the constant learning rate η,
    with all terms kept and any loss with |ℓ'| ≤ c. f_τ is the sum of the terms of its τ newest
    rounds, and the norm is the one of the kernel's space. The values f(x) and f_τ(x) differ by at
    most X times the bound. It is attained if all x are equal and |ℓ'| = c in every round. A run
    that drops terms while it learns has other coefficients, and may differ by more.

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        buffer: τ ≥ 0, the number of newest rounds whose terms are kept.
        slope: c > 0, the largest |ℓ'|, such as 1 for the hinge loss.
        learning_rate: η, 0 < η < 1/λ.
        regularization: λ > 0.
        rounds: n ≥ 0, number of rounds; zero error if n ≤ τ. By default the bound is β^τ cX/λ,
            which holds for all n.

    Returns:
        The bound, `[]`.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Online Learning with Kernels, Proposition 1.

    Example:
        >>> import noisy_jax as nj
        >>> options = {"slope": 1.0, "learning_rate": 0.5, "regularization": 1.0}
        >>> print(nj.bounds.truncation_error(1.0, buffer=2, **options))
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
