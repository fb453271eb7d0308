"""One learner at several values of its hyper-parameters, as one learner."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_learner, unrolled
from noisy_jax.engine import ExpansionState
from noisy_jax.validation import given


def swept(make: Callable[[Any], Learner], values: Any) -> Learner:
    """A learner with K columns, one for each value of its hyper-parameters, by `jax.vmap`.

    Rates and radii do not change what a kernel learner stores: the columns then share the atoms
    and the kernel evaluations, so that K of them cost little more than one.

    Args:
        make: `value -> Learner`, called with a traced value. Copies, noise and horizon must not
            depend on it.
        values: `[K]`, or a pytree of arrays with a leading axis K ≥ 1 (a tuple of rates and radii).

    Returns:
        A `Learner` whose predictions are `[..., K]`, as those of `paired`. It has unbiased readings
        if the learner has.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> learner = swept(lambda radius: nj.learners.two_copies(radius=radius),
        ...                 jnp.array([0.1, 1.0, 10.0]))
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(((run.predictions - stream.y[:, None]) ** 2).mean(axis=0).round(1))
        [0.2 0.  0.2]
    """
    leaves = jax.tree.leaves(values)
    sizes = {jnp.shape(leaf)[:1] for leaf in leaves}
    if len(sizes) != 1 or sizes & {(), (0,)}:
        shapes = [list(jnp.shape(leaf)) for leaf in leaves]
        raise ValueError(f"values must be arrays with one leading axis K >= 1, got {shapes}")
    if isinstance(make, Learner) or not callable(make):
        raise ValueError(f"make must be a function value -> Learner, got {given(make)}")
    values = jax.tree.map(jnp.asarray, values)
    first = make(jax.tree.map(lambda leaf: leaf[0], values))
    check_learner(first, "what make returns")

    @functools.cache
    def axes_of(dim: int):
        """Axes of the columns in the state, `None` for the parts that all of them share."""
        state = jax.eval_shape(lambda: first.init(dim))
        axes = jax.tree.map(_axes, state, is_leaf=_is_expansion)
        sample = Sample(jnp.zeros((first.copies, dim)), jnp.ones(()), jnp.zeros(()))

        def one_round(values):
            state = jax.vmap(lambda value: make(value).init(dim), out_axes=axes)(values)
            step = functools.partial(each, "step", axes, axes, state)
            return step(sample, jax.random.key(0))

        try:  # vmap raises ValueError if what is to be shared depends on the value
            jax.eval_shape(one_round, values)
        except ValueError:
            return 0
        return axes

    def each(name, axes, out_axes, state, *arguments):
        """A function of the learner, for each value and the state's column of it."""

        def one(value, state):
            return getattr(make(value), name)(state, *arguments)

        return jax.vmap(one, (0, axes), out_axes)(values, state)

    def init(dim: int):
        return jax.vmap(lambda value: make(value).init(dim), out_axes=axes_of(dim))(values)

    def step(state, sample: Sample, key):
        axes = axes_of(sample.x.shape[-1])
        return each("step", axes, axes, state, sample, key)

    def predict(state, x):
        return each("predict", axes_of(x.shape[-1]), -1, state, x)

    def unroll(state, samples: Sample, x, keys):
        axes = axes_of(x.shape[-1])

        def one(value, state):
            return unrolled(make(value))(state, samples, x, keys)

        return jax.vmap(one, (0, axes), (axes, -1, -1))(values, state)

    def read(state, sample: Sample, key):
        return each("read", axes_of(sample.x.shape[-1]), -1, state, sample, key)

    def finish(state):
        return each("finish", 0, 0, state)

    return first._replace(
        init=init, step=step, predict=predict, unroll=unroll,
        read=first.read and read, finish=first.finish and finish,
    )  # fmt: skip


def _is_expansion(node) -> bool:
    return isinstance(node, ExpansionState)


def _axes(node) -> Any:
    """Atoms and the round are the same for all rates and radii."""
    axes: tuple[Any, ...] = (None, 0, 0, None, 0)
    return ExpansionState(*axes) if _is_expansion(node) else 0
