"""Regression calibration: measured values are replaced by what is expected of the clean ones."""

import dataclasses

import numpy as np

from noisy_jax.observed.fits.approximate import OURS, NoisyTable, plain_fit
from noisy_jax.observed.fits.estimates import Estimates
from noisy_jax.observed.fits.identification import covariances
from noisy_jax.observed.fits.linear_moments import linear_moments
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.sandwich import blocks_of, variance
from noisy_jax.observed.fits.scores import MODELS
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import Rows
from noisy_jax.observed.observations import Observations
from noisy_jax.validation import choice


@dataclasses.dataclass(frozen=True)
class RegressionCalibration(Method[Fit]):
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

    Standard errors are from the sandwich with leverages (HC3) of the scores of rows. These contain
    what a row does to the mean and the covariance of the rows, and to a covariance of the noise
    that comes from replicates. Standard errors of a stated covariance (`noise.CovarianceEstimate`)
    are added.

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
        super().__post_init__()
        choice("model", self.model, OURS)

    def _solved(self, sample: Sample) -> Fit:
        return _calibration_fit(sample.table, self.model)


def _calibration_fit(observations: Observations, model: str) -> Fit:
    table = NoisyTable.of(observations, model)
    rows, jacobian = table.some(slice(None)), table.units.jacobian(0)
    noise, made = UncertainNoise(observations, table.units.products), []
    for corrected in (False, True):
        way = Calibration(rows, not corrected)
        seen = rows._replace(x=way.x)
        theta = plain_fit(model, seen, None, observations)
        spread, freedom, directions = _spread(model, theta, seen, way, table, jacobian)
        if corrected and not noise.exact:
            own = noise.freedom(way.cov.mean(axis=0), np.outer(theta[1:], theta[1:]))
            spread, freedom = noise.widened(directions, own, spread, freedom, jacobian)
        found = table.in_original_units(theta), jacobian @ spread @ jacobian.T
        made.append(Estimates.of_line(*found, freedom, observations, model))
    about, name = f"{model.capitalize()} regression on calibrated columns.", model.capitalize()
    if model != "linear":
        about += f" Approximate; nj.methods.{name}() is consistent."
    return Fit.of(
        made[1],
        made[0],
        observations,
        reliability=table.reliability,
        scale=Rows.of(observations).x.std(axis=0),
        about=about,
    )


def _spread(model, theta, seen: Rows, way: "Calibration", table: NoisyTable, jacobian):
    """Covariance `[p, p]`, degrees of freedom `[p]`, and derivatives in the noise's covariance.

    With z = (1, x̂), y of mean μ at x̂ and w the coefficients, the score (y − μ) z has the derivative
    −μ' z wᵀ + (y − μ) (0, I) in x̂.
    """
    eta = theta[0] + seen.x @ theta[1:]
    mean, slope = _mean(model, eta)
    design = np.column_stack([np.ones(len(eta)), seen.x])
    moves = -(slope[:, None] * design)[:, :, None] * theta[1:]
    moves[:, 1:] += (seen.y - mean)[:, None, None] * np.eye(len(theta) - 1)
    added, directions = way.added(moves, table)
    scores = (seen.y - mean)[:, None] * design + added
    whole = (design * slope[:, None]).T @ design
    parts = (
        (scores[part], (slope[part, None] * design[part])[:, :, None] * design[part, None])
        for part in blocks_of(len(eta), len(theta))
    )
    spread, freedom, _ = variance(parts, whole, combined=jacobian)
    return spread, freedom, np.tensordot(np.linalg.inv(whole), directions, 1)


def _mean(model: str, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of y and its derivative, from linear predictors."""
    if model == "linear":
        return eta, np.ones(len(eta))
    mean = MODELS[model].mean(eta)
    return mean, mean * (1 - mean) if model == "logistic" else mean


class Calibration:
    """The calibrated rows, and how they move with what they are computed from.

    With z_i = x̃_i − x̄, K_i = Σ_x + C_i and G_i = Σ_x K_i⁻¹,

        x̂_i = x̄ + G_i z_i,    dx̂_i = (I − G_i)(dx̄ + dΣ_x K_i⁻¹ z_i) − G_i dC_i K_i⁻¹ z_i.

    If the rows are taken as they are, x̂_i = x̃_i.
    """

    def __init__(self, rows: Rows, as_they_are: bool = False):
        n, dim = rows.x.shape
        self.cov = np.broadcast_to(rows.cov, (n, dim, dim))
        self._apart, self._share = rows.x - rows.x.mean(axis=0), 1 - 1 / n
        if as_they_are:
            self.x, self._gain = rows.x, np.broadcast_to(np.eye(dim), (n, dim, dim))
            self._inside = np.zeros((n, dim))
            return
        clean, _ = covariances(linear_moments(rows.x, rows.y, rows.cov))
        inverse = np.linalg.inv(clean + self._share * self.cov)
        self._inside = np.matmul(inverse, self._apart[:, :, None])[:, :, 0]
        self._gain = clean @ inverse
        self.x = rows.x.mean(axis=0) + self._inside @ clean

    def added(self, moves: np.ndarray, table: NoisyTable) -> tuple[np.ndarray, np.ndarray]:
        """What row i adds to Σψ by moving the calibration of all rows, `[n, p]`.

        And the derivatives `[p, d, d]` of Σψ in the covariance of the noise. `moves` `[n, p, d]`
        are the derivatives of the scores in x̂.
        """
        n, kept = len(moves), moves @ self._gain
        by_mean = (moves - kept).sum(axis=0)
        by_clean = np.einsum("npb,nc->pbc", moves - kept, self._inside)
        by_noise = -self._share * np.einsum("npb,nc->pbc", kept, self._inside)
        square = self._apart[:, :, None] * self._apart[:, None]
        own = np.broadcast_to(table.rows.cov, square.shape)
        own = self._share * (own - own.mean(axis=0))
        found = self._apart @ by_mean.T
        found += np.tensordot(square - square.mean(axis=0) - own, by_clean, ((1, 2), (1, 2)))
        if table.estimated:
            found += np.tensordot(own, by_noise / self._share, ((1, 2), (1, 2)))
        return found / n, by_noise - self._share * by_clean
