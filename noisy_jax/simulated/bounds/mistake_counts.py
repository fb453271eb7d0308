"""The largest number of mistakes of online classifiers, on every stream.

Online gradient descent on the hinge loss,

    f_1 = 0,   f_{t+1} = (1 − ηλ) f_t + η 1{y_t f_t(x_t) ≤ ρ} y_t k(x_t, ·),

is compared with functions g_1, …, g_m that may change as well; a `Drift` says how far they move.
`alma` compares ALMA₂ with one fixed function u.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import plain_signature
from noisy_jax.linalg.matrices import check_gram
from noisy_jax.validation.arrays import check_axes, check_shape
from noisy_jax.validation.numbers import non_negative, number, positive
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import Array, ArrayLike, concrete

_ROUNDING = 1e-4  # of wᵀKw in float32, relative to Σ_ij |w_i K_ij w_j|


@plain_signature
class Drift(NamedTuple):
    """Size and moves of comparators g_1, …, g_m in the kernel's Hilbert space; all `[]`.

    Attributes:
        norm: B ≥ ‖g_t‖ for all t.
        length: D_1 ≥ Σ_t ‖g_{t+1} − g_t‖, zero if all are equal.
        squared_length: D_2 ≥ Σ_t ‖g_{t+1} − g_t‖². The bounds use min(D_2, D_1²).
    """

    norm: ArrayLike
    length: ArrayLike
    squared_length: ArrayLike


class MistakeGuarantee(NamedTuple):
    """The largest number of mistakes, with the hyper-parameters that it holds for; all `[]`.

    Attributes:
        learning_rate: η.
        regularization: λ; zero against a comparator that does not move.
        margin: ρ of the hinge loss max(0, ρ − yf) that the learner descends on.
        mistakes: bound on the number of rounds with y_t f_t(x_t) ≤ ρ for `margin_errors`, with
            y_t f_t(x_t) ≤ 0 for `mistakes`.
    """

    learning_rate: Array
    regularization: Array
    margin: Array
    mistakes: Array


@jax.default_matmul_precision("highest")
def drift(weights: Array, gram: Array | None = None) -> Drift:
    """The drift of a sequence of comparators: max ‖g_t‖, Σ ‖g_{t+1} − g_t‖, Σ ‖g_{t+1} − g_t‖².

    The bounds do not hold with the drift of a learner's iterates.

    Args:
        weights: `[m, n]`, one comparator a row: coefficients a of g = Σ_i a_i k(x_i, ·) over n
            points, or the weights of a linear function.
        gram: `[n, n]`, k(x_i, x_j) of the n points; `None` for linear functions.

    Source: Online Learning with Kernels, Sec. IV.B.

    Example:
        >>> import jax.numpy as jnp
        >>> found = drift(jnp.array([[3.0, 4.0], [3.0, 4.0], [0.0, 4.0]]))
        >>> print(found.norm, found.length, found.squared_length)
        5.0 3.0 9.0
    """
    check_axes("weights", weights, "[m, n]", ": one comparator a row")
    weights = jnp.asarray(number("weights", weights, shape=None), float)
    if not weights.size:
        raise ValueError(f"weights must have at least one number, got {list(weights.shape)}")
    if gram is not None:
        n = weights.shape[1]
        check_shape("gram", gram, (n, n), f"as weights are [m, {n}]")
        check_gram("gram", gram, n)
        gram = jnp.asarray(gram, float)
    norms = _squared_norms("‖g_t‖²", weights, gram)
    moves = _squared_norms("‖g_{t+1} − g_t‖²", jnp.diff(weights, axis=0), gram)
    return Drift(jnp.sqrt(norms.max()), jnp.sqrt(moves).sum(), moves.sum())


def _squared_norms(name, weights, gram) -> Array:
    """wᵀKw of each row; ValueError if one is negative by more than rounding."""
    if gram is None:
        return jnp.sum(weights**2, axis=1)
    squares = jnp.sum(weights * (weights @ gram), axis=1)
    sizes = jnp.sum(jnp.abs(weights) * (jnp.abs(weights) @ jnp.abs(gram)), axis=1)
    lowest = concrete(squares + _ROUNDING * sizes)
    if lowest is not None and np.any(lowest < 0):
        raise ValueError(
            f"gram must be positive semi-definite, but it gives {name} as low as "
            f"{squares.min():.2g}; is the kernel positive definite?"
        )
    return jnp.maximum(squares, 0)


def margin_errors(
    diagonal: ArrayLike,
    drift: Drift,
    *,
    horizon: ArrayLike,
    margin: ArrayLike,
    comparator_margin: ArrayLike,
    comparator_loss: ArrayLike,
) -> MistakeGuarantee:
    """Bound on the number of margin errors, y_t f_t(x_t) ≤ ρ, against drifting comparators.

    With γ = μ − ρ, C = ¼X²(B² + B(√(m D_2) + D_1)) and h = γ/(1 + √(1 + γK/C)),

        M_ρ ≤ (√(C/γ²) + √(K/γ + C/γ²))²,   η' = 2h/X²,   λη' = √(D_2/m)/B,   η = η'/(1 + λη'),

    for every sequence g_t of this drift with Σ_t max(0, μ − y_t g_t(x_t)) ≤ K. If K = 0 and
    nothing drifts, M_ρ ≤ X²B²/(μ − ρ)². It holds for `learners.norma` on clean data with
    `losses.hinge(margin=ρ)`, this η and λ, and all terms kept (`engine.everything(m)`).

    Source: Online Learning with Kernels, Eqs. 30-32 and Theorem 2, as printed; h in a form without
    cancellation. (At ρ = μ/2 Sec. IV.C prints 4X²B²/μ for 4X²B²/μ², and Lemma 7 "maximised" for
    minimised: h is the z that minimises (K + C/z)/(γ − z).)

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        drift: size and moves of the comparators, with B > 0.
        horizon: m > 0 rounds.
        margin: ρ ≥ 0 of the learner.
        comparator_margin: μ > ρ, margin of the comparators' loss.
        comparator_loss: K ≥ 0, their cumulative loss.

    Example:
        >>> import noisy_jax as nj
        >>> still = nj.bounds.Drift(norm=2.0, length=0.0, squared_length=0.0)
        >>> options = {"horizon": 100, "comparator_margin": 1.0, "comparator_loss": 0.0}
        >>> print(margin_errors(1.0, still, margin=0.5, **options).mistakes)
        16.0
    """
    margin = jnp.asarray(non_negative("margin", margin, shape=None), float)
    hint = "the comparators must have a larger margin than the learner"
    comparator_margin = number("comparator_margin", comparator_margin, shape=None)
    gap = positive("comparator_margin - margin", comparator_margin - margin, hint, shape=None)
    return _tuned(diagonal, drift, horizon, gap, comparator_loss, margin)


def mistakes(
    diagonal: ArrayLike,
    drift: Drift,
    *,
    horizon: ArrayLike,
    comparator_margin: ArrayLike,
    comparator_loss: ArrayLike,
) -> MistakeGuarantee:
    """Bound on the number of mistakes, y_t f_t(x_t) ≤ 0, against drifting comparators.

    The bound, η and λ are as for `margin_errors` at γ = μ, and so are the arguments, without the
    learner's margin. They hold for the learner named there with the margin ρ = μ − h, which is
    returned, and for ρ = 0 as well. If K = 0, μ − h = μ/2; if nothing drifts either, the perceptron
    attains the bound on orthogonal instances of norm X.

    Source: Online Learning with Kernels, Theorem 3, as printed.

    Example:
        >>> import noisy_jax as nj
        >>> still = nj.bounds.Drift(norm=2.0, length=0.0, squared_length=0.0)
        >>> options = {"horizon": 100, "comparator_margin": 1.0, "comparator_loss": 0.0}
        >>> print(mistakes(1.0, still, **options).mistakes)
        4.0
    """
    gap = positive("comparator_margin", comparator_margin, shape=None)
    return _tuned(diagonal, drift, horizon, gap, comparator_loss, None)


def _tuned(diagonal, drift, horizon, gap, loss, margin) -> MistakeGuarantee:
    """Theorem 2 at γ; if no margin is given, the ρ = γ − h of Theorem 3."""
    drift = instance("drift", drift, Drift, "bounds.drift measures it")
    diagonal = jnp.asarray(positive("diagonal", diagonal, shape=None), float)
    norm = positive("drift.norm", drift.norm, shape=None)
    length = non_negative("drift.length", drift.length, shape=None)
    squared_length = non_negative("drift.squared_length", drift.squared_length, shape=None)
    horizon = positive("horizon", horizon)
    loss = jnp.asarray(non_negative("comparator_loss", loss, shape=None), float)
    gap, squared_length = (
        jnp.asarray(value, float) for value in (gap, jnp.minimum(squared_length, length**2))
    )
    speed = jnp.sqrt(horizon * squared_length)
    constant = diagonal / 4 * (norm**2 + norm * (speed + length))
    h = gap / (1 + jnp.sqrt(1 + gap * loss / constant))
    rate = 2 * h / diagonal
    forgetting = speed / (horizon * norm)
    root = jnp.sqrt(constant) / gap
    return MistakeGuarantee(
        rate / (1 + forgetting),
        forgetting / rate,
        gap - h if margin is None else margin,
        (root + jnp.sqrt(loss / gap + root**2)) ** 2,
    )


def alma(
    *,
    threshold: ArrayLike,
    scale: ArrayLike = 2**0.5,
    comparator_margin: ArrayLike,
    comparator_loss: ArrayLike = 0.0,
) -> Array:
    """Bound `[]` on the number of updates, and so of mistakes, of `learners.alma` on clean data.

        m ≤ (R/2 + √(R²/4 + K/γ + A))² − A,   R = max(2, A)/(Cγ),   A = C² + 2θC

    It holds on every stream as long as the learner has dropped no term
    (`buffer=engine.everything(T)`), for its instances x_t/√k(x_t, x_t) of norm one in the kernel's
    space, against every u of norm one with Σ_t max(0, γ − y_t⟨u, x_t⟩) ≤ K. On separable data, K =
    0, the result is the smaller of this bound with R = max(1, A)/(Cγ) and of ((A + 2)/(2Cγ))² + A +
    2.

    Source: Gentile, A New Approximate Maximal Margin Classification Algorithm (2001), p = 2, for
    separable data: 2(2/α − 1)²/γ² + 8/α − 4 for θ = √8(1 − α)/α and C = √2. The bound for K > 0 is
    derived here. (With K > 0 and A = 1, R = 1/(Cγ) would need ⟨u, w_k⟩ ≥ 0 for the weights w_k of
    all updates: a test has a counterexample.)

    Args:
        threshold: θ ≥ 0: the learner makes its k-th update where y f(x) ≤ θ/√k (`learners.alma`).
        scale: C > 0 of the learner's steps C/√k; √2 by default.
        comparator_margin: γ > 0, margin of the comparator's loss.
        comparator_loss: K ≥ 0, its cumulative loss; 0 where it separates the data with margin γ.

    Example:
        >>> print(alma(threshold=0.0, comparator_margin=0.1).round())
        202.0
    """
    threshold, scale = non_negative("threshold", threshold), positive("scale", scale)
    gamma = positive("comparator_margin", comparator_margin)
    loss = jnp.asarray(non_negative("comparator_loss", comparator_loss), float)
    # With s_k = ⟨u, w_k⟩ and N_k ≥ 1 the norm that update k divides by, N_k² ≤ 1 + A/k, and
    # C Σ_k y_k⟨u, x_k⟩ = √m N_m s_{m+1} − Σ_{n<m} s_{n+1} (√(n+1) − √n N_n) ≤ max(2, A) √(m + A).
    growth = scale**2 + 2 * threshold * scale
    half = jnp.maximum(jnp.where(loss > 0, 2, 1), growth) / (2 * scale * gamma)
    updates = (half + jnp.sqrt(half**2 + loss / gamma + growth)) ** 2 - growth
    separable = ((growth + 2) / (2 * scale * gamma)) ** 2 + growth + 2
    return jnp.where(loss > 0, updates, jnp.minimum(updates, separable))
