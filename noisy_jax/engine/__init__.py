"""Parts from which functional learners are built: the engine, rules, memories, and state classes.

A new learner is a `Rule` in a function space, `function_space(kernel, buffer).learner(rule)`, or a
call of `expansion`, with a function that makes a `Round` from a sample, a rule, and a memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.engine.expansion import Round, expansion
from noisy_jax.engine.function_space import function_space
from noisy_jax.engine.memory import everything, weight_vector
from noisy_jax.engine.rules import Rule, Update
from noisy_jax.engine.windows import growing, ring
from noisy_jax.gone import refuse

__all__ = [
    "Round",
    "Rule",
    "Update",
    "everything",
    "expansion",
    "function_space",
    "growing",
    "ring",
    "weight_vector",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError; for a name that has left, it names the replacement."""
        refuse(__name__, name)
