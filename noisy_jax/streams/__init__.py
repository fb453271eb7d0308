"""Streams of clean examples, chosen in advance: real data, teachers."""

from noisy_jax.streams.tables import DATASETS, csv, dataset, from_arrays, resampled, scaled
from noisy_jax.streams.teachers import linear, teacher

__all__ = [
    "DATASETS",
    "csv",
    "dataset",
    "from_arrays",
    "linear",
    "resampled",
    "scaled",
    "teacher",
]
