"""Parts from which functional learners are built: the engine, rules, memories, and state classes.

A new learner is a call of `expansion` with a `read` function that makes a `Round` from a sample, a
`Rule`, and a memory.
"""

from noisy_jax.engine.buffers import Buffer, atoms_and_memory, memory_of
from noisy_jax.engine.expansion import ExpansionState, Round, expansion, reading
from noisy_jax.engine.memory import Atoms, Memory, Space, everything, weight_vector
from noisy_jax.engine.rules import (
    AdaptiveState,
    Rate,
    Rule,
    Update,
    rate_of,
    schedule,
    squared_loss,
)
from noisy_jax.engine.windows import growing, growing_start, ring

__all__ = [
    "AdaptiveState",
    "Atoms",
    "Buffer",
    "ExpansionState",
    "Memory",
    "Rate",
    "Round",
    "Rule",
    "Space",
    "Update",
    "atoms_and_memory",
    "everything",
    "expansion",
    "growing",
    "growing_start",
    "memory_of",
    "rate_of",
    "reading",
    "ring",
    "schedule",
    "squared_loss",
    "weight_vector",
]
