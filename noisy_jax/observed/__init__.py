"""Observed noise: tables of noisy rows without any clean value, fits and learners on them."""

from __future__ import annotations

from noisy_jax.observed import fits, observations
from noisy_jax.observed.fits import fit, load_fit, methods
from noisy_jax.observed.learned import Learned, load_learned
from noisy_jax.observed.learning import learn
from noisy_jax.observed.observations import csv, reliability, sd, table
from noisy_jax.observed.selection import Selection, select

__all__ = [
    "Learned",
    "Selection",
    "csv",
    "fit",
    "fits",
    "learn",
    "load_fit",
    "load_learned",
    "methods",
    "observations",
    "reliability",
    "sd",
    "select",
    "table",
]


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
