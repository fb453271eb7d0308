"""Batch fits of noisy tables: corrected coefficients and functions, with error bars."""

from noisy_jax.fits.assumptions import AssumptionWarning
from noisy_jax.fits.coefficients import Coefficients, LinearFit
from noisy_jax.fits.comparison import Comparison
from noisy_jax.fits.fit import fit
from noisy_jax.fits.functions import (
    Candidate,
    FourierFeatures,
    FourierFit,
    FourierPredictor,
    KernelComparison,
)
from noisy_jax.fits.functions import fourier_features as fourier
from noisy_jax.fits.generalized import GeneralizedCoefficients, GeneralizedFit
from noisy_jax.fits.saved import load_fit

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
