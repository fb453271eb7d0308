"""Regression calibration: measured values are replaced by what is expected of the clean ones."""

import dataclasses

import numpy as np

from noisy_jax.observed.fits.approximate import (
    OURS,
    NoisyTable,
    named_fit,
    plain_fit,
    spread_by_noise,
)
from noisy_jax.observed.fits.assumptions import remarked, warned
from noisy_jax.observed.fits.checked import one_table
from noisy_jax.observed.fits.generalized import CorrectedModel
from noisy_jax.observed.fits.groups import groups_of, jackknifed
from noisy_jax.observed.fits.identification import covariances
from noisy_jax.observed.fits.linear_moments import linear_moments
from noisy_jax.observed.fits.units import Rows
from noisy_jax.observed.observations import Observations
from noisy_jax.tables import Table
from noisy_jax.validation import choice


class CalibratedFit(CorrectedModel):
    """A regression on calibrated columns; it has the attributes of a `GeneralizedFit`."""

    kind = "calibrated"

    def _shown(self) -> Table:
        """Coefficients, intervals, uncorrected coefficients, reliability."""
        lines = ["", f"{self.model.capitalize()} regression on calibrated columns."]
        if self.model != "linear":
            lines.append(f"Approximate; nj.methods.{self.model.capitalize()}() is consistent.")
        return self._printed(lines)


@dataclasses.dataclass(frozen=True)
class RegressionCalibration:
    """Regression on the best linear predictions of the clean columns from the measured ones.

    With the mean x̄ of the rows x̃_i, the covariance C_i of the error in row i, S the covariance of
    the rows and Σ_x = S − mean C_i, the estimated covariance of the clean columns, the model is
    fitted to

        x̂_i = x̄ + Σ_x (Σ_x + C_i)⁻¹ (x̃_i − x̄)

    in place of x̃_i. Exact columns help to predict the others, and stay as they are. Where only the
    mean of the C_i is known, as from replicates, it takes the place of each of them.

    **It is approximate** for logistic and Poisson regression: x̂_i replaces the mean of a function
    of x_i by the function of a mean. The bias is small where effects or errors are small, and of
    the order of (wᵀ Cov(x | x̃) w) times the coefficients w otherwise. `nj.methods.Logistic` and
    `Poisson` are consistent for Gaussian errors. For linear regression with one covariance for all
    rows it gives the coefficients of `nj.methods.Linear`, which also says how well they are
    identified, and estimates clean errors.

    Standard errors are from the jackknife over 32 groups of blocks of up to 64 consecutive rows:
    the calibration, with a covariance that comes from replicates, is estimated anew without each
    group. Standard errors of a stated covariance (`noise.CovarianceEstimate`) are added.

    Args:
        model: "linear", "logistic" or "poisson".

    Source: Carroll and Stefanski (1990); Rosner, Willett and Spiegelman (1989); Carroll, Ruppert,
    Stefanski and Crainiceanu, Measurement Error in Nonlinear Models (2006), Chap. 4.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(3)
        >>> x = rng.normal(size=(5000, 1))
        >>> y = (rng.random(5000) < 1 / (1 + np.exp(-0.7 * x[:, 0]))) * 1.0
        >>> noisy = x + 0.7 * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, y, noise=0.49)
        >>> fit = nj.fit(table, nj.methods.RegressionCalibration("logistic"))
        >>> print(fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        [0.7] [0.5]
    """

    model: str = "linear"

    def __post_init__(self) -> None:
        choice("model", self.model, OURS)

    def fitted(self, observations: Observations) -> CalibratedFit:
        """The fit to one table."""
        found = warned(one_table(self, observations), stacklevel=3)
        return remarked(_calibration_fit(observations, self.model), found)


def _calibration_fit(observations: Observations, model: str) -> CalibratedFit:
    table = NoisyTable.of(observations, model)
    names = observations.names

    def both(rows, starts=(None, None)):
        """The fits to the rows and to calibrated rows, `[2, 1 + d]`, and as they are computed."""
        pair = rows, rows._replace(x=calibrated(rows))
        found = [plain_fit(model, *one, observations) for one in zip(pair, starts, strict=True)]
        return table.in_original_units(np.array(found)), found

    every = table.some(slice(None))
    theta, starts = both(every)
    numbers = np.arange(len(every.y))
    left = [
        both(table.some(np.delete(numbers, group)), starts)[0] for group in groups_of(len(numbers))
    ]
    spreads = [jackknifed(np.array(one)) for one in zip(*left, strict=True)]
    (plain, _), (spread, freedom) = spreads
    spread = spread + spread_by_noise(
        lambda cov: both(every._replace(cov=cov), starts)[0][1], table, observations
    )
    uncorrected = named_fit(model, theta[0], plain, freedom, names)
    corrected = named_fit(model, theta[1], spread, freedom, names)
    return CalibratedFit(
        **vars(corrected),
        uncorrected=uncorrected,
        reliability=table.reliability,
        scale=Rows.of(observations).x.std(axis=0),
        target=observations.target,
        num_rows=len(numbers),
        num_copies=observations.x.shape[1],
    )


def calibrated(rows: Rows) -> np.ndarray:
    """The best linear predictions `[n, d]` of the clean columns: see `RegressionCalibration`."""
    clean, _ = covariances(linear_moments(rows.x, rows.y, rows.cov))
    mean, n = rows.x.mean(axis=0), len(rows.y)
    weights = np.linalg.solve(clean + (1 - 1 / n) * rows.cov, clean)  # [d, d], or one a row
    return mean + np.matmul((rows.x - mean)[:, None], weights)[:, 0]
