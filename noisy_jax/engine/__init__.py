"""The engine of functional learners: expansions of f, rules that change f, memories that keep it."""

from noisy_jax.engine.expansion import ExpansionState, RingState, Round, expansion, reading
from noisy_jax.engine.memory import Atoms, Memory, Space, everything, weight_vector
from noisy_jax.engine.rules import Rule, Update, schedule, sound_rate, squared_loss
from noisy_jax.engine.windows import growing, growing_start, ring

__all__ = [
    "Atoms",
    "ExpansionState",
    "Memory",
    "RingState",
    "Round",
    "Rule",
    "Space",
    "Update",
    "everything",
    "expansion",
    "growing",
    "growing_start",
    "reading",
    "ring",
    "schedule",
    "sound_rate",
    "squared_loss",
    "weight_vector",
]
