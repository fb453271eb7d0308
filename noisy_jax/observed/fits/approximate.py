"""Checked tables for SIMEX and regression calibration, which are approximate for most models."""

import dataclasses
from typing import NamedTuple

import numpy as np

from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.generalized import check_targets
from noisy_jax.observed.fits.groups import LEAST_GROUPS, if_counts
from noisy_jax.observed.fits.identification import check_identified, covariances
from noisy_jax.observed.fits.linear_moments import moments_of
from noisy_jax.observed.fits.scores import MODELS
from noisy_jax.observed.fits.units import Rows, UndeterminedError, Units
from noisy_jax.observed.observations import Observations

OURS = ("linear", *MODELS)
"""Models that this library fits itself."""


class NoisyTable(NamedTuple):
    """Rows with the covariances of their errors."""

    rows: Rows  # means of the copies, in some units
    estimated: bool  # whether `rows.cov` are estimates, right in their mean only
    units: Units  # of the rows
    reliability: np.ndarray  # [d], the share of each column's variance that is not noise

    @classmethod
    def of(
        cls, observations: Observations, model: str | None, weights: np.ndarray | None = None
    ) -> "NoisyTable":
        """A checked table: standardized for one of `OURS`, in original units for `None`.

        The targets of logistic and Poisson regression are as they were. `weights` are `[n]`.
        """
        if observations.cross_cov is not None:
            raise ValueError(
                "SIMEX and regression calibration need errors in y that are independent of those "
                "in x; nj.methods.Linear takes correlated errors"
            )
        if observations.categories or observations.products is not None:
            observations.check_each_row("an approximate method")
        if model in MODELS:
            check_targets(observations, model)
        rows = observations.means(weights)
        least = max(rows.x.shape[1] + 2, LEAST_GROUPS)
        if len(rows.y) < least:
            few = f"fit needs at least {least} rows, got {len(rows.y)}"
            raise UndeterminedError(f"{few}{if_counts(weights)}")
        units, dim = Units.of(rows.x, rows.y, observations), len(observations.names)
        noise = by_round(observations.noise)[0]
        estimated = not observations.each_row
        estimated = estimated or (noise is not None and noise.depends_on_x)
        clean, noisy = covariances(moments_of(units.standardized(rows)))
        check_identified(clean, noisy, observations.names, units.scale)
        if model is None:
            units = Units(np.zeros(dim), np.ones(dim), 0.0, 1.0)
        elif model != "linear":
            units = dataclasses.replace(units, y_center=0.0, y_scale=1.0)
        return cls(units.standardized(rows), estimated, units, np.diag(clean) / np.diag(noisy))

    def some(self, which) -> Rows:
        """Some of the rows; those with estimated covariances share the mean of them."""
        rows = self.rows.some(which)
        if not self.estimated or rows.cov.ndim == 2:
            return rows
        return rows._replace(cov=np.average(rows.cov, axis=0, weights=rows.weights))
