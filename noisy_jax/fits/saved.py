"""Fits that were saved as JSON, read again."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from noisy_jax.fits.coefficients import Coefficients, Comparison, LinearFit
from noisy_jax.fits.functions import Candidate, FourierFeatures, FourierFit, FourierPredictor
from noisy_jax.fits.generalized import GeneralizedCoefficients, GeneralizedFit

_ARRAYS = (
    "coefficients", "covariance", "reliability", "gram", "cross", "noise", "means",
    "omega", "center", "weights",
)  # fmt: skip


def load_fit(path: str | Path) -> LinearFit | FourierFit | GeneralizedFit:
    """Reads the fit that its method `save` wrote to a file."""
    try:
        values = _parsed(json.loads(Path(path).read_text(encoding="utf-8")))
        plain = _parsed(values.pop("uncorrected"))
        if "model" in values:
            return GeneralizedFit(**values, uncorrected=GeneralizedCoefficients(**plain))
        risk = Comparison(**values.pop("risk"))
        if "candidates" not in values:
            return LinearFit(**values, uncorrected=Coefficients(**plain), risk=risk)
        candidates = tuple(
            Candidate(FourierFeatures(*features), *numbers)
            for features, *numbers in values.pop("candidates")
        )
        return FourierFit(
            **values, uncorrected=FourierPredictor(**plain), risk=risk, candidates=candidates
        )
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} does not hold a fit: {_shortened(error)}") from None


def _shortened(error: Exception) -> str:
    text = " ".join(str(error).split())  # one line
    return text if len(text) <= 200 else f"{text[:200]}…"


def _parsed(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a fit, with arrays and tuples where it has them."""
    arrays = {name: np.asarray(values[name]) for name in _ARRAYS if name in values}
    return {**values, **arrays, "names": tuple(values["names"])}
