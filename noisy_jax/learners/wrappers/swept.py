"""One learner at several values of its hyper-parameters, as one learner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from noisy_jax.base import Learner, Sample, check_learner, unrolled
from noisy_jax.engine.expansion import ExpansionState
from noisy_jax.learners.wrappers.dependence import depends
from noisy_jax.validation.arrays import real_array
from noisy_jax.validation.messages import given
from noisy_jax.varying import of_this_device


def swept(make: Callable[[Any], Learner], values: Any) -> Learner:
    """Returns a learner with K columns, one for each value of its hyper-parameters, by `jax.vmap`.

    All columns see the same samples. Kernel learners store the same points for all rates and radii,
    so that their columns share the kernel evaluations: K of them cost little more than one.

    Args:
        make: `value -> Learner`, called with a traced value. Only numbers inside the learner may
            depend on it, such as a radius or a rate; its copies, noise and horizon must not.
        values: `[K]`, or a pytree of arrays with a leading axis K ≥ 1, such as a tuple of rates and
            radii. `make` gets one entry of each.

    Returns:
        A `Learner` with predictions `[..., K]`, and with `clean_estimates` `[K]` if the learner has
        them.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=10_000, dim=3)
        >>> learner = nj.wrappers.swept(
        ...     lambda radius: nj.learners.two_copies(radius=radius), jnp.array([0.1, 1.0, 10.0]))
        >>> run = nj.rollout(learner, stream, nj.noise.Gaussian(0.5), jax.random.key(1))
        >>> print(((run.predictions - stream.y[:, None]) ** 2).mean(axis=0).round(1))
        [0.2 0.  0.2]
    """
    leaves = jax.tree.leaves(values)
    sizes = {jnp.shape(leaf)[:1] for leaf in leaves}
    if len(sizes) != 1 or sizes & {(), (0,)}:
        shapes = [list(jnp.shape(leaf)) for leaf in leaves]
        raise ValueError(
            f"values must be arrays with one leading axis K >= 1, got the shapes {shapes}"
        )
    for leaf in leaves:
        if not isinstance(leaf, jax.Array):  # which may hold keys
            real_array("values", leaf)
    if not callable(make):
        raise ValueError(f"make must be a function value -> Learner, got {given(make)}")
    values = jax.tree.map(jnp.asarray, values)
    value = jax.tree.map(lambda leaf: leaf[0], values)
    first = make(value)
    check_learner(first, "what make returns")

    def of_values(name, out_axes, state, *arguments):
        """A function of the learner, for each value and the state's column of it."""

        def of_value(value, state):
            return getattr(make(value), name)(state, *arguments)

        return jax.vmap(of_value, (0, _axes(state)), out_axes)(values, state)

    def init(dim: int):
        sample = Sample(jnp.zeros((first.needs.copies, dim)), jnp.ones(()), jnp.zeros(()))

        def played(value):
            learner = make(value)
            rounds = jax.random.split(jax.random.key(0), 2)
            step = lambda state, key: (learner.step(state, sample, key), None)  # noqa: E731
            return jax.lax.scan(step, of_this_device(learner.init(dim)), rounds)[0]

        def varies(axis, part) -> bool:
            return axis is None and any(jax.tree.leaves(part))

        axes = _axes(jax.eval_shape(lambda: first.init(dim)))  # of a state shared where it can be
        varied = jax.tree.map(varies, axes, depends(played, value), is_leaf=lambda a: a is None)
        axes = 0 if any(jax.tree.leaves(varied)) else axes
        return jax.vmap(lambda value: make(value).init(dim), out_axes=axes)(values)

    def step(state, sample: Sample, key):
        return of_values("step", _axes(state), state, sample, key)

    def predict(state, x):
        return of_values("predict", -1, state, x)

    def unroll(state, samples: Sample, x, keys):
        def of_value(value, state):
            return unrolled(make(value))(state, samples, x, keys)

        axes = _axes(state)
        return jax.vmap(of_value, (0, axes), (axes, -1, -1))(values, state)

    def clean_estimates(state, sample: Sample, key):
        return of_values("clean_estimates", -1, state, sample, key)

    def finish(state):
        return of_values("finish", _axes(state), state)

    return first._replace(
        init=init, step=step, predict=predict, unroll=unroll,
        clean_estimates=first.clean_estimates and clean_estimates, finish=first.finish and finish,
    )  # fmt: skip


def _axes(state) -> Any:
    """Axes of the columns in a state."""

    def of(node):
        return node.column_axes() if isinstance(node, ExpansionState) else 0

    return jax.tree.map(of, state, is_leaf=lambda node: isinstance(node, ExpansionState))
