"""What a memory of the engine is, and those that keep all of f.

f = Σ_i α_i φ_i over `everything` that a run of known horizon adds; or, in a space of finite
dimension, f is a `weight_vector`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import chex
import jax
import jax.numpy as jnp

from noisy_jax.validation import check_at_least, check_dimension, given

Atoms: TypeAlias = Any
"""A pytree of arrays that lead with an axis of atoms."""

_CHUNK = 256
"""Stored atoms that meet a block's queries at once: their Gram matrix stays in the cache."""


class Space(NamedTuple):
    """Inner products between atoms, and the values of atoms at clean instances.

    Attributes:
        inner: `(atoms[n], atoms[m]) -> [n, m]`.
        evaluate: `(atoms[n], points[m]) -> [n, m]`.
        points: `x[m, d] -> points[m]`, clean instances as `evaluate` takes them.
        read: `(weights[n], atoms[n], others[m], points[k]) -> ([m], [k])`, weights @ inner and
            weights @ evaluate at once, where that is faster.
    """

    inner: Callable[[Atoms, Atoms], chex.Array]
    evaluate: Callable[[Atoms, Any], chex.Array]
    points: Callable[[chex.Array], Any] = lambda x: x
    read: Callable[..., tuple[chex.Array, chex.Array]] | None = None


class Memory(NamedTuple):
    """Where f is kept: atoms and weights, f = Σ_i w_i φ_i, or f = w itself.

    Attributes:
        space: its inner products.
        init: `atom -> (atoms, weights)`, empty, for atoms of the shape of this one.
        values: `(atoms, weights, t, queries[B·Q], points[B]) -> ([B·Q], [B])`, f at the Q
            queries and the point of each of the rounds t to t + B − 1, from what was kept before
            round t alone.
        evaluate: `(atoms, weights, t, points[m]) -> [m]`, f as kept before round t.
        absorb: `(atoms, weights, t, scale, new_elements[B], coefficients[B]) -> (atoms,
            weights)`, after rounds t to t + B − 1: what was there times the scale, and the new.
        horizon: rounds that it has room for; `None` for any number.
        longest_block: rounds that it takes at once; `None` for any number.
        forgets: whether atoms are dropped, so that the norm is not known.
    """

    space: Space
    init: Callable[[Any], tuple[Atoms, chex.Array]]
    values: Callable[..., tuple[chex.Array, chex.Array]]
    evaluate: Callable[..., chex.Array]
    absorb: Callable[..., tuple[Atoms, chex.Array]]
    horizon: int | None = None
    longest_block: int | None = None
    forgets: bool = False


def everything(space: Space, horizon: int) -> Memory:
    """A memory that keeps all atoms of up to `horizon` rounds.

    Args:
        space: inner products of the atoms.
        horizon: T ≥ 1.

    Raises:
        ValueError: no `Space`, or horizon not a whole number of at least 1.

    Example:
        >>> import jax.numpy as jnp, noisy_jax as nj
        >>> gram = nj.kernels.gaussian(length_scale=0.5**0.5).gram
        >>> memory = everything(Space(gram, gram), horizon=100)
        >>> atoms, weights = memory.init(jnp.zeros(2))
        >>> print(memory.evaluate(atoms.at[0].set(1), weights.at[0].set(3), 1, jnp.ones((1, 2))))
        [3.]
    """
    check_at_least("horizon", horizon, 1, "the number of rounds there is room for")
    init, read, evaluate = room(space, horizon)

    def absorb(atoms, weights, t, scale, new_elements, coefficients):
        def written(slots, new):
            return jax.lax.dynamic_update_slice_in_dim(slots, new.astype(slots.dtype), t, axis=0)

        return jax.tree.map(written, atoms, new_elements), written(scale * weights, coefficients)

    return Memory(space, init, read, evaluate, absorb, horizon=horizon)


def weight_vector(points: Callable[[chex.Array], chex.Array] = lambda x: x) -> Memory:
    """A memory for atoms that are vectors `[D]`: f is their weighted sum, a vector itself.

    Args:
        points: `x[m, d] -> [m, D]`, the feature map by which f is evaluated on clean instances.

    Example:
        >>> import jax.numpy as jnp
        >>> memory = weight_vector()
        >>> memory.evaluate((), jnp.array([1.0, 2.0]), 0, jnp.ones((1, 2)))
        Array([3.], dtype=float32)
    """
    space = Space(
        inner=lambda atoms, others: atoms @ others.T,
        evaluate=lambda atoms, points: atoms @ points.T,
        points=points,
    )

    def init(atom):
        return (), jnp.zeros(atom.shape, atom.dtype)

    def values(atoms, weights, t, queries, points):
        return evaluate(atoms, weights, t, queries), evaluate(atoms, weights, t, points)

    def evaluate(atoms, weights, t, points):
        check_dimension("the learner's weights", weights, points.shape)
        return points @ weights

    def absorb(atoms, weights, t, scale, new_elements, coefficients):
        return (), scale * weights + coefficients @ new_elements

    return Memory(space, init, values, evaluate, absorb)


def room(space: Space, size: int):
    """Room for `size` atoms, and the reading of those that are filled, a chunk at a time."""
    if not isinstance(space, Space):
        raise ValueError(
            f"space must be a engine.Space, got {given(space)}; a learner gives its own: "
            "buffer=lambda space: engine.ring(space, size)"
        )
    chunk = min(size, _CHUNK)
    slots = -(-size // chunk) * chunk

    def init(atom):
        atoms = jax.tree.map(lambda e: jnp.zeros((slots, *e.shape), e.dtype), atom)
        return atoms, jnp.zeros(slots)

    def read(atoms, weights, t, queries, points):
        """f at queries and points before round t, `([m] or None, [n])`."""

        def one_chunk(c, sums):
            def part(a):
                return jax.lax.dynamic_slice_in_dim(a, c * chunk, chunk)

            own, alpha = jax.tree.map(part, atoms), part(weights)
            if queries is None:
                return None, sums[1] + alpha @ space.evaluate(own, points)
            if space.read is None:
                values = alpha @ space.inner(own, queries), alpha @ space.evaluate(own, points)
            else:
                values = space.read(alpha, own, queries, points)
            return jax.tree.map(jnp.add, sums, values)

        zeros = [
            None if q is None else jnp.zeros(count(q), weights.dtype) for q in (queries, points)
        ]
        chunks = jnp.minimum(-(-t // chunk), slots // chunk)
        return jax.lax.fori_loop(0, chunks, one_chunk, tuple(zeros))

    def evaluate(atoms, weights, t, points):
        return read(atoms, weights, t, None, points)[1]

    return init, read, evaluate


def count(atoms: Atoms) -> int:
    """How many atoms there are."""
    return jax.tree.leaves(atoms)[0].shape[0]
