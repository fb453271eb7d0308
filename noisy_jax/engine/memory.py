"""Spaces and memories of the engine, and the two memories that keep all of f.

`everything` keeps each atom of f = Σ_i α_i φ_i, up to a known horizon. `weight_vector` keeps f
itself, as a vector of finite dimension.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, jaxpr_as_fun

from noisy_jax.validation.arrays import check_dimension
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.objects import instance
from noisy_jax.varying import of_this_device, zeros_like

Atoms: TypeAlias = Any
"""A pytree of arrays whose first axis runs over atoms."""

_CHUNK = 256
"""Most stored rounds of a chunk, which is read at once. It has at most four times as many atoms, or
one round. Gram matrices of more atoms leave the cache; many small ones take longer."""


class Space(NamedTuple):
    """Inner products between atoms, and values of atoms at clean instances.

    Attributes:
        inner: `(atoms[n], atoms[m]) -> [n, m]`.
        evaluate: `(atoms[n], points[m]) -> [n, m]`.
        points: `x[m, d] -> points[m]`, the form in which `evaluate` takes clean instances.
    """

    inner: Callable[..., Any]
    evaluate: Callable[..., Any]
    points: Callable[..., Any] = lambda x: x


class Memory(NamedTuple):
    """Storage of f: atoms and weights, f = Σ_i w_i φ_i, or one vector, f = w.

    Attributes:
        space: the inner products of its atoms.
        init: `atom -> (atoms, weights)`, empty, for atoms of this shape.
        values: `(atoms, weights, t, queries[B·Q], points[B]) -> ([B·Q], [B])`, values at the Q
            queries and the point of each of rounds t to t + B − 1, of what is stored before round
            t. An atom that is dropped within the block counts up to the round that drops it.
        evaluate: `(atoms, weights, t, points[m]) -> [m]`, values of f as stored before round t.
        absorb: `(atoms, weights, t, scale, new_atoms[B], coefficients[B]) -> (atoms, weights)`,
            after rounds t to t + B − 1: the old weights times `scale`, and the new atoms.
        horizon: number of rounds that it has room for; `None` for any number.
        longest_block: number of rounds that a block may have; `None` for any number.
        forgets: whether it drops atoms, so that ‖f‖ is not known.
        width: K, how many atoms a round adds, along the first axis of `Round.atom`; `new_atoms`
            and `coefficients` are `[B·K]` then. `None` for one atom without that axis.
        linear: whether f = w is one vector, for kernels with k(x, z) = ⟨x, z⟩ only.
    """

    space: Space
    init: Callable[[Any], tuple[Atoms, jax.Array]]
    values: Callable[..., tuple[jax.Array, jax.Array]]
    evaluate: Callable[..., jax.Array]
    absorb: Callable[..., tuple[Atoms, jax.Array]]
    horizon: int | None = None
    longest_block: int | None = None
    forgets: bool = False
    width: int | None = None
    linear: bool = False


MakeMemory: TypeAlias = Callable[[Space], Memory]
"""Makes a memory for atoms of a space; an argument `buffer` of learners."""


def everything(horizon: int, *, width: int | None = None) -> MakeMemory:
    """Returns a memory that keeps the atoms of all rounds; learners take it as `buffer`.

    An atom is the function that a round adds to the learner's function f, such as k(x_t, ·). With
    this memory f is exact, and round t costs O(t) kernel evaluations.

    Args:
        horizon: T ≥ 1, the largest number of rounds. `nj.rollout` raises ValueError for more; a run
            in several parts that goes beyond it ends in NaN.
        width: K ≥ 1, the number of atoms that each round adds, where `Round.atom` has an axis `[K]`
            of atoms; `None`, the default, for one atom without this axis.

    Returns:
        A function that makes the `Memory` of a `Space` (the inner products of atoms). Learners call
        it themselves.

    Example:
        >>> import noisy_jax as nj
        >>> learner = nj.learners.norma(
        ...     nj.kernels.gaussian(length_scale=0.5), nj.losses.hinge(),
        ...     regularization=0.03, buffer=nj.engine.everything(1000))
        >>> print(learner.init(2).weights.shape)  # 1000 rounds, in whole chunks of 256
        (1024,)
    """
    horizon = whole("horizon", horizon, 1, "number of rounds that there is room for")
    width = None if width is None else whole("width", width)

    def absorb(atoms, weights, t, scale, new_atoms, coefficients):
        def written(slots, new):
            new = new.astype(slots.dtype)
            return jax.lax.dynamic_update_slice_in_dim(slots, new, t * (width or 1), axis=0)

        return jax.tree.map(written, atoms, new_atoms), written(scale * weights, coefficients)

    def memory(space: Space) -> Memory:
        return Memory(
            space, *chunked(space, horizon, width or 1), absorb, horizon=horizon, width=width
        )

    return memory


def products(x, z):
    """⟨x_i, z_j⟩, `[n, m]`."""
    return jnp.einsum("id,jd->ij", x, z)


def weight_vector() -> MakeMemory:
    """Returns a memory that keeps only the sum of all atoms; learners take it as `buffer`.

    An atom is the function that a round adds to the learner's function f. Here atoms are vectors
    `[D]`, w is their weighted sum, and f(x) = ⟨w, x⟩. Use it with `kernels.linear()`, where it
    keeps the weights w `[d]`: f is exact, a round costs O(d), and there is no horizon. With other
    kernels learners raise ValueError. Random features need no `buffer`: they use this
    memory by themselves.

    Returns:
        A function that makes the `Memory` of a `Space` (the inner products of atoms). Learners call
        it themselves.

    Example:
        >>> import noisy_jax as nj
        >>> learner = nj.learners.parameter_free(
        ...     nj.kernels.linear(), nj.losses.absolute(), buffer=nj.engine.weight_vector())
        >>> print(learner.init(3).weights.shape)
        (3,)
    """

    def init(atom):
        return (), jnp.zeros(atom.shape, atom.dtype)

    def values(atoms, weights, t, queries, points):
        return evaluate(atoms, weights, t, queries), evaluate(atoms, weights, t, points)

    def evaluate(atoms, weights, t, points):
        check_dimension("the learner's weights", weights, points.shape)
        return points @ weights

    def absorb(atoms, weights, t, scale, new_atoms, coefficients):
        return (), scale * weights + coefficients @ new_atoms

    def memory(space: Space) -> Memory:
        space = Space(products, products, space.points)
        return Memory(space, init, values, evaluate, absorb, linear=True)

    return memory


def chunked(space: Space, size: int, width: int = 1):
    """`init`, `values` and `evaluate` of a `Memory` of `size` rounds, in chunks that fit the cache.

    `values` and `evaluate` skip the chunks that are empty before round t.
    """
    hint = "engine.ring(50)(space) makes a memory; learners take buffer=engine.ring(50)"
    instance("space", space, Space, hint)
    size *= width
    chunk = min(size, min(_CHUNK, max(1, 4 * _CHUNK // width)) * width)  # whole rounds
    slots = -(-size // chunk) * chunk

    def init(atom):
        atoms = jax.tree.map(lambda e: jnp.zeros((slots, *e.shape), e.dtype), atom)
        return atoms, jnp.zeros(slots)

    def values(atoms, weights, t, queries, points):
        """Returns values at queries, which may be `None`, and at points: `([m] or None, [n])`."""

        def one_chunk(c, atoms, weights, queries, points):
            def part(a):
                return jax.lax.dynamic_slice_in_dim(a, c * chunk, chunk)

            stored, alpha = jax.tree.map(part, atoms), part(weights)
            inner = None if queries is None else alpha @ space.inner(stored, queries)
            return inner, alpha @ space.evaluate(stored, points)

        chunks = jnp.minimum(-(-t * width // chunk), slots // chunk)
        return _total(one_chunk, chunks, slots // chunk, atoms, weights, queries, points)

    def evaluate(atoms, weights, t, points):
        return values(atoms, weights, t, None, points)[1]

    return init, values, evaluate


def _total(term: Callable[..., Any], chunks: jax.Array, most: int, *args):
    """Σ_{c < chunks} term(c, *args), in a loop of that length; chunks ≤ most may be traced.

    A plain scan that skips chunks by `cond` makes `parallel_worlds` and `norma` with a ring of 512
    terms 1.3 times as slow (jaxlib 0.10.2, one core).

    Derivatives are those of a loop of fixed length that skips chunks, so that reverse mode works,
    too. They evaluate kernels again, as it is faster than keeping what they were. Numbers that
    `term` closes over, such as parameters of a kernel, become arguments, which the rule can see.
    """
    chunks, *args = of_this_device((chunks, *args))
    closed, shape = jax.make_jaxpr(term, return_shape=True)(chunks, *args)
    # The rule outlives this call, so it must not hold the call's arrays.
    jaxpr, structure, arity = closed.jaxpr, jax.tree.structure(shape), 1 + len(args)

    def summand(*given):
        function = jaxpr_as_fun(ClosedJaxpr(jaxpr, given[arity:]))
        return jax.tree.unflatten(structure, function(*jax.tree.leaves(given[:arity])))

    def zeros(*args):
        return zeros_like(jax.eval_shape(summand, *args))

    @jax.custom_jvp
    def total(chunks, *args):
        def add(c, sums):
            index = of_this_device(jnp.asarray(c, chunks.dtype))
            return jax.tree.map(jnp.add, sums, summand(index, *args))

        return jax.lax.fori_loop(0, chunks, add, zeros(chunks, *args))

    @total.defjvp
    def derivative(primals, tangents):
        chunks, args = primals[0], primals[1:]

        def skipping(*args):
            def add(sums, c):
                added = jax.checkpoint(lambda sums: jax.tree.map(jnp.add, sums, summand(c, *args)))
                return jax.lax.cond(c < chunks, added, lambda sums: sums, sums), None

            indices = of_this_device(jnp.arange(most, dtype=chunks.dtype))
            return jax.lax.scan(add, zeros(chunks, *args), indices)[0]

        return jax.jvp(skipping, args, tangents[1:])

    return total(chunks, *args, *closed.consts)


def count(atoms: Atoms) -> int:
    """The number of atoms."""
    return jax.tree.leaves(atoms)[0].shape[0]
