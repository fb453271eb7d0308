"""Losses with a derivative that is a power series: those that random truncation can estimate.

Source of the series: Online Learning of Noisy Data with Kernels, Examples 1-4 (App. C), corrected.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.losses.loss import Loss, parameter_text
from noisy_jax.losses.piecewise import less_smooth
from noisy_jax.series import PowerSeries, floating, log_factorials, power_series
from noisy_jax.validation.numbers import number, positive
from noisy_jax.validation.values import ArrayLike, array_module, concrete


def squared() -> Loss:
    """Returns the squared loss ℓ(p, y) = (p − y)² of a prediction p for a number y.

    There is no factor ½: the derivative ∂ℓ/∂p is 2(p − y).

    Example:
        >>> import noisy_jax as nj
        >>> nj.losses.squared()(1.0, 3.0), nj.losses.squared().gradient(1.0, 3.0)
        (4.0, -4.0)
    """
    return Loss("squared()", "residual", _square, _twice, _squared_series, deconvolved=_less_square)


# Functions of the module, not lambdas: two losses that are equal share their compiled programs.
def _square(a):
    return a**2


def _less_square(a, v):
    return a**2 - v


def _twice(a):
    return 2 * a


def _squared_series(order, center: Any = 0.0) -> PowerSeries:
    def coefficients(order):
        xp = array_module(center)
        first = xp.stack([xp.asarray(2.0 * center), xp.asarray(2.0)])
        return xp.concatenate([first, xp.zeros(max(order - 1, 0))])[: order + 1]

    return power_series(coefficients, order, center=center, degree=1)


def logistic() -> Loss:
    """Returns the logistic loss ℓ(p, y) = log(1 + e^(−yp)) of a prediction p for a label y = ±1.

    The loss is φ(a) with the margin a = yp, and φ'(a) = −1/(1 + e^a). The power series of φ' about
    a centre c, which random truncation uses, converges for |a − c| < √(c² + π²) only: φ' has poles
    at a = ±iπ.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.logistic().gradient(0.0, 1.0))
        -0.5
    """
    return Loss("logistic()", "margin", _log_logistic, _logistic_derivative, _logistic_series)


def _log_logistic(a):
    return jax.nn.softplus(-a)


def _logistic_derivative(a):
    return jnp.negative(jax.nn.sigmoid(jnp.negative(floating(a))))


def _logistic_series(order, center: Any = 0.0) -> PowerSeries:
    center = number("center", center)
    xp = array_module(center)
    radius = xp.hypot(center, xp.pi)

    def coefficients(order):
        # s(a) = 1/(1 + e^a) solves s' = s² − s; expanded about |c|, where s² is not lost.
        s = [xp.exp(-xp.logaddexp(0.0, xp.abs(center)))]
        for n in range(order):
            before = xp.stack(s)
            s.append((xp.sum(before * before[::-1]) - s[n]) / (n + 1))
        s, n = xp.stack(s), np.arange(order + 1)
        # s(−a) = 1 − s(a).
        return xp.where(center >= 0, -s, (-1.0) ** n * s - (n == 0))

    def majorant(m):
        # s(a) = ½ − Σ_k 1/(a − ikπ) over odd k: |γ_n| ≤ Σ_k |c − ikπ|^(−n − 1).
        return xp.log(2 + (radius / np.pi) ** 2) - (m + 1) * xp.log(radius), -xp.log(radius)

    return power_series(coefficients, order, majorant=majorant, center=center, convergence=radius)


def exponential() -> Loss:
    """Returns the exponential loss ℓ(p, y) = e^(−yp) of a prediction p for a label y = ±1.

    The loss is φ(a) = e^(−a) with the margin a = yp. The derivative φ'(a) = −e^(−a) is the power
    series Σ_n γ_n (a − c)^n about any centre c, with γ_n = (−1)^(n+1) e^(−c)/n!. Random truncation
    (`unbiased.kernel_gradient`) uses it.

    Source: Online Learning of Noisy Data with Kernels, Example 2, which prints e^(yp) without the
    minus sign.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.exponential().gradient(0.0, -1.0))
        1.0
    """
    return Loss(
        "exponential()", "margin", _exponential, _exponential_derivative, _exponential_series,
        deconvolved=_less_exponential,
    )  # fmt: skip


def _less_exponential(a, v):
    return jnp.exp(-a - v / 2)


def _exponential(a):
    return jnp.exp(-a)


def _exponential_derivative(a):
    return -jnp.exp(-a)


def _exponential_series(order, center: Any = 0.0) -> PowerSeries:
    center = number("center", center)
    xp = array_module(center)

    def coefficients(order):
        n = np.arange(order + 1)
        return -((-1.0) ** n) * xp.exp(-center - log_factorials(order))

    def majorant(m):
        return -center - math.lgamma(m + 1), -math.log(m + 1)

    return power_series(coefficients, order, majorant=majorant, center=center)


def poisson() -> Loss:
    """Returns the Poisson loss ℓ(p, y) = e^p − y p of a prediction p for a count y ≥ 0.

    e^p is the predicted mean of the count. Up to a term without p the loss is the negative log
    likelihood of a Poisson distribution.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.poisson().gradient(0.0, 3.0))
        -2.0
    """
    return Loss("poisson()", "count", jnp.exp, jnp.exp, deconvolved=_less_poisson)


def _less_poisson(a, v):
    return jnp.exp(a - v / 2)


def smoothed_absolute(*, sharpness: ArrayLike = 1.0) -> Loss:
    """Returns a smooth approximation of the absolute loss |a| of the residual a = p − y.

        φ(a) = a erf(sa) + e^(−s²a²)/(s√π),   φ'(a) = erf(sa)

    φ(a) ≥ |a|, and the gap is largest at a = 0, where it is 1/(s√π).

    Args:
        sharpness: s > 0, in the inverse unit of y; 1 by default. A larger s is closer to |a|, but
            the variance of an estimate of φ' by random truncation (`unbiased.kernel_gradient`)
            grows as exp(s²a²): keep s|a| of order 1.

    Source: Online Learning of Noisy Data with Kernels, Example 3. App. C prints another symbol, σ,
    instead of s in the second term.

    Example:
        >>> import noisy_jax as nj
        >>> print(f"{nj.losses.smoothed_absolute(sharpness=2.0)(0.5, 0.0):.3f}")
        0.525
    """
    sharpness = positive("sharpness", sharpness)

    def value(a):
        a = floating(a)
        return a * jax.lax.erf(sharpness * a) + _bell(sharpness * a) / sharpness

    def derivative(a):
        return jax.lax.erf(floating(sharpness * a))

    name = f"smoothed_absolute(sharpness={parameter_text(sharpness)})"
    series = functools.partial(_erf_series, 1.0, 0.0, sharpness, 0.0)
    less = functools.partial(less_smooth, (0.0, 0.0), 0.5 / sharpness / sharpness)
    return Loss(name, "residual", value, derivative, series, deconvolved=less)


def smoothed_hinge(*, sharpness: ArrayLike = 1.0) -> Loss:
    """Returns a smooth approximation of the hinge loss max(0, 1 − a) of the margin a = yp, y = ±1.

        φ(a) = ½(a − 1)(erf(s(a − 1)) − 1) + e^(−s²(a − 1)²)/(2s√π)
        φ'(a) = ½(erf(s(a − 1)) − 1)

    φ(a) ≥ max(0, 1 − a), and the gap is largest at a = 1, where it is 1/(2s√π).

    The power series Σ_n γ_n (a − c)^n of φ' about a centre c has γ_0 = φ'(c) and, with the
    (physicists') Hermite polynomials H_n and n ≥ 1,
    γ_n = (−1)^(n−1) s^n H_(n−1)(s(c − 1)) e^(−s²(c − 1)²)/(√π n!). For random truncation
    (`unbiased.kernel_gradient`) use c = 0: under strong noise the margins are much smaller than 1.

    Args:
        sharpness: s > 0; 1 by default. A larger s is closer to the hinge, but the variance of an
            estimate of φ' by random truncation grows as exp(s²a²): keep s|a| of order 1.

    Source: Online Learning of Noisy Data with Kernels, Example 4. App. C expands about a = 1 and
    uses the result as the series about 0.

    Example:
        >>> import noisy_jax as nj
        >>> print(nj.losses.smoothed_hinge().gradient(1.0, 1.0))
        -0.5
    """
    sharpness = positive("sharpness", sharpness)

    def value(a):
        a = floating(a) - 1
        return (_bell(sharpness * a) / sharpness - a * jax.lax.erfc(sharpness * a)) / 2

    def derivative(a):
        return -jax.lax.erfc(sharpness * (floating(a) - 1)) / 2

    name = f"smoothed_hinge(sharpness={parameter_text(sharpness)})"
    series = functools.partial(_erf_series, 0.5, -0.5, sharpness, 1.0)
    less = functools.partial(less_smooth, (1.0,), 0.5 / sharpness / sharpness)
    return Loss(name, "margin", value, derivative, series, deconvolved=less)


def _bell(u):
    return jnp.exp(-(u**2)) / math.sqrt(math.pi)


def _erf_series(factor, offset, sharpness, shift, order, center: Any = 0.0) -> PowerSeries:
    """The series of factor · erf(s(a − shift)) + offset about a centre."""
    center = number("center", center)
    xp = array_module(sharpness, center)
    u = sharpness * (center - shift)
    scale = 2 * factor / math.sqrt(math.pi)

    def coefficients(order):
        # h_n = s^n H_(n−1)(−u) e^(−u²/2)/n!, with H_(n+1)(x) = 2x H_n(x) − 2n H_(n−1)(x).
        root = xp.exp(-(u**2) / 2)  # a factor of its own, as its square underflows first
        h = [0.0 * u, sharpness * root]
        for n in range(1, order):
            h.append(2 * sharpness * (-u * h[n] - (n - 1) * sharpness * h[n - 1] / n) / (n + 1))
        first = offset + factor * _erf(u)
        rest = [scale * root * h_n for h_n in h[1 : order + 1]]
        return xp.stack([xp.asarray(term, float) for term in [first, *rest]])

    def majorant(m):
        # Cramér: |H_n(x)| ≤ 1.0865 √(2^n n!) e^(x²/2).
        log_hermite = math.log(1.0865) + ((m - 1) * math.log(2) + math.lgamma(m)) / 2 + u**2 / 2
        log_power = m * xp.log(xp.asarray(sharpness, float))
        log_first = math.log(scale) - u**2 + log_power + log_hermite - math.lgamma(m + 1)
        ratio = xp.log(xp.asarray(sharpness, float)) + math.log(2 * m) / 2 - math.log(m + 1)
        return log_first, ratio

    return power_series(coefficients, order, majorant=majorant, center=center)


def _erf(u):
    value = concrete(u)
    return jax.lax.erf(jnp.asarray(u, float)) if value is None else math.erf(value)
