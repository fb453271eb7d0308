"""Batch fits of noisy tables: corrected coefficients and functions, with error bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.observed.fits import methods
from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.estimates import Estimates
from noisy_jax.observed.fits.extrapolation import SimexFit
from noisy_jax.observed.fits.fit import fit, load_fit
from noisy_jax.observed.fits.functions import FourierFit
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.parts import moments
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.units import UndeterminedError

__all__ = [
    "AssumptionWarning",
    "Estimates",
    "Fit",
    "FourierFit",
    "LinearFit",
    "SimexFit",
    "UndeterminedError",
    "fit",
    "load_fit",
    "methods",
    "moments",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Raises an AttributeError; for a name that has left, it names the replacement."""
        refuse(__name__, name)


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
