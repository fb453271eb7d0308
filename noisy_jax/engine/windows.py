"""Memories of a window of rounds: a `ring` of the newest, or a slowly `growing` number of them."""

import math
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.engine.memory import Memory, Space, count, room
from noisy_jax.validation import check_at_least, check_between, check_one_number, check_positive

_LONGEST = 36  # logarithm of a number of rounds beyond every run, below 2^52


def ring(space: Space, size: int) -> Memory:
    """A memory of the `size` newest atoms; each new one takes the place of the oldest.

    Args:
        space: inner products of the atoms.
        size: τ ≥ 1; blocks have at most τ rounds.

    Raises:
        ValueError: no `Space`, or size not a whole number of at least 1.

    Example:
        >>> import noisy_jax as nj
        >>> learner = nj.learners.norma(
        ...     nj.kernels.gaussian(length_scale=1.0), nj.losses.soft_margin(), learning_rate=0.5,
        ...     regularization=0.1, buffer=lambda space: ring(space, 50))  # as buffer=50
        >>> learner.copies
        1
    """
    check_at_least("size", size, 1, "the number of atoms that are kept")
    return _sliding(space, size, lambda t: t - size)._replace(longest_block=size)


def growing(space: Space, horizon: int, *, start: int, excess: float) -> Memory:
    """A memory of the newest atoms, slowly more of them: s_t in round t = 1, 2, ….

        s_t = min(t, max(t0, ⌈t^(1/2 + ε)⌉))

    Few enough to be cheap and, at a learning rate η/√t with decay, enough to keep the regret's
    order. It never drops more than one atom a round.

    Source: Online Learning with Kernels, Theorem 6, which prints s_t = ⌈t^(1/2 + ε)⌉ after t0: most
    of the t0 atoms are then dropped at once, more than its proof allows.

    Args:
        space: inner products of the atoms.
        horizon: T ≥ 1, which fixes the room.
        start: t0 ≥ 1, `growing_start` for the theorem's; blocks have at most t0 rounds.
        excess: ε, 0 < ε < ½.

    Raises:
        ValueError: no `Space`, horizon or start not a whole number of at least 1, ε out of range.

    Example:
        >>> import noisy_jax as nj
        >>> gram = nj.kernels.gaussian(length_scale=0.5**0.5).gram
        >>> memory = growing(Space(gram, gram), 1000, start=80, excess=0.4)
        >>> memory.init(jax.numpy.zeros(2))[1].shape  # 1000^0.9, in whole chunks
        (512,)
    """
    check_at_least("horizon", horizon, 1, "the number of rounds there is room for")
    check_at_least("start", start, 1, "t0, the round up to which all is kept")
    check_between("excess", excess, 0, 0.5, "ε of t^(1/2 + ε)")
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
    check_between("excess", excess, 0, 0.5, "ε of t^(1/2 + ε)")
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


def _sliding(space: Space, size: int, oldest: Callable[[chex.Array], chex.Array]) -> Memory:
    """A memory of a window of rounds: before round t, of those from oldest(t) on.

    From round to round oldest and t − oldest(t) never fall; t − oldest(t) is at most the size, and
    at least the number of rounds in a block.
    """
    init, read, evaluate = room(space, size)

    def values(atoms, weights, t, queries, points):
        rounds = count(points)
        # Round t + b still sees what the rounds t + b + 1, t + b + 2, … will not.
        leaving = oldest(t) + jnp.arange(rounds)
        slots = leaving % size
        old, old_weights = jax.tree.map(lambda a: a[slots], (atoms, weights))
        staying = weights.at[slots].set(0)
        at_queries, at_points = read(atoms, staying, t, queries, points)
        waiting = leaving[:, None] >= oldest(t + jnp.arange(rounds))[None]
        old_weights = jnp.where(waiting, old_weights[:, None], 0)
        repeated = jnp.repeat(old_weights, count(queries) // rounds, axis=1)
        at_queries += jnp.sum(repeated * space.inner(old, queries), axis=0)
        return at_queries, at_points + jnp.sum(old_weights * space.evaluate(old, points), axis=0)

    def absorb(atoms, weights, t, scale, new_elements, coefficients):
        rounds = coefficients.shape[0]
        leaving = oldest(t) + jnp.arange(rounds)
        left = leaving % size
        stays = leaving >= oldest(t + rounds)
        weights = weights.at[left].set(jnp.where(stays, weights[left], 0))
        slots = (t + jnp.arange(rounds)) % size

        def written(kept, new):
            return kept.at[slots].set(new.astype(kept.dtype))

        return jax.tree.map(written, atoms, new_elements), written(scale * weights, coefficients)

    return Memory(space, init, values, evaluate, absorb, forgets=True)
