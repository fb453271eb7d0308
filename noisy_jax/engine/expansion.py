"""The engine of functional learners: it changes a function f round by round, many rounds at once.

    f_{t+1} = P( c_t f_t + α_t φ_t )

φ_t is the *atom* that round t adds, α_t its coefficient, c_t a decay factor, and P the projection
on the ball {‖f‖ ≤ W}. A round may add K atoms, each with a coefficient of its own; α_t φ_t is their
sum then. Learners differ in the arguments of `expansion`:

- `round_of` makes the atom from the sample, and *query points*: further atoms where f_t is needed;
- `rule` computes α_t and c_t from the values of f_t at the atom and at the query points;
- `memory` stores f: all atoms (`everything`), the newest ones (`ring`), a slowly growing number of
  them (`growing`), or their sum (`weight_vector`).

Two facts make it fast. First, the squared norm follows from values that are known anyway,

    ‖c f + α φ‖² = c² ‖f‖² + 2 c α f(φ) + α² ‖φ‖²

where the papers sum over all pairs of atoms in every round. Second, rounds depend on one another
only through scalars. So the values of f at all queries of a *block* of rounds come from one matrix
product with the atoms stored before the block, and a small scan over the block updates them.
`unroll` plays blocks of many rounds, `step` a block of one.

Source: Learning from Noisy Data under Distributional Assumptions, Algorithm 2. Its double sum for
r_t is replaced by the recursion above.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import jax
import jax.numpy as jnp

from noisy_jax.base import (
    CleanEstimates,
    Flips,
    Learner,
    Needs,
    Sample,
    Targets,
    check_sample,
    exportable,
    fresh,
    in_this_precision,
    plain_signature,
)
from noisy_jax.engine.memory import Atoms, Memory, count
from noisy_jax.engine.rules import Rule, parsed_radius
from noisy_jax.noise import Noise
from noisy_jax.noise.observation import scan_in_blocks
from noisy_jax.validation.arrays import check_made_for, real_array
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import sound_labels, whole
from noisy_jax.validation.objects import choice, function, instance, switch
from noisy_jax.validation.rows import check_copies_given
from noisy_jax.validation.values import ArrayLike


@plain_signature
class Round(NamedTuple):
    """The parts of one round's sample that `engine.expansion` works with; `round_of` returns it.

    Attributes:
        atom: φ_t, the function that this round may add to the learner's function f_t, in the form
            that the memory stores: the point x̃_t `[d]` for φ_t = k(x̃_t, ·). It is one atom
            without an axis of atoms, or `[K]` atoms for a memory with `width=K`.
        query_points: P further atoms, with a leading axis `[P]`, at which f_t is evaluated for the
            rule; `None` if there are none.
        target: any further data for the rule, such as the target y_t `[]`.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> def round_of(sample, key):  # the first copy is the atom, the second one the query point
        ...     return nj.engine.Round(sample.x[0], sample.x[1:2], sample.y)
        >>> sample = nj.Sample(jnp.array([[1.0, 2.0], [1.5, 2.5]]), jnp.array(3.0))
        >>> print(round_of(sample, None).query_points)
        [[1.5 2.5]]
    """

    atom: Any
    query_points: Atoms | None
    target: Any


@exportable
class ExpansionState(NamedTuple):
    """State of a learner that `expansion` builds.

    Attributes:
        atoms: φ_i, a pytree whose leaves start with an axis of M slots; `()` with a weight vector.
        weights: `[M]`, coefficients α_i, zero in unused slots; or `[D]`, the weight vector.
        squared_norm: `[]`, ‖f‖²; `None` if the memory forgets atoms.
        round: `[]`, number of rounds played.
        rule: the rule's own state.
    """

    atoms: Atoms
    weights: jax.Array
    squared_norm: jax.Array | None
    round: jax.Array
    rule: Any

    def column_axes(self) -> int | ExpansionState:
        """Axes of `jax.vmap` over columns of a state, which may share their atoms and the round."""
        if self.round.ndim > 0:
            return 0
        axes: dict[str, Any] = {"atoms": None, "weights": 0, "squared_norm": 0, "round": None}
        return ExpansionState(**axes, rule=0)


def expansion(
    *,
    round_of: Callable[[Sample, jax.Array], Round],
    rule: Rule,
    memory: Memory,
    copies: int,
    radius: ArrayLike | None = None,
    block: int | None = None,
    dim: int | None = None,
    labels: bool = False,
    flips: Flips = False,
    targets: Targets = "independent",
    noise: Any = None,
    estimates: Callable[[jax.Array, Any], CleanEstimates] | None = None,
) -> Learner:
    """Builds a learner from its parts: it predicts f_t(x), and updates f in each round.

        f_{t+1} = P( c_t f_t + α_t φ_t )

    f_t is the learner's function, zero at first. φ_t is the atom of round t, a function such as
    k(x̃_t, ·); α_t is its coefficient, c_t a decay factor, and P the projection on the ball
    {‖f‖ ≤ W}. `engine.function_space` supplies most parts for kernels and worlds.

    Args:
        round_of: `(sample, key) -> Round`, the atom, the query points (P further atoms at which f_t
            is evaluated) and the target of a sample.
        rule: the `engine.Rule` that computes α_t and c_t from values of f_t.
        memory: the `Memory` that stores f, such as `engine.everything(T)(space)`.
        copies: V ≥ 1, number of noisy copies that `round_of` reads.
        radius: W > 0; `None`, the default, for no projection. A memory that forgets atoms does not
            know ‖f‖, and takes no radius.
        block: number of rounds ≥ 1 that `unroll` plays at once, at most as many as the memory
            allows. It changes speed, and results only by rounding. By default 64, or with a weight
            vector `[D]` the largest of 8, 4, 2 and 1 for which block · (V + 1) · D ≤ 4,096.
        dim: d, the dimension that data must have; `None`, the default, for any.
        labels: True if targets must be −1 or +1: any other target raises ValueError if it is
            concrete, and becomes NaN if it is traced. False by default.
        flips: rates (ρ₊, ρ₋) of flipped labels that the learner corrects for, or `None` if flips
            have no effect (`Needs.flips`); `False`, the default, if they make it biased.
        targets: "independent", the default, if noise in y must be independent of the noise in x;
            "exact" if y must have no noise; "any" if it may be correlated.
        noise: distribution of the noise that the learner corrects for; `None`, the default, for
            none.
        estimates: `(outputs[K + P], target) -> (value, square)`, unbiased estimates of f(x) and of
            f(x)² at the clean x, from the predictions at the K atoms and the P query points of a
            round. They become `Learner.clean_estimates`; `None`, the default, if there are none.

    Returns:
        A `Learner` with an `ExpansionState`. If every atom is kept, round t costs O(t) kernel
        evaluations. More rounds than the memory's horizon raise ValueError in `unroll`; a run in
        several calls that goes beyond it, or whose function overflows, ends in NaN. Runs can be
        differentiated in both modes.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> from noisy_jax.engine.memory import Space
        >>> gram = nj.kernels.gaussian(length_scale=1.0).gram
        >>> def update(state, values, y, t, square):  # a gradient step on |f(x) − y|
        ...     return nj.engine.Update(-0.1 * jnp.sign(values[0] - y), 1.0, state)
        >>> learner = nj.engine.expansion(
        ...     round_of=lambda sample, key: nj.engine.Round(sample.x[0], None, sample.y),
        ...     rule=nj.engine.Rule(lambda: (), update),
        ...     memory=nj.engine.everything(1000)(Space(gram, gram)), copies=1, radius=3.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=2)
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.0), jax.random.key(1))
        >>> print(f"mean absolute error {jnp.abs(run.predictions - stream.y).mean():.2f}")
        mean absolute error 0.07

    """
    function("round_of", round_of, "(sample, key) -> Round")
    instance("rule", rule, Rule)
    instance("memory", memory, Memory, "engine.everything(horizon)(space) makes one")
    copies = whole("copies", copies)
    dim = None if dim is None else whole("dim", dim)
    labels, targets = switch("labels", labels), choice("targets", targets, get_args(Targets))
    rates = isinstance(flips, tuple) and len(flips) == 2
    if not (rates or flips is None or flips is False):
        raise ValueError(f"flips must be two rates, False or None, got {given(flips)}")
    of_any_size = isinstance(noise, type) and issubclass(noise, Noise)  # such as noise.Gaussian
    if noise is not None and not of_any_size:
        instance("noise", noise, Noise)
    if estimates is not None:
        function("estimates", estimates, "(outputs, target) -> (value, square)")
    if block is not None:
        block = whole("block", block, 1, "number of rounds that unroll plays at once")
    if radius is not None:
        if memory.forgets:
            raise ValueError(
                "radius must be None with a memory that forgets atoms, because ‖f‖ is not known "
                "then: leave it out, or use engine.everything"
            )
        radius = parsed_radius(radius, squared=True)

    def check(x) -> None:
        if dim is not None:
            check_made_for(dim, jnp.shape(x))

    def init(size: int) -> ExpansionState:
        x = jnp.zeros((copies, whole("dim", size, 1, "number of features")))
        check(x)
        sample = Sample(x, jnp.zeros(()), jnp.zeros(()))
        atom = jax.eval_shape(round_of, sample, jax.random.key(0)).atom
        if memory.width:
            atom = jax.eval_shape(lambda atoms: jax.tree.map(lambda a: a[0], atoms), atom)
        atoms, weights = memory.init(atom)
        squared_norm = None if memory.forgets else jnp.zeros_like(weights[0])
        return fresh(ExpansionState(atoms, weights, squared_norm, jnp.int32(0), rule.init()))

    def rounds_of(samples: Sample, keys) -> Round:
        """B rounds, of `[B, K]` atoms."""
        rounds = jax.vmap(round_of)(samples, keys)
        if memory.width:
            return rounds
        return rounds._replace(atom=jax.tree.map(lambda a: a[:, None], rounds.atom))

    # One program also where the functions of the learner are called outside jit.
    program = functools.partial(jax.jit, inline=True)

    @program
    def advance(state: ExpansionState, block_inputs):
        """One block of rounds: the state after it, and predictions before each round, `[B]`."""
        samples, x, keys = block_inputs
        rounds, points = rounds_of(samples, keys), memory.space.points(x)
        # XLA would compute a costly feature map for each of its uses.
        rounds, points = jax.lax.optimization_barrier((rounds, points))
        ahead, inside = _before(memory, state, rounds, points), _within(memory, rounds, points)
        state, predictions, noisy, added, keep = _play(
            rule, memory, radius, estimates, state, ahead, inside.astype(ahead.dtype), rounds.target
        )
        # Factors by which what was there before each round has shrunk by the end of the block.
        kept = jax.lax.cumprod(keep, reverse=True)
        coefficients = added * jnp.append(kept[1:], jnp.ones_like(kept[:1]))[:, None]
        stored = state.atoms, state.weights, state.round
        atoms, weights = memory.absorb(
            *stored, kept[0], _flat(rounds.atom), jnp.ravel(coefficients)
        )
        state = state._replace(atoms=atoms, weights=weights, round=state.round + len(added))
        return state, (predictions, noisy)

    @jax.default_matmul_precision("highest")
    def unroll(state: ExpansionState, samples: Sample, x: jax.Array, keys: jax.Array):
        check(samples.x)
        check(x)
        check_copies_given(copies, samples.x.shape[1])
        state, rounds = in_this_precision(init, state, x.shape[-1]), x.shape[0]
        if memory.horizon is not None and rounds > memory.horizon:
            raise ValueError(
                f"got {rounds} rounds, but the learner has room for {memory.horizon}: build it, "
                f"or its memory, for {rounds}"
            )
        if labels:
            samples = samples._replace(y=sound_labels(samples.y))
        size = block or _usual_block(state, copies)
        size = min(size, memory.longest_block or size)
        state, outputs = scan_in_blocks(advance, state, (samples, x, keys), size)
        outputs = jax.tree.map(jnp.ravel, outputs)
        return state, *jax.tree.map(lambda *parts: jnp.concatenate(parts), *outputs)

    def one_round(sample: Sample):
        """A sample as a block of one round, and its first copy in place of the clean instance."""
        check_sample(sample, copies)
        check(sample.x)
        return jax.tree.map(lambda a: jnp.asarray(a)[None], (sample, sample.x[0]))

    def step(state: ExpansionState, sample: Sample, key: jax.Array):
        samples, x = one_round(sample)
        return unroll(state, samples, x, key[None])[0]

    @program
    @jax.default_matmul_precision("highest")
    def clean_estimates(state: ExpansionState, sample: Sample, key: jax.Array):
        samples, x = one_round(sample)
        rounds = rounds_of(samples, key[None])
        values = _before(memory, state, rounds, memory.space.points(x))[0, :-1]
        target = jax.tree.map(lambda a: a[0], rounds.target)
        of_outputs: Any = estimates
        return of_outputs(rule.outputs(state.rule, values), target)

    @program
    @jax.default_matmul_precision("highest")
    def predict(state: ExpansionState, x: jax.Array) -> jax.Array:
        x = jnp.asarray(real_array("x", x))
        check(x)
        points = memory.space.points(jnp.reshape(x, (-1, x.shape[-1])))
        values = memory.evaluate(state.atoms, state.weights, state.round, points)
        return rule.outputs(state.rule, values.reshape(x.shape[:-1]))

    needs = Needs(copies, memory.horizon, noise, targets, labels, flips)
    estimated = None if estimates is None else clean_estimates
    linear = (None, None) if memory.forgets else rule.linear_part()
    return Learner(init, step, predict, needs, unroll, estimated, None, *linear)


def _usual_block(state: ExpansionState, copies: int) -> int:
    """B by default. On two cores of a CPU a round of a larger block took longer."""
    if jax.tree.leaves(state.atoms):
        return 64
    numbers = len(state.weights) * (copies + 1)
    return next(size for size in (8, 4, 2, 1) if size * numbers <= 4096 or size == 1)


def _before(memory: Memory, state: ExpansionState, rounds: Round, points):
    """Values of f before a block, `[B, Q + 1]`: at the Q queries of a round and its clean point."""
    values = memory.values(state.atoms, state.weights, state.round, _queries(rounds), points)
    return _columns(*values).astype(state.weights.dtype)


def _within(memory: Memory, rounds: Round, points):
    """Inner products `[B, K, B, Q + 1]` of the atoms of a block with all that `_before` reads."""
    space, atoms, size = memory.space, _flat(rounds.atom), count(points)
    inside = _columns(space.inner(atoms, _queries(rounds)), space.evaluate(atoms, points))
    return inside.reshape(size, -1, size, inside.shape[-1])


def _queries(rounds: Round):
    """The atoms and query points of B rounds, `[B·Q]`."""
    if rounds.query_points is None:
        return _flat(rounds.atom)
    together = functools.partial(jnp.append, axis=1)
    return _flat(jax.tree.map(together, rounds.atom, rounds.query_points))


def _flat(atoms):
    """Returns atoms `[B, K]` as `[B·K]`."""
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), atoms)


def _columns(at_queries, at_points):
    """Joins numbers at queries `[..., B·Q]` and at clean points `[..., B]` to `[..., B, Q + 1]`."""
    at_queries = at_queries.reshape(*at_points.shape, -1)
    return jnp.concatenate([at_queries, at_points[..., None]], axis=-1)


def _play(rule, memory, radius, estimates, state: ExpansionState, ahead, inside, target):
    """The rounds of a block, one after another, on numbers alone.

    `ahead` `[B, Q + 1]` are the values of f for all rounds (`_before`), which each round brings up
    to date by the inner products `inside` of its atoms with all that is read later (`_within`).

    Returns the state with its norm and rule after the block; `[B]` predictions, estimates (or
    `None`), `[B, K]` coefficients of the new atoms, and `[B]` factors on what was there before.
    """
    dtype, width = ahead.dtype, inside.shape[1]

    def one_round(carry, inputs):
        ahead, squared_norm, rule_state = carry
        b, inside, target = inputs
        t, values = state.round + b, ahead[b, :-1]
        prediction = rule.outputs(rule_state, ahead[b, -1])
        clean = None if estimates is None else estimates(rule.outputs(rule_state, values), target)
        gram = inside[:, b, :width]
        square = gram if memory.width else jnp.maximum(gram[0, 0], 0)
        alpha, decay, rule_state = rule.update(rule_state, values, target, t, square)
        room = True if memory.horizon is None else t < memory.horizon
        alpha = jnp.where(jnp.all(jnp.isfinite(values)) & room, alpha, jnp.nan).astype(dtype)
        alpha = jnp.broadcast_to(alpha, width)
        factor = jnp.ones((), dtype)
        if squared_norm is not None:
            squared_norm *= decay**2
            squared_norm += 2 * decay * jnp.sum(alpha * values[:width])
            squared_norm += jnp.sum(alpha[:, None] * gram * alpha[None])
            factor, squared_norm = _project(jnp.maximum(squared_norm, 0).astype(dtype), radius)
        added, keep = alpha * factor, jnp.asarray(decay * factor, dtype)
        ahead = keep * ahead + jnp.sum(added[:, None, None] * inside, axis=0)
        return (ahead, squared_norm, rule_state), (prediction, clean, added, keep)

    (_, squared_norm, rule_state), outputs = jax.lax.scan(
        one_round, (ahead, state.squared_norm, state.rule), (jnp.arange(len(ahead)), inside, target)
    )
    return state._replace(squared_norm=squared_norm, rule=rule_state), *outputs


def _project(squared_norm, radius):
    """The factor that brings f back into the ball, NaN if ‖f‖² overflowed; and ‖f‖² after it."""
    if radius is None:
        return jnp.where(jnp.isfinite(squared_norm), 1.0, jnp.nan), squared_norm
    squared_radius = jnp.square(jnp.asarray(radius, squared_norm.dtype))
    inside = squared_norm <= squared_radius  # False for a radius of NaN
    factor = jnp.where(inside, 1.0, radius / jnp.sqrt(jnp.where(inside, 1.0, squared_norm)))
    factor = jnp.where(jnp.isfinite(squared_norm), factor, jnp.nan)
    return factor, jnp.where(inside, squared_norm, squared_radius)
