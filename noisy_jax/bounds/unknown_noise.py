"""Guarantees of learning under unknown noise from a random number of copies.

With B_Ψ ≥ E‖Ψ̃‖² and B_g ≥ E g̃², projected gradient descent on {‖f‖² ≤ B_w} with unbiased g̃Ψ̃
and η = √(B_w/(B_g B_Ψ T)) has regret at most √(B_w B_g B_Ψ T). Both moments grow exponentially, in
the size of the data and in the sharpness of the loss: look whether the bound says anything.
"""

import chex
import numpy as np

from noisy_jax.bounds.guarantee import TruncationGuarantee
from noisy_jax.estimators import GradientEstimator
from noisy_jax.estimators.gradients import check_estimator, largest_argument
from noisy_jax.estimators.orders import check_base
from noisy_jax.series import absolute_terms
from noisy_jax.validation import array_module, check_positive

_ORDER = 400
"""Terms of f₊(r) that are summed; where they do not do, f₊ is taken as infinite (e^r: r > 433)."""


def random_truncation(
    estimator: GradientEstimator,
    *,
    horizon: chex.Numeric,
    closed_form: bool = False,
    as_printed: bool = False,
    p: chex.Numeric = 2.0,
) -> TruncationGuarantee:
    """Guarantee of `learners.random_truncation`.

    B_Ψ and B_g are sums over the distributions that the estimator draws from, and 2 b √(B_w max k) a round
    is added for the bias b of a slope that is cut off. Predictions and competitors are those of the
    kernel as it is cut off, which is `estimator.kernel_bias` from the one asked for.

    `closed_form=True` is the theorems' bound for the geometric distribution of all orders, at base p:

        u = B_w (p/(p − 1))² Q(pB_x²),   or for the Gaussian kernel
        u = B_w (p/(p − 1))³ I₀(√p B_x²/ℓ²) e^(pB_x²/ℓ²),
        regret ≤ ℓ'₊(r) √(uT),   η = B_w/(ℓ'₊(r) √(uT)),   r = √((p − 1)u)

    with √p B_y added to r for residual losses. The squared loss takes exactly one value of f, which
    saves it p/(p − 1) in u and √p in r. The expected copies are p/(p − 1)² a round, 2/(p − 1) for
    the squared loss; three times as many for the Gaussian kernel.

    Source: Online Learning of Noisy Data with Kernels, Lemmas 2-6, Theorems 1, 2 and 4.
    As printed it has e^((√p B_x² + 2p B_x)/2ℓ²) for the Gaussian kernel, which depends on the unit
    of x and is too small where B_x exceeds it, and r without B_y for residual losses, for which
    "slight modifications" are promised. The printed running time O(T³(1 + dp/(p − 1)²)) has a
    sum over all pairs in every round.

    Args:
        estimator: by `estimators.gradient`.
        horizon: T > 0 rounds.
        closed_form: the theorems' bound, corrected.
        as_printed: the theorems' bound as the paper prints it, to compare.
        p: base of the geometric distribution, above 1, for the two closed forms.

    Raises:
        ValueError: no estimator, horizon not positive, or p not above 1.

    Example:
        >>> import noisy_jax as nj
        >>> kernel, loss = nj.kernels.linear(), nj.losses.squared()
        >>> estimator = nj.estimators.gradient(kernel, loss, squared_radius=1.0, x_second_moment=1.0)
        >>> guarantee = random_truncation(estimator, horizon=100)
        >>> round(float(guarantee.regret), 3), float(guarantee.copies), bool(guarantee.vacuous)
        (40.0, 2.0, False)
    """
    check_estimator(estimator)
    check_positive("horizon", horizon, "the number of rounds T")
    check_base(p)
    with np.errstate(over="ignore", divide="ignore"):
        return _guarantee(estimator, horizon, closed_form, as_printed, p)


def _guarantee(estimator, horizon, closed_form, as_printed, p) -> TruncationGuarantee:
    if not (closed_form or as_printed):
        map_second, slope_second = estimator.map_second_moment, estimator.derivative_second_moment
        bias = 2 * estimator.derivative_bias * estimator.largest_value
        copies = estimator.mean_copies
    else:
        map_second, slope_second = _closed_form(estimator, p, as_printed)
        bias, kinds = 0.0, 1 if estimator.maps.envelope is None else 3
        estimates = 1 + (1 if _one_value(estimator, as_printed) else 1 / (p - 1))
        copies = kinds / (p - 1) * estimates
    second_moment = map_second * slope_second
    idle = estimator.loss.value(largest_argument(estimator.loss, 0.0, estimator.y_largest))
    xp = array_module(second_moment, horizon, estimator.squared_radius, bias, idle)
    radius, slope = xp.sqrt(estimator.squared_radius), xp.sqrt(second_moment)
    regret = radius * slope * xp.sqrt(horizon) + horizon * bias
    informative_from = (radius * slope / xp.maximum(idle - bias, 0)) ** 2
    learning_rate = radius / (slope * xp.sqrt(horizon))
    values, factors = estimator.derivative.copies, len(estimator.maps.series.coefficients) - 1
    return TruncationGuarantee(
        learning_rate=learning_rate,
        regret=regret,
        second_moment=second_moment,
        copies=copies,
        inner_products=(2 + values) * factors * horizon**2 / 2,
        bias=horizon * bias,
        idle=horizon * idle,
        informative_from=informative_from,
    )


def _closed_form(estimator, p, as_printed) -> tuple[chex.Numeric, chex.Numeric]:
    """B_Ψ and B_g of the theorems, for the geometric distribution of all orders."""
    kernel, loss, second = estimator.maps.kernel, estimator.loss, estimator.x_second_moment
    once = p / (p - 1)
    map_second = once * kernel.series(_ORDER).absolute(p * second)
    xp = array_module(map_second, estimator.squared_radius, estimator.y_largest, p)
    if kernel.envelope is not None:
        envelope = kernel.envelope.series(_ORDER).coefficients
        if as_printed:
            rate = -envelope[1]  # 1/(2ℓ²)
            map_second = once**2 * xp.exp(rate * (xp.sqrt(p) * second + 2 * p * xp.sqrt(second)))
        else:
            map_second *= once * absolute_terms(envelope**2, p * second**2).sum()
    size = xp.sqrt(estimator.squared_radius * map_second)
    if not as_printed:
        size = largest_argument(loss, size, estimator.y_largest)
    size = size + abs(estimator.derivative.series.center)
    if _one_value(estimator, as_printed):
        p = once = 1.0
    slope = loss.series(_ORDER, estimator.derivative.series.center).absolute(xp.sqrt(p) * size)
    return map_second, once * slope**2


def _one_value(estimator, as_printed) -> bool:
    """Whether the slope takes one value of f: that of the squared loss, which is linear."""
    return estimator.loss.series(1, 0.0).degree is not None and not as_printed
