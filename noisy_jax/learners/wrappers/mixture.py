"""A learner that plays the best of several, by their estimated errors on clean data.

    f_t = Σ_k q_{t,k} f_{t,k},   q_{t+1} = P(q_t − η_t ℓ̂_t),   η_t = 1/√(Σ_{s ≤ t} ‖ℓ̂_s‖²)

P is the projection on the simplex. ℓ̂_{t,k} = q − 2ỹv + ỹ², from the unbiased readings v and q of
learner k (`Learner.read`), minus the mean over the learners, which does not change the projection.
This is gradient descent at the adaptive rate on a set of diameter √2, so that for every learner j

    Σ_t Σ_k q_{t,k} ℓ̂_{t,k} − Σ_t ℓ̂_{t,j} ≤ 2 √(Σ_t ‖ℓ̂_t‖²)

whatever the estimates are. As they are unbiased and the squared loss is convex, the expected loss
of the mixture on clean data exceeds that of the best learner by at most the expectation of the
right side.

Source: prediction with expert advice (Cesa-Bianchi and Lugosi, 2006) by projected gradient descent
(Zinkevich, 2003) on losses estimated from noisy data.
"""

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from noisy_jax.base import Learner, Sample, State, estimated_errors, unrolled
from noisy_jax.engine import AdaptiveState, rate_of
from noisy_jax.learners.wrappers.paired import paired


class MixtureState(NamedTuple):
    """State of a mixture of K learners.

    Attributes:
        inner: the learners' states, as those of `paired`.
        shares: `[K]`, q ≥ 0 with sum 1.
        rate: of the adaptive rate.
    """

    inner: State
    shares: jax.Array
    rate: AdaptiveState


def mixture(*learners: Learner) -> Learner:
    """The best of several learners, chosen while they run, from noisy data alone.

    Use it to choose among radii, rates, length scales, worlds or kinds of learners. Its regret
    exceeds that of the best of them by at most `bounds.mixture`.

    Args:
        *learners: learners with unbiased readings (`Learner.read`), which see the same samples, as
            in `paired`. One with several columns, such as `swept` makes, counts as so many. K
            radii or rates by `swept` cost little more than one. If one of them ends in NaN, so
            does the mixture.

    Returns:
        A `Learner` that predicts with f_t. It has no unbiased readings of its own: those of f_t²
        would need products of readings of all pairs of learners.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> radii = nj.wrappers.swept(
        ...     lambda radius: nj.learners.two_copies(radius=radius), jnp.array([0.1, 1.0, 10.0]))
        >>> run = nj.rollout(mixture(radii), stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(run.state.shares.round(2))
        [0. 1. 0.]
    """
    columns = paired(*learners)
    without = [str(number) for number, learner in enumerate(learners) if learner.read is None]
    if without:
        raise ValueError(
            "mixture needs learners with unbiased readings (Learner.read), but there are none of "
            f"learner {', '.join(without)} (counted from 0)"
        )
    read, finish_all, rate = columns.read, columns.finish, rate_of(None, 0.5**0.5)
    assert read is not None  # paired sets both
    assert finish_all is not None

    def init(dim: int) -> MixtureState:
        inner = columns.init(dim)
        (number,) = jax.eval_shape(columns.predict, inner, jnp.zeros(dim)).shape
        return MixtureState(inner, jnp.full(number, 1 / number), rate.init())

    def moved(chosen, losses):
        shares, state = chosen
        losses = losses - losses.mean()
        eta, state = rate.at(state, 0, jnp.vdot(losses, losses))
        return optax.projections.projection_simplex(shares - eta * losses), state

    def step(state: MixtureState, sample: Sample, key: chex.PRNGKey) -> MixtureState:
        losses = estimated_errors(read(state.inner, sample, key), sample.y)
        chosen = moved((state.shares, state.rate), losses)
        return MixtureState(columns.step(state.inner, sample, key), *chosen)

    def predict(state: MixtureState, x: jax.Array) -> jax.Array:
        return columns.predict(state.inner, x) @ state.shares

    def unroll(state: MixtureState, samples: Sample, x: jax.Array, keys: chex.PRNGKey):
        inner, predictions, readings = unrolled(columns)(state.inner, samples, x, keys)
        assert readings is not None
        losses = estimated_errors(readings, samples.y[:, None])

        def one_round(chosen, losses):
            return moved(chosen, losses), chosen[0]

        chosen, shares = jax.lax.scan(one_round, (state.shares, state.rate), losses)
        return MixtureState(inner, *chosen), jnp.sum(shares * predictions, axis=-1), None

    def finish(state: MixtureState) -> MixtureState:
        return state._replace(inner=finish_all(state.inner))

    return columns._replace(
        init=init, step=step, predict=predict, unroll=unroll, read=None, finish=finish
    )
