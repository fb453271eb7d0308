"""Mixtures of Gaussians F(r²) = Σ_q w_q exp(−b_q r²): as sums over nodes, and fast in float32.

The sum costs one exp a node. In float32 a mixture that stands for a kernel of known decay costs one
exp in all: log F, less that decay, is smooth in t = (1 + r²/L)^(−1/2), which resolves both the
core of F (L is a few widths of its narrowest Gaussian) and its tail, and is interpolated in t by a
Chebyshev polynomial when the mixture is built.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.kernels import squared_distances
from noisy_jax.validation import concrete

# Found by trial over the families of `measures`. p is fitted up to r² = REACH/(mean rate), while F
# is at least DEPTH of its peak, with the fewest TERMS that give log F to TOLERANCE.
TERMS, WIDTH, REACH, DEPTH, TOLERANCE = (6, 8, 10, 12, 14), 8.0, 1e4, 1e-5, 1e-6


class Decay(NamedTuple):
    """How a kernel falls at large distances: k(r) ~ r^(−power) exp(−rate r).

    Attributes:
        power: `[]`.
        rate: `[]`, at least 0.
    """

    power: chex.Numeric
    rate: chex.Numeric


def array_namespace(*values) -> Any:
    """`numpy`, hence float64 whatever JAX's default, where all values are concrete; else `jnp`."""
    return jnp if any(concrete(value) is None for value in values) else np


def log_sum_exp(terms: chex.Array, xp: Any) -> chex.Array:
    """log Σ exp over the last axis, in the namespace `xp`."""
    largest = xp.max(terms, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(terms - largest), axis=-1)) + largest[..., 0]


def of_distance(
    rates: chex.Array, log_weights: chex.Array, decay: Decay | None
) -> Callable[[chex.Array], chex.Array]:
    """F(r²) = Σ_q w_q exp(−b_q r²), as a function of r².

    In float64, and where the decay is not known, the sum itself. In float32 the interpolant; where
    all values are concrete it is compared with the sum, and dropped for the sum if it is not good.

    Args:
        rates: `[Q]`, b_q ≥ 0.
        log_weights: `[Q]`, log w_q.
        decay: that of the kernel which the mixture stands for; `None` if it is not known.

    Returns:
        `r2[...] -> [...]`, in the dtype of `r2`.
    """

    def summed(r2):
        return _sum_over_nodes(lambda rate: rate * r2, r2, rates, log_weights)

    interpolant = None if decay is None else _interpolate(rates, log_weights, decay)

    def value(r2):
        if interpolant is None or r2.dtype == jnp.float64:
            return summed(r2)
        return jax.tree.map(lambda leaf: leaf.astype(r2.dtype), interpolant)(r2)

    return value


def of_difference(
    rates: chex.Array, log_weights: chex.Array
) -> Callable[[chex.Array, chex.Array], chex.Array]:
    """Σ_q w_q exp(−Σ_i b_qi (x_i − z_i)²), a sum over the nodes that keeps one Gram at a time.

    Args:
        rates: `[Q, d]`, b_qi ≥ 0.
        log_weights: `[Q]`, log w_q.

    Returns:
        `(x[n, d], z[m, d]) -> [n, m]`.
    """

    def gram(x, z):
        def exponent(rate):
            scale = jnp.sqrt(rate)[None]
            return squared_distances(x * scale, z * scale)

        like = jnp.zeros((len(x), len(z)), jnp.result_type(x, z))
        return _sum_over_nodes(exponent, like, rates, log_weights)

    return gram


def _sum_over_nodes(exponent, like, rates, log_weights):
    """Σ_q exp(log w_q − exponent(b_q)), with the shape and dtype of `like`."""
    nodes = jnp.asarray(rates, like.dtype), jnp.asarray(log_weights, like.dtype)

    def add(total, node):
        rate, log_weight = node
        return total + jnp.exp(log_weight - exponent(rate)), None

    return jax.lax.scan(add, jnp.zeros_like(like), nodes)[0]


class _Interpolant(NamedTuple):
    """F(r²) = F(0) t^power exp(wt(t p(t) − rate √L)), with w = r²/L and t = (1 + w)^(−½).

    wt √L ~ r for large r. The factor w on p, wt² = 1 − t², makes F near its peak good to the last
    digits.

    Attributes:
        peak: F(0).
        scale: 1/L.
        least: the t down to which p is fitted; below, p is constant.
        coefficients: `[2, n]`, of the even and the odd part of p = even(s) + x odd(s), x being t
            stretched to [−2, 2] and s = x² − 2: two chains that run side by side. In s the parts
            converge so fast that plain powers do no harm; in x they would cancel.
        decay: of the kernel.
    """

    peak: chex.Array
    scale: chex.Array
    least: chex.Array
    coefficients: chex.Array
    decay: Decay

    def __call__(self, r2):
        """F(r²)."""
        w = r2 * self.scale
        # XLA writes an array of each costly value that is used more than once: make it one value.
        t = jax.lax.rsqrt(1 + w)
        exponent = self.exponent(w, t, jnp)
        power = concrete(self.decay.power)
        if power is None or power != round(float(power)):
            return self.peak * jnp.exp(exponent + self.decay.power * jnp.log(t))
        return self.peak * jax.lax.integer_pow(t, int(power)) * jnp.exp(exponent)

    def exponent(self, w, t, xp):
        """wt(t p(t) − rate √L), in the namespace `xp`."""
        slope = 4 / (1 - self.least)
        x = xp.maximum(slope * t + (2 - slope), -2)
        s, (even, odd) = x**2 - 2, self.coefficients[:, -1]
        for k in range(self.coefficients.shape[1] - 2, -1, -1):
            even = even * s + self.coefficients[0, k]
            odd = odd * s + self.coefficients[1, k]
        return w * t * (t * (even + x * odd) - self.decay.rate / xp.sqrt(self.scale))


@functools.cache
def _to_powers(terms):
    """Chebyshev points on [−2, 2]; values there to Chebyshev coefficients; those to powers."""
    angles = np.pi * (np.arange(terms) + 0.5) / terms
    to_chebyshev = np.cos(np.arange(terms)[:, None] * angles[None]) * 2 / terms
    to_chebyshev[0] /= 2
    to_powers = np.zeros((terms, terms))
    for k in range(terms):
        basis = np.polynomial.Chebyshev.basis(k, domain=[-2, 2])
        to_powers[: k + 1, k] = basis.convert(kind=np.polynomial.Polynomial).coef
    return 2 * np.cos(angles), to_chebyshev, to_powers


def _interpolate(rates, log_weights, decay) -> _Interpolant | None:
    """The interpolant; `None` where it is known to miss the sum."""
    xp = array_namespace(rates, log_weights, *decay)
    log_peak = log_sum_exp(log_weights, xp)

    def log_ratio(r2):
        return log_sum_exp(log_weights[None] - r2[:, None] * rates[None], xp) - log_peak

    # At r² = 1/(mean rate), the first candidate, F has fallen e-fold at most, by Jensen.
    mean_rate = xp.sum(xp.exp(log_weights - log_peak) * rates)
    candidates = np.geomspace(1, REACH, 81) / mean_rate
    reach = xp.max(xp.where(log_ratio(candidates) >= np.log(DEPTH), candidates, candidates[0]))
    width = WIDTH / xp.max(rates)
    least = 1 / xp.sqrt(1 + reach / width)
    decay = Decay(*decay)

    def remainder(w, t):
        return log_ratio(width * w) - decay.power * xp.log(t) + decay.rate * xp.sqrt(width) * w * t

    def fitted(terms):
        points, *transforms = _to_powers(terms)
        x = np.sqrt(points + 2)
        less = (1 - least) * np.concatenate([2 - x, 2 + x]) / 4
        t, w = 1 - less, (2 - less) * less / (1 - less) ** 2
        right, left = xp.reshape(remainder(w, t) / (w * t**2), (2, terms))
        parts = xp.stack([right + left, (right - left) / x]) / 2
        for transform in transforms:
            parts = xp.sum(transform[None] * parts[:, None], axis=2)
        leaves = xp.exp(log_peak), 1 / width, least, parts, decay
        return jax.tree.map(xp.asarray, _Interpolant(*leaves))

    if xp is jnp:
        return fitted(TERMS[-1])
    w = np.append(0, np.geomspace(1e-6, 1, 400)) * reach / width
    t = 1 / np.sqrt(1 + w)
    exact = log_ratio(width * w)
    for terms in TERMS:
        interpolant = fitted(terms)
        error = interpolant.exponent(w, t, np) + decay.power * np.log(t) - exact
        # Relative where F is within 1e-4 of its peak, as a share of 1e-4 of the peak further out.
        if np.max(np.abs(error) * np.minimum(1, 1e4 * np.exp(exact))) < TOLERANCE:
            return interpolant
    return None
