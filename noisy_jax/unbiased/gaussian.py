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
    """Turns f of a clean x into an unbiased estimate from one copy with known Gaussian noise.

    The noisy copy is x̃ = x + n, n ~ N(0, Σ) with known covariance Σ. The estimate evaluates f at
    complex points z, with draws of ξ of its own:

        z = x̃ + iξ,  ξ ~ N(0, Σ),   g = the mean of Re f(z) over draws of ξ.

    E g = f(x) for every entire function f (analytic in the whole complex plane) whose mean E f(z)
    exists, because the noise of z is circular complex Gaussian. `pair` says which operations are
    entire: exp, sin and polynomials are; abs, tanh, log and quotients are not. With more draws g
    approaches the estimate of least variance: for the squared loss of a linear model it is
    (⟨w, x̃⟩ − y)² − wᵀΣw, and for cos(ωx) with Σ = σ² it is cos(ωx̃) e^(ω²σ²/2). Tails are heavy
    where f grows fast along the imaginary axis. From V copies, z is their mean plus iξ/√V.

    Args:
        f: a function of one clean input x, of any shape, and of other arguments. Its results are
            any pytree of real numbers.
        noise: Σ, the covariance of the noise in one copy: `[]`, `[d]` (diagonal) or `[d, d]`, along
            the last axis of x; or `noise.Gaussian`, whose mean is not subtracted. For a pytree x it
            is the covariance of all leaves, flattened one after another. If Σ differs between rows,
            make g in the function that runs under `vmap`, as below: Σ may be traced.
        argnum: which positional argument of f is x; 0 by default. All others, and keywords, are
            passed on. The keyword `key` belongs to g: rename an argument `key` of f.
        draws: number of draws of ξ in a call, at least 1; 4 by default. Each evaluates f once.
        copies: V ≥ 1, the least number of copies that g takes; of more it takes the mean of all.

    Returns:
        g, a `Transformed`: `g(…, copies, …, key=key)` takes copies `[V, *x.shape]` in place of x.
        Give each call another key. The gradient of g in other arguments, such as weights, is
        unbiased for the gradient of f.

    Raises:
        ValueError: (when g is called) f is not entire in x. The message names the operation and its
            line.

    Source: Stefanski and Cook, Simulation-extrapolation: the measurement error jackknife (1995);
    Novick and Stefanski, Corrected score estimation via complex variable simulation extrapolation
    (2002).

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> keys = jax.random.split(jax.random.key(0), 100_000)
        >>> copies = 1.0 + 0.5 * jax.random.normal(jax.random.key(1), (100_000, 1))  # of x = 1
        >>> g = nj.unbiased.gaussian(jnp.cos, noise=0.25)
        >>> estimates = jax.vmap(lambda copies, key: g(copies, key=key))(copies, keys)
        >>> print(f"{estimates.mean():.2f} {jnp.cos(1.0):.2f} {jnp.cos(copies).mean():.2f}")
        0.54 0.54 0.48

        A covariance of its own in each row, for a loss of weights, x and y:

        >>> loss = lambda weights, x, y: (x @ weights - y) ** 2
        >>> def estimate(copies, cov, key):
        ...     g = nj.unbiased.gaussian(loss, cov, argnum=1)
        ...     return g(jnp.ones(2), copies, 0.5, key=key)
        >>> covs = jnp.array([0.1, 0.4])
        >>> jax.vmap(estimate)(jnp.ones((2, 1, 2)), covs, keys[:2]).shape
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
