"""Second moments of clean data from noisy data, for every kind of noise.

They are unbiased, or nearly so, where their docstring says it: `unbiased` as its estimate is, and
`fourier`, which by default damps what a short stream cannot show, to an order of 1/t.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.moments.fourier import (
    fourier,
    gaussian_frequencies,
)
from noisy_jax.moments.online import known_covariance, two_copies
from noisy_jax.moments.unknown_noise import unbiased

__all__ = [
    "fourier",
    "gaussian_frequencies",
    "known_covariance",
    "two_copies",
    "unbiased",
]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Says what to write in place of a name that is gone."""
        refuse(__name__, name)
