"""Formulas as the papers print them, to show where they differ from the corrected ones.

Each function has the name and the arguments of its corrected form in `bounds`; `**options` are
further arguments of the corrected function, passed on unchanged.

    >>> from noisy_jax import bounds
    >>> moments = bounds.DataMoments(1.0, 1.0, 1.0, 0.0)
    >>> right = bounds.two_copies(moments, horizon=100, radius=1.0)
    >>> printed = bounds.as_printed.two_copies(moments, horizon=100, radius=1.0)
    >>> print(right.second_moment, printed.second_moment)
    16.0 8.0

The first value is attained, so that the second, smaller one is not a bound.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from noisy_jax.simulated.bounds.guarantee import Guarantee, TruncationGuarantee, gradient_descent
from noisy_jax.simulated.bounds.kernel import covered_angle
from noisy_jax.simulated.bounds.linear import DataMoments, check_moments
from noisy_jax.simulated.bounds.linear import known_covariance as corrected_known_covariance
from noisy_jax.simulated.bounds.multilevel import USED_ON_HOST
from noisy_jax.simulated.bounds.norma import RiskGuarantee, risk_guarantee
from noisy_jax.simulated.bounds.norma import truncation_error as corrected_truncation_error
from noisy_jax.simulated.bounds.unknown_noise import ORDER, check_estimator, guarantee
from noisy_jax.unbiased.truncation.gradients import GradientEstimator
from noisy_jax.unbiased.truncation.maps import MapEstimator
from noisy_jax.unbiased.truncation.orders import base
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.objects import instance, switch
from noisy_jax.validation.values import Array, ArrayLike, check_concrete
from noisy_jax.worlds.world import World, check_world


def two_copies(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """G = 4B_x²(B_w²B_x² + B_y²), up to 2 times too small: the cross term −2⟨w, x⟩y is missing.

    Arguments and symbols are as for `bounds.two_copies`.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 1.
    """
    check_moments(moments)
    radius = positive("radius", radius)
    square = non_negative("moments.x_second_moment", moments.x_second_moment)
    y_second = non_negative("moments.y_second_moment", moments.y_second_moment)
    moment = 4 * square * (radius**2 * square + y_second)
    return gradient_descent(moment, horizon, radius)


def known_covariance(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """G = 8B_w²B_x⁴ + 8B_y²B_x² + 4B_w²B_x²B_Σ + B_Σ²B_w².

    Arguments and symbols are as for `bounds.known_covariance`, with B_Σ = `moments.noise_norm`. The
    regret bound that follows is false for the printed estimator
    (`learners.known_covariance(as_printed=True)`), whose regret grows linearly.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 2 and Theorem 2.
    """
    check_moments(moments)
    radius = positive("radius", radius)
    square = jnp.sqrt(non_negative("moments.x_fourth_moment", moments.x_fourth_moment))
    y_second = non_negative("moments.y_second_moment", moments.y_second_moment)
    norm = non_negative("moments.noise_norm", moments.noise_norm)
    moment = (
        8 * radius**2 * square**2
        + 8 * y_second * square
        + 4 * radius**2 * square * norm
        + norm**2 * radius**2
    )
    return gradient_descent(moment, horizon, radius)


def uncorrected(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """The textbook's bound B_w √(GT), which treats the noisy data as if they were clean.

    It bounds the regret on noisy data, and is false on clean data: the bias is missing. Arguments
    and symbols are as for `bounds.uncorrected`.
    """
    return corrected_known_covariance(moments, horizon=horizon, radius=radius)


def parallel_worlds(
    diagonal: ArrayLike,
    *,
    horizon: ArrayLike,
    radius: ArrayLike,
    y_second_moment: ArrayLike,
) -> Guarantee:
    """G = 4R²(W²R² + B_y²), up to 2 times too small: the cross term −2⟨w, Ψ(x)⟩y is missing.

    Arguments and symbols are as for `bounds.parallel_worlds`. (The printed regret bound holds up to
    a factor 1 + O(T^(−½)).)

    Source: Learning from Noisy Data under Distributional Assumptions, Theorem 3.
    """
    diagonal, radius = positive("diagonal", diagonal), positive("radius", radius)
    y_second_moment = non_negative("y_second_moment", y_second_moment)
    moment = 4 * diagonal * (radius**2 * diagonal + y_second_moment)
    return gradient_descent(moment, horizon, radius)


def surrogate_radius(world: World, *, norm: ArrayLike, angle: ArrayLike) -> Array:
    """W = √5 √κ B_w/sin β, at least 1.58 times larger than needed; β = π/2 is taken for more.

    Arguments and symbols are as for `bounds.surrogate_radius`.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemmas 5 and 6.
    """
    check_world(world)
    norm, beta = positive("norm", norm), covered_angle(world.ratio, angle)
    return norm * jnp.sqrt(5.0) * jnp.sqrt(world.ratio) / jnp.sin(beta)


def regularized_risk(
    diagonal: ArrayLike, *, growing_memory: bool = False, **options: Any
) -> RiskGuarantee:
    """a = 2λU²(10ηλ + 1/(ηλ)) for a growing memory; Theorem 4, without one, is right as printed.

    Arguments and symbols are as for `bounds.regularized_risk`.

    Source: Online Learning with Kernels, Theorem 6. The proof allows ‖f_t‖ = 3U, but takes
    gradients for no longer than 2cX. The printed number of terms also falls after t_0.
    """
    growing_memory = switch("growing_memory", growing_memory)
    return risk_guarantee(diagonal, gradients=10 if growing_memory else 2, **options)


def truncation_error(
    diagonal: ArrayLike, *, rounds: ArrayLike | None = None, **options: Any
) -> Array:
    """The sum cXη Σ_j β^j to j = n, which has one term too many (a valid, larger bound).

    Arguments and symbols are as for `bounds.truncation_error`, whose sum ends at j = n − 1.

    Source: Online Learning with Kernels, Proposition 1.
    """
    one_more = None if rounds is None else non_negative("rounds", rounds) + 1
    return corrected_truncation_error(diagonal, rounds=one_more, **options)


def random_truncation(
    estimator: GradientEstimator, *, horizon: ArrayLike, p: ArrayLike = 2.0
) -> TruncationGuarantee:
    """The bound that the theorems print for random truncation, which is wrong in two places.

    For a Gaussian kernel the second moment of the feature map is printed as
    (p/(p − 1))² e^((√p B_x² + 2p B_x)/2ℓ²), which depends on the unit of x, and is too small where
    B_x > 1 in that unit. And residual losses get the r of margin losses, without √p B_y; the paper
    only promises "slight modifications" for them. Symbols are as for `bounds.random_truncation`.

    Args:
        estimator: as for `bounds.random_truncation`.
        horizon: T > 0 rounds.
        p: base > 1 of the geometric distribution of orders.

    Source: Online Learning of Noisy Data with Kernels, Lemma 5 and Theorems 1, 2 and 4.
    """
    check_estimator(estimator)
    check_concrete("p", p, USED_ON_HOST)
    p = base(p)
    maps = instance("estimator.maps", estimator.maps, MapEstimator, "the theorems are of kernels")
    with np.errstate(over="ignore", divide="ignore"):
        moments = _moments(estimator, p)
    copies = (1 if maps.envelope is None else 3) * p / (p - 1) ** 2
    return guarantee(estimator, horizon, *moments, 0.0, copies)


def _moments(estimator, p):
    """B_Ψ and B_g as printed."""
    kernel, second, once = estimator.maps.kernel, estimator.x_second_moment, p / (p - 1)
    if kernel.envelope is None:
        map_second = once * kernel.series(ORDER).absolute(p * second)
    else:
        rate = -kernel.envelope.series(ORDER).coefficients[1]  # 1/2ℓ²
        map_second = once**2 * np.exp(rate * (np.sqrt(p) * second + 2 * p * np.sqrt(second)))
    center = estimator.derivative.series.center
    size = np.sqrt(p) * (estimator.radius * np.sqrt(map_second) + abs(center))
    return map_second, once * estimator.loss.series(ORDER, center).absolute(size) ** 2
