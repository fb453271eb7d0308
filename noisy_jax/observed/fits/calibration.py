"""Regression calibration: measured values are replaced by what is expected of the clean ones.

Above it is what it shares with SIMEX, which also holds approximately for many models.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.assumptions import remarked, warned
from noisy_jax.observed.fits.checked import one_table
from noisy_jax.observed.fits.coefficients import Coefficients
from noisy_jax.observed.fits.generalized import (
    CorrectedModel,
    GeneralizedCoefficients,
    check_targets,
    separated,
)
from noisy_jax.observed.fits.groups import LEAST_GROUPS, groups_of, jackknifed
from noisy_jax.observed.fits.identification import check_identified, covariances
from noisy_jax.observed.fits.linear_moments import linear_moments
from noisy_jax.observed.fits.roots import root
from noisy_jax.observed.fits.scores import MODELS
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import Rows, UndeterminedError, Units
from noisy_jax.observed.observations import Observations
from noisy_jax.tables import Table
from noisy_jax.validation import choice

OURS = ("linear", *MODELS)
"""Models that this library fits itself."""
_STEP = 0.5  # of differences, in standard errors of the covariance of the noise


class NoisyTable(NamedTuple):
    """Rows with the covariances of their errors."""

    rows: Rows  # means of the copies, in some units
    estimated: bool  # whether `rows.cov` are estimates, right in their mean only
    units: Units  # of the rows
    reliability: np.ndarray  # [d], the share of each column's variance that is not noise

    @classmethod
    def of(cls, observations: Observations, model: str | None) -> "NoisyTable":
        """A checked table: standardized for one of `OURS`, in original units for `None`.

        The targets of logistic and Poisson regression are as they were.
        """
        if observations.cross_cov is not None:
            raise ValueError(
                "SIMEX and regression calibration need errors in y that are independent of those "
                "in x; nj.methods.Linear takes others"
            )
        gaps = observations.seen is not None and observations.only_sums
        if gaps or observations.categories or observations.products is not None:
            observations.check_each_row("an approximate method")
        if model in MODELS:
            check_targets(observations, model)
        rows = Rows.of(observations)
        least = max(rows.x.shape[1] + 2, LEAST_GROUPS)
        if len(rows.y) < least:
            raise UndeterminedError(f"fit needs at least {least} rows, got {len(rows.y)}")
        units, dim = Units.of(rows.x, rows.y, observations), len(observations.names)
        noise = by_round(observations.noise)[0]
        estimated = observations.cov is None or observations.only_sums
        estimated = estimated or (noise is not None and noise.depends_on_x)
        clean, noisy = covariances(units.moments(rows))
        check_identified(clean, noisy, observations.names, units.scale)
        if model is None:
            units = Units(np.zeros(dim), np.ones(dim), 0.0, 1.0)
        elif model != "linear":
            units = dataclasses.replace(units, y_center=0.0, y_scale=1.0)
        return cls(units.standardized(rows), estimated, units, np.diag(clean) / np.diag(noisy))

    def some(self, which) -> Rows:
        """Some of the rows; those with estimated covariances share the mean of them."""
        rows = self.rows.some(which)
        return rows._replace(cov=rows.cov.mean(axis=0)) if self.estimated else rows

    def in_original_units(self, theta: np.ndarray) -> np.ndarray:
        """Intercepts and slopes `[..., 1 + d]` of standardized rows, in original units."""
        found = theta @ self.units.jacobian(0).T
        found[..., 0] += self.units.y_center
        return found


def plain_fit(
    model: str, rows: Rows, start: np.ndarray | None, observations: Observations
) -> np.ndarray:
    """Intercept and slopes `[1 + d]` that ignore the noise, of one of `OURS`."""
    rows = rows._replace(cov=np.zeros(2 * rows.x.shape[1:]))
    if model == "linear":
        intercept, slopes = linear_moments(rows.x, rows.y, rows.cov).solution(share=0.0)
        return np.append(intercept, slopes)
    one = MODELS[model]
    if start is None:
        start = np.append(one.link(rows.y.mean()), np.zeros(rows.x.shape[1]))
    found = root(one, start, rows)
    if found is None:
        raise UndeterminedError(separated(rows, observations, model))
    return found


def spread_by_noise(
    estimate: Callable[[np.ndarray], np.ndarray], table: NoisyTable, observations: Observations
) -> np.ndarray | float:
    """The covariance `[p, p]` of estimates that a stated standard error of the noise brings in.

    By the delta method, with differences of half a standard error. `estimate` takes the covariance
    `[d, d]` of the errors in rows, in the table's units, to estimates `[p]`.
    """
    noise = UncertainNoise(observations, table.units.products)
    if noise.exact:
        return 0.0
    cov, total = table.some(slice(None)).cov, 0.0
    for move in _STEP * noise.deviations():
        slope = (estimate(cov + move) - estimate(cov - move)) / (2 * _STEP)
        total = total + np.outer(slope, slope)
    return total


def named_fit(
    model: str,
    theta: np.ndarray,
    covariance: np.ndarray,
    freedom: float,
    names: tuple[str, ...],
) -> GeneralizedCoefficients:
    """The predictor with intercept and coefficients `theta`, in original units."""
    made = Coefficients(float(theta[0]), theta[1:], covariance, freedom, names)
    return GeneralizedCoefficients(**vars(made), model=model)


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
