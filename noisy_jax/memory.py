"""Memories of the engine: which elements of an expansion are kept, and how f is read from them.

f = Σ_i α_i φ_i over `everything` that a run of known horizon adds, over a `ring` of the newest
elements or over a slowly `growing` number of them; or, in a space of finite dimension, f is a
`weight_vector`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.validation import check_at_least, check_one_number, check_positive

Elements: TypeAlias = Any
"""A pytree of arrays that lead with an axis of elements."""

_LONGEST = 36  # logarithm of a number of rounds beyond every run, below 2^52

_CHUNK = 256
"""Stored elements that meet a block's queries at once: their Gram matrix stays in the cache."""


class Space(NamedTuple):
    """Inner products between elements, and the values of elements at clean instances.

    Attributes:
        inner: `(elements[n], elements[m]) -> [n, m]`.
        evaluate: `(elements[n], points[m]) -> [n, m]`.
        points: `x[m, d] -> points[m]`, clean instances as `evaluate` takes them.
        read: `(weights[n], elements[n], others[m], points[k]) -> ([m], [k])`, weights @ inner and
            weights @ evaluate at once, where that is faster.
    """

    inner: Callable[[Elements, Elements], chex.Array]
    evaluate: Callable[[Elements, Any], chex.Array]
    points: Callable[[chex.Array], Any] = lambda x: x
    read: Callable[..., tuple[chex.Array, chex.Array]] | None = None


class Memory(NamedTuple):
    """Where f is kept: elements and weights, f = Σ_i w_i φ_i, or f = w itself.

    Attributes:
        space: its inner products.
        init: `element -> (elements, weights)`, empty, for elements of the shape of this one.
        values: `(elements, weights, t, queries[B·Q], points[B]) -> ([B·Q], [B])`, f at the Q
            queries and the point of each of the rounds t to t + B − 1, from what was kept before
            round t alone.
        evaluate: `(elements, weights, t, points[m]) -> [m]`, f as kept before round t.
        absorb: `(elements, weights, t, scale, new_elements[B], coefficients[B]) -> (elements,
            weights)`, after rounds t to t + B − 1: what was there times the scale, and the new.
        horizon: rounds that it has room for; `None` for any number.
        longest_block: rounds that it takes at once; `None` for any number.
        forgets: whether elements are dropped, so that the norm is not known.
    """

    space: Space
    init: Callable[[Any], tuple[Elements, chex.Array]]
    values: Callable[..., tuple[chex.Array, chex.Array]]
    evaluate: Callable[..., chex.Array]
    absorb: Callable[..., tuple[Elements, chex.Array]]
    horizon: int | None = None
    longest_block: int | None = None
    forgets: bool = False


def everything(space: Space, horizon: int) -> Memory:
    """A memory that keeps all elements of up to `horizon` rounds.

    Args:
        space: inner products of the elements.
        horizon: T ≥ 1.

    Raises:
        ValueError: horizon not a whole number of at least 1.
    """
    check_at_least("horizon", horizon, 1, "the number of rounds there is room for")
    init, read = _slots(space, horizon)

    def evaluate(elements, weights, t, points):
        return read(elements, weights, t, None, points)[1]

    def absorb(elements, weights, t, scale, new_elements, coefficients):
        def written(slots, new):
            return jax.lax.dynamic_update_slice_in_dim(slots, new.astype(slots.dtype), t, axis=0)

        return jax.tree.map(written, elements, new_elements), written(scale * weights, coefficients)

    return Memory(space, init, read, evaluate, absorb, horizon=horizon)


def ring(space: Space, size: int) -> Memory:
    """A memory of the `size` newest elements; each new one takes the place of the oldest.

    Args:
        space: inner products of the elements.
        size: τ ≥ 1; blocks have at most τ rounds.

    Raises:
        ValueError: size not a whole number of at least 1.
    """
    check_at_least("size", size, 1, "the number of elements that are kept")
    return _sliding(space, size, lambda t: t - size)._replace(longest_block=size)


def growing(space: Space, horizon: int, *, start: int, excess: float) -> Memory:
    """A memory of the newest elements, slowly more of them: s_t in round t = 1, 2, ….

        s_t = min(t, max(t0, ⌈t^(1/2 + ε)⌉))

    Few enough to be cheap and, at a learning rate η/√t with decay, enough to keep the regret's
    order. It never drops more than one element a round.

    Source: Online Learning with Kernels, Theorem 6, which prints s_t = ⌈t^(1/2 + ε)⌉ after t0: most
    of the t0 elements are then dropped at once, more than its proof allows.

    Args:
        space: inner products of the elements.
        horizon: T ≥ 1, which fixes the room.
        start: t0 ≥ 1, `growing_start` for the theorem's; blocks have at most t0 rounds.
        excess: ε, 0 < ε < ½.

    Raises:
        ValueError: horizon or start not a whole number of at least 1, ε out of range.

    Example:
        >>> import noisy_jax as nj
        >>> gram = nj.kernels.gaussian(squared_width=1.0).gram
        >>> memory = growing(Space(gram, gram), 1000, start=80, excess=0.4)
        >>> memory.init(jax.numpy.zeros(2))[1].shape  # 1000^0.9, in whole chunks
        (512,)
    """
    check_at_least("horizon", horizon, 1, "the number of rounds there is room for")
    check_at_least("start", start, 1, "t0, the round up to which all is kept")
    _check_excess(excess)
    windows = np.maximum(start, _grown(np.arange(1, horizon + 2), excess))
    windows = np.minimum(windows, horizon).astype(np.int32)
    memory = _sliding(space, int(windows[-1]), lambda t: t - jnp.asarray(windows)[t])
    return memory._replace(horizon=horizon, longest_block=int(windows[0]))


def growing_start(decay: float, excess: float) -> int:
    """t0 of Theorem 6: the first round from which on three conditions hold for good.

        ηλ t^(−1/2) ≤ 1,   exp(−ηλ t^ε) ≤ ηλ t^(−1/2),   ⌈t^(1/2 + ε)⌉ ≤ 3t/4

    The theorem is of use where ηλ is large and ε in the middle: t0 is 7 for ηλ = 0.9 and ε = 0.3,
    but 4.6 million for ηλ = 0.1.

    Args:
        decay: ηλ > 0, of the learning rate η/√t.
        excess: ε, 0 < ε < ½.

    Returns:
        t0.

    Raises:
        ValueError: decay not positive, ε out of range, or t0 beyond e^36 ≈ 4e15.

    Source: Online Learning with Kernels, Theorem 6.

    Example:
        >>> growing_start(0.5, 0.4)
        80
    """
    check_one_number("decay", decay)
    check_positive("decay", decay, "ηλ, of the learning rate η/√t")
    _check_excess(excess)
    # Of the second condition, where its gap is least; of the third, where it is met.
    log_turn = -math.log(2 * excess * decay) / excess
    log_crossing = math.log(4 / 3) / (0.5 - excess)
    if max(log_turn, log_crossing) > _LONGEST:
        raise ValueError(
            f"decay = {decay:g} and excess = {excess:g} put t0 beyond e^{_LONGEST} rounds, so that "
            "no run would drop anything; a larger decay, or an excess of 0.3 to 0.45, would do"
        )

    def log_gap(t):  # of the second condition, convex in log t
        return decay * t**excess + math.log(decay) - math.log(t) / 2

    # Where it fails, it fails at a whole number beside its least value.
    turn = math.exp(log_turn)
    low = max([0] + [t for t in (int(turn), int(turn) + 1) if t > 0 and log_gap(t) < 0])
    high = 2 * low + 1
    while log_gap(high) < 0:
        high *= 2
    while low > 0 and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if log_gap(middle) < 0 else (low, middle)
    # t^(1/2 + ε) = 3t/4 at the first; from the second on the ceiling makes no difference.
    crossing = math.exp(log_crossing)
    last = crossing + 4 / (0.5 - excess)
    t = np.arange(np.floor(crossing), np.ceil(last) + 1)
    failing = t[_grown(t, excess) > 0.75 * t]
    return int(max(np.ceil(decay**2), low + 1, failing[-1] + 1))


def _grown(t, excess):
    """⌈t^(1/2 + ε)⌉, with powers that are whole but for rounding taken as whole."""
    return np.ceil(t ** (0.5 + excess) * (1 - 1e-14))


def _check_excess(excess) -> None:
    check_one_number("excess", excess)
    if not 0 < excess < 0.5:
        raise ValueError(f"excess must be above 0 and below 1/2, got {excess}: ε of t^(1/2 + ε)")


def _sliding(space: Space, size: int, oldest: Callable[[chex.Array], chex.Array]) -> Memory:
    """A memory of a window of rounds: before round t, of those from oldest(t) on.

    From round to round oldest and t − oldest(t) never fall; t − oldest(t) is at most the size, and
    at least the number of rounds in a block.
    """
    init, read = _slots(space, size)

    def values(elements, weights, t, queries, points):
        rounds = _count(points)
        # Round t + b still sees what the rounds t + b + 1, t + b + 2, … will not.
        leaving = oldest(t) + jnp.arange(rounds)
        slots = leaving % size
        old, old_weights = jax.tree.map(lambda a: a[slots], (elements, weights))
        staying = weights.at[slots].set(0)
        at_queries, at_points = read(elements, staying, t, queries, points)
        waiting = leaving[:, None] >= oldest(t + jnp.arange(rounds))[None]
        old_weights = jnp.where(waiting, old_weights[:, None], 0)
        repeated = jnp.repeat(old_weights, _count(queries) // rounds, axis=1)
        at_queries += jnp.sum(repeated * space.inner(old, queries), axis=0)
        return at_queries, at_points + jnp.sum(old_weights * space.evaluate(old, points), axis=0)

    def evaluate(elements, weights, t, points):
        return read(elements, weights, t, None, points)[1]

    def absorb(elements, weights, t, scale, new_elements, coefficients):
        rounds = coefficients.shape[0]
        leaving = oldest(t) + jnp.arange(rounds)
        left = leaving % size
        stays = leaving >= oldest(t + rounds)
        weights = weights.at[left].set(jnp.where(stays, weights[left], 0))
        slots = (t + jnp.arange(rounds)) % size

        def written(kept, new):
            return kept.at[slots].set(new.astype(kept.dtype))

        return jax.tree.map(written, elements, new_elements), written(scale * weights, coefficients)

    return Memory(space, init, values, evaluate, absorb, forgets=True)


def weight_vector(points: Callable[[chex.Array], chex.Array] = lambda x: x) -> Memory:
    """A memory for elements that are vectors `[D]`: f is their weighted sum, a vector itself.

    Args:
        points: `x[m, d] -> [m, D]`, the feature map by which f is evaluated on clean instances.
    """
    space = Space(
        inner=lambda elements, others: elements @ others.T,
        evaluate=lambda elements, points: elements @ points.T,
        points=points,
    )

    def init(element):
        return (), jnp.zeros(element.shape, element.dtype)

    def values(elements, weights, t, queries, points):
        return queries @ weights, points @ weights

    def evaluate(elements, weights, t, points):
        return points @ weights

    def absorb(elements, weights, t, scale, new_elements, coefficients):
        return (), scale * weights + coefficients @ new_elements

    return Memory(space, init, values, evaluate, absorb)


def _slots(space: Space, size: int):
    """Room for `size` elements, and the reading of those that are filled, a chunk at a time."""
    chunk = min(size, _CHUNK)
    slots = -(-size // chunk) * chunk

    def init(element):
        elements = jax.tree.map(lambda e: jnp.zeros((slots, *e.shape), e.dtype), element)
        return elements, jnp.zeros(slots)

    def read(elements, weights, t, queries, points):
        """f at queries and points before round t, `([m] or None, [n])`."""

        def one_chunk(c, sums):
            def part(a):
                return jax.lax.dynamic_slice_in_dim(a, c * chunk, chunk)

            own, alpha = jax.tree.map(part, elements), part(weights)
            if queries is None:
                return None, sums[1] + alpha @ space.evaluate(own, points)
            if space.read is None:
                values = alpha @ space.inner(own, queries), alpha @ space.evaluate(own, points)
            else:
                values = space.read(alpha, own, queries, points)
            return jax.tree.map(jnp.add, sums, values)

        zeros = [
            None if q is None else jnp.zeros(_count(q), weights.dtype) for q in (queries, points)
        ]
        chunks = jnp.minimum(-(-t // chunk), slots // chunk)
        return jax.lax.fori_loop(0, chunks, one_chunk, tuple(zeros))

    return init, read


def _count(elements: Elements) -> int:
    return jax.tree.leaves(elements)[0].shape[0]
