"""Noisy data as they come: measured features, targets, and the known measurement error.

`table`, `csv` and `from_arrays` hold the measured values, in their original units;
`chunks` takes it a part at a time, and `partitions` leaves it with the workers of dask. Nothing
here adds noise: the noise is already in the data.

Modules of this folder, in the order of a reader who follows `nj.table` to its result:

- doors: `frames` (data frames), `files` (CSV), `arrays`; `chunks`, `partitions`, and `passes` over
  them;
- arguments: `described` (`sd` and `reliability`), `roles` of columns, `labels` of arguments;
- columns by their roles: `columns`, `copies` (replicates, subjects), `categories` (misclassified
  columns), `beside` (weights, clusters, exposures);
- the table: `measured` puts it together, `known` makes its errors, `errors` and `pooled` say what
  these are; `tables` holds `Observations`, `rows` what fits take of it, `products` further columns.
"""

from __future__ import annotations

from noisy_jax.observed.observations.arrays import from_arrays
from noisy_jax.observed.observations.chunks import chunks
from noisy_jax.observed.observations.described import reliability, sd
from noisy_jax.observed.observations.files import csv
from noisy_jax.observed.observations.frames import table
from noisy_jax.observed.observations.partitions import partitions
from noisy_jax.observed.observations.tables import Observations

__all__ = [
    "Observations",
    "chunks",
    "csv",
    "from_arrays",
    "partitions",
    "reliability",
    "sd",
    "table",
]


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
