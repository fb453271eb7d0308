"""Buffers: how much of f a learner keeps, in the space of a kernel, a world or random features."""

from collections.abc import Callable

from noisy_jax.engine import Memory, Space, ring, weight_vector
from noisy_jax.kernels import Kernel
from noisy_jax.validation import check_at_least
from noisy_jax.worlds import FourierWorld, World

Buffer = int | Callable[[Space], Memory]
"""τ, how many of the newest rounds keep their terms; or what makes a memory of a space, such as
`lambda space: engine.everything(space, horizon)`."""


def memory_of(kernel: Kernel | World, space: Space, buffer: Buffer | None) -> Memory:
    """The memory of the kernel's space that `buffer` stands for."""
    if callable(buffer):
        memory = buffer(space)
        if not isinstance(memory, Memory):
            raise ValueError(
                "buffer must make a Memory of a space, such as lambda space: "
                f"engine.everything(space, horizon), but made a {type(memory).__name__}"
            )
        if memory.space.inner is not space.inner and not _is_linear(kernel):
            raise ValueError(
                "buffer must make a memory of the kernel's own space: a weight_vector holds linear "
                "functions; for other kernels take random features (worlds.fourier_gaussian)"
            )
        return memory
    meaning = "τ, how many newest rounds keep their terms (or lambda space: engine.ring(space, τ))"
    check_at_least("buffer", buffer, 1, meaning)
    return ring(space, buffer)


def element_and_memory(kernel: Kernel | World | FourierWorld, buffer: Buffer | None):
    """What makes an atom of a copy, `(x[1, d], cov) -> atom[1]`, and the memory."""
    if isinstance(kernel, Kernel):
        return lambda x, cov: x, memory_of(kernel, Space(kernel.gram, kernel.gram), buffer)
    if isinstance(kernel, World):
        space = Space(kernel.surrogate, kernel.evaluate, read=kernel.read)
        return kernel.atom, memory_of(kernel, space, buffer)
    if not isinstance(kernel, FourierWorld):
        raise ValueError(
            "kernel must be a Kernel, a World or a FourierWorld, as kernels and worlds build them, "
            f"got {type(kernel).__name__}"
        )
    if buffer is not None:
        raise ValueError(
            f"buffer must be left out with random features, got {buffer!r}: they keep one weight "
            "vector, and no terms"
        )
    return lambda x, cov: kernel.noisy(x), weight_vector(kernel.clean)


def _is_linear(kernel) -> bool:
    if not isinstance(kernel, Kernel) or kernel.series is None:
        return False
    series = kernel.series(1)
    return series.degree == 1 and kernel.envelope is None and series.coefficients[0] == 0
