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
    """Estimates f at a clean x without bias, from two copies with Gaussian noise.

        z = (x̃_1 + x̃_2)/2 + i(x̃_1 − x̃_2)/2,   g = Re f(z)

    The sum and the difference of two independent Gaussian vectors of covariance Σ are independent,
    so that z is x plus circular complex Gaussian noise. By the mean-value property E f(z) = f(x)
    for every entire function f whose mean exists. Σ does not appear: it may be unknown, and differ
    from call to call. From V copies, z is their mean plus i times a contrast Σ_v c_v x̃_v with
    Σ_v c_v = 0 and Σ_v c_v² = 1/V.

    f is traced at a real x, and each of its operations is continued to the complex plane. The
    operations must be entire: sums, products, matrix products, integer powers, exp, sin, cos, sinh,
    cosh, erf, and functions made of them (`jax.nn.gelu(x, approximate=False)`). Custom derivatives
    inside f are not used: derivatives are of the operations. Inner products of x, also
    `jnp.vdot(x, x)`, are continued as Σ x_i², without a conjugate. If f computes with complex
    numbers itself, its conjugates act on the i of f and not on the i of z. Both are exact.

    g has heavy tails where f grows fast along the imaginary axis: the variance of sin(ωx) grows
    like exp(2ω²σ²).

    Args:
        f: a function of one clean input, of any shape. Its results are any pytree of real numbers.
        argnum: which positional argument of f is x. All others, and keywords, are left as they are.
        copies: V ≥ 2, the least number of copies that g takes. If there are more, it uses them all.

    Returns:
        g, which takes copies `[V, *x.shape]` in place of x, and returns real numbers of the types
        of f's results. It computes real and imaginary parts apart, in these types, without complex
        arrays.

    Raises:
        ValueError: f is not entire in x. The message names the operation and its line.

    Source: the mean-value property; Stefanski and Cook (1995) and Novick and Stefanski (2002) with
    a known variance.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> g = pair(jnp.cos)
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
