"""Batch fits of noisy tables: corrected coefficients and functions, with error bars."""

from noisy_jax.observed.fits import methods
from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.coefficients import Coefficients, LinearFit
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.fit import fit, load_fit
from noisy_jax.observed.fits.functions import (
    Candidate,
    FourierFit,
    FourierPredictor,
    KernelComparison,
)
from noisy_jax.observed.fits.generalized import GeneralizedCoefficients, GeneralizedFit

fourier = methods.Fourier

__all__ = [
    "AssumptionWarning",
    "Candidate",
    "Coefficients",
    "Comparison",
    "FourierFit",
    "FourierPredictor",
    "GeneralizedCoefficients",
    "GeneralizedFit",
    "KernelComparison",
    "LinearFit",
    "fit",
    "fourier",
    "load_fit",
    "methods",
]
