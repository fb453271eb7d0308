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
from noisy_jax.validation.arrays import check_axes, check_shape, real
from noisy_jax.validation.numbers import non_negative, number, positive
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import Array, ArrayLike, concrete

_ROUNDING = 1e-4  # of wᵀKw in float32, relative to Σ_ij |w_i K_ij w_j|


@plain_signature
class Drift(NamedTuple):
    """Size and moves of a sequence of comparators g_1, …, g_m, one for each of m rounds.

    Comparators are the functions that a learner is compared with, here in the Hilbert space of its
    kernel. `bounds.margin_errors` and `bounds.mistakes` take a drift; `bounds.drift` computes it
    from a sequence. All fields are finite numbers `[]`, at least 0, in the norm of the space.

    Attributes:
        norm: B ≥ ‖g_t‖ for all t, above 0.
        length: D_1 ≥ Σ_t ‖g_{t+1} − g_t‖; zero for one fixed comparator.
        squared_length: D_2 ≥ Σ_t ‖g_{t+1} − g_t‖². The bounds use min(D_2, D_1²).

    Example:
        >>> import noisy_jax as nj
        >>> still = nj.bounds.Drift(norm=2.0, length=0.0, squared_length=0.0)
        >>> options = {"horizon": 100, "comparator_margin": 1.0, "comparator_loss": 0.0}
        >>> print(nj.bounds.mistakes(1.0, still, **options).mistakes)
        4.0
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
    """Computes the `Drift` of a sequence of comparators: their size, and how far they move.

        max_t ‖g_t‖,   Σ_t ‖g_{t+1} − g_t‖,   Σ_t ‖g_{t+1} − g_t‖²

    g_t is the function that a learner is compared with in round t = 1, …, m. Take the comparators
    whose loss K you give to `bounds.margin_errors` or `bounds.mistakes`, not the functions of the
    learner itself, for which these bounds do not hold.

    Args:
        weights: `[m, n]`, one comparator a row, one row a round: coefficients a of g = Σ_i a_i
            k(x_i, ·) over n points or, without `gram`, the n weights of a linear function.
        gram: `[n, n]`, k(x_i, x_j) of the n points, symmetric and positive semi-definite, or
            ValueError; `None`, the default, for linear functions.

    Returns:
        `Drift(norm, length, squared_length)`, numbers `[]` in the order above.

    Source: Online Learning with Kernels, Sec. IV.B.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> found = nj.bounds.drift(jnp.array([[3.0, 4.0], [3.0, 4.0], [0.0, 4.0]]))
        >>> print(found.norm, found.length, found.squared_length)
        5.0 3.0 9.0
    """
    check_axes("weights", weights, "[m, n]", ": one comparator a row")
    weights = jnp.asarray(number("weights", weights, shape=None), float)
    if not weights.size:
        raise ValueError(f"weights must have at least one number, got {list(weights.shape)}")
    if gram is not None:
        gram, n = real("gram", gram), weights.shape[1]
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
    """Returns a bound on the margin errors of `learners.norma`, and the settings that it holds for.

    A margin error is a round with y_t f_t(x_t) ≤ ρ, where y_t = ±1 is the label and f_t the
    learner's function. With γ = μ − ρ, C = ¼X²(B² + B(√(m D_2) + D_1)) and h = γ/(1 + √(1 + γK/C)),

        M_ρ ≤ (√(C/γ²) + √(K/γ + C/γ²))²,   η' = 2h/X²,   λη' = √(D_2/m)/B,   η = η'/(1 + λη').

    M_ρ counts them over m rounds. The bound holds in every run of `learners.norma` on clean data
    with `losses.hinge(margin=ρ)`, learning rate η, regularization λ and all terms kept
    (`engine.everything(m)`). It holds against every sequence of functions g_t in the kernel's space
    with Σ_t max(0, μ − y_t g_t(x_t)) ≤ K that moves no more than `drift`. If K = 0 and nothing
    moves, M_ρ ≤ X²B²/(μ − ρ)².

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        drift: a `Drift`, size B > 0 and moves D_1, D_2 of the comparators g_t (`bounds.drift`).
            Where D_1² is smaller than D_2, it takes the place of D_2.
        horizon: m > 0, number of rounds.
        margin: ρ ≥ 0, the margin of the learner's loss.
        comparator_margin: μ > ρ, the margin in the comparators' loss.
        comparator_loss: K ≥ 0, the comparators' loss, summed over all rounds.

    Returns:
        A named tuple of numbers `[]`: `learning_rate` η, `regularization` λ, `margin` ρ, and
        `mistakes`, the bound on M_ρ.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Online Learning with Kernels, Eqs. 30-32 and Theorem 2, as printed; h in a form without
    cancellation. (At ρ = μ/2 Sec. IV.C prints 4X²B²/μ for 4X²B²/μ², and Lemma 7 "maximised" for
    minimised: h is the z that minimises (K + C/z)/(γ − z).)

    Example:
        >>> import noisy_jax as nj
        >>> still = nj.bounds.Drift(norm=2.0, length=0.0, squared_length=0.0)
        >>> found = nj.bounds.margin_errors(
        ...     1.0, still, horizon=100, margin=0.5, comparator_margin=1.0, comparator_loss=0.0)
        >>> print(found.mistakes)
        16.0
        >>> learner = nj.learners.norma(
        ...     nj.kernels.gaussian(length_scale=1.0), nj.losses.hinge(margin=0.5),
        ...     learning_rate=found.learning_rate, regularization=found.regularization,
        ...     buffer=nj.engine.everything(100))
    """
    margin = jnp.asarray(non_negative("margin", margin, shape=None), float)
    hint = "the comparators must have a larger margin than the learner"
    name = "comparator_margin"
    comparator_margin = real(name, number(name, comparator_margin, shape=None))
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
    """Returns a bound on the mistakes of `learners.norma`, and the settings that it holds for.

    A mistake is a round with y_t f_t(x_t) ≤ 0, where y_t = ±1 is the label and f_t the learner's
    function. With C = ¼X²(B² + B(√(m D_2) + D_1)) and h = μ/(1 + √(1 + μK/C)),

        M ≤ (√(C/μ²) + √(K/μ + C/μ²))²,   η' = 2h/X²,   λη' = √(D_2/m)/B,   η = η'/(1 + λη').

    M counts them over m rounds. The bound holds in every run of `learners.norma` on clean data with
    `losses.hinge(margin=ρ)` at ρ = μ − h or ρ = 0, learning rate η, regularization λ and all terms
    kept (`engine.everything(m)`). It holds against every sequence of functions g_t in the kernel's
    space with Σ_t max(0, μ − y_t g_t(x_t)) ≤ K that moves no more than `drift`. If K = 0, then
    ρ = μ/2. If nothing moves either, M ≤ X²B²/μ², and the perceptron attains it on orthogonal
    instances.

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        drift: a `Drift`, size B > 0 and moves D_1, D_2 of the comparators g_t (`bounds.drift`).
            Where D_1² is smaller than D_2, it takes the place of D_2.
        horizon: m > 0, number of rounds.
        comparator_margin: μ > 0, the margin in the comparators' loss.
        comparator_loss: K ≥ 0, the comparators' loss, summed over all rounds.

    Returns:
        A named tuple of numbers `[]`: `learning_rate` η, `regularization` λ, `margin` ρ = μ − h,
        and `mistakes`, the bound on M.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Online Learning with Kernels, Theorem 3, as printed.

    Example:
        >>> import noisy_jax as nj
        >>> still = nj.bounds.Drift(norm=2.0, length=0.0, squared_length=0.0)
        >>> found = nj.bounds.mistakes(
        ...     1.0, still, horizon=100, comparator_margin=1.0, comparator_loss=0.0)
        >>> print(found.mistakes, found.margin)
        4.0 0.5
    """
    gap = positive("comparator_margin", comparator_margin, shape=None)
    return _tuned(diagonal, drift, horizon, gap, comparator_loss, None)


def _tuned(diagonal, drift, horizon, gap, loss, margin) -> MistakeGuarantee:
    """Theorem 2 at γ; if no margin is given, the ρ = γ − h of Theorem 3."""
    drift = instance("drift", drift, Drift, "bounds.drift measures it")
    diagonal = jnp.asarray(positive("diagonal", diagonal, shape=None), float)
    norm = real("drift.norm", positive("drift.norm", drift.norm, shape=None))
    length = real("drift.length", non_negative("drift.length", drift.length, shape=None))
    squared_length, name = drift.squared_length, "drift.squared_length"
    squared_length = real(name, non_negative(name, squared_length, shape=None))
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
    """Returns a bound on the number of updates, and so of mistakes, of `learners.alma`.

        m ≤ (R/2 + √(R²/4 + K/γ + A))² − A,   R = max(2, A)/(Cγ),   A = C² + 2θC

    m counts the rounds in which the learner changes its weights; a mistake, y_t f(x_t) ≤ 0 for a
    label y_t = ±1, is one of them. The bound holds in every run on clean data, of any length, in
    which the learner drops no term (`buffer=engine.everything(T)`). Its instances are scaled to
    φ_t = k(x_t, ·)/√k(x_t, x_t), of norm one in the kernel's space. The comparator is any u of norm
    one in that space with Σ_t max(0, γ − y_t⟨u, φ_t⟩) ≤ K. For K = 0, when u separates the data
    with margin γ, the result is the smaller of this bound with R = max(1, A)/(Cγ) and of
    ((A + 2)/(2Cγ))² + A + 2.

    Args:
        threshold: θ ≥ 0 of the learner: it makes its k-th update where y f(x) ≤ θ/√k.
        scale: C > 0 of the learner, whose k-th step is C/√k; √2 by default.
        comparator_margin: γ > 0, the margin in the comparator's loss.
        comparator_loss: K ≥ 0, the comparator's loss, summed over all rounds; 0 by default.

    Returns:
        The bound on m, `[]`.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Gentile, A New Approximate Maximal Margin Classification Algorithm (2001), p = 2, for
    separable data: 2(2/α − 1)²/γ² + 8/α − 4 for θ = √8(1 − α)/α and C = √2. The bound for K > 0 is
    derived here. (With K > 0 and A = 1, R = 1/(Cγ) would need ⟨u, w_k⟩ ≥ 0 for the weights w_k of
    all updates: a test has a counterexample.)

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.bounds.alma(threshold=0.0, comparator_margin=0.1).round())
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
