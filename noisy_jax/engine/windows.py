"""Memories that keep the newest rounds: a fixed number (`ring`), or a slowly `growing` one."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.engine.memory import MakeMemory, Memory, Space, chunked, count
from noisy_jax.validation.numbers import between, whole
from noisy_jax.validation.values import check_concrete


def ring(size: int) -> MakeMemory:
    """Returns a memory of the atoms of the τ newest rounds; learners take it as `buffer`.

    An atom is the function that a round adds to the learner's function f, such as k(x_t, ·). A new
    atom takes the place of the oldest, whose term then no longer counts in f. There is no horizon.
    `buffer=τ` means `buffer=engine.ring(τ)`.

    Args:
        size: τ ≥ 1, the number of newest rounds. `Learner.unroll` then plays at most τ rounds at
            once.

    Returns:
        A function that makes the `Memory` of a `Space` (the inner products of atoms). Learners call
        it themselves.

    Example:
        >>> import noisy_jax as nj
        >>> learner = nj.learners.norma(
        ...     nj.kernels.gaussian(length_scale=0.5), nj.losses.hinge(),
        ...     regularization=0.03, buffer=nj.engine.ring(50))
        >>> print(learner.init(2).weights.shape)
        (50,)
    """
    size = whole("size", size, 1, "number of atoms that are kept")
    return lambda space: _sliding(space, size, lambda t: t - size)._replace(longest_block=size)


def growing(horizon: int, *, start: int, excess: float) -> MakeMemory:
    """Returns a memory of the newest s_t atoms in round t = 1, 2, …; learners take it as `buffer`.

        s_t = min(t, max(t0, ⌈t^(1/2 + ε)⌉))

    An atom is the function that a round adds to the learner's function, such as k(x_t, ·). At most
    one atom is dropped in a round. With it `learners.norma` at a learning rate η/√t still has
    regret of order √T in the regularized risk, for losses of bounded slope
    (`bounds.regularized_risk`).

    Args:
        horizon: T ≥ 1, the largest number of rounds. `nj.rollout` raises ValueError for more.
        start: t0 ≥ 1, the round up to which all atoms are kept. The theorem needs a large t0, which
            `growing_start` of colabs/papers/tightness_memory.py computes. `Learner.unroll` plays at
            most t0 rounds at once.
        excess: 0 < ε < ½, a concrete number.

    Returns:
        A function that makes the `Memory` of a `Space` (the inner products of atoms). Learners call
        it themselves.

    Source: Online Learning with Kernels, Theorem 6. The theorem prints s_t = ⌈t^(1/2 + ε)⌉ after
    t0, which drops most of the t0 atoms at once, more than its proof allows.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> learner = nj.learners.norma(
        ...     nj.kernels.gaussian(length_scale=0.5), nj.losses.hinge(), regularization=0.03,
        ...     learning_rate=lambda t: 5 / jnp.sqrt(t + 1),
        ...     buffer=nj.engine.growing(1000, start=80, excess=0.4))
        >>> print(learner.init(2).weights.shape)  # room for 1000^0.9 = 502 atoms, in chunks of 256
        (512,)
    """
    horizon = whole("horizon", horizon, 1, "number of rounds that there is room for")
    start = whole("start", start, 1, "t0, the round up to which all atoms are kept")
    check_concrete("excess", excess, "windows are counted on the host")
    between("excess", excess, 0, 0.5, "ε of t^(1/2 + ε)")
    windows = np.maximum(start, grown(np.arange(1, horizon + 2), excess))
    windows = np.minimum(windows, horizon).astype(np.int32)

    def memory(space: Space) -> Memory:
        sliding = _sliding(space, int(windows[-1]), lambda t: t - jnp.asarray(windows)[t])
        return sliding._replace(horizon=horizon, longest_block=int(windows[0]))

    return memory


def grown(t, excess):
    """⌈t^(1/2 + ε)⌉, where a power that is whole up to rounding counts as whole."""
    return np.ceil(t ** (0.5 + excess) * (1 - 1e-14))


def _sliding(space: Space, size: int, oldest: Callable[[jax.Array], jax.Array]) -> Memory:
    """A memory that, before round t, holds the rounds from oldest(t) on.

    oldest(t) and t − oldest(t) never decrease; t − oldest(t) is at most `size`, and at least the
    number of rounds in a block.
    """
    init, staying, evaluate = chunked(space, size)

    def values(atoms, weights, t, queries, points):
        rounds = count(points)
        # Atoms that this block drops: the first rounds of the block still read them.
        leaving = oldest(t) + jnp.arange(rounds)
        slots = leaving % size
        old, old_weights = jax.tree.map(lambda a: a[slots], (atoms, weights))
        kept = weights.at[slots].set(0)
        at_queries, at_points = staying(atoms, kept, t, queries, points)
        waiting = leaving[:, None] >= oldest(t + jnp.arange(rounds))[None]
        old_weights = jnp.where(waiting, old_weights[:, None], 0)
        repeated = jnp.repeat(old_weights, count(queries) // rounds, axis=1)
        at_queries += jnp.sum(repeated * space.inner(old, queries), axis=0)
        return at_queries, at_points + jnp.sum(old_weights * space.evaluate(old, points), axis=0)

    def absorb(atoms, weights, t, scale, new_atoms, coefficients):
        rounds = coefficients.shape[0]
        leaving = oldest(t) + jnp.arange(rounds)
        left = leaving % size
        stays = leaving >= oldest(t + rounds)
        weights = weights.at[left].set(jnp.where(stays, weights[left], 0))
        slots = (t + jnp.arange(rounds)) % size

        def written(kept, new):
            return kept.at[slots].set(new.astype(kept.dtype))

        return jax.tree.map(written, atoms, new_atoms), written(scale * weights, coefficients)

    return Memory(space, init, values, evaluate, absorb, forgets=True)
