"""One copy, Gaussian noise of known covariance: complex points that the learner draws itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from noisy_jax.linalg.matrices import check_covariance
from noisy_jax.noise import Gaussian, Noise
from noisy_jax.unbiased.transformed import Points, Transformed, mean
from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.values import ArrayLike, at_least_float32, collected


def gaussian(
    f: Callable[..., Any],
    noise: Gaussian | ArrayLike,
    argnum: int = 0,
    *,
    draws: int = 4,
    copies: int = 1,
) -> Transformed:
    """Estimates f at a clean x from one noisy copy, if the noise is Gaussian and Σ is known.

        z = x̃ + iξ,  ξ ~ N(0, Σ),   g = the mean of Re f(z) over draws of ξ

    The noise of z is circular complex Gaussian, so that E f(z) = f(x) for every entire function f
    whose mean exists (see `pair`, also for what is entire). The mean over all ξ is the estimate of
    least variance: for the squared loss of a linear model it is (⟨w, x̃⟩ − y)² − wᵀΣw, and for
    cos(ωx) it is cos(ωx̃)e^(ω²σ²/2). From V copies, z is their mean plus iξ/√V.

    Args:
        f: a function of one clean input, of any shape. Its results are any pytree of real numbers.
        noise: its covariance, `[]`, `[d]` (diagonal) or `[d, d]`, along the last axis of x; or
            `noise.Gaussian`, whose mean is not subtracted; of a pytree x, of its leaves flattened
            one after another. For another one in each row make g in
            the function that runs under `vmap`: the covariance may be traced.
        argnum: which positional argument of f is x. All others, and keywords, are left as they are,
            but `key`, which is reserved by the estimator: rename f's own argument `key`.
        draws: how many ξ are drawn, each of which evaluates f once.
        copies: V ≥ 1, the copies that g needs; of more it takes the mean of all.

    Returns:
        g, which takes copies `[V, *x.shape]` in place of x, and a keyword `key`, which must be
        another one in each call.

    Raises:
        ValueError: f is not entire in x. The message names the operation and its line.

    Source: Stefanski and Cook, Simulation-extrapolation: the measurement error jackknife (1995);
    Novick and Stefanski, Corrected score estimation via complex variable simulation extrapolation
    (2002).

    Example:
        >>> import jax, jax.numpy as jnp
        >>> loss = lambda weights, x, y: (x @ weights - y) ** 2
        >>> covs = jnp.array([0.1, 0.4])
        >>> def estimate(copies, cov, key):
        ...     return gaussian(loss, cov, 1)(jnp.ones(2), copies, 0.5, key=key)
        >>> keys = jax.random.split(jax.random.key(0))
        >>> jax.vmap(estimate)(jnp.ones((2, 1, 2)), covs, keys).shape
        (2,)
    """
    draws, copies = whole("draws", draws), whole("copies", copies)
    if isinstance(noise, Noise) and not isinstance(noise, Gaussian):
        raise ValueError(
            f"gaussian needs Gaussian noise, got {type(noise).__name__}: multilevel and replicates "
            "take any noise"
        )
    cov: Any = noise.cov if isinstance(noise, Gaussian) else collected(noise)
    check_covariance("noise", cov)

    def rule(copies, key):
        shape, count = copies.shape[1:], len(copies)
        check_dimension("noise", cov, shape)
        zeros = jnp.zeros((draws, *(shape or (1,))), at_least_float32(copies.dtype))
        drawn = (Gaussian(cov).centred(key, zeros) / count**0.5).reshape(draws, *shape)
        real = jnp.broadcast_to(mean(copies), drawn.shape)
        # Inside `jax.shard_map` both parts must be marked as different on the same devices.
        imaginary = jnp.where(True, drawn.astype(copies.dtype), real)
        return Points(real, jnp.full(draws, 1 / draws), imaginary)

    return Transformed(f, argnum, "gaussian", copies, rule, Gaussian(cov), draws=True)
