"""Logistic and Poisson regression on noisy features, by estimating equations.

The equations are in `scores`, `roots` solves them, and `solutions` makes a fit of the root.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from noisy_jax.noise import Flip
from noisy_jax.observed.fits.clustered import ONE_CLUSTER
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.roots import PATIENT, Root, root, solved
from noisy_jax.observed.fits.scores import MODELS, score_equations
from noisy_jax.observed.fits.solutions import ERRORS, OriginalUnits, fit_of
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.units import UndeterminedError
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.described import TABLES_OUTSIDE_JIT
from noisy_jax.observed.observations.rows import Rows
from noisy_jax.validation.objects import choice
from noisy_jax.validation.values import check_concrete

_STEP = 0.1  # smallest one of the share, in units of 1/n


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Logistic(Method[Fit]):
    """Logistic regression of y in {0, 1} on clean features, under Gaussian noise.

    With the measured row x̃_i (the mean of its copies), the covariance C_i of its error, the
    intercept a, the coefficients w and σ(z) = 1/(1 + e^{−z}), it solves for a and w

        Σ_i (y_i − σ(a + ⟨w, c_i⟩)) (1, c_i) = 0,   c_i = x̃_i + (y_i − ½)C_i w.

    a and w are consistent under the logistic model, P(y = 1 | x) = σ(a + ⟨w, x⟩). The equations may
    have several solutions: the one that continues the uncorrected fit, as the C_i grow from 0, is
    taken. In small tables it may end before the whole C_i. Then a smaller share of them is taken
    away, with a warning and wide intervals (`Fit.share`). If the noise is known from replicates
    alone, they are pooled: its covariance must then be the same in all rows.

    Misclassified columns (`noise.Misclassified`) and flipped labels are corrected without bias: the
    equations are summed over all true categories and labels, with weights that are right on
    average. `Fit.uncorrected` takes them as they are recorded.

    Args:
        flips: (ρ₁, ρ₀), the probabilities that a label 1 and a label 0 is recorded wrongly, which
            are 1 − sensitivity and 1 − specificity; or one number for both; 0 by default. They may
            depend on the true label, and on nothing else.
        weights: `[n]` weights ≥ 0 of the rows, the number of times that a row counts in the
            equations, or the name of their column, which is then no feature; by default the weights
            of the table, or 1 if it has none. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column; by default the clusters of the table. Without any, rows are
            independent. Standard errors allow for them.
        errors: the kind of standard errors. "sandwich", the default, is computed from each row's
            (or cluster's) term in the equations, as if the row were left out (HC3). "jackknife"
            refits without one of up to 32 groups of rows, or of clusters, at a time.

    Give it to `nj.fit`, which returns a `Fit`. It raises ValueError if y is not 0 or 1 or has
    errors, if a distribution of noise is not Gaussian, if the noise is known on average only (by a
    reliability, or from unequal numbers of replicates), or if not even half of the error's
    covariance can be taken away.

    Source: the conditional score of Stefanski and Carroll (1987); flipped labels as in
    `losses.flipped`.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(20_000, 1))
        >>> y = (rng.random(20_000) < 1 / (1 + np.exp(-x[:, 0]))) * 1.0
        >>> noisy = x + 0.7 * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, y, noise=0.49)
        >>> fit = nj.fit(table, nj.methods.Logistic())
        >>> print(fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        [1.] [0.6]
    """

    flips: Any = 0.0
    weights: Any = None
    clusters: Any = None
    errors: str = "sandwich"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("errors", self.errors, ERRORS)
        check_concrete("flips", self.flips, TABLES_OUTSIDE_JIT)
        object.__setattr__(self, "flips", tuple(map(float, Flip(self.flips).rate)))

    def _solved(self, sample: Sample) -> Fit:
        ones, zeros = self.flips
        labels = np.array([[1 - zeros, zeros], [ones, 1 - ones]]) if ones or zeros else None
        return _fit(sample, "logistic", self.errors, labels)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Poisson(Method[Fit]):
    """Poisson regression of counts y on clean features, under Gaussian noise.

    With the measured row x̃_i (the mean of its copies), the covariance C_i of its error, the
    exposure E_i, the intercept a and the coefficients w, it solves for a and w

        Σ_i y_i (1, x̃_i) − m_i (1, x̃_i − C_i w) = 0,   m_i = E_i exp(a + ⟨w, x̃_i⟩ − ½wᵀC_iw).

    a and w are consistent where the mean of y given the clean x is E exp(a + ⟨w, x⟩), whatever the
    distribution of y. Of several solutions the one that continues the uncorrected fit, as the C_i
    grow from 0, is taken. In small tables it may end before the whole C_i. Then a smaller share of
    them is taken away, with a warning and wide intervals (`Fit.share`). If the noise is known from
    replicates alone, its covariance must be the same in all rows. Misclassified columns
    (`noise.Misclassified`) are corrected without bias.

    Intervals are somewhat narrow where few rows have most of the counts: where ⟨w, x⟩ varies by
    more than about 1, and all the more if x is skewed.

    Args:
        weights: `[n]` weights ≥ 0 of the rows, the number of times that a row counts in the
            equations, or the name of their column, which is then no feature; by default the weights
            of the table, or 1 if it has none. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column; by default the clusters of the table. Without any, rows are
            independent. Standard errors allow for them.
        exposure: `[n]` positive numbers E_i, such as times of observation, or the name of their
            column, which is then no feature; by default the exposures of the table, or 1 if it has
            none. `fit.predict` is for an exposure of 1.
        errors: the kind of standard errors. "sandwich", the default, is computed from each row's
            (or cluster's) term in the equations, as if the row were left out (HC3). "jackknife"
            refits without one of up to 32 groups of rows, or of clusters, at a time.

    Give it to `nj.fit`, which returns a `Fit`. It raises ValueError if y is below 0 or has errors,
    if a distribution of noise is not Gaussian, if the noise is known on average only (by a
    reliability, or from unequal numbers of replicates), or if not even half of the error's
    covariance can be taken away.

    Source: the corrected score of Nakamura (1990).

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(20_000, 1))
        >>> counts = rng.poisson(np.exp(0.5 * x[:, 0]))
        >>> noisy = x + 0.7 * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, counts, noise=0.49)
        >>> fit = nj.fit(table, nj.methods.Poisson())
        >>> print(fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        [0.5] [0.3]
    """

    weights: Any = None
    clusters: Any = None
    exposure: Any = None
    errors: str = "sandwich"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("errors", self.errors, ERRORS)

    def _solved(self, sample: Sample) -> Fit:
        return _fit(sample, "poisson", self.errors)


def _fit(sample: Sample, name: str, errors: str, labels: np.ndarray | None = None) -> Fit:
    """The fit of one of `MODELS`, by its name; `labels` as for `scores.score_equations`."""
    table, weights, exposure, family = sample.table, sample.weights, sample.exposure, MODELS[name]
    _check(table, name)
    rows = table.means(weights)
    if exposure is not None:  # y − E m = E (y/E − m): rates, with the exposure E as a weight
        weights_of_rates = exposure if weights is None else weights * exposure
        rows = rows._replace(y=rows.y / exposure, weights=weights_of_rates)
    standard, units, reliability = sample.standardized(rows, scales_y=False)
    n, dim = rows.x.shape
    weights = np.ones(n) if weights is None else weights
    equations = score_equations(family, standard, units, table, labels, weights)
    mean = np.average(rows.y, weights=rows.weights)
    plain = root(equations, np.append(family.link(mean), np.zeros(dim)), 0.0)
    if plain is None:
        raise UndeterminedError(separated(rows, table, name))
    fit = fit_of(
        sample,
        Root(equations, plain, 0.0),
        solved(equations, plain, n, family.no_root, PATIENT._replace(least=_STEP / n)),
        OriginalUnits.line(table, units, name, equations.rows[0].mean_cov()),
        errors,
        reliability=reliability,
        scale=units.scale,
        exposed=exposure is not None,
        about=f"{family.words} and Gaussian noise, or misclassification as stated.",
    )
    sample.tell(ONE_CLUSTER.doubts(table, sample.weights, sample.clusters))
    return fit


def separated(rows: Rows, observations: Observations, name: str) -> str:
    """Why the uncorrected fit has no finite root: its loss is convex, and its columns differ."""
    which, high = "a combination of the columns", rows.y > 0
    for column, values in zip(observations.names, rows.x.T, strict=True):
        low, up = values[~high], values[high]
        if name == "logistic" and (low.max() <= up.min() or up.max() <= low.min()):
            which = f"column {column!r}"
    return (
        f"the uncorrected fit has no finite solution: {which} predicts which rows have "
        f"{observations.target} = 0 perfectly, or nearly; drop a column, or add rows"
    )


def _check(observations: Observations, name: str) -> None:
    """Raises ValueError if the model does not allow these targets or this noise."""
    instead = f"; or take nj.methods.RegressionCalibration({name!r}), approximate"
    observations.check_each_row(f"model={name!r}", categories=True, instead=instead)
    if law := observations.not_gaussian():
        raise ValueError(
            f"model={name!r} is for Gaussian noise, got {law}; give its covariance to treat it as "
            "Gaussian"
        )
    if observations.cross_cov is not None:
        raise ValueError(
            f"model={name!r} needs errors in y that are independent of those in x: leave out "
            "cross_cov"
        )
    check_targets(observations, name)


def check_targets(observations: Observations, name: str) -> None:
    """Raises ValueError if the model, a key of `MODELS`, does not allow these targets."""
    y = observations.y
    if observations.target_cov is not None:
        raise ValueError(
            f"model={name!r} is for {MODELS[name].targets} without error: leave out "
            f"the noise of {observations.target!r}"
        )
    wrong = np.flatnonzero(~MODELS[name].allowed(y))
    if wrong.size:
        signs = name == "logistic" and bool(np.all(np.abs(y) == 1))
        raise ValueError(
            f"{observations.target!r} must be {MODELS[name].targets} for model={name!r}, but is "
            f"{y[wrong[0]]:g} in row {wrong[0]} ({wrong.size} in all)"
            + "; (y + 1) / 2 turns labels −1 and 1 into these"
            * signs
        )
