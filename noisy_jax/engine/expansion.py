"""The engine under every learner that descends on a function: expansions, by blocks of rounds.

    f_{t+1} = P( c_t f_t + α_t φ_t )

φ_t is the *atom* that round t adds, α_t its coefficient, c_t a decay factor and P the
projection on the ball {‖f‖ ≤ W}. What differs between learners are the arguments of `expansion`:

- `read` makes the atom out of what the round shows, and the *query_points*: where else f_t is read;
- `rule` turns the values of f_t at the atom and at the query_points into α_t and c_t (`rules`);
- `memory` says which atoms are kept (`engine.everything`, a `engine.ring` of the newest, a
  slowly `engine.growing` number of them, or their sum, a `engine.weight_vector`) and brings the
  inner products.

Two target make it fast. The squared norm r = ‖f‖² follows from values that are known anyway,

    ‖c f + α φ‖² = c² r + 2 c α f(φ) + α² ‖φ‖²

where the papers sum over all pairs again in every round. And from round to round only scalars
depend on one another: values of f at all queries of a *block* of rounds are one matrix product
with what came before the block, times one running scale, plus a triangle inside the block. `unroll`
works by blocks of many rounds; `step` is the same with a block of one.

Source: Learning from Noisy Data under Distributional Assumptions, Algorithm 2, whose double sum for
r_t is replaced by the recursion above.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_sample
from noisy_jax.engine.memory import Atoms, Memory
from noisy_jax.engine.rules import Rule
from noisy_jax.validation import check_at_least, check_copies_given, check_made_for, check_radius


class Round(NamedTuple):
    """One round as the engine reads it.

    Attributes:
        atom: φ_t, one atom (its leaves without the leading axis).
        query_points: P further atoms at which f_t is read, `None` where there are none.
        target: what else the rule needs, such as the target.
    """

    atom: Any
    query_points: Atoms | None
    target: Any


def reading(
    atom: Callable[[chex.Array, chex.Array | None], Atoms], copies: int
) -> Callable[[Sample, chex.PRNGKey], Round]:
    """What reads the copies of a round: the first as the atom, a second one as the probe.

    Args:
        atom: `(x[1, d], cov[1]) -> atom[1]`, what a copy is stored as, as `World.atom`.
        copies: 1, for no probe, or 2.
    """

    def read(sample: Sample, key: chex.PRNGKey) -> Round:
        del key  # no randomness of its own
        cov = None if sample.cov is None else jnp.asarray(sample.cov)[None]
        stored, *query_points = (atom(copy[None], cov) for copy in sample.x[:copies])
        return Round(jax.tree.map(lambda e: e[0], stored), *(query_points or [None]), sample.y)

    return read


class ExpansionState(NamedTuple):
    """State of a learner on the engine, with a memory that keeps all of f.

    Attributes:
        atoms: φ_i, a pytree with a leading axis of M slots; `()` with a weight vector.
        weights: `[M]`, coefficients α_i, zero in slots not yet used; or `[D]`, a weight vector.
        squared_norm: `[]`, ‖f‖².
        round: `[]`, how many rounds were played.
        rule: the rule's own state.
    """

    atoms: Atoms
    weights: chex.Array
    squared_norm: chex.Array
    round: chex.Array
    rule: Any


class RingState(NamedTuple):
    """State of a learner on the engine, with a memory that forgets; the norm is not known.

    Attributes:
        atoms: φ_i, a pytree with a leading axis of M slots.
        coefficients: `[M]`, α_i, zero in slots not yet used.
        round: `[]`, how many rounds were played.
        rule: the rule's own state.
    """

    atoms: Atoms
    coefficients: chex.Array
    round: chex.Array
    rule: Any


def expansion(
    *,
    read: Callable[[Sample, chex.PRNGKey], Round],
    rule: Rule,
    memory: Memory,
    copies: int,
    radius: chex.Numeric | None = None,
    block: int = 64,
    dim: int | None = None,
) -> Learner:
    """A learner that descends on a function.

    A run whose function overflows, or that outlives its memory's horizon, ends in NaN, so that
    `Rollout.diverged_at` can name the round.

    Args:
        read: what a round shows to what the engine reads.
        rule: values to coefficient and decay.
        memory: where f is kept.
        copies: V, noisy copies that `read` uses.
        radius: W > 0, of the ball on which f is projected; `None` for no projection.
        block: B ≥ 1, rounds that `unroll` takes at once. It changes numbers by rounding only.
            (`rollout` hands over 128 rounds at a time: larger blocks come to nothing there.)
        dim: d, the dimension that data must have; `None` for any.

    Returns:
        A `Learner` with `ExpansionState`, or `RingState` where the memory forgets. With everything
        kept, a round costs O(t) kernel evaluations. Stored atoms are read in a loop of unknown
        length: differentiate in forward mode (`jax.jvp`, `jax.jacfwd`).

    Raises:
        ValueError: block or radius not positive, a block longer than the memory takes, a radius
            with a memory that forgets; and when it runs, fewer copies than the learner reads,
            another dimension, or more rounds at once than the memory has room for.
    """
    check_at_least("block", block, 1, "the number of rounds that unroll takes at once")
    if memory.longest_block is not None and block > memory.longest_block:
        raise ValueError(
            f"block must be at most {memory.longest_block} with this memory, got {block}: one that "
            "forgets takes blocks of at most as many rounds as it keeps atoms"
        )
    if radius is not None:
        check_radius(radius)
        if memory.forgets:
            raise ValueError(
                "a memory that forgets has no known norm to project by: leave radius out, or keep "
                "everything"
            )
    space = memory.space

    def check(x) -> None:
        if dim is not None:
            check_made_for(dim, jnp.shape(x))

    def init(size: int) -> ExpansionState | RingState:
        check_at_least("dim", size, 1, "the number of features")
        x = jnp.zeros((copies, size))
        check(x)
        shown = Sample(x, jnp.zeros(()), jnp.zeros(()))
        example = jax.eval_shape(read, shown, jax.random.key(0)).atom
        atoms, weights = memory.init(example)
        return packed(atoms, weights, jnp.zeros_like(weights[0]), jnp.int32(0), rule.init())

    def packed(atoms, weights, squared_norm, t, rule_state):
        if memory.forgets:
            return RingState(atoms, weights, t, rule_state)
        return ExpansionState(atoms, weights, squared_norm, t, rule_state)

    def unpacked(state):
        if memory.forgets:
            atoms, weights, t, rule_state = state
            return atoms, weights, jnp.zeros_like(weights[0]), t, rule_state
        return state

    def projected(squared_norm):
        """The factor that takes f back into the ball, and the squared norm after it."""
        if memory.forgets:
            return jnp.ones_like(squared_norm), squared_norm
        sound = jnp.isfinite(squared_norm)
        if radius is None:
            return jnp.where(sound, 1.0, jnp.nan), squared_norm
        squared_radius = jnp.square(jnp.asarray(radius, squared_norm.dtype))
        sound = sound & jnp.isfinite(squared_radius) & (radius > 0)
        outside = squared_norm > squared_radius
        factor = radius / jnp.sqrt(jnp.where(outside, squared_norm, 1))
        factor = jnp.where(sound, jnp.where(outside, factor, 1), jnp.nan)
        return factor, jnp.where(outside, squared_radius, squared_norm)

    def advance(state, samples: Sample, x: chex.Array, keys: chex.PRNGKey):
        """All rounds of one block; predictions before each, `[B]`."""
        atoms, weights, squared_norm, t, rule_state = unpacked(state)
        size, dtype = samples.y.shape[0], weights.dtype
        # XLA would compute a costly feature map again for each of its uses.
        rounds = jax.lax.optimization_barrier(jax.vmap(read)(samples, keys))
        new, points = rounds.atom, space.points(x)
        queries = jax.tree.map(lambda e: e[:, None], new)
        if rounds.query_points is not None:
            queries = jax.tree.map(
                lambda e, p: jnp.concatenate([e, p], axis=1), queries, rounds.query_points
            )
        queries = jax.tree.map(lambda q: q.reshape(-1, *q.shape[2:]), queries)

        def columns(at_queries, at_points):
            """What each round reads, `[..., B, Q + 1]`: at its queries, then its clean point."""
            at_queries = at_queries.reshape(*at_points.shape, -1)
            return jnp.concatenate([at_queries, at_points[..., None]], axis=-1).astype(dtype)

        ahead = columns(*memory.values(atoms, weights, t, queries, points))
        inside = columns(space.inner(new, queries), space.evaluate(new, points))

        def one_round(carry, inputs):
            ahead, squared_norm, rule_state = carry  # ahead: f_t at all that this block reads
            b, inside, target = inputs
            values, norm = ahead[b, :-1], inside[b, 0]
            prediction = rule.output(rule_state, ahead[b, -1])
            alpha, decay, rule_state = rule.update(rule_state, values, target, t + b)
            room = True if memory.horizon is None else t + b < memory.horizon
            alpha = jnp.where(jnp.all(jnp.isfinite(values)) & room, alpha, jnp.nan).astype(dtype)
            squared_norm = decay**2 * squared_norm + 2 * decay * alpha * values[0] + alpha**2 * norm
            factor, squared_norm = projected(jnp.maximum(squared_norm, 0).astype(dtype))
            added, keep = alpha * factor, jnp.asarray(decay * factor, dtype)
            ahead = keep * ahead + added * inside
            return (ahead, squared_norm, rule_state), (prediction, added, keep)

        (_, squared_norm, rule_state), (predictions, added, keep) = jax.lax.scan(
            one_round,
            (ahead, squared_norm, rule_state),
            (jnp.arange(size), inside, rounds.target),
        )
        # What is left, at the end of the block, of what was there before each round.
        kept = jax.lax.cumprod(keep, reverse=True)
        coefficients = added * jnp.append(kept[1:], jnp.ones_like(kept[:1]))
        atoms, weights = memory.absorb(atoms, weights, t, kept[0], new, coefficients)
        return packed(atoms, weights, squared_norm, t + size, rule_state), predictions

    @jax.default_matmul_precision("highest")
    def unroll(state, samples: Sample, x: chex.Array, keys: chex.PRNGKey):
        check(samples.x)
        check(x)
        check_copies_given(copies, samples.x.shape[1])
        rounds = x.shape[0]
        if memory.horizon is not None and rounds > memory.horizon:
            raise ValueError(
                f"got {rounds} rounds, but the learner has room for {memory.horizon}: build it "
                f"with horizon={rounds}"
            )
        whole = rounds - rounds % block
        inputs, predictions = (samples, x, keys), []
        if whole:
            blocks = jax.tree.map(lambda a: a[:whole].reshape(-1, block, *a.shape[1:]), inputs)
            state, output = jax.lax.scan(lambda s, b: advance(s, *b), state, blocks)
            predictions.append(output.reshape(-1))
        if whole < rounds:
            state, output = advance(state, *jax.tree.map(lambda a: a[whole:], inputs))
            predictions.append(output)
        return state, jnp.concatenate(predictions)

    @jax.default_matmul_precision("highest")
    def step(state, sample: Sample, key: chex.PRNGKey):
        check_sample(sample, copies)
        one_round = jax.tree.map(lambda a: jnp.asarray(a)[None], (sample, sample.x[0]))
        return unroll(state, *one_round, key[None])[0]

    @jax.default_matmul_precision("highest")
    def predict(state, x: chex.Array) -> chex.Array:
        check(x)
        atoms, weights, _, t, rule_state = unpacked(state)
        points = space.points(jnp.reshape(x, (-1, x.shape[-1])))
        values = memory.evaluate(atoms, weights, t, points)
        return rule.output(rule_state, values.reshape(x.shape[:-1]))

    return Learner(init, step, predict, copies, unroll, memory.horizon)
