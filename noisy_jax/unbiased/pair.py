"""Two copies, Gaussian noise of unknown covariance: a point in the complex plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.noise import Gaussian
from noisy_jax.unbiased.transformed import Points, Transformed, mean
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.values import at_least_float32


def pair(f: Callable[..., Any], argnum: int = 0, *, copies: int = 2) -> Transformed:
    """Turns f of a clean x into an unbiased estimate from two copies with Gaussian noise.

    The noisy copies x̃_1 and x̃_2 are x plus independent Gaussian noise of mean 0 and the same
    covariance. The estimate evaluates f at one complex point:

        z = (x̃_1 + x̃_2)/2 + i(x̃_1 − x̃_2)/2,   g = Re f(z).

    E g = f(x) for every entire function f (analytic in the whole complex plane) whose mean E f(z)
    exists: z is x plus circular complex Gaussian noise, so that this is the mean-value property.
    The covariance does not appear: it may be unknown, and differ from call to call. From V copies,
    z is their mean plus i times Σ_v c_v x̃_v, with constants c_v such that Σ_v c_v = 0 and
    Σ_v c_v² = 1/V.

    f is traced at a real x, and each of its operations is continued to the complex plane. The
    operations must be entire: sums, products, matrix products, integer powers, exp, sin, cos, sinh,
    cosh, erf, and functions made of them (`jax.nn.gelu(x, approximate=False)`). Custom derivatives
    inside f are not used: derivatives are of the operations. Inner products of x, also
    `jnp.vdot(x, x)`, are continued as Σ x_i², without a conjugate. If f computes with complex
    numbers itself, its conjugates act on the i of f and not on the i of z. Both are exact.

    g has heavy tails where f grows fast along the imaginary axis: the variance of g for sin(ωx)
    with noise of variance σ² grows like exp(2ω²σ²).

    Args:
        f: a function of one clean input x, of any shape, and of other arguments. Its results are
            any pytree of real numbers.
        argnum: which positional argument of f is x; 0 by default. All others, and keywords, are
            passed on.
        copies: V ≥ 2, the least number of copies that g takes; 2 by default. If there are more, it
            uses them all.

    Returns:
        g, a `Transformed` that takes copies `[V, *x.shape]` in place of x, and returns real numbers
        of the types of f's results. It computes real and imaginary parts apart, in these types,
        without complex arrays. The gradient of g in other arguments, such as weights, is unbiased
        for the gradient of f.

    Raises:
        ValueError: (when g is called) f is not entire in x. The message names the operation and its
            line.

    Source: the mean-value property; Stefanski and Cook (1995) and Novick and Stefanski (2002) with
    a known variance.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> g = nj.unbiased.pair(jnp.cos)
        >>> copies = 1.0 + 0.5 * jax.random.normal(jax.random.key(0), (100_000, 2))
        >>> print(f"{jax.vmap(g)(copies).mean():.2f} {jnp.cos(1.0):.2f}")
        0.54 0.54
    """
    return Transformed(f, argnum, "pair", whole("copies", copies, 2), _point, Gaussian)


def _point(copies: jax.Array, key: Any) -> Points:
    """z of V ≥ 2 copies."""
    del key
    count = len(copies)
    paired = count - count % 2  # of an odd number the last copy has no part in the contrast
    signs = np.where(np.arange(count) < paired, (-1.0) ** np.arange(count), 0)
    wide = at_least_float32(copies.dtype)
    contrast = jnp.asarray(signs / (paired * count) ** 0.5, wide)
    imaginary = jnp.tensordot(contrast, copies.astype(wide), axes=1).astype(copies.dtype)
    return Points(mean(copies)[None], jnp.ones(1), imaginary[None])
