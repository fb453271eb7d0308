"""Batch fits of noisy tables: corrected coefficients and functions, with error bars.

Modules of this folder, in the order of a reader who follows `nj.fit` to its result:

- the way of every fit: `fit` finds the method, and `template` checks the table, tells doubts, lets
  the method solve, and adds remarks; `methods` lists the methods;
- doubts about a table: `assumptions` and `replicates` (all checks), `checked_rows` (the rows that
  they look at), `clustered`, `doubts` (how they are told);
- linear fits: `linear`, `linear_equations`, `linear_moments`, `identification`, `row_weights`, and
  `parts` for chunks;
- logistic and Poisson regression: `generalized`, `scores`; regression calibration: `calibration`;
- curves of users: `model`, `model_equations`, `model_minimum` (uncorrected fits), `callables`;
- what all of these share: `units`, `roots`, `solutions` (from a root to estimates), `sandwich`,
  `groups` (and the jackknife), `uncertain_noise`;
- kernel fits: `fourier`, `trials`, `choices`, `characteristics`, `hidden`, `bands`, `functions`;
- SIMEX: `simex`, `black_boxes`, `extrapolation`;
- results: `estimates`, `result`, `judged` and `clean_errors` (errors on clean data), `features`
  (rows to predict at), `saved`.
"""

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
