"""Batch fits of noisy tables: corrected coefficients and functions, with error bars."""

from noisy_jax.observed.fits import methods
from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.coefficients import Coefficients, LinearFit
from noisy_jax.observed.fits.fit import fit, load_fit
from noisy_jax.observed.fits.functions import FourierFit, FourierPredictor
from noisy_jax.observed.fits.generalized import GeneralizedFit

fourier = methods.Fourier

__all__ = [
    "AssumptionWarning",
    "Coefficients",
    "FourierFit",
    "FourierPredictor",
    "GeneralizedFit",
    "LinearFit",
    "fit",
    "fourier",
    "load_fit",
    "methods",
]
