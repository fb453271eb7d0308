"""Batch fits of noisy tables: corrected coefficients and functions, with error bars."""

from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.coefficients import Coefficients, LinearFit
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.fit import fit
from noisy_jax.observed.fits.functions import (
    Candidate,
    FourierFeatures,
    FourierFit,
    FourierPredictor,
    KernelComparison,
)
from noisy_jax.observed.fits.functions import fourier_features as fourier
from noisy_jax.observed.fits.generalized import GeneralizedCoefficients, GeneralizedFit
from noisy_jax.observed.fits.saved import load_fit

__all__ = [
    "AssumptionWarning",
    "Candidate",
    "Coefficients",
    "Comparison",
    "FourierFeatures",
    "FourierFit",
    "FourierPredictor",
    "GeneralizedCoefficients",
    "GeneralizedFit",
    "KernelComparison",
    "LinearFit",
    "fit",
    "fourier",
    "load_fit",
]
