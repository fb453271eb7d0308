"""A learner that plays the best of several, by their estimated errors on clean data.

    f_t = Σ_k q_{t,k} f_{t,k},   q_{t,k} ∝ exp(−η_t Σ_{s<t} ℓ̂_{s,k}),   η_t = log K/Δ_{t−1}
    Δ_t = Δ_{t−1} + ⟨q_t, ℓ̂_t⟩ + (1/η_t) log Σ_k q_{t,k} exp(−η_t ℓ̂_{t,k})

ℓ̂_{t,k} = r − 2ỹv + ỹ² estimates the squared error of learner k on clean data, from its unbiased
estimates v and r of f_{t,k}(x_t) and its square (`Learner.clean_estimates`). For every learner j

    Σ_t Σ_k q_{t,k} ℓ̂_{t,k} − Σ_t ℓ̂_{t,j} ≤ 2Δ_T ≤ 2√(V log K) + (4/3 log K + 2) S

for all estimates. S is the largest max_k ℓ̂_{t,k} − min_k ℓ̂_{t,k} of a round, and V the sum of the
variances of ℓ̂_{t,k} over k under q_t; learners of weight zero do not count. Because the estimates
are unbiased and the squared loss is convex, the expected loss of the mixture on clean data exceeds
the loss of the best learner by at most E 2Δ_T. One learner with wild predictions in early rounds
makes S large; its term does not grow with T.

Source: AdaHedge (de Rooij, van Erven, Grünwald and Koolen, Follow the leader if you can, hedge if
you must, 2014, Theorem 8), on losses that are estimated from noisy data.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.base import (
    Learner,
    Sample,
    State,
    check_sample,
    estimated_errors,
    exportable,
    finish_of_inner,
    in_this_precision,
    unrolled,
)
from noisy_jax.learners.wrappers.paired import paired
from noisy_jax.varying import of_this_device

_SMALL = 1e-30  # of a gap that is zero but for rounding


@exportable
class MixtureState(NamedTuple):
    """State of a mixture of K learners.

    Attributes:
        inner: the learners' states, a tuple.
        shares: `[K]`, q ≥ 0 with sum 1.
        losses: `[K]`, sums of estimated errors, minus the smallest of them.
        gap: `[]`, Δ ≥ 0, half the bound on the excess loss of the mixture over the best learner.
    """

    inner: State
    shares: jax.Array
    losses: jax.Array
    gap: jax.Array


def mixture(*learners: Learner) -> Learner:
    """Returns a learner that predicts a weighted mean of the predictions of K learners.

        f_t(x) = Σ_k q_{t,k} f_{t,k}(x),   with shares q_{t,k} ≥ 0 of sum 1

    The shares go to the learner with the least squared error on clean data, whatever loss the
    learners have: after each round these errors are estimated from the noisy data
    (`Learner.clean_estimates`). Use it to choose among radii, rates, length scales, worlds or kinds
    of learners.

    The expected squared loss on clean data, summed over all rounds, exceeds the expected sum of the
    best of the learners by at most the expectation of `bounds.mixture(run.state)`. Noise in the
    targets must suit all learners (`Needs.targets`).

    Args:
        *learners: one or more learners with `clean_estimates`; else ValueError. All see the same
            samples. One with several columns, such as `wrappers.swept` makes, counts once per
            column. If one of them ends in NaN, so does the mixture.

    Returns:
        A `Learner`, whose `state.shares` `[K]` are q for the next round. It has no
        `clean_estimates`; to judge learners one by one use `nj.select`.

    Source: AdaHedge (de Rooij, van Erven, Grünwald and Koolen, 2014), on losses that are estimated
    from noisy data.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> radii = nj.wrappers.swept(
        ...     lambda radius: nj.learners.two_copies(radius=radius), jnp.array([0.1, 1.0, 10.0]))
        >>> learner = nj.wrappers.mixture(radii)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(run.state.shares.round(2))
        [0. 1. 0.]
    """
    columns = paired(*learners)
    without = [
        str(number) for number, learner in enumerate(learners) if learner.clean_estimates is None
    ]
    if without:
        raise ValueError(
            "mixture needs learners with Learner.clean_estimates, but there are none of "
            f"learner {', '.join(without)} (counted from 0)"
        )
    play = unrolled(columns)

    def init(dim: int) -> MixtureState:
        inner = columns.init(dim)
        (number,) = jax.eval_shape(columns.predict, inner, jnp.zeros(dim)).shape
        shares, zero = jnp.full(number, 1 / number, dtype=float), jnp.zeros(())
        return MixtureState(inner, shares, jnp.zeros(number), zero)

    def step(state: MixtureState, sample: Sample, key: jax.Array) -> MixtureState:
        check_sample(sample, columns.needs.copies)
        # Estimates and the step share the work in `unroll`.
        samples, x = jax.tree.map(lambda a: jnp.asarray(a)[None], (sample, sample.x[0]))
        return unroll(state, samples, x, key[None])[0]

    def predict(state: MixtureState, x: jax.Array) -> jax.Array:
        return jnp.matmul(columns.predict(state.inner, x), state.shares, precision="highest")

    def unroll(state: MixtureState, samples: Sample, x: jax.Array, keys: jax.Array):
        state = of_this_device(in_this_precision(init, state, x.shape[-1]))
        inner, predictions, estimates = play(state.inner, samples, x, keys)
        losses = estimated_errors(estimates, samples.y[:, None])

        def one_round(state, losses):
            return after_round(state, losses), state.shares

        state, shares = jax.lax.scan(one_round, state._replace(inner=()), losses)
        return state._replace(inner=inner), jnp.sum(shares * predictions, axis=-1), None

    return columns._replace(
        init=init,
        step=step,
        predict=predict,
        unroll=unroll,
        clean_estimates=None,
        finish=finish_of_inner(columns),
        weights=None,  # shares make predictions of the weights that are not linear
        with_weights=None,
    )


def after_round(state: MixtureState, losses: jax.Array) -> MixtureState:
    """Computes the shares after a round of AdaHedge."""
    shares, started = state.shares, state.gap > _SMALL
    losses = losses - jnp.sum(shares * losses)  # the gap does not change
    log_number = math.log(max(len(shares), 2))
    eta = log_number / jnp.where(started, state.gap, 1)
    exponents = -eta * losses
    # log Σ q exp(−ηℓ) where Σ qℓ = 0: for small exponents from its second order on, to keep its
    # digits; for others from the sums of losses, as shares may have vanished. At first η → ∞.
    curved = jnp.expm1(jnp.minimum(exponents, 1.0)) - exponents
    near = jnp.log1p(jnp.sum(shares * curved)) / eta
    total = state.losses + losses
    least = total.min()
    total = total - least
    logs = jnp.log(jnp.sum(jnp.exp(-eta * total))) + jnp.log(shares.max())
    far = jnp.where(started, logs / eta - least, -losses.min())
    small = started & (jnp.max(exponents) < 1)
    gap = state.gap + jnp.maximum(jnp.where(small, near, far), 0)
    begun = gap > _SMALL  # where it is not, no derivative passes through 1/gap
    weights = jnp.where(begun, jnp.exp(-log_number / jnp.where(begun, gap, 1) * total), 1.0)
    shares = weights / weights.sum() + 0 * gap  # NaN if an estimate was, not silently 1/K
    return MixtureState(state.inner, shares, total, gap)
