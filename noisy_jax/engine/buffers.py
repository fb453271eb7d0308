"""From a kernel, a world or random features to the atoms and the memory of a learner."""

from collections.abc import Callable

import numpy as np

from noisy_jax.engine.memory import Atoms, Memory, Space, weight_vector
from noisy_jax.engine.windows import ring
from noisy_jax.kernels import Kernel
from noisy_jax.validation import whole
from noisy_jax.worlds import FourierWorld, World

Buffer = int | Callable[[Space], Memory]
"""τ, the number of newest rounds whose atoms are kept; or a function that makes a memory from a
space, such as `lambda space: engine.everything(space, horizon)`."""


def memory_of(kernel: Kernel | World, space: Space, buffer: Buffer | None) -> Memory:
    """The memory that `buffer` stands for, in a space of the kernel's atoms."""
    if not callable(buffer):
        hint = "τ, number of newest rounds that are kept (or lambda space: engine.ring(space, τ))"
        return ring(space, whole("buffer", buffer, 1, hint))
    memory = buffer(space)
    if not isinstance(memory, Memory):
        raise ValueError(
            "buffer must make a Memory from a space, such as lambda space: "
            f"engine.everything(space, horizon), but made a {type(memory).__name__}"
        )
    if memory.space.inner is not space.inner and not _is_linear(kernel):
        raise ValueError(
            "buffer must make a memory of the kernel's own space: a weight_vector holds linear "
            "functions; for other kernels use random features (worlds.fourier_gaussian)"
        )
    return memory


def atoms_and_memory(
    kernel: Kernel | World | FourierWorld, buffer: Buffer | None
) -> tuple[Callable[..., Atoms], Memory]:
    """How a noisy copy becomes an atom, `(x[1, d], cov[1]) -> atom[1]`, and where atoms are kept.

    `reading` takes the first, `expansion` the second. Random features keep one weight vector; their
    `buffer` is `None`.
    """
    if isinstance(kernel, Kernel):
        return lambda x, cov: x, memory_of(kernel, Space(kernel.gram, kernel.gram), buffer)
    if isinstance(kernel, World):
        assert kernel.atom is not None  # World sets both
        assert kernel.evaluate is not None
        space = Space(kernel.surrogate, kernel.evaluate, read=kernel.read)
        return kernel.atom, memory_of(kernel, space, buffer)
    if not isinstance(kernel, FourierWorld):
        raise ValueError(
            "kernel must be a Kernel, a World or a FourierWorld, as kernels and worlds build them, "
            f"got {type(kernel).__name__}"
        )
    if buffer is not None:
        raise ValueError(
            f"buffer must be None with random features, which keep one weight vector, got {buffer}"
        )
    return lambda x, cov: kernel.noisy(x), weight_vector(kernel.clean)


def _is_linear(kernel) -> bool:
    if not isinstance(kernel, Kernel) or kernel.series is None:
        return False
    series = kernel.series(1)
    linear = series.degree == 1 and np.asarray(series.coefficients)[0] == 0
    return bool(linear) and kernel.envelope is None
