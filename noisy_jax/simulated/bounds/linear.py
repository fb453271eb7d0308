"""Guarantees of the learners of linear predictors: η = B_w/√(GT), regret ≤ B_w √(GT).

Each takes the `moments` of the noisy data, the number of rounds T > 0 as `horizon`, and the
`radius` B_w > 0 of the ball that holds the weights. The papers print second moments G without the
cross term −2⟨w, x⟩y; here they are corrected. The printed ones are in `bounds.as_printed`.
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
    """Bounds on moments of the noisy data, over all rounds, which the guarantees need.

    Attributes:
        x_second_moment: B_x² ≥ E‖x̃_t‖².
        x_fourth_moment: B_x⁴ ≥ E‖x̃_t‖⁴ (for the learners that use one copy twice).
        y_second_moment: B_y² ≥ E ỹ_t².
        noise_norm: B_Σ ≥ ‖Σ_t‖, the spectral norm of the noise covariance.
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

    They are exact, with E‖x̃‖² = ‖x‖² + tr Σ and E‖x̃‖⁴ from `Noise.square_fourth_moment`. Only for
    `noise.Attributes` and `noise.Misclassified` is the fourth moment larger than E‖x̃‖⁴: there it
    also bounds E‖x̃x̃ᵀ − Σ̂‖² for the estimated covariance Σ̂, as `known_covariance` requires.

    Args:
        stream: T clean rounds, `[T, d]` and `[T]`.
        noise: distribution of the noise in each copy of x, or `noise.PerRound` of T distributions.
        y_noise: scalar distribution of the noise in y, or `noise.PerRound` of T of them; none by
            default. It must be independent of the noise in x.

    Example:
        >>> import noisy_jax as nj
        >>> stream = nj.streams.from_arrays([[3.0, 4.0]], [2.0])
        >>> print(moments(stream, nj.noise.Gaussian(0.5)).x_second_moment)
        26.0
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
    """Guarantee of `learners.two_copies`: η = B_w/√(GT), regret ≤ B_w √(GT).

    G = 4B_x²(B_w B_x + B_y)² is attained, at x̃ = x = w = −y = 1. Where B_y is much larger than
    B_w B_x, the bound is nearly attained; elsewhere the bound of `self_bounding` is smaller.

    Args:
        moments: B_x, B_y and B_Σ, bounds on moments of the noisy data (`DataMoments`), as
            `bounds.moments` computes them.
        horizon: T > 0, number of rounds.
        radius: B_w > 0, radius of the ball that holds the weights.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 1 and Theorem 1, with G
    corrected.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, 0.0)
        >>> print(two_copies(moments, horizon=100, radius=1.0).regret)
        40.0
    """
    check_moments(moments)
    moment = second_moment(moments.x_second_moment, moments.y_second_moment, radius)
    return gradient_descent(moment, horizon, radius)


def known_covariance(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """Guarantee of `learners.known_covariance`: η = B_w/√(GT), regret ≤ B_w √(GT).

    G = 4B_x²(B_w B_x + B_y)² as for `two_copies`, but with B_x⁴ ≥ E‖x̃‖⁴ in place of B_x² ≥ E‖x̃‖²
    (`moments.x_fourth_moment`).

    Args:
        moments: B_x, B_y and B_Σ, bounds on moments of the noisy data (`DataMoments`), as
            `bounds.moments` computes them.
        horizon: T > 0, number of rounds.
        radius: B_w > 0, radius of the ball that holds the weights.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 2 and Theorem 2, with
    the estimator and G corrected.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.5)
        >>> print(known_covariance(moments, horizon=100, radius=1.0).regret)
        40.0
    """
    check_moments(moments)
    hint = "the noise needs a finite `excess_kurtosis`, which a custom distribution must define"
    fourth = positive("moments.x_fourth_moment", moments.x_fourth_moment, hint)
    moment = second_moment(jnp.sqrt(fourth), moments.y_second_moment, radius)
    return gradient_descent(moment, horizon, radius)


def uncorrected(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """Guarantee of `learners.uncorrected`, linear in T; not in the papers.

    G and η are defined as for `known_covariance`. The bias 2Σw of the gradients costs −2⟨Σw, w − u⟩
    ≤ ½uᵀΣu in a round, so that regret ≤ B_w √(GT) + ½T B_w² B_Σ.

    Args:
        moments: B_x, B_y and B_Σ, bounds on moments of the noisy data (`DataMoments`), as
            `bounds.moments` computes them.
        horizon: T > 0, number of rounds.
        radius: B_w > 0, radius of the ball that holds the weights.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.5)
        >>> print(uncorrected(moments, horizon=100, radius=1.0).regret)
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
    """A smaller bound for `learners.two_copies`, at a larger learning rate.

        G = 4B_x²(B_y² + B_w²B_Σ),   1/η = √(GT)/B_w + 2B_x²,   regret ≤ B_w √(GT) + B_w²B_x²

    Residuals of descent from w_1 = 0 are small on average: the theorem of Lemma 3 at u = 0 says
    Σ E[(p_t − y_t)² − y_t² + p_t²] ≤ 2ηB_x² S for the predictions p_t on clean data, where
    S = Σ E(⟨w_t, x̃_t⟩ − ỹ_t)², whose terms are E(p_t − y_t)² + E w_tᵀΣw_t + Var ỹ_t. Hence S ≤
    T(B_y² + B_w²B_Σ)/(1 − 2ηB_x²) and, with u in the ball, regret ≤ B_w²/(2η) + 2ηB_x² S. The rate
    η minimizes this bound. The noise counts by its spectral norm instead of its trace. Without
    noise, at B_y = B_w B_x and large T, the bound is half of `two_copies`.

    It holds for `learners.parallel_worlds` and `learners.fourier_worlds` with `DataMoments(R², R⁴,
    B_y², R²)` and B_w = W: there E(⟨ŵ_t, Ψ̂(x̃_t)⟩ − ỹ_t)² is at most W²R² + E ỹ_t² − 2E p_t y_t.

    Args:
        moments: B_x, B_y and B_Σ, bounds on moments of the noisy data (`DataMoments`), as
            `bounds.moments` computes them.
        horizon: T > 0, number of rounds.
        radius: B_w > 0, radius of the ball that holds the weights.

    Source: the argument that a loss bounds its own gradient, Srebro, Sridharan and Tewari,
    Smoothness, low noise and fast rates (2010).

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, 0.0)
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
