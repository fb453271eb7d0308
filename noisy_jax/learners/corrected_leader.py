"""The weights of the corrected leader from sums of moments, of one stream or of many devices.

They are solved by Cholesky factors. One `eigh` gives λ_min, the clipped matrix and the weights in
the ball at once, but takes 10 times as long as a factor with its solution at d = 10, 18 times at 64
and 16 times at 256 (OpenBLAS, float32), and a block needs two to five of them.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.linalg.ball import in_ball, largest_size, norm, precision, root
from noisy_jax.linalg.matrices import (
    cholesky,
    least_eigenvalue,
    positive_part,
    solve_cholesky,
    solve_triangular,
)
from noisy_jax.moments.online import Moments, Sums
from noisy_jax.validation.arrays import check_axes, check_shape
from noisy_jax.validation.numbers import non_negative, positive
from noisy_jax.validation.objects import instance
from noisy_jax.validation.values import ArrayLike
from noisy_jax.varying import of_this_device

_SPREAD = 0.25  # λ in units of the moments' standard deviation, unless z(x) = x
_ROUNDINGS = 8
_SMALLEST = 1e-12  # of the mean squares of columns, as a share of the largest one
_NEAR = 0.99  # of the radius: smaller weights were inside, whatever the rounding


class Leader(NamedTuple):
    """The weights that `corrected_ftrl` plays, given its sums.

    Attributes:
        weights: `[D]`, w.
        regularization: `[D]`, the diagonal of Λ in the ridge penalty wᵀΛw.
    """

    weights: jax.Array
    regularization: jax.Array


def leader(
    moments: Moments,
    sums: Sums,
    *,
    radius: ArrayLike | None = None,
    regularization: ArrayLike = 0.1,
    slack: ArrayLike = 0.0,
    previous: ArrayLike = 0.0,
) -> Leader:
    """The weights for given sums of moments, such as `state.sums` of several devices together.

    They minimize wᵀ(S + Λ)w − 2⟨c, w⟩ over the weights w (with ‖w‖ ≤ B, if `radius` is given). S
    and c are the unbiased estimates of Σ z(x)z(x)ᵀ and Σ y z(x), for D features z(x), that `sums`
    hold, and Λ is a diagonal ridge penalty, which is chosen. `learners.corrected_ftrl` plays these
    weights, given its own sums.

    Args:
        moments: the moments of the learner, such as `moments.known_covariance()`.
        sums: `state.sums` of the learner, with a leading axis of groups of rounds in every leaf.
            Sums of several runs are added leaf by leaf. They hold complete blocks of rounds only:
            call `learner.finish(state)` after the last round to add the rest.
        radius: B > 0, as given to the learner; `None`, the default, for no constraint.
        regularization: ≥ 0, as given to the learner; 0.1 by default.
        slack: `[]` or `[D]`, ≥ 0, added to the least diagonal of Λ, such as the `Sums.slack` of the
            block of rounds that comes next; 0 by default.
        previous: `[]` or `[D]`, ≥ 0, a lower bound on the diagonal of Λ, such as the
            `regularization` of an earlier result; 0 by default.

    Returns:
        A `Leader` with `weights` `[D]` and `regularization` `[D]`, the diagonal of Λ.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> moments = nj.moments.known_covariance()
        >>> learner = nj.learners.corrected_ftrl(moments)
        >>> halves = [nj.Stream(stream.x[i::2], stream.y[i::2]) for i in range(2)]
        >>> noise, keys = nj.noise.Gaussian(0.2), jax.random.split(jax.random.key(1))
        >>> runs = [nj.rollout(learner, *half) for half in zip(halves, 2 * [noise], keys)]
        >>> sums = jax.tree.map(jnp.add, *(learner.finish(run.state).sums for run in runs))
        >>> weights = nj.learners.leader(moments, sums).weights
        >>> print(f"{jnp.mean((stream.x @ weights - stream.y) ** 2):.3f}")
        0.000
    """
    instance("moments", moments, Moments, "such as moments.known_covariance()")
    sums = of_this_device(instance("sums", sums, Sums, "such as state.sums of corrected_ftrl"))
    radius = None if radius is None else positive("radius", radius)
    share = non_negative("regularization", regularization)
    check_axes("sums.gram", sums.gram, "[G, D, D]", ": a leading axis of groups in every leaf")
    if sums.squares is not None and not moments.linear:
        raise ValueError("sums must be of these moments, got sums of moments of other features")
    zero = jnp.zeros_like(sums.cross[0])
    slack = non_negative("slack", slack, shape=None)
    previous = non_negative("previous", previous, shape=None)
    for name, value in {"slack": slack, "previous": previous}.items():
        if jnp.ndim(value):
            check_shape(name, value, zero.shape, "as the weights")
    before = Leader(zero, jnp.broadcast_to(jnp.asarray(previous, zero.dtype), zero.shape))
    return leader_and_penalty(moments, sums, radius, share, slack, before, zero)[0]


def leader_and_penalty(moments, sums, radius, share, slack, before, gradient):
    """The leader, and the penalty ¼ gᵀ(S + Λ)⁻¹g of the last block, whose gradient is g.

    `share` is the learner's `regularization`, and `slack` as for `leader`. `before` is the leader
    before that block; good weights save time, and change nothing else. Λ of the penalty is the
    previous one; in the first block, where w = 0 under every Λ, it is the new one. The penalty is
    NaN where S + Λ is not positive definite.

    All but the ball is computed for features of size one, z_i/u_i with the units u of `_units`, so
    that the units of the columns change nothing, in float32 either.
    """
    whole = jax.tree.map(lambda leaf: leaf.sum(axis=0), sums)
    gram, cross = moments.corrected(whole)
    units = _units(whole, gram.dtype)
    scaled = gram / units[:, None] / units[None]
    previous = before.regularization / units**2
    least = _least(moments, sums, whole, scaled, share) + slack / units**2
    lam = jnp.maximum(previous, least)
    if not moments.clipped:
        # Λ − least must be at least −λ_min(S), and twice that without a ball. Where the previous Λ
        # covers this, the eigenvalue itself need not be computed.
        caution = 2 if radius is None else 1
        covered = jnp.maximum(jnp.min(previous - least) / caution, 0)
        lowest = least_eigenvalue(scaled, -covered)
        lam = jnp.where(lowest < -covered, jnp.maximum(previous, least - caution * lowest), lam)

    clipped = positive_part if moments.clipped else lambda matrix: matrix
    if radius is None:
        factor = cholesky(clipped(scaled) + jnp.diag(lam))
        weights = solve_cholesky(factor, cross / units) / units
    else:
        weights = _in_ball(clipped(gram) + jnp.diag(lam * units**2), cross, radius, before.weights)

    triangle = cholesky(scaled + jnp.diag(jnp.where(previous > 0, previous, lam)))
    exists = jnp.isfinite(triangle[-1, -1])
    triangle = jnp.where(exists, triangle, jnp.eye(len(gram), dtype=gram.dtype))  # for derivatives
    half = solve_triangular(triangle, gradient / units)
    penalty = jnp.where(exists, jnp.sum(half**2) / 4, jnp.nan)
    return Leader(weights, jnp.maximum(before.regularization, lam * units**2)), penalty


def _units(whole, dtype):
    """√(mean z̃_i²) `[D]` of linear features; 1 for others, in whose sizes a kernel may lie."""
    if whole.squares is None:
        return jnp.ones(len(whole.cross), dtype)
    squares = (whole.squares / jnp.maximum(whole.count, 1)).astype(dtype)
    largest = jnp.max(squares)
    resolved = jnp.maximum(squares, _SMALLEST * largest)
    return jnp.sqrt(jnp.where(largest > 0, resolved, 1))


def _least(moments, sums, whole, scaled, share):
    """The smallest λ `[]` of a matrix without negative eigenvalues, for features of size one."""
    mean_square = jnp.abs(jnp.trace(scaled / jnp.maximum(whole.count, 1)))
    least = share * mean_square
    if not moments.linear:
        least += _SPREAD * _spread(moments, sums, whole, mean_square)
    # With it matrices as large as S have Cholesky factors, up to the roundings of S; S may be zero.
    rounding = _ROUNDINGS * precision(scaled) * len(scaled) ** 0.5
    return jnp.maximum(jnp.maximum(least, rounding * norm(scaled)), 1e-34).astype(scaled.dtype)


def _in_ball(matrix, cross, radius, before):
    """The minimizer `[D]` of wᵀAw − 2⟨b, w⟩ in the ball; Newton's method starts at the last one."""
    radius = jnp.asarray(radius, matrix.dtype)
    # ‖w‖ = B needs μ + ‖A‖ ≥ ‖b‖/B: from there no weights overflow, however small A is.
    floor = jnp.maximum(norm(cross) / radius - norm(matrix), 0)
    # The last weights w are nearly the new ones: if they were on the boundary, start where
    # (A + μI)w is nearest to b.
    size = largest_size(before)
    unit = before / size
    guess = unit @ (cross / size - matrix @ unit) / jnp.maximum(unit @ unit, 1)
    start = jnp.where(norm(before) > _NEAR * radius, jnp.maximum(guess, floor), floor)

    def at(mu, matrix, cross):
        factor = cholesky(matrix + mu * jnp.eye(len(matrix), dtype=matrix.dtype))
        w = solve_cholesky(factor, cross)
        return w, solve_triangular(factor, w / largest_size(w))

    return in_ball(at, (matrix, cross), start, radius, floor)[0]


def _spread(moments, sums, whole, mean_square):
    """Matrix standard deviation of the moments, ‖G/(G − 1) Σ_g (S_g − S̄)²‖^½, over groups."""
    filled = sums.count > 0
    number = filled.sum()
    grams = jax.vmap(lambda s: moments.corrected(s._replace(count=whole.count))[0])(sums)
    # Groups are of different sizes until all are full: compare each with its share of the whole.
    share = sums.count / jnp.maximum(whole.count, 1)
    apart = grams - share[:, None, None] * grams.sum(axis=0)[None]
    unbiased = (number / jnp.maximum(number - 1, 1)).astype(apart.dtype)
    size = largest_size(apart)
    square = unbiased * jnp.einsum("gij,gjk->ik", apart / size, apart / size)
    vector = of_this_device(jnp.ones(len(square)) / len(square) ** 0.5)

    def power(_, v):
        v = square @ v
        return v / jnp.maximum(root(jnp.sum(v**2)), 1e-30)

    vector = jax.lax.fori_loop(0, 12, power, vector)
    spread = size * root(vector @ square @ vector)
    # One group alone says nothing about the spread: take the size of √t rounds.
    return jnp.where(number > 1, spread, mean_square * jnp.sqrt(whole.count))
