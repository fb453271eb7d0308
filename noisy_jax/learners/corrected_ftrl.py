"""Follow the corrected leader: least squares on unbiased second moments, in one pass.

    w_{t+1} = argmin_w wᵀΛ_t w + Σ_{s ≤ t} (wᵀÂ_s w − 2⟨b̂_s, w⟩) = (S_t + Λ_t)⁻¹ Σ_{s ≤ t} b̂_s

with S_t = Σ_{s ≤ t} Â_s, where Â_s and b̂_s are unbiased estimates of the moments z(x_s)z(x_s)ᵀ and
y_s z(x_s) of the clean features z (`moments`), and a diagonal Λ_t that never decreases. For linear
features it is λ_t times the mean squares of the noisy columns, so that units of the columns have no
effect; for others it is λ_t I. If S_t + Λ_{t−1} is always positive definite, then for every u (in
the ball, if there is one), with f̂_t(w) = wᵀÂ_t w − 2⟨b̂_t, w⟩, g_t = ∇f̂_t(w_t),

    Σ_t f̂_t(w_t) − f̂_t(u) ≤ uᵀΛ_T u + ¼ Σ_t g_tᵀ (S_t + Λ_{t−1})⁻¹ g_t.

In expectation the left side is the regret on clean data; `bounds.corrected_ftrl` gives the right
side after a run. If the weights are computed every k rounds, read t as the number of blocks of k
rounds. For features that are not linear λ_t contains a quarter of the standard deviation of the
moments, a rule that was chosen by experiments. For `moments.fourier` the guarantee does not hold:
in the weights negative eigenvalues of S_t count as zero. Without a radius no bound in T alone
holds: after k rounds of a small x the weights are large, and the next k rounds are lost. If streams
may be adversarial, give a radius.

Source: follow the regularized leader with the proof of McMahan (2017) on corrected least squares
(Fuller, 1987); online ridge regression is the case without noise (Azoury and Warmuth, 2001).
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import (
    Learner,
    Needs,
    Sample,
    check_sample,
    exportable,
    field_weights,
    fresh,
    in_this_precision,
    with_field_weights,
)
from noisy_jax.learners.corrected_leader import Leader, leader_and_penalty
from noisy_jax.moments.online import Moments, Sums
from noisy_jax.validation.arrays import real_array
from noisy_jax.validation.numbers import non_negative, positive, whole
from noisy_jax.validation.objects import instance
from noisy_jax.validation.rows import check_copies_given
from noisy_jax.validation.values import ArrayLike
from noisy_jax.varying import by_compiler, of_this_device

_GROUP_ROWS = 64  # neighbouring rounds may depend on each other: at least so many stay together


@exportable
class CorrectedState(NamedTuple):
    """State of the corrected leader, in the notation of this module.

    Attributes:
        sums: sums of the moments over the complete blocks of k rounds; each leaf has a leading axis
            `[G]`, one entry for each group of rounds (`groups`).
        pending: sums of the moments over the block that is not complete yet.
        weights: `[D]`, w_t.
        regularization: `[D]`, the diagonal of Λ_t.
        penalty: `[]`, ¼ Σ g_tᵀ (S_t + Λ_{t−1})⁻¹ g_t so far, for `bounds.corrected_ftrl`; NaN if
            S_t + Λ_{t−1} was not positive definite in some round.
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
    radius: ArrayLike | None = None,
    regularization: ArrayLike = 0.1,
    solve_every: int = 16,
    groups: int = 16,
) -> Learner:
    """Online least squares on unbiased moments of the clean features ("corrected leader").

        w_t minimizes wᵀ Ĝ w − 2 ⟨ĉ, w⟩ + wᵀ Λ_t w,   Ĝ, ĉ unbiased for Σ z(x)z(x)ᵀ and Σ y z(x)

    The sums run over all rounds so far, Λ_t is a diagonal ridge penalty, and the prediction is
    ⟨w_t, z(x)⟩ with features z(x) `[D]`: x itself, Fourier features or others. There is no learning
    rate and no horizon. All rounds have the same weight, so that it follows a change of the best
    predictor slowly.

    Columns x may have different units; other features need similar sizes, because one penalty
    serves all of them. The noise should have a fourth moment. In fewer rounds than features, and
    with Fourier features under noise whose standard deviation is near the length scale, it is not
    reliably better than predicting zero.

    Args:
        moments: the features, and how noisy copies become unbiased moments of them:
            `moments.known_covariance()`, `moments.two_copies()`, `moments.fourier(frequencies)`, or
            for any features under unknown noise `moments.unbiased(features, estimate)`.
        radius: B > 0, if the weights must have ‖w‖ ≤ B, in the units of the weights. `None`, the
            default, for no constraint; give one if the stream may be adversarial.
        regularization: ≥ 0, lower bound on the penalty, which the learner chooses; 0.1 by default.
            It is a share of the mean of ‖z(x)‖², for linear features in units of the columns' own
            sizes. Results hardly depend on it.
        solve_every: k ≥ 1, number of rounds after which w is computed again; 16 by default. Rounds
            after the last complete block of k change w only by `Learner.finish`, which `nj.learn`
            calls and `nj.rollout` does not.
        groups: G ≥ 2, number of groups of rounds whose moments are stored separately; 16 by
            default. The differences between groups show the random error of the moments, by which
            the penalty of features that are not linear is chosen.

    Returns:
        A `Learner` of as many copies as the moments need, with O(D²) time a round, O(D³) more every
        k rounds, O(G D²) memory, and with `clean_estimates`. Its state has `weights` `[D]` and
        `sums` of the moments. `bounds.corrected_ftrl(state, …)` bounds its estimated regret after a
        run.

    Source: follow the regularized leader (McMahan, A survey of algorithms and analysis for adaptive
    online learning, 2017) on corrected least squares (Fuller, Measurement Error Models, 1987).

    Example:
        >>> import jax, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> learner = nj.learners.corrected_ftrl(nj.moments.known_covariance())
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(f"mean squared loss {((run.predictions - stream.y) ** 2).mean():.2f}")
        mean squared loss 0.01
    """
    instance("moments", moments, Moments, "such as moments.known_covariance()")
    radius = None if radius is None else positive("radius", radius)
    share = non_negative("regularization", regularization)
    every, groups = whole("solve_every", solve_every), whole("groups", groups, 2)
    rows = every * -(-_GROUP_ROWS // every)  # of a group's blocks, whole multiples of k

    def drawn(keys):
        return (keys,) if moments.random else ()

    def init(dim: int) -> CorrectedState:
        size, zero = moments.num_features(whole("dim", dim)), jnp.zeros(())
        vector = jnp.zeros(size)
        slack, squares = (vector, vector) if moments.linear else (zero, None)
        empty = Sums(jnp.zeros((size, size)), vector, zero, slack, squares)
        grouped = jax.tree.map(lambda leaf: jnp.zeros((groups, *leaf.shape)), empty)
        return fresh(CorrectedState(grouped, empty, vector, vector, zero, jnp.int32(0)))

    def solved(state: CorrectedState) -> CorrectedState:
        """The state after a block: its sums join their group, and the weights are solved."""
        group = (state.round - 1) // rows % groups
        sums = jax.tree.map(lambda a, b: a.at[group].add(b), state.sums, state.pending)
        block = state.pending._replace(count=sums.count.sum())
        gram, cross = moments.corrected(block)
        gradient = 2 * (gram @ state.weights - cross)
        before = Leader(state.weights, state.regularization)
        (weights, lam), more = leader_and_penalty(
            moments, sums, radius, share, block.slack, before, gradient
        )
        penalty = state.penalty + more
        empty = jax.tree.map(jnp.zeros_like, state.pending)
        return CorrectedState(sums, empty, weights, lam, penalty, state.round)

    def advance(state: CorrectedState, samples: Sample, kept, x, keys):
        """Rounds inside one block: predictions, sums, and a solution if the block is complete."""
        predictions = moments.features(x) @ state.weights
        estimates = jax.vmap(clean_estimates, (None, 0, 0))(state, samples, keys)

        new = of_this_device(moments.sums(samples, kept, *drawn(keys)))
        pending = jax.tree.map(jnp.add, state.pending, new)
        state = state._replace(pending=pending, round=state.round + jnp.sum(kept).astype(jnp.int32))
        complete = (state.round % every == 0) & (pending.count > 0)
        return jax.lax.cond(complete, solved, lambda same: same, state), (predictions, estimates)

    @jax.default_matmul_precision("highest")
    def unroll(state: CorrectedState, samples: Sample, x, keys):
        check_copies_given(moments.copies, samples.x.shape[1])
        keys = keys if moments.random else None
        rounds = x.shape[0]
        # The rounds lie in a grid of blocks of `span` rounds, from the place `first` on, so that
        # blocks end where the weights are solved: at rounds that are multiples of `every`.
        span = min(every, rounds)
        blocks = (rounds + span - 2) // span + 1
        first = jnp.maximum(span - (every - state.round % every), 0)

        def in_blocks(leaf):
            room = jax.lax.full((blocks * span, *leaf.shape[1:]), 0, leaf.dtype)
            filled = jax.lax.dynamic_update_slice_in_dim(room, leaf, first, axis=0)
            return filled.reshape(blocks, span, *leaf.shape[1:])

        inputs = jax.tree.map(in_blocks, (samples, jnp.ones(rounds, x.dtype), x, keys))
        state = of_this_device(in_this_precision(init, state, x.shape[-1]))
        state, outputs = jax.lax.scan(lambda s, i: advance(s, *i), state, inputs)
        return state, *jax.tree.map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf.reshape(-1), first, rounds), outputs
        )

    @jax.default_matmul_precision("highest")
    def step(state: CorrectedState, sample: Sample, key: jax.Array):
        check_sample(sample, moments.copies)
        inputs = (sample, key if moments.random else None)
        samples, keys = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], inputs)
        state = of_this_device(in_this_precision(init, state, sample.x.shape[-1]))
        return advance(state, samples, jnp.ones(1), sample.x[:1], keys)[0]

    @jax.default_matmul_precision("highest")
    def predict(state: CorrectedState, x):
        x = jnp.asarray(real_array("x", x))
        return moments.features(x) @ state.weights

    @jax.jit
    @jax.default_matmul_precision("highest")
    def finish(state: CorrectedState):
        def done(state):
            return jax.lax.cond(state.pending.count > 0, solved, lambda same: same, state)

        return by_compiler(done, of_this_device(state))

    def clean_estimates(state: CorrectedState, sample: Sample, key):
        check_copies_given(moments.copies, np.shape(sample.x)[0])
        key = jax.random.clone(key) if moments.random else None  # `step` draws the same levels
        return moments.clean_estimates(state.weights, sample, *drawn(key))

    targets = "any" if moments.linear else "independent"
    needs = Needs(moments.copies, noise=moments.noise, targets=targets, flips=False)
    return Learner(
        init,
        step,
        predict,
        needs,
        unroll,
        clean_estimates,
        finish,
        field_weights,
        with_field_weights,
    )
