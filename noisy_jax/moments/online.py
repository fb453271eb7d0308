"""Unbiased second moments of clean features, from the noisy samples that learners see.

For features z(x) of the clean instance, `Moments` compute from the samples Â and b̂ with

    E Â = Σ_t z(x_t) z(x_t)ᵀ      and      E b̂ = Σ_t y_t z(x_t)

or nearly so, as `fourier` and `unbiased` say of theirs.

This takes two steps. `Moments.sums` sums over rounds; the sums over parts of a stream (blocks,
devices, files) can be added. `Moments.corrected` computes the moments from the total.

Source: corrected least squares (Fuller, 1987; Nakamura, 1990) for linear features; deconvolution
(Stefanski and Carroll, 1990; Fan and Truong, 1993) for Fourier features.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import Sample, exportable
from noisy_jax.linalg.ball import root
from noisy_jax.noise import Noise, covariance_times
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.values import ArrayLike


@exportable
class Sums(NamedTuple):
    """Sums over rounds. The sums over two sets of rounds can be added, leaf by leaf.

    `Moments.corrected` computes the unbiased moments from them.

    Attributes:
        gram: `[D, D]`, from products of two noisy features.
        cross: `[D]`, from products of a noisy feature and the target.
        count: `[]`, number of rounds.
        slack: `[D]`, s ≥ 0 such that the corrected Gram matrix of these rounds plus diag(s) has no
            negative eigenvalue; 0, also `[]`, where no such bound is known.
        squares: `[D]`, sums of the squares of the noisy features, whose roots are the units of
            linear features; `None` for features that are not linear.
    """

    gram: jax.Array
    cross: jax.Array
    count: jax.Array
    slack: jax.Array
    squares: jax.Array | None = None


class Moments(NamedTuple):
    """Functions that compute unbiased second moments of D clean features z(x) from noisy samples.

    Attributes:
        num_features: `d -> D`.
        features: `x[..., d] -> z(x)[..., D]`, for clean instances x.
        sums: `(samples, kept[B]) -> Sums`, sums over B rounds. Every leaf of `samples` has a
            leading axis B. `kept` is 1 for rounds that count and 0 for others; other
            weights ≥ 0 are allowed.
        corrected: `Sums -> (gram[D, D], cross[D])`, unbiased estimates of Σ_t z(x_t)z(x_t)ᵀ and
            Σ_t y_t z(x_t), which are sums over the rounds and not means.
        clean_estimates: `(weights[D], sample) -> (value, square)`, from the sample of one round:
            unbiased estimates of f(x) = ⟨w, z(x)⟩ and of f(x)² at the clean x. Both are `[]`.
        copies: V, number of noisy copies that a sample must have.
        linear: whether z(x) = x.
        noise: the distribution of the noise that the moments correct for; `None` if they need no
            more than its covariance, or nothing.
        clipped: whether negative eigenvalues of the sums count as zero in `corrected_ftrl`, which
            then has no guarantee; otherwise they increase its penalty.
        random: whether `sums` takes the keys of the rounds as a third argument, and
            `clean_estimates` the key.
    """

    num_features: Callable[[int], int]
    features: Callable[[jax.Array], jax.Array]
    sums: Callable[[Sample, jax.Array], Sums]
    corrected: Callable[[Sums], tuple[jax.Array, jax.Array]]
    clean_estimates: Callable[[jax.Array, Sample], tuple[jax.Array, jax.Array]]
    copies: int
    linear: bool
    noise: Noise | None = None
    clipped: bool = False
    random: bool = False


def known_covariance() -> Moments:
    """Estimates second moments of clean x from one noisy copy, with noise of known covariance.

    From the noisy copy x̃_t, the noisy target ỹ_t and the covariance Σ_t of the noise in x̃_t
    (`Sample.cov`), round t contributes unbiased estimates of x_t x_tᵀ and of y_t x_t:

        Â_t = x̃_t x̃_tᵀ − Σ_t,   b̂_t = ỹ_t x̃_t − c_t,

    where c_t `[d]` is the covariance of the noise in ỹ_t and in x̃_t (`Sample.cross_cov`), 0 without
    it. The noise has mean zero and any distribution.

    Returns:
        `Moments` of the d features z(x) = x, for `learners.corrected_ftrl`. `moments.sums(samples,
        kept)` sums the rounds of samples with a leading axis B, where `kept` `[B]` is 1 for rounds
        that count. `moments.corrected` of these sums returns Σ_t Â_t `[d, d]` and Σ_t b̂_t `[d]`.

    Raises:
        ValueError: (when it is used) the samples have no `cov`.

    Source: corrected least squares (Fuller, Measurement Error Models, 1987; Nakamura, 1990).

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> samples = nj.Sample(jnp.ones((1, 1, 2)), jnp.ones(1), jnp.full(1, 0.25))
        >>> moments = nj.moments.known_covariance()
        >>> gram, cross = moments.corrected(moments.sums(samples, jnp.ones(1)))
        >>> print(gram)
        [[0.75 1.  ]
         [1.   0.75]]
    """

    def covariance_of(samples: Sample) -> ArrayLike:
        if samples.cov is None:
            raise ValueError(
                "known_covariance needs the noise's covariance, but the samples have none: use "
                "two_copies with replicates"
            )
        return samples.cov

    def sums(samples: Sample, kept: jax.Array) -> Sums:
        x = samples.x[:, 0]
        cov = jnp.asarray(covariance_of(samples), x.dtype)
        counted = kept[:, None] * x
        noise = jnp.tensordot(kept, cov, axes=1)
        if noise.ndim < 2:
            noise = jnp.diag(jnp.broadcast_to(noise, x.shape[1:]))
        slack = jnp.broadcast_to(kept @ _diagonal_above(cov), x.shape[1:])
        cross = samples.y @ counted - _cross(samples, kept)
        return Sums(counted.T @ x - noise, cross, kept.sum(), slack, jnp.sum(counted * x, axis=0))

    def clean_estimates(weights, sample: Sample):
        value = sample.x[0] @ weights
        square = value**2 - weights @ covariance_times(covariance_of(sample), weights)
        return value, square + 2 * _cross(sample, weights)

    return Moments(
        lambda d: d, lambda x: x, sums, as_they_are, clean_estimates, copies=1, linear=True
    )


def two_copies(copies: int = 2) -> Moments:
    """Estimates second moments of clean x from V ≥ 2 independent copies of unknown noise.

    From the noisy copies x̃_v, v = 1 to V, and the noisy target ỹ, round t contributes unbiased
    estimates of x_t x_tᵀ and of y_t x_t:

        Â_t = (s sᵀ − Σ_v x̃_v x̃_vᵀ)/(V(V − 1)),   b̂_t = (ỹ s − c_t)/V,   s = Σ_v x̃_v,

    where c_t `[d]` is the covariance of the noise in ỹ and in the first copy (`Sample.cross_cov`),
    0 without it. The noise has mean zero and any distribution, also another one in each round.

    Args:
        copies: V ≥ 2, number of copies that are read; 2 by default.

    Returns:
        `Moments` of the d features z(x) = x, for `learners.corrected_ftrl`. `moments.sums(samples,
        kept)` sums the rounds of samples with a leading axis B, where `kept` `[B]` is 1 for rounds
        that count. `moments.corrected` of these sums returns Σ_t Â_t `[d, d]` and Σ_t b̂_t `[d]`.

    Source: the products of different copies in the gradient of `learners.two_copies`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> copies = jnp.array([[[1.0, 2.0], [3.0, 0.0]]])  # one round, V = 2, d = 2
        >>> moments = nj.moments.two_copies()
        >>> sums = moments.sums(nj.Sample(copies, jnp.ones(1)), jnp.ones(1))
        >>> print(moments.corrected(sums)[0])
        [[3. 3.]
         [3. 0.]]
    """
    copies = whole("copies", copies, 2, "one copy of unknown noise does not identify the moments")

    def sums(samples: Sample, kept: jax.Array) -> Sums:
        x = samples.x[:, :copies]
        total = x.sum(axis=1)
        flat = (kept[:, None, None] * x).reshape(-1, x.shape[-1])
        gram = (kept[:, None] * total).T @ total - flat.T @ x.reshape(-1, x.shape[-1])
        cross = ((samples.y * kept) @ total - _cross(samples, kept)) / copies
        squares = kept @ jnp.sum(x**2, axis=1) / copies
        return Sums(gram / (copies * (copies - 1)), cross, kept.sum(), jnp.zeros(()), squares)

    def clean_estimates(weights, sample: Sample):
        values = sample.x[:copies] @ weights
        square = (values.sum() ** 2 - jnp.sum(values**2)) / (copies * (copies - 1))
        return values.mean(), square + 2 * _cross(sample, weights) / copies

    return Moments(
        lambda d: d, lambda x: x, sums, as_they_are, clean_estimates, copies, linear=True
    )


def _diagonal_above(cov: jax.Array) -> jax.Array:
    """The diagonal `[B, d]` (or `[B, 1]`) of a matrix D with D − Σ positive semi-definite.

    D_ii = Σ_ii Σ_j |ρ_ij| with the correlations ρ: Gershgorin's bound in units of the noise.
    """
    if cov.ndim < 3:
        return cov.reshape(len(cov), -1)
    deviations = root(jnp.diagonal(cov, axis1=1, axis2=2))
    units = jnp.where(deviations > 0, deviations, 1)
    return deviations * jnp.sum(jnp.abs(cov) / units[:, None], axis=2)


def _cross(sample: Sample, weights: jax.Array) -> ArrayLike:
    """Weights times the covariance of the noise in y with that in the first copy; 0 without it."""
    return 0.0 if sample.cross_cov is None else weights @ sample.cross_cov


def as_they_are(sums: Sums) -> tuple[jax.Array, jax.Array]:
    """The moments of sums that are unbiased already."""
    return sums.gram, sums.cross
