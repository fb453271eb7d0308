"""Streams of clean examples, chosen in advance: real data, teachers, adversaries, drift.

`DATASETS` are the names that `dataset` knows. `DIFFICULTIES` are settings for moving classes: "A"
is medium, "B" hard and "C" easy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.simulated.streams.adversaries import (
    one_copy_adversaries,
)
from noisy_jax.simulated.streams.mixtures import (
    DIFFICULTIES,
    drifting,
    switching,
)
from noisy_jax.simulated.streams.tables import (
    DATASETS,
    dataset,
    from_arrays,
    resampled,
    scaled,
)
from noisy_jax.simulated.streams.teachers import linear, teacher

__all__ = [
    "DATASETS",
    "DIFFICULTIES",
    "dataset",
    "drifting",
    "from_arrays",
    "linear",
    "one_copy_adversaries",
    "resampled",
    "scaled",
    "switching",
    "teacher",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError; for a name that has left, it names the replacement."""
        refuse(__name__, name)
