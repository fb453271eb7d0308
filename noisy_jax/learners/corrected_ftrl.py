"""Follow the corrected leader: least squares on unbiased second moments, in one pass.

    w_{t+1} = argmin_w λ_t ‖w‖² + Σ_{s ≤ t} (wᵀÂ_s w − 2⟨b̂_s, w⟩) = (S_t + λ_t I)⁻¹ Σ_{s ≤ t} b̂_s

with S_t = Σ_{s ≤ t} Â_s, where Â_s and b̂_s are unbiased estimates of the moments z(x_s)z(x_s)ᵀ and
y_s z(x_s) of the clean features z (`moments`). In expectation each summand is the squared loss on
clean data minus y_s². The learner needs no learning rate and no horizon; a radius is optional.

**Guarantee**, for every u (in the ball, if there is one) and every sequence of rounds:

    Σ_t f̂_t(w_t) − f̂_t(u) ≤ λ_T ‖u‖² + ¼ Σ_t g_tᵀ (S_t + λ_{t−1} I)⁻¹ g_t,   g_t = 2(Â_t w_t − b̂_t),

where f̂_t(w) = wᵀÂ_t w − 2⟨b̂_t, w⟩, if S_t + λ_{t−1} I is positive definite in every round. In
expectation the left side is the regret on clean data. The right side is only known after the run
(`bounds.corrected_ftrl`). If the weights are computed every k rounds, a block of k rounds counts as
one round in these formulas.

For Fourier features negative eigenvalues of S_t are set to zero. λ_t is λ_0 plus a quarter of the
standard deviation of the moments, which is estimated from groups of rounds. The guarantee does not
cover this. The rule was chosen by experiments with Gaussian noise of variance 0.1, 0.2 and 0.3 (the
study `leader`) and `moments.fourier(…, wiener=1.0)`.

**Limitations.** The learner gives all rounds the same weight: if the best predictor changes, it
follows more slowly than a learner with a constant rate. The variance of its moments depends on the
fourth moment of the noise: under heavy tails (Student's t with 4 degrees of freedom or fewer) they
converge slowly or not at all. With Fourier features under Gaussian noise of a variance near ℓ² it
can be worse than predicting zero. In fewer rounds than features it is no better than predicting
zero. Like every learner with one copy, it must know the covariance of the noise. The study measures
all of these.

Source: follow the regularized leader with the proof of McMahan (2017) on corrected least squares
(Fuller, 1987); online ridge regression is the case without noise (Azoury and Warmuth, 2001).
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample
from noisy_jax.moments.online import Moments, Sums
from noisy_jax.validation import instance, non_negative, positive, whole

_GROUP_ROWS = 64  # neighbouring rounds may depend on each other: at least so many stay together
_SPREAD = 0.25  # λ in units of the moments' standard deviation, for Fourier features
_DOUBLINGS, _NEWTON_STEPS = 60, 30


class CorrectedState(NamedTuple):
    """State of the corrected leader.

    Attributes:
        sums: sums over the complete blocks of k rounds, each leaf with a leading axis of G groups.
        pending: sums over the block that is not complete yet.
        weights: `[D]`, w_t.
        regularization: `[]`, λ_t.
        penalty: `[]`, ¼ Σ g_tᵀ (S_t + λ_{t−1} I)⁻¹ g_t so far, for `bounds.corrected_ftrl`; NaN if
            S_t + λ_{t−1} I was not positive definite in some round.
        round: `[]`, rounds seen.
    """

    sums: Sums
    pending: Sums
    weights: jax.Array
    regularization: jax.Array
    penalty: jax.Array
    round: jax.Array


def corrected_ftrl(
    moments: Moments,
    *,
    radius: chex.Numeric | None = None,
    regularization: chex.Numeric = 0.1,
    solve_every: int = 16,
    groups: int = 16,
) -> Learner:
    """Online least squares on unbiased moments of the clean features ("corrected leader").

    The learner predicts ⟨w, z(x)⟩ with linear features z(x) = x or Fourier features z. Its weights
    solve a ridge regression on estimates of Σ_t z(x_t)z(x_t)ᵀ and Σ_t y_t z(x_t) over all rounds so
    far. The noise does not bias these estimates. `bounds.corrected_ftrl` bounds the regret after a
    run.

    Args:
        moments: the features, and how noisy copies become unbiased moments of them:
            `moments.known_covariance()`, `moments.two_copies()` or `moments.fourier(frequencies)`.
        radius: B > 0, if the weights must have ‖w‖ ≤ B; `None` for no constraint.
        regularization: λ_0 ≥ 0, lower bound on the ridge penalty λ_t, which the learner chooses; in
            the units of ‖z(x)‖². Results hardly depend on it.
        solve_every: k ≥ 1, number of rounds after which the weights are computed again.
        groups: G ≥ 2, number of groups of rounds whose moments are stored separately. With Fourier
            features λ_t is chosen by the differences between groups, which show the random error of
            the moments.

    Returns:
        A `Learner` whose state is a `CorrectedState`, of size O(G D²) for D features.
    """
    instance("moments", moments, Moments, "such as moments.known_covariance()")
    radius = None if radius is None else positive("radius", radius)
    least = non_negative("regularization", regularization)
    every, groups = whole("solve_every", solve_every), whole("groups", groups, 2)
    rows = every * -(-_GROUP_ROWS // every)  # of a group's blocks, whole multiples of k

    def init(dim: int) -> CorrectedState:
        size, zero = moments.num_features(whole("dim", dim)), jnp.zeros(())
        empty = Sums(jnp.zeros((size, size)), jnp.zeros(size), zero, zero)
        grouped = jax.tree.map(lambda leaf: jnp.zeros((groups, *leaf.shape)), empty)
        return CorrectedState(grouped, empty, jnp.zeros(size), zero + least, zero, jnp.int32(0))

    def solved(state: CorrectedState) -> CorrectedState:
        """The state after a complete block: its sums join their group, and weights are solved."""
        group = (state.round - 1) // rows % groups
        sums = jax.tree.map(lambda a, b: a.at[group].add(b), state.sums, state.pending)
        total = _whole(sums)
        gram, _ = moments.corrected(total)
        own_gram, own_cross = moments.corrected(state.pending._replace(count=total.count))
        gradient = 2 * (own_gram @ state.weights - own_cross)
        (weights, lam), factor = _leader(
            moments, sums, radius, least, state.pending.slack, state.regularization
        )
        # The first weights are 0 whatever λ is, so that its λ may be chosen after its block.
        before = jnp.where(state.round <= every, lam, state.regularization)
        step = jax.lax.cond(
            before == lam,
            lambda: _solve(factor, gradient),
            lambda: _solve(_factor(gram, before), gradient),
        )
        penalty = state.penalty + gradient @ step / 4
        empty = jax.tree.map(jnp.zeros_like, state.pending)
        return CorrectedState(sums, empty, weights, lam, penalty, state.round)

    def advance(state: CorrectedState, samples: Sample, kept, x):
        """Rounds inside one block: predictions, sums, and a solution if the block is complete."""
        predictions = moments.features(x) @ state.weights
        new = moments.sums(samples, kept)
        pending = jax.tree.map(jnp.add, state.pending, new)
        state = state._replace(pending=pending, round=state.round + jnp.sum(kept).astype(jnp.int32))
        complete = (state.round % every == 0) & (pending.count > 0)
        return jax.lax.cond(complete, solved, lambda same: same, state), predictions

    @jax.default_matmul_precision("highest")
    def unroll(state: CorrectedState, samples: Sample, x, keys):
        del keys
        rounds = x.shape[0]
        blocks = (rounds + every - 2) // every + 1
        first = state.round % every

        def in_blocks(leaf):
            room = jnp.zeros((blocks * every, *leaf.shape[1:]), leaf.dtype)
            filled = jax.lax.dynamic_update_slice_in_dim(room, leaf, first, axis=0)
            return filled.reshape(blocks, every, *leaf.shape[1:])

        inputs = jax.tree.map(in_blocks, (samples, jnp.ones(rounds, x.dtype), x))
        state, predictions = jax.lax.scan(lambda s, i: advance(s, *i), state, inputs)
        return state, jax.lax.dynamic_slice_in_dim(predictions.reshape(-1), first, rounds)

    @jax.default_matmul_precision("highest")
    def step(state: CorrectedState, sample: Sample, key: chex.PRNGKey):
        del key
        one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], sample)
        return advance(state, one, jnp.ones(1), sample.x[:1])[0]

    @jax.default_matmul_precision("highest")
    def predict(state: CorrectedState, x):
        return moments.features(x) @ state.weights

    return Learner(
        init, step, predict, moments.copies, unroll,
        read=lambda state, sample: moments.read(state.weights, sample),
    )  # fmt: skip


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

    Args:
        moments: as in `corrected_ftrl`.
        sums: each leaf with a leading axis of groups, as in `CorrectedState`.
        radius: B > 0, or `None`, as in `corrected_ftrl`.
        regularization: λ_0, as in `corrected_ftrl`.
        slack: the most by which the next block can reduce the smallest eigenvalue of the Gram
            matrix.
        previous: the last λ; the new one is at least as large.
    """
    return _leader(moments, sums, radius, regularization, slack, previous)[0]


def _leader(moments, sums, radius, least, slack, previous):
    """The leader, and the triangular factor of S + λI."""
    whole = _whole(sums)
    gram, cross = moments.corrected(whole)
    if moments.linear:
        caution = 2 if radius is None else 1
        lam = jnp.maximum(previous, least + caution * _shift(gram, least) + slack)
        factor = _factor(gram, lam)
        return Leader(_in_ball(gram, lam, cross, radius, factor), lam), factor
    lam = jnp.maximum(previous, least + _SPREAD * _spread(moments, sums, whole))
    values, vectors = jnp.linalg.eigh(gram)
    weights = _diagonal_in_ball(jnp.maximum(values, 0), lam, vectors.T @ cross, radius)
    return Leader(vectors @ weights, lam), _factor(gram, lam)


def _whole(sums: Sums) -> Sums:
    return jax.tree.map(lambda leaf: leaf.sum(axis=0), sums)


def _factor(gram, lam):
    """The Cholesky factor of S + λI, NaN where the matrix is not positive definite."""
    return jax.lax.linalg.cholesky(gram + lam * jnp.eye(len(gram)), symmetrize_input=False)


def _solve(factor, vector):
    return jax.scipy.linalg.cho_solve((factor, True), vector)


def _shift(gram, least):
    """max(0, −λ_min(S)) to within a tenth above, by Cholesky factors: most often one."""
    unit = jnp.maximum(least, 1e-6 * jnp.abs(jnp.trace(gram)) / len(gram)) + 1e-30

    def fails(m):
        return ~jnp.isfinite(_factor(gram, m)[-1, -1])

    def narrowed(carry):
        low, high, steps = carry  # it fails at low, and is sound at high, infinite at first
        middle = jnp.where(jnp.isfinite(high), (low + high) / 2, jnp.maximum(2 * low, unit))
        failed = fails(middle)
        return jnp.where(failed, middle, low), jnp.where(failed, high, middle), steps + 1

    def wide(carry):
        low, high, steps = carry
        return (high > 1.1 * low) & (high > unit) & (steps < _DOUBLINGS)

    zero = jnp.zeros_like(unit)
    high = jnp.where(fails(zero), jnp.inf, zero)
    return jax.lax.while_loop(wide, narrowed, (zero, high, 0))[1]


def _in_ball(gram, lam, cross, radius, factor):
    """argmin of λ‖w‖² + wᵀSw − 2⟨b, w⟩, over ‖w‖ ≤ B if there is a ball (More and Sorensen)."""
    weights = _solve(factor, cross)
    if radius is None:
        return weights

    def outside(carry):
        _, weights, steps = carry
        return (jnp.linalg.norm(weights) > radius * (1 + 1e-6)) & (steps < _NEWTON_STEPS)

    def newton(carry):
        mu, weights, steps = carry
        norm = jnp.linalg.norm(weights)
        slope = weights @ _solve(_factor(gram, lam + mu), weights)
        mu = mu + (norm / radius - 1) * norm**2 / slope
        return mu, _solve(_factor(gram, lam + mu), cross), steps + 1

    return jax.lax.while_loop(outside, newton, (jnp.zeros_like(lam), weights, 0))[1]


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


def _spread(moments, sums, whole_sums):
    """Matrix standard deviation of the moments, ‖G/(G − 1) Σ_g (S_g − S̄)²‖^½, over groups."""
    filled = sums.count > 0
    number = filled.sum()
    grams = jax.vmap(lambda s: moments.corrected(s._replace(count=whole_sums.count))[0])(sums)
    # Groups are of different sizes until all are full: compare each with its share of the whole.
    share = sums.count / jnp.maximum(whole_sums.count, 1)
    apart = grams - share[:, None, None] * grams.sum(axis=0)[None]
    square = jnp.einsum("gij,gjk->ik", apart, apart) * number / jnp.maximum(number - 1, 1)
    vector = jnp.ones(len(square)) / len(square) ** 0.5

    def power(_, v):
        v = square @ v
        return v / jnp.maximum(jnp.linalg.norm(v), 1e-30)

    vector = jax.lax.fori_loop(0, 12, power, vector)
    spread = jnp.sqrt(jnp.maximum(vector @ square @ vector, 0))
    # One group alone says nothing about the spread: be as cautious as one round's size.
    return jnp.where(number > 1, spread, jnp.sqrt(whole_sums.count))
