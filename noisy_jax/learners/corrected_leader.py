"""The weights of the corrected leader from sums of moments, of one stream or of many devices."""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.matrices import cholesky, eigh, least_eigenvalue, solve_cholesky, solve_triangular
from noisy_jax.moments.online import Moments, Sums
from noisy_jax.validation import instance, non_negative, positive

_SPREAD = 0.25  # λ in units of the moments' standard deviation, for Fourier features
_ROUNDINGS, _NEWTON_STEPS = 8, 30


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
        least = jnp.maximum(least, _rounding(gram)) + slack
        enough = jnp.maximum((previous - least) / caution, 0)  # a larger −λ_min increases λ
        lowest = least_eigenvalue(gram, -enough)
        larger = jnp.where(lowest < -enough, least - caution * lowest, least)
        lam = jnp.maximum(previous, larger)
        triangle = factor(gram, lam)
        if radius is None:
            return Leader(solve(triangle, cross), lam), triangle
        return Leader(_in_ball(gram, lam, cross, radius)[0], lam), triangle
    lam = jnp.maximum(previous, least + _SPREAD * _spread(moments, sums, whole, mean_square))
    return Leader(_clipped_in_ball(gram, lam, cross, radius)[0], lam), factor(gram, lam)


def total(sums: Sums) -> Sums:
    """The sums of all groups together."""
    return jax.tree.map(lambda leaf: leaf.sum(axis=0), sums)


def factor(gram, lam):
    """The Cholesky factor of S + λI, NaN where the matrix is not positive definite."""
    return cholesky(gram + lam * jnp.eye(len(gram)))


def solve(triangle, vector):
    """(S + λI)⁻¹ v from the Cholesky factor."""
    return solve_cholesky(triangle, vector)


def half_solve(triangle, vector):
    """L⁻¹ v for the Cholesky factor L of S + λI: its square is vᵀ(S + λI)⁻¹v."""
    return solve_triangular(triangle, vector)


def _rounding(gram):
    """A λ with which matrices as large as S have Cholesky factors, up to the roundings of S."""
    size = _ROUNDINGS * jnp.finfo(gram.dtype).eps * len(gram) ** 0.5
    return size * _root(jnp.sum(gram**2)) + 1e-30  # S may be zero


@jax.custom_jvp
def _in_ball(gram, lam, cross, radius):
    """argmin of λ‖w‖² + wᵀSw − 2⟨b, w⟩ over ‖w‖ ≤ B, and μ of (S + (λ + μ)I)w = b.

    Source: More and Sorensen (1983).
    """
    # ‖w‖ = B needs μ + λ + ‖S‖ ≥ ‖b‖/B: from there no weights overflow, however small S is.
    start = jnp.linalg.norm(cross) / radius - lam - jnp.linalg.norm(gram)
    start = jnp.maximum(start, 0)

    def solved(mu):
        triangle = factor(gram, lam + mu)
        weights = solve(triangle, cross)
        return mu, weights, jnp.sum(half_solve(triangle, weights) ** 2)

    def outside(carry):
        (_, weights, _), steps = carry
        largest = radius * (1 + _ROUNDINGS * jnp.finfo(weights.dtype).eps)
        return (jnp.linalg.norm(weights) > largest) & (steps < _NEWTON_STEPS)

    def newton(carry):
        (mu, weights, slope), steps = carry
        norm = jnp.linalg.norm(weights)
        return solved(mu + (norm / radius - 1) * norm**2 / slope), steps + 1

    mu, weights, _ = jax.lax.while_loop(outside, newton, (solved(start), 0))[0]
    return weights, mu


@jax.custom_jvp
def _clipped_in_ball(gram, lam, cross, radius):
    """The same with zero in place of negative eigenvalues of S; there may be no ball."""
    values, vectors = eigh(gram)
    values, cross = jnp.maximum(values, 0) + lam, vectors.T @ cross

    def newton(_, mu):
        weights = cross / (values + mu)
        norm = jnp.linalg.norm(weights)
        slope = jnp.sum(weights**2 / (values + mu))
        return mu + jnp.maximum((norm / radius - 1) * norm**2 / slope, 0)

    mu = jnp.zeros_like(lam)
    if radius is not None:
        mu = jax.lax.fori_loop(0, _NEWTON_STEPS, newton, mu)
    return vectors @ (cross / (values + mu)), mu


@_in_ball.defjvp
def _(primals, tangents):
    weights, mu = _in_ball(*primals)
    triangle = factor(primals[0], primals[1] + mu)
    return (weights, mu), _slopes(lambda v: solve(triangle, v), weights, mu, primals[3], *tangents)


@_clipped_in_ball.defjvp
def _(primals, tangents):
    """Derivatives of V max(Λ, 0) Vᵀ are V(K∘(Vᵀ dS V))Vᵀ, K_ij the slope from λ_i to λ_j."""
    weights, mu = _clipped_in_ball(*primals)
    values, vectors = eigh(primals[0])
    clipped = jnp.maximum(values, 0)
    run = values[:, None] - values[None]
    slopes = (clipped[:, None] - clipped[None]) / jnp.where(run == 0, 1, run)
    slopes = jnp.where(run == 0, jnp.heaviside(values, 0)[:, None], slopes)
    change = vectors @ (slopes * (vectors.T @ tangents[0] @ vectors)) @ vectors.T

    def solve(v):
        return vectors @ ((vectors.T @ v) / (clipped + primals[1] + mu))

    return (weights, mu), _slopes(solve, weights, mu, primals[3], change, *tangents[1:])


def _slopes(solve, weights, mu, radius, gram, lam, cross, change_of_radius):
    """Derivatives of w and μ, by (S + (λ + μ)I)w = b and ‖w‖ = B, from those of S, λ, b and B."""
    free = solve(cross - gram @ weights - lam * weights)
    if radius is None:
        return free, jnp.zeros_like(mu)
    along = solve(weights)
    bound = mu > 0
    excess = weights @ free - radius * change_of_radius
    slope = jnp.where(bound, excess / jnp.where(bound, weights @ along, 1), 0)
    return free - slope * along, slope


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
        return v / jnp.maximum(_root(jnp.sum(v**2)), 1e-30)

    vector = jax.lax.fori_loop(0, 12, power, vector)
    spread = _root(vector @ square @ vector)
    # One group alone says nothing about the spread: take the size of √t rounds.
    return jnp.where(number > 1, spread, mean_square * jnp.sqrt(whole.count))


def _root(square):
    """√max(a, 0), with the derivative 0 where it is 0."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)
