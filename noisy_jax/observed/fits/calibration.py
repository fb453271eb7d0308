"""Regression calibration: measured values are replaced by predictions of the clean values."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.estimates import FORMS
from noisy_jax.observed.fits.generalized import check_targets, separated
from noisy_jax.observed.fits.identification import covariances
from noisy_jax.observed.fits.linear_moments import linear_moments
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.roots import Root, Sums, root
from noisy_jax.observed.fits.sandwich import Block, blocks_of
from noisy_jax.observed.fits.scores import MODELS
from noisy_jax.observed.fits.solutions import ERRORS, OriginalUnits, fit_of
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.units import UndeterminedError
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.rows import Rows
from noisy_jax.validation.objects import choice

_SLOPES = {
    "linear": np.ones_like,
    "logistic": lambda mean: mean * (1 - mean),
    "poisson": lambda mean: mean,
}
"""Derivatives of means of y in the linear predictor, from the means."""


@dataclasses.dataclass(frozen=True, eq=False)
class RegressionCalibration(Method[Fit]):
    """Regression on the best linear predictions of the clean columns from the measured ones.

    Let x̃_i be the measured row i (the mean of its copies), C_i the covariance of its error, x̄ and S
    the mean and the covariance of all rows, and Σ_x = S − mean C_i, the estimated covariance of the
    clean columns. The model is fitted, without further correction, to

        x̂_i = x̄ + Σ_x (Σ_x + C_i)⁻¹ (x̃_i − x̄)

    in place of x̃_i. Exact columns help to predict the noisy ones, and stay as they are. If only the
    mean of the C_i is known, as from replicates, it takes the place of each of them.

    **It is approximate** for logistic and Poisson regression: x̂_i replaces the mean of a function
    of x_i by the function of a mean. The bias is small where coefficients w or errors are small; it
    is of the order of (wᵀ Cov(x | x̃) w) w. `nj.methods.Logistic` and `Poisson` are consistent for
    Gaussian errors. For linear regression with one covariance for all rows it gives the
    coefficients of `nj.methods.Linear`, whose fit also has its identification strength and the
    estimated errors on clean data.

    Args:
        model: "linear" (the default), "logistic" for y in {0, 1}, or "poisson" for counts.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column; by default the clusters of the table. Without any, rows are
            independent.
        errors: the kind of standard errors. "sandwich", the default, is computed from each row's
            (or cluster's) term in the equations, as if the row were left out (HC3), with its effect
            on x̄, S and a covariance that is estimated from replicates. "jackknife" leaves out one
            of up to 32 groups of rows, or of clusters, at a time, and calibrates anew. Both add the
            standard errors of a stated covariance (`noise.CovarianceEstimate`).

    Give it to `nj.fit`, which returns a `Fit`. It takes no weights of rows, and raises ValueError
    if the table has products, misclassified columns, or a `cross_cov`.

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
    _: dataclasses.KW_ONLY
    clusters: Any = None
    errors: str = "sandwich"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("model", self.model, ("linear", *MODELS))
        choice("errors", self.errors, ERRORS)

    def _solved(self, sample: Sample) -> Fit:
        table, name = sample.table, self.model
        estimated = check_approximate(table)
        if name in MODELS:
            check_targets(table, name)
        rows, units, reliability = sample.standardized(table.means(), scales_y=name == "linear")
        equations, roots = CalibratedEquations(name, rows, estimated), []
        theta = equations.start()
        for share in (0.0, 1.0):
            theta = root(equations, theta, share)
            if theta is None:
                calibrated = rows._replace(x=equations.calibrated(share).x)
                raise UndeterminedError(separated(calibrated, table, name))
            roots.append(Root(equations, theta, share))
        about = f"{name.capitalize()} regression on calibrated columns."
        if name != "linear":
            about += f" Approximate; nj.methods.{name.capitalize()}() is consistent."
        return fit_of(
            sample,
            roots[0],
            roots[1],
            OriginalUnits.line(table, units, name, rows.mean_cov()),
            self.errors,
            reliability=reliability,
            scale=table.means().x.std(axis=0),
            about=about,
        )


def check_approximate(table: Observations) -> bool:
    """Returns whether covariances of rows are estimates, right in their mean only.

    ValueError if SIMEX and regression calibration cannot take the noise of the table.
    """
    if table.cross_cov is not None:
        raise ValueError(
            "SIMEX and regression calibration need errors in y that are independent of those "
            "in x; nj.methods.Linear takes correlated errors"
        )
    if table.categories or table.products is not None:
        table.check_each_row("an approximate method")
    noise = by_round(table.noise)[0]
    return not table.each_row or (noise is not None and noise.depends_on_x)


class CalibratedEquations:
    """The likelihood equations at calibrated columns, Σ_i (y_i − μ_i) z_i = 0 with z = (1, x̂).

    μ_i is the mean of y at x̂_i. With the coefficients w, a score has the derivative
    −μ' z wᵀ + (y − μ) (0, I) in x̂.

    Args:
        model: "linear", "logistic" or "poisson".
        rows: the standardized rows, with covariances of their errors.
        estimated: whether these are estimates, in whose place their mean is taken.
    """

    def __init__(self, model: str, rows: Rows, estimated: bool):
        self.model, self.rows, self.estimated = model, rows, estimated
        known_rows = rows._replace(cov=rows.cov.mean(axis=0)) if estimated else rows
        self.calibrated = functools.lru_cache(2)(functools.partial(Calibration, known_rows))

    def start(self) -> np.ndarray:
        """`[1 + d]`, where the search for the uncorrected root begins."""
        mean, size = self.rows.y.mean(), self.rows.x.shape[1]
        return np.append(
            MODELS[self.model].link(mean) if self.model in MODELS else mean, size * [0]
        )

    def at(self, theta: np.ndarray, share: float) -> Sums:
        """See `roots.Equations`."""
        design, residual, slope = self._means(theta, share)
        return Sums(residual @ design, -(design * slope[:, None]).T @ design)

    def blocks(self, theta: np.ndarray, share: float) -> Iterator[Block]:
        """See `roots.Equations`; ψ_i contains the effect of row i on the calibration."""
        design, residual, slope = self._means(theta, share)
        scores = residual[:, None] * design + self._added(theta, share)[0]
        for part in blocks_of(len(scores), len(theta)):
            jacobians = (slope[part, None] * design[part])[:, :, None] * design[part, None]
            yield Block(scores[part], jacobians)

    def in_covariance(self, theta: np.ndarray, share: float) -> np.ndarray:
        """See `roots.Equations`."""
        return self._added(theta, share)[1]

    def some(self, which: np.ndarray) -> CalibratedEquations:
        """See `roots.Equations`; the calibration is of these rows."""
        return CalibratedEquations(self.model, self.rows.some(which), self.estimated)

    def _means(self, theta, share) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """z `[n, 1 + d]`, y − μ `[n]` and μ' `[n]`."""
        x = self.calibrated(share).x
        design = np.column_stack([np.ones(len(x)), x])
        mean_of: Any = FORMS[self.model].mean
        mean = mean_of(design @ theta)
        return design, self.rows.y - mean, _SLOPES[self.model](mean)

    def _added(self, theta, share) -> tuple[np.ndarray, np.ndarray]:
        """See `Calibration.added`."""
        design, residual, slope = self._means(theta, share)
        moves = -(slope[:, None] * design)[:, :, None] * theta[1:]
        moves[:, 1:] += residual[:, None, None] * np.eye(len(theta) - 1)
        return self.calibrated(share).added(moves, self.rows.cov, self.estimated)


class Calibration:
    """The calibrated rows, and their derivatives in the moments behind them.

    With z_i = x̃_i − x̄, K_i = Σ_x + C_i and G_i = Σ_x K_i⁻¹,

        x̂_i = x̄ + G_i z_i,    dx̂_i = (I − G_i)(dx̄ + dΣ_x K_i⁻¹ z_i) − G_i dC_i K_i⁻¹ z_i.

    Where a share of the noise is taken away, it is a factor of C_i: x̂_i = x̃_i if it is 0.
    """

    def __init__(self, rows: Rows, share: float = 1.0):
        n, dim = rows.x.shape
        cov, self._share = np.broadcast_to(rows.cov, (n, dim, dim)), share * (1 - 1 / n)
        self._apart = rows.x - rows.x.mean(axis=0)
        clean, _ = covariances(linear_moments(rows.x, rows.y, share * rows.cov))
        inverse = np.linalg.inv(clean + self._share * cov)
        self._inside = np.matmul(inverse, self._apart[:, :, None])[:, :, 0]
        self._gain = clean @ inverse
        self.x = rows.x.mean(axis=0) + self._inside @ clean

    def added(
        self, moves: np.ndarray, cov: np.ndarray, estimated: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the effect `[n, p]` of row i on Σψ, through the calibration of all rows.

        Also returned are the derivatives `[p, d, d]` of Σψ in the covariance of the noise.

        Args:
            moves: `[n, p, d]`, the derivatives of the scores in x̂.
            cov: `[d, d]` or `[n, d, d]`, covariances of the errors in rows.
            estimated: whether they are estimates, in whose place their mean is taken.
        """
        n, kept = len(moves), moves @ self._gain
        by_mean = (moves - kept).sum(axis=0)
        by_clean = np.einsum("npb,nc->pbc", moves - kept, self._inside)
        by_noise = -self._share * np.einsum("npb,nc->pbc", kept, self._inside)
        square = self._apart[:, :, None] * self._apart[:, None]
        of_row = np.broadcast_to(cov, square.shape)
        of_row = of_row - of_row.mean(axis=0)
        apart = square - square.mean(axis=0) - self._share * of_row
        effect = self._apart @ by_mean.T + np.tensordot(apart, by_clean, ((1, 2), (1, 2)))
        if estimated:
            effect += np.tensordot(of_row, by_noise, ((1, 2), (1, 2)))
        return effect / n, by_noise - self._share * by_clean
