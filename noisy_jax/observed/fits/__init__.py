"""Batch fits of noisy tables: corrected coefficients and functions, with error bars."""

from noisy_jax.observed.fits import methods
from noisy_jax.observed.fits.assumptions import AssumptionWarning
from noisy_jax.observed.fits.calibration import CalibratedFit
from noisy_jax.observed.fits.coefficients import Coefficients
from noisy_jax.observed.fits.extrapolation import SimexFit
from noisy_jax.observed.fits.fit import fit, load_fit
from noisy_jax.observed.fits.functions import FourierFit, FourierPredictor
from noisy_jax.observed.fits.generalized import GeneralizedFit
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.model_fit import ModelFit
from noisy_jax.observed.fits.parts import TableMoments, moments
from noisy_jax.observed.fits.sensitivity import Sensitivity, sensitivity
from noisy_jax.observed.fits.units import UndeterminedError

fourier = methods.Fourier

__all__ = [
    "AssumptionWarning",
    "CalibratedFit",
    "Coefficients",
    "FourierFit",
    "FourierPredictor",
    "GeneralizedFit",
    "LinearFit",
    "ModelFit",
    "Sensitivity",
    "SimexFit",
    "TableMoments",
    "UndeterminedError",
    "fit",
    "fourier",
    "load_fit",
    "methods",
    "moments",
    "sensitivity",
]
