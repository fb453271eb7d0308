"""Second moments of any features from copies of noise whose law is unknown, another in each row.

The products φ(x)φ(x)ᵀ and φ(x)y of features φ are functions of the clean x. `unbiased` estimates
them from noisy copies: `replicates` and `multilevel` by weighted sums over real points p_j,

    Â = Σ_j w_j φ(p_j)φ(p_j)ᵀ,   b̂ = ỹ Σ_j w_j φ(p_j),

and `pair` at a complex point z, Â = Re φ(z)φ(z)ᵀ and b̂ = ỹ Re φ(z). Sums over rounds make their
random errors small, also where single estimates have large ones.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax import unbiased
from noisy_jax.base import Sample
from noisy_jax.moments.online import Moments, Sums, as_they_are
from noisy_jax.unbiased.entire import continued_number
from noisy_jax.unbiased.pair import complex_point
from noisy_jax.validation import whole

Array = jax.Array


def replicates(features: Callable[..., Any], copies: int = 4, order: int = 1) -> Moments:
    """Any features from V copies of unknown noise, with a bias of order V^−(k + 1).

    The points and weights are those of `nj.unbiased.replicates`. For k = 1 and V = 2

        Â = 2φ(x̄)φ(x̄)ᵀ − ½φ(x̃_1)φ(x̃_1)ᵀ − ½φ(x̃_2)φ(x̃_2)ᵀ,

    which for φ(x) = x is `two_copies`, without bias.

    Args:
        features: φ, a JAX function `x[..., d] -> [..., D]`.
        copies: V ≥ 2^k.
        order: k ≥ 0, to which the bias is removed; 0 is the mean of the copies, uncorrected.

    Returns:
        `Moments` of D features.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> copies = 1.0 + 0.6 * jax.random.normal(jax.random.key(0), (50_000, 2, 1))
        >>> samples, kept = nj.Sample(copies, jnp.ones(50_000)), jnp.full(50_000, 1 / 50_000)
        >>> for order in (0, 1):
        ...     moments = replicates(jnp.cos, copies=2, order=order)
        ...     print(f"{moments.sums(samples, kept).gram[0, 0]:.2f} {jnp.cos(1.0) ** 2:.2f}")
        0.36 0.29
        0.31 0.29
    """
    estimate = unbiased.replicates(features, order=order)
    copies = whole("copies", copies, estimate.copies, f"order {order} needs at least 2^{order}")
    return _at_points(features, estimate, copies)


def multilevel(
    features: Callable[..., Any], base: int = 1, levels: int = 5, continue_with: float = 0.5
) -> Moments:
    """Any features from a random number of copies of unknown noise.

    The points and weights are those of `nj.unbiased.multilevel`, which is unbiased up to an order
    of 1/(b 2^L)². `sums` and `read` need the keys of their rounds as a last argument.

    Args:
        features: φ, a JAX function `x[..., d] -> [..., D]`.
        base: b, L and q of `nj.unbiased.multilevel`. A round uses b copies or, with probability q,
            more; at most b 2^L.
        levels: see `base`.
        continue_with: see `base`.

    Returns:
        `Moments` of D features. Copies that a round does not use need not be measured: any number,
        also NaN, may stand there.

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> kernel = nj.kernels.gaussian(length_scale=2.0)
        >>> features = nj.kernels.fourier_features(kernel, jax.random.key(1), num_features=32)
        >>> learner = nj.learners.corrected_ftrl(multilevel(features), radius=1.0)
        >>> run = nj.rollout(learner, stream, nj.noise.Laplace(0.2), jax.random.key(2))
        >>> bool(((run.predictions - stream.y) ** 2).mean() < (stream.y**2).mean())
        True
    """
    options = {"base": base, "levels": levels, "continue_with": continue_with}
    estimate = unbiased.multilevel(features, **options)
    return _at_points(features, estimate, estimate.copies)._replace(random=True)


def pair(features: Callable[..., Any]) -> Moments:
    """Any entire features from two copies of Gaussian noise, without bias.

    With z = (x̃_1 + x̃_2)/2 + i(x̃_1 − x̃_2)/2, as in `nj.unbiased.pair`,

        Â = Re φ(z)φ(z)ᵀ,   b̂ = ỹ Re φ(z).

    Args:
        features: φ, a JAX function `x[..., d] -> [..., D]` of entire operations, such as
            `nj.kernels.fourier_features` of a Gaussian kernel. The variance grows as φ does along
            the imaginary axis: for Fourier features noise must be well below the length scale.

    Returns:
        `Moments` of D features.
    """
    unbiased.pair(features)  # raises ValueError if it is no function

    def rows(x, keys):
        del keys
        parts = continued_number(features, jax.vmap(complex_point)(x), "pair")
        square, value = (jnp.tile(jnp.array([1.0, second]), (len(x), 1)) for second in (-1, 0))
        return jnp.stack(parts, axis=1), square, value

    return _moments(features, rows, 2)


def _at_points(features: Callable[..., Any], estimate: Any, copies: int) -> Moments:
    """Moments at the points and with the weights of an estimate of `unbiased`."""

    def rows(x, keys):
        points, weights = jax.vmap(estimate.points)(x, keys)
        return features(points), weights, weights

    return _moments(features, rows, copies)


def _moments(features: Callable[..., Any], rows: Callable[..., Any], copies: int) -> Moments:
    """Moments from `rows(x[B, V, d], keys) -> (v[B, P, D], r[B, P], s[B, P])`.

    Â = Σ_p r_p v_p v_pᵀ estimates φφᵀ, and Σ_p s_p v_p estimates φ.
    """

    def num_features(dim: int) -> int:
        shape = jax.eval_shape(features, jax.ShapeDtypeStruct((1, dim), float)).shape
        if len(shape) != 2 or shape[0] != 1:
            raise ValueError(
                f"features must map [..., {dim}] to [..., D], but map [1, {dim}] to {list(shape)}"
            )
        return shape[1]

    def sums(samples: Sample, kept: Array, keys: Any = None) -> Sums:
        # φ may not be finite at what stands in rows that do not count: they take another row.
        counts = kept > 0
        own = jnp.where(counts, jnp.arange(len(kept)), jnp.argmax(counts))
        values, square, value = rows(samples.x[own, :copies], None if keys is None else keys[own])
        values = jnp.where(counts[:, None, None], values, 0)
        flat = values.reshape(-1, values.shape[-1])
        weights = (kept[:, None] * square).reshape(-1)
        gram = jnp.matmul((weights[:, None] * flat).T, flat, precision="highest")
        weights = ((kept * samples.y)[:, None] * value).reshape(-1)
        cross = jnp.matmul(weights, flat, precision="highest")
        return Sums(gram, cross, kept.sum(), jnp.zeros(()))

    def read(weights, sample: Sample, key: Any = None):
        keys = None if key is None else key[None]
        values, square, value = rows(sample.x[None, :copies], keys)
        functions = values[0] @ weights
        return value[0] @ functions, square[0] @ functions**2

    return Moments(num_features, features, sums, as_they_are, read, copies, linear=False)
