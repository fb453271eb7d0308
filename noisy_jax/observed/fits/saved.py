"""Fits that were saved as JSON, read again."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from noisy_jax.observed.fits.anderson_rubin import Equations
from noisy_jax.observed.fits.coefficients import Coefficients, LinearFit
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.functions import (
    Candidate,
    FourierFeatures,
    FourierFit,
    FourierPredictor,
    KernelComparison,
)
from noisy_jax.observed.fits.generalized import GeneralizedCoefficients, GeneralizedFit

_ARRAYS = (
    "coefficients", "covariance", "reliability", "gram", "cross", "noise", "means",
    "omega", "center", "weights", "degrees_of_freedom",
)  # fmt: skip
_STACKS = ("groups", "noise")


def load_fit(path: str | Path) -> LinearFit | FourierFit | GeneralizedFit:
    """Reads the fit that its method `save` wrote to a file."""
    try:
        values = _parsed(json.loads(Path(path).read_text(encoding="utf-8")))
        plain = _parsed(values.pop("uncorrected"))
        if "model" in values:
            return GeneralizedFit(**values, uncorrected=GeneralizedCoefficients(**plain))
        risk = values.pop("risk")
        if "candidates" not in values:
            values["equations"] = _equations(values["equations"])
            plain, risk = Coefficients(**plain), Comparison(**risk)
            return LinearFit(**values, uncorrected=plain, risk=risk)
        candidates = tuple(
            Candidate(FourierFeatures(*features), *numbers)
            for features, *numbers in values.pop("candidates")
        )
        return FourierFit(
            **values,
            uncorrected=FourierPredictor(**plain),
            risk=KernelComparison(**risk),
            candidates=candidates,
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} does not hold a fit: {_shortened(error)}") from None


def _shortened(error: Exception) -> str:
    text = " ".join(str(error).split())  # one line
    return text if len(text) <= 200 else f"{text[:200]}…"


def _equations(values: dict[str, Any] | None) -> Equations | None:
    if values is None:
        return None
    total = np.asarray(values.pop("total"))
    stacks = {name: np.reshape(values.pop(name), (-1, *total.shape)) for name in _STACKS}
    return Equations(total, **stacks, jacobian=np.asarray(values.pop("jacobian")), **values)


def _parsed(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a fit, with arrays and tuples where it has them."""
    arrays = {name: np.asarray(values[name]) for name in _ARRAYS if name in values}
    tuples = {name: tuple(values[name]) for name in ("names", "remarks") if name in values}
    return {**values, **arrays, **tuples}
