"""The rounds of a block, one after another, on values of the function that are known before.

The scan over these rounds works on few numbers. On CPUs XLA compiles a scan over about 1 kB into
one function; of a longer one it dispatches the operations of each round one by one, which takes ten
times as long. Hence a block is played in parts.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from noisy_jax.engine.memory import Memory
from noisy_jax.engine.rules import Rule

_PART = 8
"""Rounds whose values a scan holds."""


class Values(NamedTuple):
    """Values of a function in B rounds.

    Attributes:
        queries: `[..., B, Q]`, at the Q queries of each round.
        points: `[..., B]`, at its clean instance.
    """

    queries: jax.Array
    points: jax.Array


def play(
    rule: Rule,
    memory: Memory,
    radius: Any,
    readings: Any,
    state: Any,
    ahead: Values,
    inside: Values,
    target: Any,
):
    """The rounds of a block, from the values `ahead` of f and those of the atoms, `inside`.

    Returns the state with its norm and rule after the block; `[B]` predictions, readings (or
    `None`), `[B, K]` coefficients of the new atoms, and `[B]` factors on what was there before.
    """
    dtype, width = ahead.points.dtype, inside.points.shape[1]

    def one_round(carry, inputs):
        ahead, squared_norm, rule_state = carry
        b, t, inside, target = inputs
        values = ahead.queries[b]
        prediction = rule.output(rule_state, ahead.points[b])
        read = None if readings is None else readings(rule.output(rule_state, values), target)
        gram = inside.queries[:, b, :width]
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
        ahead = _moved(ahead, keep, added, inside)
        return (ahead, squared_norm, rule_state), (prediction, read, added, keep)

    def one_part(carry, inputs):
        """Rounds whose atoms change the values in all later rounds of the block."""
        ahead, *others = carry
        first, t, inside, target = inputs
        count = len(first)
        own = _rounds(ahead, first[0], count), _rounds(inside, first[0], count)
        (_, *others), outputs = jax.lax.scan(
            one_round, (own[0], *others), (jnp.arange(count), t, own[1], target)
        )
        kept, coefficients = since(*outputs[2:])
        return (_moved(ahead, kept, coefficients, inside), *others), outputs

    b = jnp.arange(len(ahead.points))
    (_, squared_norm, rule_state), outputs = in_parts(
        one_part,
        (ahead, state.squared_norm, state.rule),
        (b, state.round + b, inside, target),
        _PART,
    )
    return state._replace(squared_norm=squared_norm, rule=rule_state), *outputs


def _rounds(values: Values, first, count: int) -> Values:
    """The values in some rounds of a block."""
    axes = Values(-2, -1)
    return jax.tree.map(
        lambda a, axis: jax.lax.dynamic_slice_in_dim(a, first, count, a.ndim + axis), values, axes
    )


def _moved(ahead: Values, keep, added, inside: Values) -> Values:
    """The values of f after rounds that multiplied it by `keep` and added atoms."""

    def moved(ahead, inside):
        return keep * ahead + jnp.tensordot(added, inside, added.ndim)

    return jax.tree.map(moved, ahead, inside)


def since(added, keep):
    """By what B rounds multiplied f in all, and the coefficients `[B, K]` of their atoms then."""
    kept = jax.lax.cumprod(keep, reverse=True)
    return kept[0], added * jnp.append(kept[1:], jnp.ones_like(kept[:1]))[:, None]


def in_parts(function: Callable[..., Any], state: Any, inputs: Any, size: int):
    """`jax.lax.scan` over parts of so many rounds, then over what is left."""
    rounds, outputs = len(jax.tree.leaves(inputs)[0]), []
    whole = rounds - rounds % size
    if whole:
        parts = jax.tree.map(lambda a: a[:whole].reshape(-1, size, *a.shape[1:]), inputs)
        state, output = jax.lax.scan(function, state, parts)
        outputs.append(jax.tree.map(lambda a: a.reshape(whole, *a.shape[2:]), output))
    if whole < rounds:
        state, output = function(state, jax.tree.map(lambda a: a[whole:], inputs))
        outputs.append(output)
    return state, jax.tree.map(lambda *parts: jnp.concatenate(parts), *outputs)


def _project(squared_norm, radius):
    """The factor that brings f back into the ball, NaN if ‖f‖² overflowed; and ‖f‖² after it."""
    if radius is None:
        return jnp.where(jnp.isfinite(squared_norm), 1.0, jnp.nan), squared_norm
    squared_radius = jnp.square(jnp.asarray(radius, squared_norm.dtype))
    inside = squared_norm <= squared_radius  # False for a radius of NaN
    factor = jnp.where(inside, 1.0, radius / jnp.sqrt(jnp.where(inside, 1.0, squared_norm)))
    factor = jnp.where(jnp.isfinite(squared_norm), factor, jnp.nan)
    return factor, jnp.where(inside, squared_norm, squared_radius)
