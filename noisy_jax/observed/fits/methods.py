"""Methods of `nj.fit`: each owns its options, and fits a table by `method.fitted(table)`."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from noisy_jax.noise import Flip
from noisy_jax.observed.fits.assumptions import remarked, warned
from noisy_jax.observed.fits.calibration import RegressionCalibration
from noisy_jax.observed.fits.clustered import ONE_CLUSTER
from noisy_jax.observed.fits.generalized import generalized_fit
from noisy_jax.observed.fits.kernel_methods import Fourier, OneOf
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.linear_fits import fit_of_moments, linear_fit
from noisy_jax.observed.fits.model import Model
from noisy_jax.observed.fits.parts import moments_of_parts
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.simex import SIMEX
from noisy_jax.observed.fits.solutions import ERRORS
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.validation import choice

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


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Linear(Method[LinearFit]):
    """Least squares on clean features.

    With the mean x̄ of n rows and the covariance C_i of the error in row i,

        β̂ = (Σ_i [(x̃_i − x̄)(x̃_i − x̄)ᵀ − (1 − 1/n) C_i])⁻¹ Σ_i (x̃_i − x̄) ỹ_i.

    The fit prints the strength of its identification: the estimated clean variance in the noisiest
    combination of columns against its standard error (`LinearFit.strength`). Where it is below 6,
    do not trust intervals; Fuller's modification then takes away less than the whole noise
    (`LinearFit.share`), such that the equations always have a solution.

    Args:
        weights: `[n]` weights of the rows of one table, or the name of their column, which is then
            no feature; by default those of the table (`nj.table(…, weights="w")`). Rows of weight 0
            are left out of everything, also of the number of rows. They are not counts of equal
            rows: repeat such rows, as `frame.loc[frame.index.repeat(frame["n"])]`. Without weights
            they are 1, but for the sandwich of rows whose errors of measurement are known, differ,
            and do not depend on the measured values, those that give the smallest variance, from
            the errors and a first fit. Where these change the coefficients by more than chance,
            they are 1, with a warning; so they are beside estimated errors (replicates, a
            reliability, misclassified columns).
        clusters: `[n]` labels of groups of rows of one table that may depend on each other, or the
            name of their column, as for `weights`; the sandwich leaves out one of them at a time. A
            warning names coefficients that are determined by one of them alone.
        errors: "sandwich" (the default for one table), by the scores of rows and their leverages
            (HC3); or "jackknife" (for chunks), which leaves out one of up to 32 groups of rows at a
            time. Rows, or clusters, are dealt to the groups at random. Both take rows as
            independent: for neighbouring rows that depend on each other give `clusters`.

    Source: Fuller, Measurement Error Models (1987), Sec. 2.2, 2.5 and 3.1, and Econometrica 45
    (1977) for the share of the noise.
    """

    weights: Any = None
    clusters: Any = None
    errors: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.errors is not None:
            choice("errors", self.errors, ERRORS)

    def _of_chunks(self, chunks: Iterable[Any]) -> LinearFit:
        if self.weights is not None or self.clusters is not None:
            raise ValueError("chunks are for fits without weights and clusters; pass one table")
        if self.errors == "sandwich":
            raise ValueError(
                "errors='sandwich' reads rows twice, and chunks are read once: leave errors out"
            )
        total = moments_of_parts(chunks)
        found = warned(total.table, found=total.doubts)
        return remarked(fit_of_moments(total), found)

    def _solved(self, sample: Sample) -> LinearFit:
        made = linear_fit(sample, self.errors or "sandwich")
        sample.tell(ONE_CLUSTER.doubts(sample.table, sample.weights, sample.clusters))
        return made


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Logistic(Method[Fit]):
    """Logistic regression of y in {0, 1} on clean features, under Gaussian noise.

    With C_i the covariance of the error in row i it solves

        Σ_i (y_i − σ(a + ⟨w, c_i⟩)) (1, c_i) = 0,   c_i = x̃_i + (y_i − ½)C_i w.

    The coefficients are consistent under the logistic model, P(y = 1 | x) = σ(a + ⟨w, x⟩); there is
    no regret bound. The equations may have several roots: the one that continues the uncorrected
    fit, as C grows from 0, is taken. In small tables it may end before the whole C: then a smaller
    share of C is taken away, with a warning and wide intervals (`Fit.share`). Replicates
    of unknown noise are pooled: the covariance of their noise must then be the same in all rows.

    Misclassified columns (`noise.Misclassified`) and flipped labels are corrected exactly: the
    equations are summed over all true categories and labels, with weights that are right on
    average. In `uncorrected` they are as recorded.

    Args:
        flips: (ρ₁, ρ₀), the probabilities that a label 1 and a label 0 is recorded wrongly, 1 less
            the sensitivity and the specificity; or one number for both. They may depend on the true
            label, and on nothing else.
        weights: `[n]` weights of the rows, by which their scores are multiplied, or the name of
            their column, as in `Linear`; 1 by default. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column, which standard errors then take as one.
        errors: "sandwich", by the scores of rows and their leverages (HC3); or "jackknife", by fits
            without one of up to 32 groups of rows, or of clusters, at a time, as in `Linear`.

    Source: the conditional score of Stefanski and Carroll (1987); flipped labels as in
    `losses.flipped`.
    """

    flips: Any = 0.0
    weights: Any = None
    clusters: Any = None
    errors: str = "sandwich"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("errors", self.errors, ERRORS)
        object.__setattr__(self, "flips", Flip(self.flips).rate)

    def _solved(self, sample: Sample) -> Fit:
        ones, zeros = self.flips
        labels = np.array([[1 - zeros, zeros], [ones, 1 - ones]]) if ones or zeros else None
        return generalized_fit(sample, "logistic", self.errors, labels)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Poisson(Method[Fit]):
    """Poisson regression of counts y on clean features, under Gaussian noise.

    With C_i the covariance of the error in row i it solves

        Σ_i y_i (1, x̃_i) − m_i (1, x̃_i − C_i w) = 0,   m_i = exp(a + ⟨w, x̃_i⟩ − ½wᵀC_iw).

    The coefficients are consistent where the mean of y is exp(a + ⟨w, x⟩). Roots, replicates and
    standard errors are as in `Logistic`. Intervals are somewhat narrow where few rows have most of
    the counts: where ⟨w, x⟩ varies by more than about 1, and all the more if x is skewed.
    Misclassified columns are corrected as in `Logistic`.

    Args:
        weights: as in `Logistic`.
        clusters: as in `Logistic`.
        exposure: `[n]` positive numbers E_i, such as times of observation, if the mean of y is
            E_i exp(a + ⟨w, x⟩), or the name of their column, as for `weights`; 1 by default.
            Predictions are then of counts in a unit of it.
        errors: as in `Logistic`.

    Source: the corrected score of Nakamura (1990).
    """

    weights: Any = None
    clusters: Any = None
    exposure: Any = None
    errors: str = "sandwich"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("errors", self.errors, ERRORS)

    def _solved(self, sample: Sample) -> Fit:
        return generalized_fit(sample, "poisson", self.errors)


def __dir__() -> list[str]:
    """Names for tab completion."""
    return __all__
