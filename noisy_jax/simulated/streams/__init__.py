"""Streams of clean examples, chosen in advance: real data, teachers, adversaries, drift.

`DATASETS` are the names that `dataset` knows. `DIFFICULTIES` are settings for moving classes: "A"
is medium, "B" hard and "C" easy.
"""

from noisy_jax.simulated.streams.adversaries import (
    Adversary,
    OneCopyAdversaries,
    one_copy_adversaries,
)
from noisy_jax.simulated.streams.mixtures import (
    DIFFICULTIES,
    Difficulty,
    Mixtures,
    drifting,
    switching,
)
from noisy_jax.simulated.streams.tables import (
    DATASETS,
    csv,
    dataset,
    from_arrays,
    resampled,
    scaled,
)
from noisy_jax.simulated.streams.teachers import linear, teacher

__all__ = [
    "DATASETS",
    "DIFFICULTIES",
    "Adversary",
    "Difficulty",
    "Mixtures",
    "OneCopyAdversaries",
    "csv",
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
