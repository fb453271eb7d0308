"""Learners of functions in the space of a kernel, a world or random features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import jax

from noisy_jax.base import CleanEstimates, Learner, Sample
from noisy_jax.engine.expansion import Round, expansion
from noisy_jax.engine.memory import Atoms, MakeMemory, Memory, Space, products, weight_vector
from noisy_jax.engine.rules import Rule
from noisy_jax.engine.windows import ring
from noisy_jax.kernels import Kernel
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.objects import choice
from noisy_jax.worlds import World
from noisy_jax.worlds.fourier import FourierWorld

Buffer: TypeAlias = int | MakeMemory
"""τ, the number of newest rounds whose atoms are kept; or a memory such as `engine.everything(T)`
or `engine.weight_vector()`."""


def round_of_copies(
    atom: Callable[..., Atoms], copies: int
) -> Callable[[Sample, jax.Array], Round]:
    """A `round_of` for `expansion`: the first copy is the atom, a second one the query point."""

    def round_of(sample: Sample, key: jax.Array) -> Round:
        del key  # it draws nothing
        atoms = atom(sample.x[:copies])
        first, others = (jax.tree.map(lambda a, s=s: a[s], atoms) for s in (0, slice(1, None)))
        return Round(first, others if copies > 1 else None, sample.y)

    return round_of


def of_two_outputs(outputs: jax.Array, target: Any) -> CleanEstimates:
    """Mean and product, `[]` each, of the first two of `outputs [V]`, values of f at noisy copies.

    They are unbiased for f(x) and f(x)² if the two outputs are unbiased and independent.
    """
    del target
    return (outputs[0] + outputs[1]) / 2, outputs[0] * outputs[1]


class FunctionSpace(NamedTuple):
    """The functions that a learner works with.

    Attributes:
        atom: `x[n, d] -> atoms[n]`, what noisy copies are stored as.
        memory: where atoms are kept.
        dim: d, the dimension that data must have; `None` for any.
        noise: distribution of the noise that atoms correct for; `None` for none.
        corrected: whether values at noisy copies are unbiased.
    """

    atom: Callable[..., Atoms]
    memory: Memory
    dim: int | None = None
    noise: Any = None
    corrected: bool = False

    def learner(self, rule: Rule, *, copies: int | None = None, **options: Any) -> Learner:
        """Returns the learner of a rule in this space, with further arguments of `expansion`.

        The first copy of a round is its atom. If `copies` is 2, the second one is its query point.
        By default it is 2 if values at noisy copies are unbiased (a world or random features), else
        1. With unbiased values and 2 copies the learner has `clean_estimates`.
        """
        default = 2 if self.corrected else 1
        copies = choice("copies", default if copies is None else copies, (1, 2))
        return expansion(
            round_of=round_of_copies(self.atom, copies),
            rule=rule,
            memory=self.memory,
            copies=copies,
            dim=self.dim,
            noise=self.noise,
            estimates=of_two_outputs if self.corrected and copies == 2 else None,
            **options,
        )


def function_space(
    kernel: Kernel | World | FourierWorld, buffer: Buffer | None = None
) -> FunctionSpace:
    """Returns the functions of a kernel, a world or random features, with a memory for their atoms.

    An atom is the function that a round adds to the learner's function f, such as k(x̃_t, ·).

    Args:
        kernel: one of `kernels`; or for noisy inputs one of `worlds` (a kernel with a surrogate,
            whose values at noisy copies are unbiased) or random features of one (`worlds.fourier`).
        buffer: τ ≥ 1, the number of newest rounds whose atoms are kept, or a memory such as
            `engine.everything(T)`. It must be `None`, the default, for random features, which keep
            one weight vector, and must be given otherwise; else ValueError.

    Returns:
        A `FunctionSpace`. Its method `learner(rule, copies=…, **options)` makes the learner of an
        `engine.Rule`: the first copy of a round is the atom, and a second one the query point.
        `copies` is by default 2 with a world or random features, else 1; `options` are arguments of
        `engine.expansion`, such as `radius`.

    Example:
        >>> import jax, jax.numpy as jnp, noisy_jax as nj
        >>> def update(state, values, y, t, square):  # a gradient step on (f(x) − y)²
        ...     return nj.engine.Update(-0.2 * (values[-1] - y), 1.0, state)
        >>> noise = nj.noise.Gaussian(0.1)
        >>> world = nj.worlds.gaussian(dim=2, length_scale=1.0, noise=noise)
        >>> space = nj.engine.function_space(world, nj.engine.everything(1000))
        >>> learner = space.learner(nj.engine.Rule(lambda: (), update), radius=3.0)
        >>> stream = nj.streams.linear(jax.random.key(0), horizon=1000, dim=2)
        >>> run = nj.rollout(learner, stream, noise, jax.random.key(1))
        >>> print(f"copies {learner.needs.copies}, "
        ...       f"mean squared loss {((run.predictions - stream.y) ** 2).mean():.2f}")
        copies 2, mean squared loss 0.02

    """
    if isinstance(kernel, Kernel):
        memory = memory_of(kernel, Space(kernel.gram, kernel.gram), buffer)
        return FunctionSpace(_itself, memory)
    if isinstance(kernel, World):
        space = Space(kernel.surrogate, kernel.kernel)
        memory = memory_of(kernel, space, buffer)
        return FunctionSpace(_itself, memory, kernel.dim, kernel.noise, True)
    if not isinstance(kernel, FourierWorld):
        raise ValueError(
            "kernel must be a Kernel, a World or a FourierWorld, as kernels and worlds build them, "
            f"got {type(kernel).__name__}"
        )
    if buffer is not None:
        raise ValueError(
            f"buffer must be None with random features, which keep one weight vector, got {buffer}"
        )
    memory = weight_vector()(Space(products, products, kernel.clean))
    return FunctionSpace(kernel.noisy, memory, kernel.dim, kernel.noise, True)


def _itself(x):
    return x


def memory_of(kernel: Kernel | World, space: Space, buffer: Buffer | None) -> Memory:
    """The memory that `buffer` stands for, in a space of the kernel's atoms."""
    if not callable(buffer):
        hint = "τ, number of newest rounds that are kept (or a memory such as engine.ring(τ))"
        return ring(whole("buffer", buffer, 1, hint))(space)
    memory = buffer(space)
    if not isinstance(memory, Memory):
        raise ValueError(
            "buffer must make a Memory from a space, as engine.everything(horizon) does, but made "
            f"a {type(memory).__name__}"
        )
    if memory.linear and not (isinstance(kernel, Kernel) and kernel.linear):
        raise ValueError(
            "buffer must keep atoms: a weight_vector holds linear functions only; for other "
            "kernels use random features (worlds.fourier_gaussian)"
        )
    return memory
