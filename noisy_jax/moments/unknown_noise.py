"""Second moments of any features from copies of noise whose law is unknown, another in each row.

The products φ(x)φ(x)ᵀ and φ(x)y of features φ are functions of the clean x, of which a
transformation of `nj.unbiased` gives estimates from noisy copies, with points z_j and weights w_j,

    Â = Σ_j w_j Re φ(z_j)φ(z_j)ᵀ,   b̂ = ỹ Σ_j w_j Re φ(z_j).

The points are real for `replicates` and `multilevel`, and complex for `pair` and `gaussian`. Sums
over rounds make the random errors small, also where single estimates have large ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax.base import Sample
from noisy_jax.moments.online import Moments, Sums, as_they_are
from noisy_jax.unbiased.continuation import Continued
from noisy_jax.unbiased.entire import continued
from noisy_jax.unbiased.estimates import Estimate
from noisy_jax.unbiased.transformed import Transformed
from noisy_jax.validation.objects import function


def unbiased(
    features: Callable[..., Any], estimate: Callable[..., Transformed] | None = None
) -> Moments:
    """Estimates second moments of any features φ(x) of clean x, by a transformation of f(x).

    The products φ(x)φ(x)ᵀ and yφ(x) are functions of the clean x, which `nj.unbiased` estimates
    from noisy copies. For example `replicates` of order 1 estimates the first from two copies x̃_1
    and x̃_2 with mean x̄ by

        Â = 2φ(x̄)φ(x̄)ᵀ − ½φ(x̃_1)φ(x̃_1)ᵀ − ½φ(x̃_2)φ(x̃_2)ᵀ,

    which for φ(x) = x is `moments.two_copies`. The moments are as unbiased as the transformation:
    `replicates` leaves a bias, `multilevel` a smaller one, `pair` and `gaussian` none. The noise in
    y must be independent of the noise in x.

    Args:
        features: φ, a JAX function `x[..., d] -> [..., D]`. `pair` and `gaussian` need one of
            entire operations (analytic in the complex plane), such as `nj.kernels.fourier_features`
            of a Gaussian kernel, and their variance grows as φ does along the imaginary axis: the
            noise must be well below the length scale.
        estimate: a transformation of `nj.unbiased`, which says what must be known of the noise, and
            how many copies it needs; `functools.partial` gives it options. By default
            `nj.unbiased.replicates` of order 1 with 4 copies. `gaussian` without its argument
            `noise` reads the covariance from `Sample.cov`.

    Returns:
        `Moments` of D features, for `learners.corrected_ftrl`; `moments.corrected` of
        `moments.sums(samples, kept)` estimates Σ_t φ(x_t)φ(x_t)ᵀ `[D, D]` and Σ_t y_t φ(x_t)
        `[D]`, for samples with a leading axis B and weights `kept` `[B]`, 1 for rounds that count
        and 0 for others. With `multilevel` and `gaussian`, `sums` and `clean_estimates` need the
        keys of their rounds as a last argument. Copies that a round of `multilevel` does not use
        need not be measured: NaN may stand there, too.

    Raises:
        ValueError: `estimate` is no transformation; or, when it is used, φ is not entire although
            `estimate` needs it.

    Example:
        >>> import functools, jax, jax.numpy as jnp, noisy_jax as nj
        >>> copies = 1.0 + 0.6 * jax.random.normal(jax.random.key(0), (50_000, 2, 1))
        >>> samples, kept = nj.Sample(copies, jnp.ones(50_000)), jnp.full(50_000, 1 / 50_000)
        >>> for estimate in (functools.partial(nj.unbiased.replicates, order=0, copies=2),
        ...                  nj.unbiased.replicates, nj.unbiased.pair):
        ...     gram = nj.moments.unbiased(jnp.cos, estimate).sums(samples, kept).gram[0, 0]
        ...     print(f"{gram:.2f} {jnp.cos(1.0) ** 2:.2f}")
        0.36 0.29
        0.31 0.29
        0.29 0.29
    """
    function("features", features)
    transformation = Estimate.of(estimate)
    probe = transformation.probed(features)
    copies = probe.copies

    def weighted_values(samples: Sample, keys: Any):
        """`(v[B, P, D], r[B, P], s[B, P])`: Σ_p r_p v_p v_pᵀ estimates φφᵀ, and Σ_p s_p v_p φ."""

        def points_of(sample, key):
            return transformation.for_sample(features, sample).points(sample.x[:copies], key)

        points = jax.vmap(points_of)(samples, keys)
        w = points.weights
        if points.imaginary is None:
            return features(points.real), w, w
        # Re φφᵀ of a complex φ is Re φ Re φᵀ − Im φ Im φᵀ.
        z = continued(features, Continued(points.real, points.imaginary), probe.name)
        values = jnp.concatenate([z.re, z.im], axis=1)
        of_products = jnp.concatenate([w, -w], axis=1)
        return values, of_products, jnp.concatenate([w, jnp.zeros_like(w)], axis=1)

    def num_features(dim: int) -> int:
        shape = jax.eval_shape(features, jax.ShapeDtypeStruct((1, dim), float)).shape
        if len(shape) != 2 or shape[0] != 1:
            raise ValueError(
                f"features must map [..., {dim}] to [..., D], but map [1, {dim}] to {list(shape)}"
            )
        return shape[1]

    def sums(samples: Sample, kept: jax.Array, keys: Any = None) -> Sums:
        # φ may not be finite at what stands in rows that do not count: they take another row.
        counts = kept > 0
        source = jnp.where(counts, jnp.arange(len(kept)), jnp.argmax(counts))
        samples, keys = jax.tree.map(lambda leaf: leaf[source], (samples, keys))
        values, of_products, of_values = weighted_values(samples, keys)
        values = jnp.where(counts[:, None, None], values, 0)
        flat = values.reshape(-1, values.shape[-1])
        weights = (kept[:, None] * of_products).reshape(-1)
        gram = jnp.matmul((weights[:, None] * flat).T, flat, precision="highest")
        weights = ((kept * samples.y)[:, None] * of_values).reshape(-1)
        cross = jnp.matmul(weights, flat, precision="highest")
        return Sums(gram, cross, kept.sum(), jnp.zeros(()))

    def clean_estimates(weights, sample: Sample, key: Any = None):
        batch = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], (sample, key))
        values, of_products, of_values = weighted_values(*batch)
        functions = values[0] @ weights
        return of_values[0] @ functions, of_products[0] @ functions**2

    return Moments(
        num_features=num_features,
        features=features,
        sums=sums,
        corrected=as_they_are,
        clean_estimates=clean_estimates,
        copies=copies,
        linear=False,
        noise=probe.noise,
        random=probe.draws,
    )
