"""Batch fits of noisy tables: corrected coefficients and functions, with error bars."""

from noisy_jax.fits.coefficients import Coefficients, Comparison, LinearFit, load_fit
from noisy_jax.fits.fit import fit
from noisy_jax.fits.functions import Candidate, FourierFeatures, FourierFit, FourierPredictor
from noisy_jax.fits.functions import fourier_features as fourier

__all__ = [
    "Candidate",
    "Coefficients",
    "Comparison",
    "FourierFeatures",
    "FourierFit",
    "FourierPredictor",
    "LinearFit",
    "fit",
    "fourier",
    "load_fit",
]
