"""How many mistakes online gradient descent on the soft margin makes while the target drifts.

    f_1 = 0,   f_{t+1} = (1 − ηλ) f_t + η 1{y_t f_t(x_t) ≤ ρ} y_t k(x_t, ·)

against comparators g_1, …, g_m that may move too, as far as a `Drift` says. The bounds hold on
every stream: nothing in them is an expectation.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.matrices import check_gram
from noisy_jax.validation import (
    check_finite,
    check_non_negative,
    check_positive,
    check_shape,
    concrete,
    given,
)

_ROUNDING = 1e-4  # of wᵀKw in float32, relative to Σ_ij |w_i K_ij w_j|


class Drift(NamedTuple):
    """How far a sequence of comparators g_1, …, g_m moves.

    Attributes:
        norm: B ≥ ‖g_t‖.
        length: D_1 ≥ Σ_t ‖g_{t+1} − g_t‖.
        squared_length: D_2 ≥ Σ_t ‖g_{t+1} − g_t‖²; D_1² is as good, and the bounds take the
            smaller one. Zero for a comparator that does not move.
    """

    norm: chex.Numeric
    length: chex.Numeric
    squared_length: chex.Numeric


class MistakeGuarantee(NamedTuple):
    """How many mistakes a theorem allows at most, and the hyper-parameters at which it does.

    Attributes:
        learning_rate: `[]`, η.
        regularization: `[]`, λ; zero against a comparator that does not move.
        margin: `[]`, ρ of the soft margin max(0, ρ − yf) which the learner descends on.
        mistakes: `[]`, bound on the number of rounds; of those with y_t f_t(x_t) ≤ ρ by
            `margin_errors`, ≤ 0 by `mistakes`.
    """

    learning_rate: chex.Array
    regularization: chex.Array
    margin: chex.Array
    mistakes: chex.Array


@jax.default_matmul_precision("highest")
def drift(weights: chex.Array, gram: chex.Array | None = None) -> Drift:
    """How far a sequence of comparators moves, exactly.

    It is to be measured on the comparators: the theorems do not hold with the drift of a learner.

    Args:
        weights: `[m, n]`, g_t as coefficients of n points, or as a vector of weights.
        gram: `[n, n]`, k of the n points; without it norms are Euclidean.

    Returns:
        `Drift` of `[]` arrays.

    Raises:
        ValueError: shapes that do not match, a Gram matrix that is not symmetric or by which a
            squared norm is negative, NaN or infinity.

    Source: Online Learning with Kernels, Sec. IV.B.

    Example:
        >>> import jax.numpy as jnp
        >>> found = drift(jnp.array([[3.0, 4.0], [3.0, 4.0], [0.0, 4.0]]))
        >>> print(found.norm, found.length, found.squared_length)
        5.0 3.0 9.0
    """
    weights = jnp.asarray(weights, float)
    if weights.ndim != 2 or 0 in weights.shape:
        raise ValueError(
            f"weights must be [m, n], one comparator a round, got {list(weights.shape)}"
        )
    check_finite("weights", weights)
    if gram is not None:
        n = weights.shape[1]
        check_shape("gram", gram, (n, n), f"as weights are [m, {n}]")
        check_gram("gram", gram, n)
        gram = jnp.asarray(gram, float)
    norms = _squared_norms("‖g_t‖²", weights, gram)
    moves = _squared_norms("‖g_{t+1} − g_t‖²", jnp.diff(weights, axis=0), gram)
    return Drift(jnp.sqrt(norms.max()), jnp.sqrt(moves).sum(), moves.sum())


def _squared_norms(name, weights, gram) -> chex.Array:
    """wᵀKw of each row; refused where it is negative by more than rounding."""
    if gram is None:
        return jnp.sum(weights**2, axis=1)
    squares = jnp.sum(weights * (weights @ gram), axis=1)
    known = concrete(squares)
    if known is not None and np.any(known < 0):
        rows = np.abs(weights[known < 0])
        share = known[known < 0] / np.sum(rows * (rows @ np.abs(gram)), axis=1)
        if share.min() < -_ROUNDING:
            raise ValueError(
                f"gram must be positive semi-definite, but by it {name} is as low as "
                f"{known.min():.2g}; is the kernel positive definite?"
            )
    return jnp.maximum(squares, 0)


def margin_errors(
    diagonal: chex.Numeric,
    drift: Drift,
    *,
    horizon: chex.Numeric,
    margin: chex.Numeric,
    comparator_margin: chex.Numeric,
    comparator_loss: chex.Numeric,
) -> MistakeGuarantee:
    """How many margin errors, y_t f_t(x_t) ≤ ρ, there are at most against drifting comparators.

    With γ = μ − ρ, C = ¼X²(B² + B(√(m D_2) + D_1)) and h = γ/(1 + √(1 + γK/C)),

        M_ρ ≤ (√(C/γ²) + √(K/γ + C/γ²))²,   η' = 2h/X²,   λη' = √(D_2/m)/B,   η = η'/(1 + λη'),

    for every sequence g_t of this drift with Σ_t max(0, μ − y_t g_t(x_t)) ≤ K. Where K = 0 and
    nothing drifts, M_ρ ≤ X²B²/(μ − ρ)².

    Source: Online Learning with Kernels, Eqs. 30-32 and Theorem 2, as printed; h in a form in which
    nothing cancels. (At ρ = μ/2 Sec. IV.C prints 4X²B²/μ for 4X²B²/μ², and Lemma 7 "maximised" for
    minimised: h is the z that minimises (K + C/z)/(γ − z).)

    Args:
        diagonal: X² > 0.
        drift: of the comparators, with B > 0.
        horizon: m > 0 rounds.
        margin: ρ ≥ 0 of the learner.
        comparator_margin: μ > ρ, at which the comparators are judged.
        comparator_loss: K ≥ 0, their cumulative loss.

    Raises:
        ValueError: an argument out of range, or not finite.

    Example:
        >>> still = Drift(norm=2.0, length=0.0, squared_length=0.0)
        >>> options = {"horizon": 100, "comparator_margin": 1.0, "comparator_loss": 0.0}
        >>> print(margin_errors(1.0, still, margin=0.5, **options).mistakes)
        16.0
    """
    check_non_negative("margin", margin, "a negative one would reward mistakes")
    rho, mu = concrete(margin), concrete(comparator_margin)
    if rho is not None and mu is not None and not np.all(mu > rho):
        raise ValueError(
            f"comparator_margin must be above margin = {margin}, got {comparator_margin}: the "
            "comparators must be better than what the learner is asked for"
        )
    gap = jnp.asarray(comparator_margin - margin, float)
    return _tuned(diagonal, drift, horizon, gap, comparator_loss, jnp.asarray(margin, float))


def mistakes(
    diagonal: chex.Numeric,
    drift: Drift,
    *,
    horizon: chex.Numeric,
    comparator_margin: chex.Numeric,
    comparator_loss: chex.Numeric,
) -> MistakeGuarantee:
    """How many mistakes, y_t f_t(x_t) ≤ 0, there are at most against drifting comparators.

    The bound, η and λ of `margin_errors` at γ = μ. It holds for a learner of the margin
    ρ = μ − h, which is returned, and as well for ρ = 0; where K = 0 the former is μ/2.

    Source: Online Learning with Kernels, Theorem 3, as printed.

    Args:
        diagonal: X² > 0.
        drift: of the comparators, with B > 0.
        horizon: m > 0 rounds.
        comparator_margin: μ > 0, at which the comparators are judged.
        comparator_loss: K ≥ 0, their cumulative loss Σ_t max(0, μ − y_t g_t(x_t)).

    Raises:
        ValueError: an argument out of range, or not finite.

    Example:
        >>> still = Drift(norm=2.0, length=0.0, squared_length=0.0)
        >>> options = {"horizon": 100, "comparator_margin": 1.0, "comparator_loss": 0.0}
        >>> print(mistakes(1.0, still, **options).mistakes)
        4.0
    """
    check_positive("comparator_margin", comparator_margin, "μ, at which comparators are judged")
    mu = jnp.asarray(comparator_margin, float)
    return _tuned(diagonal, drift, horizon, mu, comparator_loss, None)


def _tuned(diagonal, drift, horizon, gap, loss, margin) -> MistakeGuarantee:
    """Theorem 2 at γ; with no margin given, the ρ = γ − h of Theorem 3."""
    check_positive("diagonal", diagonal, "X², the largest k(x, x)")
    if not isinstance(drift, Drift):
        raise ValueError(f"drift must be a Drift, as bounds.drift measures it, got {given(drift)}")
    check_positive("drift.norm", drift.norm, "B, the largest norm of a comparator")
    check_non_negative("drift.length", drift.length, "it is a sum of distances")
    check_non_negative("drift.squared_length", drift.squared_length, "it is a sum of squares")
    check_positive("horizon", horizon, "the number of rounds m")
    check_non_negative("comparator_loss", loss, "it bounds a sum of losses")
    gap = jnp.where(gap > 0, gap, jnp.nan)  # what is traced is not refused
    squared_length = jnp.asarray(jnp.minimum(drift.squared_length, drift.length**2), float)
    speed = jnp.sqrt(horizon * squared_length)
    constant = diagonal / 4 * (drift.norm**2 + drift.norm * (speed + drift.length))
    h = gap / (1 + jnp.sqrt(1 + gap * loss / constant))
    rate = 2 * h / diagonal
    forgetting = speed / (horizon * drift.norm)
    root = jnp.sqrt(constant) / gap
    return MistakeGuarantee(
        rate / (1 + forgetting),
        forgetting / rate,
        gap - h if margin is None else margin,
        (root + jnp.sqrt(loss / gap + root**2)) ** 2,
    )
