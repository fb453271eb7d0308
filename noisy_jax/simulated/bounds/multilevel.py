"""Second moments of `unbiased.multilevel`: polynomial in the variance of the noise."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from noisy_jax.noise import Noise
from noisy_jax.validation.numbers import between, non_negative, positive, whole, within
from noisy_jax.validation.objects import check_unused, instance
from noisy_jax.validation.values import ArrayLike, check_concrete

_SHARES = np.linspace(0.01, 1, 100)
_RATIOS = np.linspace(0.02, 0.98, 97)

USED_ON_HOST = "it is used on the host, outside jit, vmap and grad"


def fourth_moment_of_mean(noise: Noise, dim: int, count: float) -> float:
    """E‖n̄‖⁴ = ((tr Σ)² + 2 tr Σ²)/m² + Σ_i κ_i/m³ of the mean n̄ of m copies of the noise."""
    for leaf in jax.tree.leaves(noise):
        check_concrete("noise", leaf, USED_ON_HOST)
    with jax.ensure_compile_time_eval():  # the horizon may be traced
        cov = np.asarray(noise.covariance(dim), np.float64)
        fourth = float(noise.fourth_moment(dim))
    hint = (
        "the noise needs a finite `excess_kurtosis`, which a custom distribution must define, and "
        "a covariance that does not depend on x"
    )
    non_negative("the fourth moment of the noise", fourth, hint)
    gaussian = float(np.trace(cov) ** 2 + 2 * np.sum(cov**2))
    return gaussian / count**2 + (fourth - gaussian) / count**3


class MultilevelMoments(NamedTuple):
    """Bounds on E‖B̂‖², the `correction` of the bias, and on E‖f̂‖²; average copies; q and r."""

    correction: float
    second_moment: float
    copies: float
    continue_with: float
    ratio: float


def multilevel(
    noise: Noise,
    *,
    dim: int,
    length_scale: ArrayLike | None = None,
    lipschitz: ArrayLike | None = None,
    first: ArrayLike | None = None,
    levels: int = 5,
    base: int = 1,
    continue_with: ArrayLike | None = None,
    ratio: ArrayLike | None = None,
    price: ArrayLike | None = None,
) -> MultilevelMoments:
    """Returns a bound on the second moment of an estimate by `unbiased.multilevel`, and its copies.

        E‖f̂‖² ≤ (√(E‖f(x̄_b)‖²) + √(E‖B̂‖²))²,   E‖B̂‖² ≤ Σ_N w_N² (L²/64) E‖c_1 − c_2‖⁴/p_N,
        E‖c_1 − c_2‖⁴ = (4/h²)((tr Σ)² + 2 tr Σ²) + (2/h³) Σ_i κ_i,
        f̂ = f(x̄_b) + B̂,   B̂ = w_N [f((c_1 + c_2)/2) − ½f(c_1) − ½f(c_2)]/p_N

    f̂ estimates f(x), in any Hilbert space, from noisy copies of x, with x̄_b the mean of b copies.
    The correction B̂ is for a level N ≥ 1, which is drawn with probability p_N. c_1 and c_2 are
    means of h = b 2^(N − 1) copies each. w_N is 1, and 2 at the last level. With probability 1 − q,
    B̂ is zero. L is a Lipschitz constant of ∇f; the feature map of a Gaussian kernel has L² = 3/ℓ⁴
    and norm 1. Σ is the covariance of the noise, and κ_i are its fourth cumulants.

    Where q or r is not given, it minimizes E‖f̂‖² (1 + price · copies) on a grid: then the regret
    bound of a learner is smallest for a given budget. All arguments must be concrete.

    Args:
        noise: distribution of the noise in each copy, with a finite `fourth_moment`; without one,
            as with a custom distribution that does not define `excess_kurtosis`, it is an error.
        dim: d ≥ 1, the number of features.
        length_scale: ℓ > 0, if f is the feature map of the Gaussian kernel exp(−‖x − z‖²/2ℓ²).
        lipschitz: L ≥ 0, for any other f. Give either this or `length_scale`.
        first: bound on E‖f(x̄_b)‖²; required with `lipschitz`, and an error without.
        levels: the last level, at least 1, as in `unbiased.multilevel`; 5 by default.
        base: b ≥ 1, number of copies at level 0; 1 by default.
        continue_with: q in (0, 1], the probability of a level above 0.
        ratio: r in (0, 1), with p_N = q(1 − r)r^(N − 1), and q r^(N − 1) at the last level.
        price: ≥ 0, of a copy, where the other costs of a round are 1; 1 by default. It is an error
            if both q and r are given.

    Returns:
        A named tuple of floats: `correction`, the bound on E‖B̂‖²; `second_moment`, the bound on
        E‖f̂‖²; `copies`, the mean number of copies of an estimate; `continue_with` q and `ratio` r.

    Source: Blanchet and Glynn (2015), with constants for a Lipschitz gradient.

    Example:
        >>> import noisy_jax as nj
        >>> noise = nj.noise.Laplace(0.05**0.5)
        >>> found = nj.bounds.multilevel(
        ...     noise, dim=10, length_scale=1.0, continue_with=0.5, ratio=2**-1.5)
        >>> print(f"{found.second_moment:.1f} from {found.copies:.1f} copies")
        6.4 from 2.4 copies
    """
    noise = instance("noise", noise, Noise)
    levels, base = whole("levels", levels), whole("base", base)
    numbers = {
        "length_scale": length_scale, "lipschitz": lipschitz, "first": first,
        "continue_with": continue_with, "ratio": ratio, "price": price,
    }  # fmt: skip
    for name, value in numbers.items():
        check_concrete(name, value, USED_ON_HOST)
    if (length_scale is None) == (lipschitz is None):
        raise ValueError("give length_scale, of a Gaussian kernel, or lipschitz, of any f")
    if length_scale is not None:
        check_unused("with length_scale: values of the feature map have norm 1", first=first)
        squared = 3 / float(positive("length_scale", length_scale)) ** 4
        first = 1.0
    else:
        if first is None:
            raise ValueError("first, a bound on E‖f(x̄)‖², must be given with lipschitz")
        squared = float(non_negative("lipschitz", lipschitz)) ** 2
    size = float(non_negative("first", first)) ** 0.5
    q, r = _SHARES[:, None], _RATIOS[None]
    if continue_with is not None:
        q = np.full((1, 1), float(positive("continue_with", continue_with)))
        within("continue_with", continue_with, 0, 1)
    if ratio is not None:
        r = np.full((1, 1), float(between("ratio", ratio, 0, 1)))
    if continue_with is not None and ratio is not None:
        check_unused("where continue_with and ratio are given", price=price)
    price = float(non_negative("price", 1.0 if price is None else price))

    corrections, copies = np.zeros(()), base * (1 - q)
    for level in range(1, levels + 1):
        last, half = level == levels, base * 2 ** (level - 1)
        probability = q * r ** (level - 1) * (1 if last else 1 - r)
        fourth = 16 * fourth_moment_of_mean(noise, dim, 2 * half)
        corrections = corrections + (4 if last else 1) * squared / 64 * fourth / probability
        copies = copies + probability * 2 * half
    moments = (size + np.sqrt(corrections)) ** 2
    best = np.unravel_index(np.argmin(moments * (1 + price * copies)), moments.shape)
    shape = moments.shape
    values = (corrections, moments, copies, q, r)
    return MultilevelMoments(*(float(np.broadcast_to(moment, shape)[best]) for moment in values))
