"""Memories of the engine: which elements of an expansion are kept, and how f is read from them."""

from noisy_jax.memory.memory import Elements, Memory, Space, everything, weight_vector
from noisy_jax.memory.windows import growing, growing_start, ring

__all__ = [
    "Elements",
    "Memory",
    "Space",
    "everything",
    "growing",
    "growing_start",
    "ring",
    "weight_vector",
]
