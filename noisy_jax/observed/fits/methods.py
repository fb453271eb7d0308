"""Methods of `nj.fit`: each owns its options, and fits a table by `method.fitted(table)`."""

from __future__ import annotations

from noisy_jax.observed.fits.calibration import RegressionCalibration
from noisy_jax.observed.fits.fourier import Fourier, OneOf
from noisy_jax.observed.fits.generalized import Logistic, Poisson
from noisy_jax.observed.fits.linear import Linear
from noisy_jax.observed.fits.model import Model
from noisy_jax.observed.fits.simex import SIMEX

__all__ = [
    "SIMEX",
    "Fourier",
    "Linear",
    "Logistic",
    "Model",
    "OneOf",
    "Poisson",
    "RegressionCalibration",
]


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
