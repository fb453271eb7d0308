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
    """Returns the paper's rate and regret bound for `learners.two_copies`, with too small a G.

        G = 4B_x²(B_w²B_x² + B_y²),   η = B_w/√(GT),   regret = B_w √(GT)

    G should bound E‖∇̃‖² of the gradient estimates ∇̃ = 2(⟨w, x̃⟩ − ỹ) x̃', but its cross term
    −2⟨w, x⟩y is missing: it is up to 2 times too small, and so is no bound. `bounds.two_copies` is
    right: G = 4B_x²(B_w B_x + B_y)².

    Args:
        moments: `DataMoments` of the noisy data, such as `bounds.moments` computes: B_x² is its
            `x_second_moment`, B_y² its `y_second_moment`.
        horizon: T > 0, number of rounds.
        radius: B_w > 0, radius of the ball that holds the weights.

    Returns:
        A `Guarantee` of numbers `[]`: `learning_rate` η, `regret` for all T rounds, `second_moment`
        G.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 1.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.0)
        >>> for bounds in (nj.bounds, nj.bounds.as_printed):
        ...     print(bounds.two_copies(moments, horizon=100, radius=1.0).second_moment)
        16.0
        8.0
    """
    check_moments(moments)
    radius = positive("radius", radius)
    square = non_negative("moments.x_second_moment", moments.x_second_moment)
    y_second = non_negative("moments.y_second_moment", moments.y_second_moment)
    moment = 4 * square * (radius**2 * square + y_second)
    return gradient_descent(moment, horizon, radius)


def known_covariance(moments: DataMoments, *, horizon: ArrayLike, radius: ArrayLike) -> Guarantee:
    """Returns the paper's learning rate and regret bound for one copy of known noise covariance.

        G = 8B_w²B_x⁴ + 8B_y²B_x² + 4B_w²B_x²B_Σ + B_Σ²B_w²,   η = B_w/√(GT),   regret = B_w √(GT)

    It is false for the estimate that the paper prints,
    `learners.known_covariance(as_printed=True)`: that is biased, so that its regret grows like T.
    `bounds.known_covariance` is right for the corrected learner.

    Args:
        moments: `DataMoments` of the noisy data, such as `bounds.moments` computes: B_x⁴ is its
            `x_fourth_moment`, B_y² its `y_second_moment`, B_Σ its `noise_norm`.
        horizon: T > 0, number of rounds.
        radius: B_w > 0, radius of the ball that holds the weights.

    Returns:
        A `Guarantee` of numbers `[]`: `learning_rate` η, `regret` for all T rounds, `second_moment`
        G.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemma 2 and Theorem 2.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.5)
        >>> printed = nj.bounds.as_printed.known_covariance(moments, horizon=100, radius=1.0)
        >>> print(printed.second_moment)
        18.25
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
    """Returns the textbook's learning rate and regret bound, which take the noisy data for clean.

        G = 4B_x²(B_w B_x + B_y)²,   η = B_w/√(GT),   regret = B_w √(GT)

    For `learners.uncorrected` this bounds the expected regret on the noisy data. On clean data it
    is false: the bias ½T B_w²B_Σ of `bounds.uncorrected` is missing.

    Args:
        moments: `DataMoments` of the noisy data, such as `bounds.moments` computes: B_x⁴ is its
            `x_fourth_moment`, B_y² its `y_second_moment`.
        horizon: T > 0, number of rounds.
        radius: B_w > 0, radius of the ball that holds the weights.

    Returns:
        A `Guarantee` of numbers `[]`: `learning_rate` η, `regret` for all T rounds, `second_moment`
        G.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Example:
        >>> import noisy_jax as nj
        >>> moments = nj.bounds.DataMoments(1.0, 1.0, 1.0, noise_norm=0.5)
        >>> for bounds in (nj.bounds, nj.bounds.as_printed):
        ...     print(bounds.uncorrected(moments, horizon=100, radius=1.0).regret)
        65.0
        40.0
    """
    return corrected_known_covariance(moments, horizon=horizon, radius=radius)


def parallel_worlds(
    diagonal: ArrayLike,
    *,
    horizon: ArrayLike,
    radius: ArrayLike,
    y_second_moment: ArrayLike,
) -> Guarantee:
    """Returns the paper's rate and regret bound for `learners.parallel_worlds`, with too small a G.

        G = 4R²(W²R² + B_y²),   η = W/√(GT),   regret = W√(GT)

    G should bound the mean squared norm of the gradient estimates of `learners.parallel_worlds`,
    but its cross term −2⟨w, Ψ(x)⟩y is missing: it is up to 2 times too small.
    `bounds.parallel_worlds` is right: G = 4R²(WR + B_y)². (The printed regret bound holds up to a
    factor 1 + O(T^(−½)).)

    Args:
        diagonal: R² > 0: `world.diagonal`, or `features.squared_norm` of Fourier features.
        horizon: T > 0, number of rounds.
        radius: W > 0, the learner's `radius`, in the norm of the surrogate's space.
        y_second_moment: B_y² ≥ E ỹ_t² of the targets ỹ_t that the learner sees, in all rounds.

    Returns:
        A `Guarantee` of numbers `[]`: `learning_rate` η, `regret` for all T rounds, `second_moment`
        G.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Learning from Noisy Data under Distributional Assumptions, Theorem 3.

    Example:
        >>> import noisy_jax as nj
        >>> size = {"horizon": 100, "radius": 1.0, "y_second_moment": 1.0}
        >>> for bounds in (nj.bounds, nj.bounds.as_printed):
        ...     print(bounds.parallel_worlds(1.0, **size).second_moment)
        16.0
        8.0
    """
    diagonal, radius = positive("diagonal", diagonal), positive("radius", radius)
    y_second_moment = non_negative("y_second_moment", y_second_moment)
    moment = 4 * diagonal * (radius**2 * diagonal + y_second_moment)
    return gradient_descent(moment, horizon, radius)


def surrogate_radius(world: World, *, norm: ArrayLike, angle: ArrayLike) -> Array:
    """Returns the paper's radius for a learner in a world, at least 1.58 times as large as needed.

        W = √5 √κ B_w/sin β,   with π/2 in place of a larger β

    W bounds the norm, in the surrogate's space, of the counterparts of all competitors u of norm at
    most B_w in the clean kernel's space, with an angle of at least β between their parts of
    positive and of negative coefficients. The bound is valid; `bounds.surrogate_radius`, which
    explains it, gives a smaller one.

    Args:
        world: a `World` with a finite `ratio` κ.
        norm: B_w > 0, in the norm of the clean kernel's space.
        angle: β in (0, π], radians, `[]`.

    Returns:
        W, `[]`. It is a ValueError if β is zero or outside [0, π], or κ infinite.

    Source: Learning from Noisy Data under Distributional Assumptions, Lemmas 5 and 6.

    Example:
        >>> import noisy_jax as nj
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=nj.noise.Gaussian(0.5))
        >>> for bounds in (nj.bounds, nj.bounds.as_printed):
        ...     print(f"{bounds.surrogate_radius(world, norm=1.0, angle=1.0471976):.2f}")
        2.00
        3.65
    """
    check_world(world)
    norm, beta = positive("norm", norm), covered_angle(world.ratio, angle)
    return norm * jnp.sqrt(5.0) * jnp.sqrt(world.ratio) / jnp.sin(beta)


def regularized_risk(
    diagonal: ArrayLike, *, growing_memory: bool = False, **options: Any
) -> RiskGuarantee:
    """Returns the paper's bound on the regularized risk of `learners.norma`.

        Σ_t [ℓ(f_t(x_t), y_t) + ½λ‖f_t‖²] ≤ m R_reg[g] + a√m + b,   b = U²/(2η),   U = cX/λ,
        a = 2λU²(10ηλ + 1/(ηλ)) with a growing memory,   a = 2λU²(2ηλ + 1/(ηλ)) without

    `bounds.regularized_risk` has the second a too, and explains all symbols. The first is
    valid, but larger than needed: 6 is enough in place of 10.

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        growing_memory: whether the run drops terms, by `engine.growing`; False by default.
        **options: `horizon`, m > 0 rounds; `slope`, c > 0, the largest |ℓ'|; `regularization`,
            λ > 0; and, if wanted, `learning_rate`, η of the rates η/√t, 0 < η < 1/λ. By default η
            makes a smallest: 1/(√10 λ), or 1/(√2 λ) without a growing memory.

    Returns:
        A named tuple of numbers `[]`: `learning_rate` η, `regret` a√m + b, and `second_moment`
        4c²X².

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Online Learning with Kernels, Theorem 6. The proof allows ‖f_t‖ = 3U, but takes
    gradients for no longer than 2cX. The printed number of terms also falls after t_0.

    Example:
        >>> import noisy_jax as nj
        >>> options = {"horizon": 100, "slope": 1.0, "regularization": 1.0, "learning_rate": 0.5}
        >>> for bounds in (nj.bounds, nj.bounds.as_printed):
        ...     print(bounds.regularized_risk(1.0, growing_memory=True, **options).regret)
        101.0
        141.0
    """
    growing_memory = switch("growing_memory", growing_memory)
    return risk_guarantee(diagonal, gradients=10 if growing_memory else 2, **options)


def truncation_error(
    diagonal: ArrayLike, *, rounds: ArrayLike | None = None, **options: Any
) -> Array:
    """Returns the paper's bound on the change of a function of `learners.norma` without old terms.

        cXη Σ_{j=τ}^{n} β^j = (β^τ − β^(n+1)) cX/λ,   β = 1 − ηλ

    It has one summand too many. It bounds ‖f − f_τ‖ for the learner's function f after n rounds,
    where f_τ is the sum of the terms of its τ newest rounds. It is valid, but larger than needed;
    the sum of `bounds.truncation_error` ends at j = n − 1. Without `rounds` both are β^τ cX/λ.

    Args:
        diagonal: X² > 0, the largest k(x_t, x_t).
        rounds: n ≥ 0, number of rounds; by default the bound holds for all n.
        **options: `buffer`, τ ≥ 0, number of newest rounds whose terms are kept; `slope`, c > 0,
            the largest |ℓ'|; `learning_rate`, 0 < η < 1/λ, constant; `regularization`, λ > 0. All
            four are required.

    Returns:
        The bound, `[]`.

    Raises:
        ValueError: an argument is out of its range; if it is traced, the result is NaN.

    Source: Online Learning with Kernels, Proposition 1.

    Example:
        >>> import noisy_jax as nj
        >>> options = {"buffer": 2, "slope": 1.0, "learning_rate": 0.5, "regularization": 1.0}
        >>> for bounds in (nj.bounds, nj.bounds.as_printed):
        ...     print(bounds.truncation_error(1.0, rounds=3, **options))
        0.125
        0.1875
    """
    one_more = None if rounds is None else non_negative("rounds", rounds) + 1
    return corrected_truncation_error(diagonal, rounds=one_more, **options)


def random_truncation(
    estimator: GradientEstimator, *, horizon: ArrayLike, p: ArrayLike = 2.0
) -> TruncationGuarantee:
    """Returns the paper's regret bound for `learners.random_truncation`, wrong in two places.

    It is B √(B_g B_Ψ T), without a term for a bias, with B_Ψ and B_g as printed for the geometric
    distribution of orders with base p (`bounds.random_truncation`, at `closed_form=True`, has them
    right). First, for the Gaussian kernel exp(−‖x − z‖²/2s²) the paper prints

        B_Ψ = (p/(p − 1))² e^((√p B_x² + 2p B_x)/2s²) ≥ E‖Ψ̃‖²

    for the estimate Ψ̃ of the feature map. This depends on the unit of x, and is too small where
    B_x > 1 in that unit. Second, the bound B_g on the squared estimate of the loss's derivative is
    computed for losses of the margin y f; for losses of the residual f − y it lacks a term of the
    targets. (The paper only promises "slight modifications" for them.)

    Args:
        estimator: from `unbiased.kernel_gradient`, of a kernel, not of a world; it holds B and
            B_x².
        horizon: T > 0, number of rounds.
        p: base of the geometric distribution of orders, above 1; 2 by default. It is not read from
            the estimator: give the p that `unbiased.kernel_gradient` was given.

    Returns:
        A named tuple of numbers `[]`, as from `bounds.random_truncation`: `learning_rate` B/√(B_g
        B_Ψ T), `regret`, `second_moment` B_g B_Ψ, `copies`, the mean number in a round, `bias` 0,
        `idle`, a bound on the regret of predicting zero, and `informative_from`, the horizon from
        which on `regret` is below `idle`.

    Source: Online Learning of Noisy Data with Kernels, Lemma 5 and Theorems 1, 2 and 4.

    Example:
        >>> import noisy_jax as nj
        >>> estimator = nj.unbiased.kernel_gradient(
        ...     nj.kernels.linear(), nj.losses.squared(), radius=1.0, x_second_moment=1.0)
        >>> right = nj.bounds.random_truncation(estimator, horizon=100, closed_form=True)
        >>> printed = nj.bounds.as_printed.random_truncation(estimator, horizon=100)
        >>> print(f"{right.regret:.0f} {printed.regret:.0f}")
        120 160
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
