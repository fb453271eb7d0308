"""Parts from which functional learners are built: the engine, rules, memories, and state classes.

A new learner is a `Rule` in a function space, `function_space(kernel, buffer).learner(rule)`, or a
call of `expansion`, with a function that makes a `Round` from a sample, a rule, and a memory.
"""

from noisy_jax.engine.expansion import ExpansionState, Round, expansion
from noisy_jax.engine.function_space import (
    Buffer,
    FunctionSpace,
    function_space,
    memory_of,
    of_two_outputs,
)
from noisy_jax.engine.memory import Atoms, MakeMemory, Memory, Space, everything, weight_vector
from noisy_jax.engine.rules import (
    AdaptiveState,
    Rate,
    Rule,
    Update,
    rate_of,
    schedule,
    squared_loss,
)
from noisy_jax.engine.windows import growing, ring

__all__ = [
    "AdaptiveState",
    "Atoms",
    "Buffer",
    "ExpansionState",
    "FunctionSpace",
    "MakeMemory",
    "Memory",
    "Rate",
    "Round",
    "Rule",
    "Space",
    "Update",
    "everything",
    "expansion",
    "function_space",
    "growing",
    "memory_of",
    "of_two_outputs",
    "rate_of",
    "ring",
    "schedule",
    "squared_loss",
    "weight_vector",
]
