"""Guarantees of the learners of linear predictors: η = B_w/√(GT), regret ≤ B_w √(GT).

Each takes the `moments` of the noisy data, the number of rounds T > 0 as `horizon`, and the
`radius` B_w > 0 of the ball that holds the weights. The papers print second moments G without the
cross term −2⟨w, x⟩y; here they are corrected. The printed ones are in `bounds.as_printed`.

Proof of `self_bounding`: residuals of descent from w_1 = 0 are small on average. The theorem of
Lemma 3 at u = 0 says Σ E[(p_t − y_t)² − y_t² + p_t²] ≤ 2ηB_x² S for the predictions p_t on clean
data, where S = Σ E(⟨w_t, x̃_t⟩ − ỹ_t)², whose terms are E(p_t − y_t)² + E w_tᵀΣw_t + Var ỹ_t. Hence
S ≤ T(B_y² + B_w²B_Σ)/(1 − 2ηB_x²) and, with u in the ball, regret ≤ B_w²/(2η) + 2ηB_x² S. The rate
η minimizes this bound. In worlds E(⟨ŵ_t, Ψ̂(x̃_t)⟩ − ỹ_t)² is at most W²R² + E ỹ_t² − 2E p_t y_t.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import Stream, plain_signature, sound_stream
from noisy_jax.linalg.matrices import eigvalsh
from noisy_jax.noise import Correlated, Noise, PerRound
from noisy_jax.noise.rounds import by_round, check_noise
from noisy_jax.simulated.bounds.guarantee import Guarantee, gradient_descent
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import Array, ArrayLike


@plain_signature
class DataMoments(NamedTuple):
    """Bounds on moments of the noisy data in all rounds, from which bounds on regret are computed.

    In round t, x̃_t `[d]` is a noisy copy of the clean instance x_t, with noise of mean zero and
    covariance Σ_t, and ỹ_t is the target that the learner sees. All fields are numbers `[]`, in the
    units of the data. `bounds.moments` computes them from a stream and its noise. The bounds that
    take them check them, and raise ValueError.

    Attributes:
        x_second_moment: B_x² ≥ E‖x̃_t‖² = ‖x_t‖² + tr Σ_t, at least 0.
        x_fourth_moment: B_x⁴ ≥ E‖x̃_t‖⁴, above 0. `bounds.known_covariance` and
            `bounds.uncorrected` read it in place of `x_second_moment`.
        y_second_moment: B_y² ≥ E ỹ_t², at least 0.
        noise_norm: B_Σ ≥ ‖Σ_t‖, the largest eigenvalue, at least 0. Only `bounds.uncorrected`,
            `bounds.self_bounding` and `bounds.as_printed.known_covariance` read it.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.5)
        >>> print(nj.bounds.two_copies(moments, horizon=100, radius=1.0).regret)
        40.0
    """

    x_second_moment: ArrayLike
    x_fourth_moment: ArrayLike
    y_second_moment: ArrayLike
    noise_norm: ArrayLike


@jax.default_matmul_precision("highest")
def moments(
    stream: Stream, noise: Noise | PerRound, *, y_noise: Noise | PerRound | None = None
) -> DataMoments:
    """Computes the `DataMoments` of a stream under noise: each is the largest over the rounds.

    With the clean instance x_t `[d]`, the noise covariance Σ_t and the clean target y_t they are

        max_t ‖x_t‖² + tr Σ_t,   max_t E‖x̃_t‖⁴,   max_t y_t² + Var ỹ_t,   max_t ‖Σ_t‖,

    exactly, for a noisy copy x̃_t and the noisy target ỹ_t. There are two exceptions, both in the
    second one. For noise whose covariance is estimated from the copy itself (`noise.Attributes`,
    `noise.Misclassified`) it is larger: it also bounds E‖x̃x̃ᵀ − Σ̂‖² for the estimate Σ̂, as
    `known_covariance` requires. For a distribution of your own it is E‖x̃_t‖⁴ if the third moments
    of the noise are 0, or if it defines `square_fourth_moment`. The second one is infinite for
    noise without a fourth moment, and NaN for a distribution of your own without `excess_kurtosis`;
    `two_copies` has a bound in either case.

    Args:
        stream: T clean rounds, `[T, d]` and `[T]`.
        noise: distribution of the noise in each copy of x, or `noise.PerRound` of T distributions.
        y_noise: scalar distribution of the noise in y, or `noise.PerRound` of T of them; none by
            default. It must be independent of the noise in x: `noise.Correlated` raises ValueError.

    Returns:
        `DataMoments(x_second_moment, x_fourth_moment, y_second_moment, noise_norm)`, numbers `[]`
        in the order above.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[3.0, 4.0]], [2.0])
        >>> moments = nj.bounds.moments(stream, nj.noise.Gaussian(0.5))
        >>> print(moments.x_second_moment, moments.y_second_moment)
        26.0 4.0
    """
    stream = sound_stream(stream)
    check_noise(noise, y_noise, len(stream.x))

    (noise, x_axis), (y_noise, y_axis) = by_round(noise), by_round(y_noise)
    if isinstance(y_noise, Correlated):
        raise ValueError("y_noise must be independent of the noise in x: no bound is known else")

    return _largest(stream, noise, y_noise, x_axis, y_axis)


@functools.partial(jax.jit, static_argnames=("x_axis", "y_axis"))
def _largest(stream, noise, y_noise, x_axis, y_axis) -> DataMoments:
    """Returns the largest moments over the rounds, in one program."""

    def one_round(x, y, noise, y_noise):
        cov = noise.covariance_at(x)
        second = jnp.sum(x**2) + jnp.trace(cov)
        y_variance = 0.0 if y_noise is None else y_noise.covariance(1)[0, 0]
        norm = eigvalsh(cov)[-1]
        return second, noise.square_fourth_moment(x), y**2 + y_variance, norm

    every = jax.vmap(one_round, in_axes=(0, 0, x_axis, y_axis))(stream.x, stream.y, noise, y_noise)
    return DataMoments(*(jnp.max(moment) for moment in every))


def two_copies(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """Returns the learning rate and the regret bound that are proved for `learners.two_copies`.

        G = 4B_x²(B_w B_x + B_y)²,   η = B_w/√(GT),   E[regret] ≤ B_w √(GT)

    The regret is the sum over T rounds of the squared loss (⟨w_t, x_t⟩ − y_t)² on clean data, minus
    the sum for the best fixed weights u with ‖u‖ ≤ B_w. The bound holds at the constant rate η, for
    every clean stream that is fixed in advance, and for noise of any distribution with mean zero
    that is independent in the copies and the target. G bounds E‖∇̃‖² of the gradient estimate
    ∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃' from two copies x̃ and x̃'. It is attained at x̃ = x̃' = w = 1, ỹ = −1.
    On long streams `bounds.self_bounding` is mostly smaller.

    Args:
        moments: `DataMoments` of the noisy data, such as `bounds.moments` computes: B_x² is its
            `x_second_moment`, B_y² its `y_second_moment`.
        horizon: T > 0, number of rounds; may be traced.
        radius: B_w > 0, the learner's `radius`: its weights and u lie in the ball ‖w‖ ≤ B_w.

    Returns:
        A `Guarantee` of numbers `[]`: `learning_rate` η, `regret`, the bound for all T rounds
        together, and `second_moment` G.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 1 and Theorem 1, with G
    corrected.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.0)
        >>> theory = nj.bounds.two_copies(moments, horizon=100, radius=1.0)
        >>> print(theory.regret, theory.learning_rate)
        40.0 0.025
        >>> learner = nj.learners.two_copies(radius=1.0, learning_rate=theory.learning_rate)
    """
    check_moments(moments)
    moment = second_moment(moments.x_second_moment, moments.y_second_moment, radius)
    return gradient_descent(moment, horizon, radius)


def known_covariance(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """Returns the learning rate and the regret bound proved for `learners.known_covariance`.

        G = 4B_x²(B_w B_x + B_y)²,   η = B_w/√(GT),   E[regret] ≤ B_w √(GT),
        E‖∇̃‖² ≤ G   for the gradient estimate   ∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃ − 2Σw   from one copy x̃

    The regret is the sum over T rounds of the squared loss (⟨w_t, x_t⟩ − y_t)² on clean data, minus
    the sum for the best fixed weights u with ‖u‖ ≤ B_w. The bound holds at the constant rate η, for
    every clean stream that is fixed in advance, and for noise of mean zero and known covariance Σ,
    independent of the noise in the target ỹ. It needs a fourth moment, where `two_copies` needs a
    second one: B_x⁴ ≥ E‖x̃‖⁴.

    Args:
        moments: `DataMoments` of the noisy data, such as `bounds.moments` computes: B_x⁴ is its
            `x_fourth_moment`, B_y² its `y_second_moment`.
        horizon: T > 0, number of rounds; may be traced.
        radius: B_w > 0, the learner's `radius`: its weights and u lie in the ball ‖w‖ ≤ B_w.

    Returns:
        A `Guarantee` of numbers `[]`: `learning_rate` η, `regret`, the bound for all T rounds
        together, and `second_moment` G.

    Raises:
        ValueError: an argument is out of its range (if traced, the result is NaN), or the fourth
            moment is infinite, as under noise with heavy tails.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 2 and Theorem 2, with
    the estimator and G corrected.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.5)
        >>> theory = nj.bounds.known_covariance(moments, horizon=100, radius=1.0)
        >>> print(theory.regret, theory.learning_rate)
        40.0 0.025
        >>> learner = nj.learners.known_covariance(radius=1.0, learning_rate=theory.learning_rate)
    """
    check_moments(moments)
    hint = "the noise needs a finite `excess_kurtosis`, which a custom distribution must define"
    fourth = positive("moments.x_fourth_moment", moments.x_fourth_moment, hint)
    moment = second_moment(jnp.sqrt(fourth), moments.y_second_moment, radius)
    return gradient_descent(moment, horizon, radius)


def uncorrected(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """Returns a learning rate and a regret bound for `learners.uncorrected`, which grows like T.

        G = 4B_x²(B_w B_x + B_y)²,   η = B_w/√(GT),   E[regret] ≤ B_w √(GT) + ½T B_w² B_Σ

    The regret is the sum over T rounds of the squared loss (⟨w_t, x_t⟩ − y_t)² on clean data, minus
    the sum for the best fixed weights u with ‖u‖ ≤ B_w. The bound holds at the constant rate η, for
    every clean stream that is fixed in advance, and for noise of mean zero in x, independent of the
    noise in the target. G bounds E‖∇̃‖² of ∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃, from one copy x̃ with noise
    covariance Σ. Its bias 2Σw costs −2⟨Σw, w − u⟩ ≤ ½uᵀΣu in a round: this is the last term.

    Args:
        moments: `DataMoments` of the noisy data, such as `bounds.moments` computes: B_x⁴ is its
            `x_fourth_moment`, B_y² its `y_second_moment`, B_Σ ≥ ‖Σ‖ its `noise_norm`.
        horizon: T > 0, number of rounds; may be traced.
        radius: B_w > 0, the learner's `radius`: its weights and u lie in the ball ‖w‖ ≤ B_w.

    Returns:
        A `Guarantee` of numbers `[]`: `learning_rate` η, `regret`, the bound for all T rounds
        together, and `second_moment` G.

    Raises:
        ValueError: an argument is out of its range (if traced, the result is NaN), or the fourth
            moment is infinite, as under noise with heavy tails.

    Source: none; the bound is not in the papers.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.5)
        >>> print(nj.bounds.uncorrected(moments, horizon=100, radius=1.0).regret)
        65.0
    """
    unbiased = known_covariance(moments, horizon=horizon, radius=radius)
    noise_norm = non_negative("moments.noise_norm", moments.noise_norm)
    bias = horizon * radius**2 * noise_norm / 2
    return unbiased._replace(regret=unbiased.regret + bias)


class SelfBounding(NamedTuple):
    """A rate η and the bound on the expected regret at this rate only; both `[]`."""

    learning_rate: Array
    regret: Array


def self_bounding(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> SelfBounding:
    """Returns a mostly smaller regret bound for `learners.two_copies`, with the rate that it needs.

        G = 4B_x²(B_y² + B_w²B_Σ),   1/η = √(GT)/B_w + 2B_x²,   E[regret] ≤ B_w √(GT) + B_w²B_x²

    The regret, and the conditions, are as for `bounds.two_copies`: the sum over T rounds of the
    squared loss on clean data, minus the sum for the best fixed weights u with ‖u‖ ≤ B_w, on every
    clean stream, under independent noise of mean zero. The weights must start at zero, as they do.
    It is smaller because residuals are small on average, where `two_copies` takes the largest
    possible ones. Without noise, at B_y = B_w B_x and large T, it is half as large.

    It also holds for `learners.parallel_worlds` and `learners.fourier_worlds` of radius W: pass
    `DataMoments(R2, R2**2, y_second_moment, R2)`, where R2 is `world.diagonal` or
    `features.squared_norm`, and W as the radius.

    Args:
        moments: `DataMoments` of the noisy data, such as `bounds.moments` computes: B_x² is its
            `x_second_moment`, B_y² its `y_second_moment`, B_Σ its `noise_norm`.
        horizon: T > 0, number of rounds; may be traced.
        radius: B_w > 0, the learner's `radius`: its weights and u lie in the ball ‖w‖ ≤ B_w.

    Returns:
        A named tuple of numbers `[]`: `learning_rate` η, and `regret`, the bound for all T rounds
        together, at this rate only.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: the argument that a loss bounds its own gradient, Srebro, Sridharan and Tewari,
    Smoothness, low noise and fast rates (2010).

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.0)
        >>> for bound in (nj.bounds.two_copies, nj.bounds.self_bounding):
        ...     print(bound(moments, horizon=10_000, radius=1.0).regret)
        400.0
        201.0
    """
    check_moments(moments)
    horizon, radius = positive("horizon", horizon), positive("radius", radius)
    square = positive("moments.x_second_moment", moments.x_second_moment)
    y_second = non_negative("moments.y_second_moment", moments.y_second_moment)
    spread = y_second + radius**2 * non_negative("moments.noise_norm", moments.noise_norm)
    root = jnp.sqrt(4 * square * spread) * jnp.sqrt(horizon)
    return SelfBounding(1 / (root / radius + 2 * square), radius * (root + radius * square))


def check_moments(moments: DataMoments) -> None:
    """Raises ValueError unless it is a `DataMoments`."""
    instance("moments", moments, DataMoments, "bounds.moments(stream, noise) makes one")


def second_moment(
    x_second_moment: ArrayLike, y_second_moment: ArrayLike, radius: ArrayLike
) -> Array:
    """G = 4B_x²(WB_x + B_y)² of the gradients of the squared loss."""
    radius = positive("radius", radius)
    x = jnp.sqrt(non_negative("moments.x_second_moment", x_second_moment))
    y = jnp.sqrt(non_negative("moments.y_second_moment", y_second_moment))
    return 4 * x**2 * (radius * x + y) ** 2
