"""Guarantees of learning under unknown noise from a random number of copies.

With B_Ψ ≥ E‖Ψ̃‖² and B_g ≥ E g̃², projected gradient descent on {‖f‖² ≤ B_w} with unbiased g̃Ψ̃
and η = √(B_w/(B_g B_Ψ T)) has regret at most √(B_w B_g B_Ψ T). Both moments grow exponentially, in
the size of the data and in the sharpness of the loss: check `vacuous` before you rely on the bound.
"""

from typing import Any

import chex
import numpy as np

from noisy_jax.series import absolute_terms
from noisy_jax.simulated.bounds.guarantee import TruncationGuarantee
from noisy_jax.unbiased import GradientEstimator
from noisy_jax.unbiased.truncation.gradients import largest_argument
from noisy_jax.unbiased.truncation.maps import MapEstimator
from noisy_jax.unbiased.truncation.orders import base
from noisy_jax.validation import array_module, instance, positive

ORDER = 400
"""Number of summed terms of f₊, the power series of f with absolute coefficients.

If more are needed, as for e^r at r > 433, f₊(r) counts as infinite."""


def random_truncation(
    estimator: GradientEstimator,
    *,
    horizon: chex.Numeric,
    closed_form: bool = False,
    p: chex.Numeric = 2.0,
) -> TruncationGuarantee:
    """Guarantee of `learners.random_truncation`.

    By default B_Ψ and B_g are exact sums over the distributions that the estimator draws from, and
    2 b √(B_w max k) a round is added for the bias b of a derivative whose series is cut off.
    Predictions and competitors use the kernel with its series cut off, which differs from
    the kernel by at most `estimator.kernel_bias`. In a world B_Ψ is R², and the bound is on regret
    against every u with ‖û‖² ≤ B_w.

    `closed_form=True` gives the theorems' bound, for the geometric distribution of all orders with
    base p:

        u = B_w (p/(p − 1))² Q(pB_x²),   or for the Gaussian kernel
        u = B_w (p/(p − 1))³ I₀(√p B_x²/ℓ²) e^(pB_x²/ℓ²),
        regret ≤ ℓ'₊(r) √(uT),   η = B_w/(ℓ'₊(r) √(uT)),   r = √((p − 1)u)

    with √p B_y added to r for residual losses. The squared loss reads exactly one value of f, which
    saves p/(p − 1) in u and √p in r. The expected number of copies is p/(p − 1)² a round, 2/(p − 1)
    for the squared loss; three times as many for the Gaussian kernel.

    Source: Online Learning of Noisy Data with Kernels, Lemmas 2-6, Theorems 1, 2 and 4, corrected.
    (The printed running time O(T³(1 + dp/(p − 1)²)) has a sum over all pairs in every round.)

    Args:
        estimator: by `unbiased.gradient`.
        horizon: T > 0 rounds.
        closed_form: the theorems' bound instead of the exact sums.
        p: base of the geometric distribution, above 1, for the closed form.

    Example:
        >>> import noisy_jax as nj
        >>> estimator = nj.unbiased.gradient(
        ...     nj.kernels.linear(), nj.losses.squared(), radius=1.0, x_second_moment=1.0)
        >>> guarantee = random_truncation(estimator, horizon=100)
        >>> print(f"{guarantee.regret:.1f} in {guarantee.copies} copies, against {guarantee.idle}")
        40.0 in 2.0 copies, against 100.0
    """
    hint = "unbiased.gradient(kernel, loss, …) makes one"
    estimator = instance("estimator", estimator, GradientEstimator, hint)
    p = base(p)
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


def guarantee(
    estimator: GradientEstimator,
    horizon: Any,
    map_second_moment: Any,
    derivative_second_moment: Any,
    bias: Any,
    copies: Any,
) -> TruncationGuarantee:
    """The guarantee that follows from B_Ψ, B_g, the bias of a round and its number of copies."""
    horizon = positive("horizon", horizon)
    with np.errstate(over="ignore", divide="ignore"):
        second_moment = map_second_moment * derivative_second_moment
        idle = estimator.loss.value(largest_argument(estimator.loss, 0.0, estimator.y_largest))
        xp = array_module(second_moment, estimator.radius, bias, idle)
        root = estimator.radius * xp.sqrt(second_moment)
        rounds = array_module(horizon).sqrt(horizon)
        return TruncationGuarantee(
            learning_rate=estimator.radius**2 / root / rounds,
            regret=root * rounds + horizon * bias,
            second_moment=second_moment,
            copies=copies,
            bias=horizon * bias,
            idle=horizon * idle,
            informative_from=(root / xp.maximum(idle - bias, 0)) ** 2,
        )


def _closed_form(estimator, p) -> tuple[chex.Numeric, chex.Numeric]:
    """B_Ψ and B_g of the theorems, for the geometric distribution of all orders."""
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
    """Whether the derivative reads one value of f: that of the squared loss, which is linear."""
    return estimator.loss.series(1, 0.0).degree is not None
