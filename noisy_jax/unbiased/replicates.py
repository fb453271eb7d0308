"""Bias removed to an order, from a fixed number of copies of any noise."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.unbiased.transformed import Points, Transformed, mean
from noisy_jax.validation.numbers import whole


def replicates(
    f: Callable[..., Any], argnum: int = 0, *, order: int = 1, copies: int | None = None
) -> Transformed:
    """Turns f of a clean x into an estimate from V noisy copies, with a small bias.

    The noisy copies x̃_1, …, x̃_V are x plus noise of mean zero and of any unknown distribution,
    independent and alike in all copies. Let F_m be the mean of f at the means of disjoint blocks of
    m copies. For smooth f,

        E F_m = f(x) + a_1/m + a_2/m² + …

    with constants a_p that depend on f, x and the noise. So the estimate of order k,
    g = Σ_j w_j F_{m_j} with the block sizes m_j = ⌊V/2^j⌋, j = 0 to k, has a bias of order
    1/V^(k + 1), if Σ_j w_j = 1 and Σ_j w_j/m_j^p = 0 for p = 1 to k (Richardson's extrapolation).
    For k = 1 and two copies with the mean x̄ it is

        g = 2f(x̄) − ½f(x̃_1) − ½f(x̃_2).

    With the noise's standard deviation σ the bias is of order σ^(2(k + 1)) under Gaussian noise,
    and σ^(k + 2) under other noise. So g is unbiased for polynomials of degree 2k + 1 under
    Gaussian noise, and of degree k + 1 under any noise. For the squared loss of a linear model and
    k = 1 its gradient is the gradient of `learners.two_copies`, averaged over both orders of the
    copies.

    The mean of g is not a risk: it can fall below zero, and long training of a large model may find
    where it does (`diagnose` tells). `multilevel` has no such limit.

    Weights w_j, some of them negative, reach a custom_vjp rule inside f as part of its cotangent. A
    rule that is not linear in it, such as one that clips gradients, makes the gradient biased: clip
    outside.

    Args:
        f: a function of one clean input x, of any shape, and of other arguments; 2(k + 1) times
            differentiable in x. Its results are any pytree of numbers of floating point.
        argnum: which positional argument of f is x; 0 by default. All others, and keywords, are
            passed on.
        order: k ≥ 0, by default 1; 0 is f at the mean of the copies.
        copies: V ≥ 2^k, the least number of copies that g takes, by default 2^k; of more it uses
            all.

    Returns:
        g, a `Transformed` that takes copies `[V, *x.shape]` in place of x. It evaluates f at
        2^(k + 1) − 1 points if V is a power of two. Means and weighted sums are taken in at
        least float32, all else in the types of f and x.

    Source: Quenouille (1956) and the jackknife of higher order; Richardson (1911). Replicates in
    place of a known variance: Devanarayan and Stefanski (2002).

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> g = nj.unbiased.replicates(lambda x: x**2)
        >>> print(g(jnp.array([1.0, 3.0])))  # of two copies: 2 · 2² − ½ · 1² − ½ · 3²
        3.0
    """
    order = whole("order", order, 0)
    copies = 2**order if copies is None else copies
    copies = whole("copies", copies, 2**order, "2^order, of which means are taken")
    make = functools.partial(Transformed, f, argnum, "replicates", copies)
    further = make(functools.partial(_blocks, order=order + 1)) if order else None
    return make(functools.partial(_blocks, order=order), next_order=further)


def _blocks(copies: jax.Array, key: Any, *, order: int) -> Points:
    """Means of blocks of m_j copies, and their weights; the smallest block may be half a copy."""
    del key
    count = len(copies)
    sizes = [count // 2**j for j in range(order + 1)]
    points = []
    for size in filter(None, sizes):
        blocks = count // size
        kept = copies[: blocks * size].reshape(blocks, size, *copies.shape[1:])
        points.append(mean(kept, axis=1))
    if not sizes[-1]:  # pairs of copies as one copy with twice the noise, a² + (1 − a)² = 2
        a = (1 + 3**0.5) / 2
        twice = a * copies + (1 - a) * jnp.roll(copies, 1, axis=0)
        points.append(twice.astype(copies.dtype))
        sizes[-1] = 0.5
    powers = (1 / np.array(sizes))[None] ** np.arange(len(sizes))[:, None]
    weights = np.linalg.solve(powers, np.eye(len(sizes))[0])
    shares = [weight / len(means) for weight, means in zip(weights, points, strict=True)]
    shares = np.repeat(shares, [len(means) for means in points])
    return Points(jnp.concatenate(points), jnp.asarray(shares, float))
