"""The weights of the corrected leader from sums of moments, of one stream or of many devices."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.moments.online import Moments, Sums
from noisy_jax.validation import instance, non_negative, positive

_SPREAD = 0.25  # λ in units of the moments' standard deviation, for Fourier features
_DOUBLINGS, _NEWTON_STEPS = 60, 30


class Leader(NamedTuple):
    """The weights that `corrected_ftrl` plays, given its sums.

    Attributes:
        weights: `[D]`, w.
        regularization: `[]`, λ, the ridge penalty of these weights.
    """

    weights: jax.Array
    regularization: jax.Array


def leader(
    moments: Moments,
    sums: Sums,
    *,
    radius: chex.Numeric | None = None,
    regularization: chex.Numeric = 0.1,
    slack: chex.Numeric = 0.0,
    previous: chex.Numeric = 0.0,
) -> Leader:
    """The weights for given sums, such as `state.sums` of several devices added together.

    `learners.corrected_ftrl` adds complete blocks of rounds to `state.sums`; call its `finish`
    after the last round to add the rest.

    Args:
        moments: as in `learners.corrected_ftrl`.
        sums: each leaf with a leading axis of groups, as in `CorrectedState.sums`.
        radius: B > 0, or `None`, as in `learners.corrected_ftrl`.
        regularization: as in `learners.corrected_ftrl`.
        slack: the most by which the next block can reduce the smallest eigenvalue of the Gram
            matrix, which is added to λ for linear features.
        previous: the last λ; the new one is at least as large.

    Returns:
        `Leader`, the weights and their λ.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=4096, dim=3)
        >>> moments = nj.moments.known_covariance()
        >>> learner = nj.learners.corrected_ftrl(moments)
        >>> halves = [nj.Stream(stream.x[i::2], stream.y[i::2]) for i in range(2)]
        >>> noise, keys = nj.noise.Gaussian(0.2), jax.random.split(jax.random.key(1))
        >>> runs = [nj.rollout(learner, *half) for half in zip(halves, 2 * [noise], keys)]
        >>> sums = jax.tree.map(jnp.add, *(learner.finish(run.state).sums for run in runs))
        >>> weights = leader(moments, sums).weights
        >>> print(f"{jnp.mean((stream.x @ weights - stream.y) ** 2):.3f}")
        0.000
    """
    instance("moments", moments, Moments, "such as moments.known_covariance()")
    instance("sums", sums, Sums, "such as state.sums of learners.corrected_ftrl")
    radius = None if radius is None else positive("radius", radius)
    share = non_negative("regularization", regularization)
    return leader_and_factor(moments, sums, radius, share, slack, previous)[0]


def leader_and_factor(moments, sums, radius, share, slack, previous):
    """The leader, and the triangular factor of S + λI."""
    whole = total(sums)
    gram, cross = moments.corrected(whole)
    mean_square = jnp.abs(jnp.trace(gram)) / jnp.maximum(whole.count, 1)
    least = share * mean_square
    if moments.linear:
        caution = 2 if radius is None else 1
        lam = jnp.maximum(previous, least + caution * _shift(gram, least, previous) + slack)
        triangle = factor(gram, lam)
        return Leader(_in_ball(gram, lam, cross, radius, triangle), lam), triangle
    lam = jnp.maximum(previous, least + _SPREAD * _spread(moments, sums, whole, mean_square))
    values, vectors = jnp.linalg.eigh(gram)
    weights = _diagonal_in_ball(jnp.maximum(values, 0), lam, vectors.T @ cross, radius)
    return Leader(vectors @ weights, lam), factor(gram, lam)


def total(sums: Sums) -> Sums:
    """The sums of all groups together."""
    return jax.tree.map(lambda leaf: leaf.sum(axis=0), sums)


def factor(gram, lam):
    """The Cholesky factor of S + λI, NaN where the matrix is not positive definite."""
    return jax.lax.linalg.cholesky(gram + lam * jnp.eye(len(gram)), symmetrize_input=False)


def solve(triangle, vector):
    """(S + λI)⁻¹ v from the Cholesky factor."""
    return jax.scipy.linalg.cho_solve((triangle, True), vector)


def half_solve(triangle, vector):
    """L⁻¹ v for the Cholesky factor L of S + λI: its square is vᵀ(S + λI)⁻¹v."""
    return jax.scipy.linalg.solve_triangular(triangle, vector, lower=True)


def _shift(gram, least, previous):
    """max(0, −λ_min(S)) to within a tenth above, by Cholesky factors: one if S is sound, else 7.

    It is a multiple of `unit`, by a power of two and then by bisection. The search begins near
    `previous`. The loop has no reverse mode, and derivatives are those of `unit`.
    """
    unit = jnp.maximum(least, 1e-6 * jnp.abs(jnp.trace(gram)) / len(gram))
    unit = jnp.maximum(unit, 1e-12 * jnp.max(jnp.abs(gram))) + 1e-30  # the trace may be zero

    fixed, still, last = jax.lax.stop_gradient((gram, unit, previous))
    begin = still * jnp.exp2(jnp.floor(jnp.log2(jnp.maximum(last / still, 1))))

    def fails(m):
        return ~jnp.isfinite(factor(fixed, m)[-1, -1])

    def narrowed(carry):
        low, high, steps = carry  # it fails at low, and is sound at high, infinite at first
        middle = jnp.where(jnp.isfinite(high), (low + high) / 2, jnp.maximum(2 * low, begin))
        failed = fails(middle)
        return jnp.where(failed, middle, low), jnp.where(failed, high, middle), steps + 1

    def wide(carry):
        low, high, steps = carry
        return (high > 1.1 * low) & (high > still) & (steps < _DOUBLINGS)

    zero = jnp.zeros_like(still)
    high = jnp.where(fails(zero), jnp.inf, zero)
    return jax.lax.while_loop(wide, narrowed, (zero, high, 0))[1] / still * unit


def _in_ball(gram, lam, cross, radius, triangle):
    """argmin of λ‖w‖² + wᵀSw − 2⟨b, w⟩, over ‖w‖ ≤ B if there is a ball (More and Sorensen)."""
    if radius is None:
        return solve(triangle, cross)
    # ‖w‖ = B needs μ + λ + ‖S‖ ≥ ‖b‖/B: from there no weights overflow, however small S is.
    start = jnp.linalg.norm(cross) / radius - lam - jnp.linalg.norm(gram)
    start = jnp.maximum(start, 0)

    def solved(mu):
        triangle = factor(gram, lam + mu)
        weights = solve(triangle, cross)
        return mu, weights, jnp.sum(half_solve(triangle, weights) ** 2)

    def outside(carry):
        (_, weights, _), steps = carry
        return (jnp.linalg.norm(weights) > radius * (1 + 1e-6)) & (steps < _NEWTON_STEPS)

    def newton(carry):
        (mu, weights, slope), steps = carry
        norm = jnp.linalg.norm(weights)
        return solved(mu + (norm / radius - 1) * norm**2 / slope), steps + 1

    return jax.lax.while_loop(outside, newton, (solved(start), 0))[0][1]


def _diagonal_in_ball(values, lam, cross, radius):
    """The same in the eigenvectors' coordinates."""
    weights = cross / (values + lam)
    if radius is None:
        return weights

    def newton(_, mu):
        weights = cross / (values + lam + mu)
        norm = jnp.linalg.norm(weights)
        slope = jnp.sum(weights**2 / (values + lam + mu))
        return mu + jnp.maximum((norm / radius - 1) * norm**2 / slope, 0)

    mu = jax.lax.fori_loop(0, _NEWTON_STEPS, newton, jnp.zeros_like(lam))
    return cross / (values + lam + mu)


def _spread(moments, sums, whole, mean_square):
    """Matrix standard deviation of the moments, ‖G/(G − 1) Σ_g (S_g − S̄)²‖^½, over groups."""
    filled = sums.count > 0
    number = filled.sum()
    grams = jax.vmap(lambda s: moments.corrected(s._replace(count=whole.count))[0])(sums)
    # Groups are of different sizes until all are full: compare each with its share of the whole.
    share = sums.count / jnp.maximum(whole.count, 1)
    apart = grams - share[:, None, None] * grams.sum(axis=0)[None]
    square = jnp.einsum("gij,gjk->ik", apart, apart) * number / jnp.maximum(number - 1, 1)
    vector = jnp.ones(len(square)) / len(square) ** 0.5

    def power(_, v):
        v = square @ v
        return v / jnp.maximum(jnp.linalg.norm(v), 1e-30)

    vector = jax.lax.fori_loop(0, 12, power, vector)
    spread = jnp.sqrt(jnp.maximum(vector @ square @ vector, 0))
    # One group alone says nothing about the spread: take the size of √t rounds.
    return jnp.where(number > 1, spread, mean_square * jnp.sqrt(whole.count))
