"""Guarantees of learning under unknown noise from a random number of copies.

`unknown_noise` is polynomial in the variance of the noise. In `random_truncation`, with
B_Ψ ≥ E‖Ψ̃‖² and B_g ≥ E g̃², projected gradient descent on {‖f‖ ≤ B} with unbiased g̃Ψ̃ and
η = B/√(B_g B_Ψ T) has regret at most B √(B_g B_Ψ T). Both moments grow exponentially, in the size
of the data and in the sharpness of the loss: check `vacuous` before you rely on the bound.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from noisy_jax.noise import Noise
from noisy_jax.series import absolute_terms
from noisy_jax.simulated.bounds.after_run import at_adaptive_rate
from noisy_jax.simulated.bounds.guarantee import TruncationGuarantee
from noisy_jax.simulated.bounds.multilevel import USED_ON_HOST, fourth_moment_of_mean, multilevel
from noisy_jax.unbiased.multilevel import RATIO
from noisy_jax.unbiased.truncation.gradients import GradientEstimator, largest_argument
from noisy_jax.unbiased.truncation.maps import MapEstimator
from noisy_jax.unbiased.truncation.orders import base
from noisy_jax.validation.numbers import non_negative, positive, whole
from noisy_jax.validation.objects import check_unused, instance, switch
from noisy_jax.validation.values import ArrayLike, array_module, check_concrete

ORDER = 400
"""Number of summed terms of f₊, the power series of f with absolute coefficients.

If more are needed, as for e^r at r > 433, f₊(r) counts as infinite."""


def random_truncation(
    estimator: GradientEstimator,
    *,
    horizon: ArrayLike,
    closed_form: bool = False,
    p: ArrayLike | None = None,
) -> TruncationGuarantee:
    """Returns the learning rate and the regret bound of `learners.random_truncation`.

        η = B/√(B_g B_Ψ T),   E[regret] ≤ B √(B_g B_Ψ T) + 2 b B √(max k) T

    The gradient estimate of a round is g̃Ψ̃: Ψ̃ estimates the kernel's feature map at the clean x,
    and g̃ the derivative of the loss, with B_Ψ ≥ E‖Ψ̃‖² and B_g ≥ E g̃². By default both are
    computed for the estimator's own distributions. b ≥ |E g̃ − ℓ'| is the bias of a power series
    that is cut off (0 for the squared loss). The regret is the loss on clean data, summed over T
    rounds, minus the loss of the best f with ‖f‖ ≤ B. The bound holds for noise of any distribution
    with mean zero, independent in the copies, with E‖x̃‖² ≤ B_x², if targets have no noise (unless
    the loss is squared) and are in [−B_y, B_y]. Predictions and f use the kernel with its series
    cut off, which differs from the kernel by at most `estimator.kernel_bias`. max k is its largest
    k(x, x).

    `closed_form=True` gives the theorems' bound, for orders N of all sizes with P(N = n) ∝ p^(−n),
    without bias. With k(x, z) = Q(⟨x, z⟩), ℓ'₊ the power series of ℓ' with absolute coefficients,
    and √p B_y added to r for losses of the residual,

        u = B² (p/(p − 1))² Q(pB_x²),   or for the Gaussian kernel exp(−‖x − z‖²/2s²)
        u = B² (p/(p − 1))³ I₀(√p B_x²/s²) e^(pB_x²/s²),   I₀ the Bessel function,
        E[regret] ≤ ℓ'₊(r) √(uT),   η = B²/(ℓ'₊(r) √(uT)),   r = √((p − 1)u).

    The squared loss saves a factor p/(p − 1) in u and √p in r. The mean number of copies is
    p/(p − 1)² a round, 2/(p − 1) for the squared loss; three times as many for the Gaussian kernel.

    Args:
        estimator: from `unbiased.kernel_gradient`; it holds B, B_x² and B_y.
        horizon: T > 0, number of rounds.
        closed_form: whether to return the theorems' bound; an error in a world. False by default.
        p: base of the geometric distribution, above 1, for the closed form only; 2 by default. It
            is not read from the estimator: give the p that `unbiased.kernel_gradient` was given.

    Returns:
        A named tuple of numbers `[]`: `learning_rate` η; `regret`, the bound; `second_moment` B_g
        B_Ψ; `copies`, the mean number in a round; `bias`, the last term of the bound; `idle`, a
        bound on the regret of predicting zero; `informative_from`, the horizon from which on
        `regret` is below it. Its property `vacuous` is true if `regret` ≥ `idle`.

    Source: Online Learning of Noisy Data with Kernels, Lemmas 2-6, Theorems 1, 2 and 4, corrected.
    (The printed running time O(T³(1 + dp/(p − 1)²)) has a sum over all pairs in every round.)

    Example:
        >>> import noisy_jax as nj
        >>> estimator = nj.unbiased.kernel_gradient(
        ...     nj.kernels.linear(), nj.losses.squared(), radius=1.0, x_second_moment=1.0)
        >>> theory = nj.bounds.random_truncation(estimator, horizon=100)
        >>> print(f"{theory.regret:.1f} in {theory.copies} copies, against {theory.idle}")
        40.0 in 2.0 copies, against 100.0
        >>> learner = nj.learners.random_truncation(
        ...     estimator, horizon=100, learning_rate=theory.learning_rate)
    """
    check_estimator(estimator)
    if not switch("closed_form", closed_form):
        check_unused("without closed_form=True", p=p)
    p = base(2.0 if p is None else p)
    with np.errstate(over="ignore", divide="ignore"):
        if closed_form:
            hint = "in a world there is no closed form"
            maps = instance("estimator.maps", estimator.maps, MapEstimator, hint)
            kinds = 1 if maps.envelope is None else 3
            copies = kinds / (p - 1) * (1 + (1 if _one_value(estimator) else 1 / (p - 1)))
            return guarantee(estimator, horizon, *_closed_form(estimator, p), 0.0, copies)
        bias = 2 * estimator.derivative_bias * estimator.largest_value
        moments = estimator.map_second_moment, estimator.derivative_second_moment
        return guarantee(estimator, horizon, *moments, bias, estimator.mean_copies)


def check_estimator(estimator: GradientEstimator) -> None:
    """Raises ValueError unless it is an estimator of a kernel learner's gradient."""
    hint = "unbiased.kernel_gradient(kernel, loss, …) makes one"
    instance("estimator", estimator, GradientEstimator, hint)


def guarantee(
    estimator: GradientEstimator,
    horizon: Any,
    map_second_moment: Any,
    derivative_second_moment: Any,
    bias: Any,
    copies: Any,
) -> TruncationGuarantee:
    """Returns the guarantee for B_Ψ, B_g, the bias of a round and its number of copies."""
    with np.errstate(over="ignore"):
        second_moment = map_second_moment * derivative_second_moment
        idle = estimator.loss.value(largest_argument(estimator.loss, 0.0, estimator.y_largest))
    return _guarantee(estimator.radius, horizon, second_moment, bias, copies, idle)


def _guarantee(radius, horizon, second_moment, bias, copies, idle) -> TruncationGuarantee:
    horizon = positive("horizon", horizon)
    with np.errstate(over="ignore", divide="ignore"):
        xp = array_module(second_moment, radius, bias, idle)
        root = radius * xp.sqrt(second_moment)
        rounds = array_module(horizon).sqrt(horizon)
        return TruncationGuarantee(
            learning_rate=radius**2 / root / rounds,
            regret=root * rounds + horizon * bias,
            second_moment=second_moment,
            copies=copies,
            bias=horizon * bias,
            idle=horizon * idle,
            informative_from=(root / xp.maximum(idle - bias, 0)) ** 2,
        )


def _closed_form(estimator, p) -> tuple[ArrayLike, ArrayLike]:
    """Returns B_Ψ and B_g of the theorems, for the geometric distribution of all orders."""
    kernel, loss, second = estimator.maps.kernel, estimator.loss, estimator.x_second_moment
    once = p / (p - 1)
    map_second = once * kernel.series(ORDER).absolute(p * second)
    if kernel.envelope is not None:
        envelope = kernel.envelope.series(ORDER).coefficients
        map_second = map_second * once * absolute_terms(envelope**2, p * second**2).sum()
    xp = array_module(map_second, estimator.radius, estimator.y_largest, p)
    center = estimator.derivative.series.center
    size = estimator.radius * xp.sqrt(map_second)
    size = largest_argument(loss, size, estimator.y_largest) + abs(center)
    if _one_value(estimator):
        p = once = 1.0
    derivative = loss.series(ORDER, center).absolute(xp.sqrt(p) * size)
    return map_second, once * derivative**2


def _one_value(estimator) -> bool:
    """Returns True if the derivative reads one value of f: if it is linear, as for squared loss."""
    return estimator.loss.series(1, 0.0).degree is not None


def unknown_noise(
    noise: Noise,
    *,
    dim: int,
    length_scale: ArrayLike,
    horizon: ArrayLike,
    radius: ArrayLike,
    y_second_moment: ArrayLike,
    levels: int = 5,
    base: int = 1,
    continue_with: ArrayLike = 0.5,
) -> TruncationGuarantee:
    """Returns a regret bound of `learners.unknown_noise` at its adaptive rate, with `multilevel`.

        E[regret] ≤ 2W√(2MT) + 2WbT

    It is for the Gaussian kernel exp(−‖x − z‖²/2ℓ²), the squared loss and
    `estimate=functools.partial(nj.unbiased.multilevel, levels=…, base=…, continue_with=…)`. The
    regret is the loss on clean data, summed over T rounds, minus the loss of the best f with
    ‖f‖ ≤ W in the kernel's space. M ≥ E‖Ĝ‖² is a bound of `bounds.multilevel` for the estimate Ĝ of
    the gradient G(x) = 2(f(x) − y)Ψ(x), Ψ the feature map. b bounds the bias ‖E Ĝ − G‖:

        b = (L_3/(3m²))(E‖n‖⁴)^(3/4) + (L_4/24)(2 E‖n̄_m‖⁴ + E‖n̄_(m/2)‖⁴),
        L_k = (2/ℓ^k)(W Σ_j binom(k, j) a_j a_(k−j) + B_y a_k),   a_k² = (2k − 1)!!

    n is the noise of one copy, n̄_m the mean noise of m copies, m = `base` · 2^`levels` the most
    copies of a round, and L_k bounds the k-th derivative of G. All arguments but `horizon` must be
    concrete.

    Args:
        noise: distribution of the noise in each copy, with a finite `fourth_moment`; without one,
            as with a custom distribution that does not define `excess_kurtosis`, it is an error.
        dim: d ≥ 1, the number of features.
        length_scale: ℓ > 0 of the Gaussian kernel.
        horizon: T > 0, number of rounds.
        radius: W > 0, the learner's `radius`, in the norm of the kernel's space.
        y_second_moment: B_y² ≥ E ỹ_t² of the targets ỹ_t that the learner sees, in all rounds.
        levels: the last level of `unbiased.multilevel`, at least 1; 5 by default.
        base: number of copies at level 0, at least 1; 1 by default.
        continue_with: probability of a level above 0, in (0, 1]; 0.5 by default.

    Returns:
        A named tuple of numbers `[]`: `learning_rate` NaN, as it changes in each round; `regret`,
        the bound; `second_moment` M; `copies`, the mean number in a round; `bias` 2WbT; `idle`, the
        bound T B_y² on the regret of predicting zero; `informative_from`, the horizon from which on
        `regret` is below it. Its property `vacuous` is true if `regret` ≥ `idle`.

    Source: none of the papers; Blanchet and Glynn (2015) for `multilevel`.

    Example:
        >>> import noisy_jax as nj
        >>> theory = nj.bounds.unknown_noise(
        ...     nj.noise.Laplace(0.1), dim=10, length_scale=1.0, horizon=4096, radius=1.0,
        ...     y_second_moment=1.0)
        >>> print(f"{theory.regret:.0f}, of which bias {theory.bias:.0f}; {theory.idle:.0f} idle")
        1217, of which bias 30; 4096 idle
    """
    noise = instance("noise", noise, Noise)
    levels, base = whole("levels", levels), whole("base", base)
    for name, value in {
        "length_scale": length_scale, "radius": radius, "y_second_moment": y_second_moment
    }.items():  # fmt: skip
        check_concrete(name, value, USED_ON_HOST)
    length_scale = float(positive("length_scale", length_scale))
    radius = float(positive("radius", radius))
    size = float(non_negative("y_second_moment", y_second_moment)) ** 0.5
    norms = [math.prod(range(1, 2 * k, 2)) ** 0.5 for k in range(5)]  # a_0, …, a_4

    def derivative(k):
        of_product = sum(math.comb(k, j) * norms[j] * norms[k - j] for j in range(k + 1))
        return 2 / length_scale**k * (radius * of_product + size * norms[k])

    moments = multilevel(
        noise, dim=dim, lipschitz=derivative(2), first=derivative(0) ** 2, levels=levels,
        base=base, continue_with=continue_with, ratio=RATIO,
    )  # fmt: skip
    last = base * 2**levels
    third = fourth_moment_of_mean(noise, dim, 1) ** 0.75 / last**2
    fourths = [fourth_moment_of_mean(noise, dim, count) for count in (last, last / 2)]
    bias = derivative(3) / 3 * third + derivative(4) / 24 * (2 * fourths[0] + fourths[1])
    theory = _guarantee(
        radius, horizon, moments.second_moment, 2 * radius * bias, moments.copies, size**2
    )
    return at_adaptive_rate(theory)
