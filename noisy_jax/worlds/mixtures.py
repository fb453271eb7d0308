"""Mixtures of Gaussians F(r²) = Σ_q w_q exp(−b_q r²): as sums over nodes, and fast in float32.

The sum costs one exp a node. In float32 a kernel's mixture costs one exp in all, and at most one
log: log F, less the kernel's decay, is smooth in t = (1 + r²/L)^(−1/2), which resolves both the
core of F (L is a few widths of its Gaussians) and its tail. It is interpolated in t by a Chebyshev
polynomial when the mixture is built.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.kernels.kernel import expanded_distances
from noisy_jax.validation import array_module, concrete, positive
from noisy_jax.varying import of_this_device

# Found by trial over the families of `measures`. L is 8/(largest rate) or 2/(mean rate); p is
# fitted up to r² = REACH/(mean rate), while F is at least DEPTH of its peak, with the fewest TERMS
# that pass. FARTHEST bounds r²/L, so that nothing overflows.
TERMS, REACH, DEPTH = (6, 8, 10, 12, 14, 16, 20, 24), 1e5, 1e-8
TOLERANCE, TOLERANCE_BEYOND, FARTHEST = 1e-6, 1e-7, np.float32(1e30)


class Decay(NamedTuple):
    """How a kernel falls at large distances: k(r) ~ r^(−power) exp(−rate r).

    Attributes:
        power: `[]`.
        rate: `[]`, at least 0.
    """

    power: chex.Numeric
    rate: chex.Numeric


def positive_float(name: str, value: chex.Numeric) -> chex.Numeric:
    """The value, if it is positive: as a Python float, hence in float64, unless it is traced."""
    value = positive(name, value)
    return value if concrete(value) is None else float(value)


def log_sum_exp(terms: chex.Array, xp: Any) -> Any:
    """log Σ exp over the last axis, in the namespace `xp`."""
    largest = xp.max(terms, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(terms - largest), axis=-1)) + largest[..., 0]


def of_distance(
    rates: chex.Array, log_weights: chex.Array, decay: Decay | None
) -> Callable[[chex.Array], jax.Array]:
    """F(r²) = Σ_q w_q exp(−b_q r²) as a function of r²; `decay` of its kernel, if it is known.

    In float32 it is an interpolant, if nothing is traced and the interpolant agrees with the sum on
    a grid of distances; otherwise it is the sum.
    """
    # Kernels close to Gaussian fit without their decay, which sets in far beyond what matters.
    decays = [Decay(0.0, 0.0)] if decay is None else [decay, Decay(0.0, 0.0)]
    concrete_ones = (d for d in decays if array_module(rates, log_weights, *d) is np)
    fits = (_interpolate(rates, log_weights, d) for d in concrete_ones)
    interpolant = next((fit for fit in fits if fit is not None), None)

    def value(r2):
        if interpolant is None or r2.dtype != jnp.float32:
            return _sum_over_nodes(lambda rate: rate * r2, r2, rates, log_weights)
        return interpolant(r2)

    return value


def of_difference(
    rates: chex.Array, log_weights: chex.Array
) -> Callable[[chex.Array, chex.Array], jax.Array]:
    """The Gram matrix of Σ_q w_q exp(−Σ_i b_qi (x_i − z_i)²) of points that are `near_origin`."""

    def gram(x, z):
        def exponent(rate):
            scale = jnp.sqrt(rate)[None]
            return expanded_distances(x * scale, z * scale)

        like = jnp.zeros((len(x), len(z)), jnp.result_type(x, z))
        return _sum_over_nodes(exponent, like, rates, log_weights)

    return gram


def _sum_over_nodes(exponent, like, rates, log_weights):
    """Σ_q exp(log w_q − exponent(b_q)), with the shape and dtype of `like`."""
    nodes = jnp.asarray(rates, like.dtype), jnp.asarray(log_weights, like.dtype)

    def add(total, node):
        rate, log_weight = node
        return total + jnp.exp(log_weight - exponent(rate)), None

    return jax.lax.scan(add, of_this_device(jnp.zeros_like(like)), nodes)[0]


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
        power: of the kernel's decay.
        rate: of the kernel's decay.
    """

    peak: chex.Numeric
    scale: chex.Numeric
    least: chex.Numeric
    coefficients: Any
    power: chex.Numeric
    rate: chex.Numeric

    def __call__(self, r2) -> jax.Array:
        """F(r²)."""
        w = jnp.minimum(r2 * self.scale, FARTHEST)
        # XLA writes an array of each costly value that is used more than once: make it one value.
        return self.value(w, jax.lax.rsqrt(1 + w), jnp)

    def value(self, w, t, xp) -> Any:
        """F, in the namespace `xp`."""
        slope = 4 / (1 - self.least)
        x = xp.maximum(slope * t + (2 - slope), -2)
        s, (even, odd) = x**2 - 2, self.coefficients[:, -1]
        for k in range(self.coefficients.shape[1] - 2, -1, -1):
            even = even * s + self.coefficients[0, k]
            odd = odd * s + self.coefficients[1, k]
        exponent = w * t * (t * (even + x * odd) - self.rate / np.sqrt(self.scale))
        # Small powers of t neither overflow nor spoil the last digits, and save the logarithm.
        if self.power in (-2, -1, 0, 1, 2, 3, 4):
            return self.peak * t ** int(self.power) * xp.exp(exponent)
        return self.peak * xp.exp(exponent - self.power / 2 * xp.log(1 + w))


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
    """The interpolant, in float32; `None` where none is good."""
    log_peak = log_sum_exp(log_weights, np)

    def log_ratio(r2):
        return log_sum_exp(log_weights[None] - r2[:, None] * rates[None], np) - log_peak

    # At r² = 1/(mean rate), the first candidate, F has fallen e-fold at most, by Jensen.
    mean_rate = np.sum(np.exp(log_weights - log_peak) * rates)
    candidates = np.geomspace(1, REACH, 161) / mean_rate
    reach = np.max(np.where(log_ratio(candidates) >= np.log(DEPTH), candidates, candidates[0]))

    def fitted(terms, width):
        least = 1 / np.sqrt(1 + reach / width)
        points, *transforms = _to_powers(terms)
        x = np.sqrt(points + 2)
        less = (1 - least) * np.concatenate([2 - x, 2 + x]) / 4
        t, w = 1 - less, (2 - less) * less / (1 - less) ** 2
        rest = log_ratio(width * w) - decay.power * np.log(t) + decay.rate * np.sqrt(width) * w * t
        right, left = np.reshape(rest / (w * t**2), (2, terms))
        parts = np.stack([right + left, (right - left) / x]) / 2
        for transform in transforms:
            parts = np.sum(transform[None] * parts[:, None], axis=2)
        return _Interpolant(np.exp(log_peak), 1 / width, least, parts, *decay)

    # In float32, which rounds log F: relative down to 1e-4 of the peak, then as a share of that.
    r2 = np.float32(np.append(0, np.geomspace(1e-6, 10, 350)) * reach)
    exact = log_ratio(np.float64(r2))
    allowed = TOLERANCE * (1 - exact / 4) * np.exp(np.maximum(exact, np.log(1e-4)))
    allowed = np.where(r2 > reach, np.maximum(allowed, TOLERANCE_BEYOND), allowed)
    for terms, width in itertools.product(
        TERMS, (8 / rates.max(), 2 / mean_rate, 20 / mean_rate, reach)
    ):
        interpolant = jax.tree.map(np.float32, fitted(terms, width))
        w = np.minimum(r2 * interpolant.scale, FARTHEST)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            ratio = interpolant.value(w, 1 / np.sqrt(1 + w), np) / np.exp(log_peak)
        if np.all(np.abs(ratio - np.exp(exact)) <= allowed):
            return interpolant
    return None
