"""Subquantile minimization: kernel regression and classification if some rows are corrupted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from noisy_jax.gone import refuse
from noisy_jax.robust.subquantile.fits import Fit, logistic, ridge
from noisy_jax.robust.subquantile.gram import chunked_gram

__all__ = ["Fit", "chunked_gram", "logistic", "ridge"]

if not TYPE_CHECKING:  # with it, a type checker would take any name for right

    def __getattr__(name: str) -> Any:
        """Says what to write in place of a name that is gone."""
        refuse(__name__, name)
