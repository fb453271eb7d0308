"""SIMEX: estimates under more and more noise, extended to none.

At the level λ, draw b of B adds √λ u_bi to row i, with u_bi ~ N(0, C_i) and C_i the covariance of
the error in the row. The same draws serve all levels, so that estimates are smooth in λ. With the
estimates θ_b(λ) and their estimated covariances V_b(λ), each level keeps

    the mean over b of θ_b(λ),    and    mean of V_b(λ) − covariance of θ_b(λ) over b.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.fits.black_boxes import BlackBox, check_estimator
from noisy_jax.observed.fits.calibration import check_approximate
from noisy_jax.observed.fits.estimates import Estimates
from noisy_jax.observed.fits.extrapolation import CURVES, SimexFit, quadratic
from noisy_jax.observed.fits.groups import jackknifed, labels_of
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.observations.described import TABLES_OUTSIDE_JIT
from noisy_jax.observed.observations.rows import Rows
from noisy_jax.validation.messages import listed
from noisy_jax.validation.numbers import positive, whole
from noisy_jax.validation.objects import choice, function
from noisy_jax.validation.values import check_concrete

_BACK = np.array([-1.0])
_STEP = 0.5  # of differences, in standard errors of the covariance of the noise


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class SIMEX(Method[SimexFit]):
    """Simulation and extrapolation: corrects the numbers of any estimator, approximately.

    With the covariance C_i of the error in row i (in the mean of its copies), Gaussian noise of
    covariance λC_i is added to the rows, `draws` times at each level λ, and the estimator is called
    again. A curve through the mean estimates at 0 and at the levels is extended to λ = −1, where no
    noise is left. If the error itself is not Gaussian, only its covariance is used. Exact columns
    stay as they are. If only the mean of the C_i is known, as from replicates, all rows get noise
    of this covariance. `nj.fit(table, nj.methods.SIMEX(…))` returns a `SimexFit`.

    **It is approximate**: the curve is an assumption. The bias is small if the noise is a small
    share of the variance of the columns, and does not vanish in large tables. Where the
    quadratic and the rational curve disagree, the fit says so. `nj.methods.Linear`, `Logistic` and
    `Poisson` are consistent and faster. SIMEX is for everything else.

    **Intervals do not contain the bias of the curve.** Around the mean of the estimates, intervals
    of 95% cover about 95%. They cover the truth less often the larger the table and the noise are.
    For a least-squares slope, noise of 0.18 times the variance of its column and the quadratic
    curve it was about 95% (200 or 500 rows); with 0.4 times, 86% (200 rows) and 73% (500 rows). The
    rational curve covers about 95% in these cases, and its estimates scatter more.

    Standard errors:

    - "extrapolated": the function returns the covariance of its numbers. The mean of these at each
      λ, minus the covariance of the numbers over the draws, is extended to −1 by a quadratic curve.
      It is right where the covariances that the function returns are; NaN where it is below 0.
    - "jackknife": SIMEX again, with the same draws, without one of 32 random groups of rows at a
      time. It takes 33 times as long.

    Standard errors of a stated covariance (`noise.CovarianceEstimate`) are added, by calls under
    other covariances.

    Args:
        estimator: the estimator to correct. Either an estimator of scikit-learn, which is cloned,
            with `coef_` and `intercept_` or, as a pipeline, with predictions that are affine in x.
            Or a function of x `[n, d]`, y `[n]` and, if there are weights, weights `[n]`, in NumPy.
            It returns a vector, a dictionary of named numbers, either of them in a tuple with its
            covariance, or a result of statsmodels, such as
            `lambda x, y: sm.Logit(y, sm.add_constant(x)).fit(disp=0)`.
        levels: λ > 0, at least two: multiples of the noise's covariance that are added.
        draws: number of draws of added noise at each level, at least two; 100 by default.
        extrapolation: the curve in λ: "quadratic", a + bλ + cλ², or "rational", a + b/(c + λ). The
            rational curve is exact for the slope on one noisy column, and less stable.
        errors: "extrapolated", "jackknife", or "none" for standard errors that are NaN. By default
            "extrapolated" where the estimator returns covariances, and "jackknife" where it returns
            none, with clusters, or if the noise's covariance is estimated from the table's
            replicates, whose uncertainty only the jackknife contains.
        seed: seed of the draws, a whole number.
        progress: a function that is called with (done, total), numbers of estimates.
        weights: `[n]` weights ≥ 0 of the rows for the calls of the estimator, or the name of their
            column, which is then no feature; by default the weights of the table, if it has any. An
            estimator of scikit-learn takes them as `sample_weight` of its `fit`; a function as its
            third argument, or as `weights` or `sample_weight`. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column; by default the clusters of the table. Without any, rows are
            independent. The jackknife leaves out clusters.

    `nj.fit` raises ValueError if the table has products, misclassified columns, or a `cross_cov`.

    Source: Cook and Stefanski (1994); for standard errors Stefanski and Cook, Simulation-
    Extrapolation: The Measurement Error Jackknife (1995).

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(5000, 1))
        >>> noisy = x + 0.5 * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=0.25)
        >>> slope = lambda x, y: {"slope": np.polyfit(x[:, 0], y, 1)[0]}
        >>> fit = nj.fit(table, nj.methods.SIMEX(slope, draws=10))
        >>> print(fit.labels, fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        ('slope',) [2.] [1.6]
    """

    estimator: Any = dataclasses.field(kw_only=False)
    levels: Sequence[float] = (0.5, 1.0, 1.5, 2.0)
    draws: int = 100
    extrapolation: str = "quadratic"
    errors: str | None = None
    seed: int = 0
    progress: Callable[[int, int], None] | None = None
    weights: Any = None
    clusters: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_estimator(self.estimator)
        check_concrete("levels", self.levels, TABLES_OUTSIDE_JIT)
        levels = np.asarray(positive("levels", self.levels, shape=None), float)
        if levels.ndim != 1 or levels.size < 2 or len(np.unique(levels)) < levels.size:
            got = listed(levels.ravel().tolist())
            raise ValueError(f"levels must be two or more different numbers, got {got}")
        object.__setattr__(self, "draws", whole("draws", self.draws, 2))
        if self.progress is not None:
            function("progress", self.progress, "of (done, total)")
        choice("extrapolation", self.extrapolation, CURVES)
        if self.errors is not None:
            choice("errors", self.errors, ("extrapolated", "jackknife", "none"))
        object.__setattr__(self, "seed", whole("seed", self.seed, 0))
        if self.errors == "none" and self.clusters is not None:
            raise ValueError("leave out clusters with errors='none': they are of standard errors")

    def _solved(self, sample: Sample) -> SimexFit:
        return Simulation(sample, self).fit()


class AtLevels(NamedTuple):
    """Estimates at K levels."""

    estimates: np.ndarray  # [K, p], means over the draws
    covariances: np.ndarray | None  # [K, p, p], their mean less the covariance over draws


class Simulation:
    """The rows of a sample, and the estimates from them with added noise."""

    def __init__(self, sample: Sample, method: SIMEX):
        self.sample, self.method = sample, method
        self.estimated = check_approximate(sample.table)
        self.rows = sample.table.means(sample.weights)
        self.reliability = sample.standardized(self.rows)[2]
        self.levels = np.array([0.0, *np.unique(np.asarray(method.levels, float))])
        self.box = BlackBox(method.estimator, sample.table.names)
        if sample.weights is not None:
            self.box.check_takes_weights()
        self.done, self.passes = 0, 1
        self.cov = self._some(slice(None)).cov
        variances = np.atleast_2d(np.diagonal(self.cov, axis1=-2, axis2=-1))
        self.noisy = np.flatnonzero(variances.any(axis=0))

    def at(self, kept: Any = slice(None), cov: np.ndarray | None = None) -> AtLevels:
        """Estimates at all levels.

        Args:
            kept: the places of the rows that are taken; all by default.
            cov: `[d, d]` in place of the covariance of the table.
        """
        rows = self._some(kept)
        root = self._root(rows.cov if cov is None else cov)
        estimates = [self.method.draws * [self._refit(rows)], *([] for _ in self.levels[1:])]
        self._advance(1)
        for draw in range(self.method.draws):
            normal = self.normal(draw)[kept]
            noise = normal @ root if root.ndim == 2 else (root @ normal[..., None])[..., 0]
            for level, of_level in zip(self.levels[1:], estimates[1:], strict=True):
                x = rows.x.copy()
                x[:, self.noisy] += level**0.5 * noise
                of_level.append(self._refit(rows._replace(x=x)))
            self._advance(len(self.levels) - 1)
        theta = np.array([[values for values, _ in of_level] for of_level in estimates])
        means = theta.mean(axis=1)
        if estimates[0][0][1] is None:
            return AtLevels(means, None)
        apart = theta - means[:, None]
        over_draws = np.swapaxes(apart, 1, 2) @ apart / (self.method.draws - 1)
        spreads = np.array([[cov for _, cov in of_level] for of_level in estimates]).mean(axis=1)
        return AtLevels(means, spreads - over_draws)

    def normal(self, draw: int) -> np.ndarray:
        """The draw of this number, `[n, m]` of N(0, 1) for the m noisy columns."""
        size = len(self.rows.y), len(self.noisy)
        return np.random.default_rng((self.method.seed, draw)).standard_normal(size)

    def _some(self, kept: Any) -> Rows:
        """Some of the rows; estimates of their covariances are replaced by the mean."""
        rows = self.rows.some(kept)
        if not self.estimated or rows.cov.ndim == 2:
            return rows
        return rows._replace(cov=np.average(rows.cov, axis=0, weights=rows.weights))

    def _root(self, cov: np.ndarray) -> np.ndarray:
        """The symmetric root `[..., m, m]` of the covariance of the noisy columns.

        It is smooth in the covariance. Negative directions of an estimate count as zero.
        """
        values, axes = np.linalg.eigh(cov[..., self.noisy[:, None], self.noisy])
        return (axes * np.sqrt(np.maximum(values, 0))[..., None, :]) @ np.swapaxes(axes, -1, -2)

    def _refit(self, rows: Rows) -> tuple[np.ndarray, np.ndarray | None]:
        return self.box.refit(rows.x, rows.y, rows.weights)

    def _advance(self, count: int) -> None:
        self.done += count
        if self.method.progress is not None:
            total = 1 + (len(self.levels) - 1) * self.method.draws
            self.method.progress(self.done, max(self.done, self.passes * total))

    def fit(self) -> SimexFit:
        """The fit in original units."""
        table, box, method, errors = self.sample.table, self.box, self.method, self.method.errors
        jackknife = self._needs_jackknife()
        first = self.at()
        if errors is None:
            errors = "jackknife" if jackknife or first.covariances is None else "extrapolated"
        theta, size = self._extended(first), len(box.labels)
        if errors == "jackknife":
            spread, plain, freedom = self._left_out()
        elif errors == "extrapolated":
            spread, plain, freedom = self._extrapolated(first)
        else:
            spread, plain, freedom = *np.full((2, size, size), np.nan), np.inf
        if errors != "none":
            spread = spread + self._by_noise()
        more: dict[str, Any] = {
            "labels": box.labels,
            "form": "coefficients" if box.line else "numbers",
            "degrees_of_freedom": freedom,
            "names": table.names,
            "references": table.references,
        }
        levels = ", ".join(f"{level:g}" for level in self.levels[1:])
        return SimexFit.of(
            Estimates(values=theta, covariance=spread, **more),
            Estimates(values=first.estimates[0], covariance=plain, **more),
            table,
            reliability=self.reliability if box.by_column else None,
            scale=table.means().x.std(axis=0) if box.by_column else None,
            about=f"SIMEX of {box.title}: noise of {levels} times the covariance is added, "
            f"{method.draws} draws each, and the {method.extrapolation} curve is "
            "extended to −1. Approximate.",
            estimator=box.title,
            levels=self.levels,
            estimates=first.estimates,
            extrapolation=method.extrapolation,
            draws=method.draws,
            errors=errors,
            remarks=self._by_curve(first, theta, spread) + self._lost(spread),
        )

    def _needs_jackknife(self) -> bool:
        """True if only the jackknife counts all errors.

        Raises:
            ValueError: `errors="extrapolated"` was asked for then.
        """
        why = ""
        if self.estimated:
            why = "takes the covariance of the noise as known, but it is estimated from the rows"
        elif self.sample.clusters is not None:
            why = "takes the covariances that the estimator returns, which know of no clusters"
        if why and self.method.errors == "extrapolated":
            raise ValueError(f"errors='extrapolated' {why}: use errors='jackknife'")
        return bool(why)

    def _extended(self, at_levels: AtLevels) -> np.ndarray:
        """The curve `[p]` at the level −1."""
        return CURVES[self.method.extrapolation](self.levels, at_levels.estimates, _BACK)[0]

    def _left_out(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The jackknife: covariances `[p, p]` with and without correction, degrees of freedom."""
        table = self.sample.table
        groups = labels_of(table.x, table.y, self.sample.clusters)
        numbers = np.unique(groups)
        self.passes += len(numbers)
        without_each = [self.at(np.flatnonzero(groups != g)) for g in numbers]
        spread, freedom = jackknifed(
            np.array([self._extended(at_levels) for at_levels in without_each])
        )
        plain, _ = jackknifed(np.array([at_levels.estimates[0] for at_levels in without_each]))
        return spread, plain, freedom

    def _extrapolated(self, first: AtLevels) -> tuple[np.ndarray, np.ndarray, float]:
        """The same by the covariances that the estimator returns; NaN if one extends below 0."""
        if first.covariances is None:
            raise ValueError(
                "errors='extrapolated' needs covariances, which this estimator does not give: use "
                "errors='jackknife', or a function that returns (numbers, covariance)"
            )
        count, size = first.estimates.shape
        extended = quadratic(self.levels, first.covariances.reshape(count, -1), _BACK)
        spread = extended.reshape(size, size)
        lost = np.diag(spread) <= 0
        spread[lost] = spread[:, lost] = np.nan
        return spread, first.covariances[0], float(len(self.rows.y) - size)

    def _by_noise(self) -> np.ndarray | float:
        """The covariance `[p, p]` that a stated standard error of the noise brings in.

        By the delta method, with differences of half a standard error.
        """
        total = 0.0
        for move in _STEP * UncertainNoise(self.sample.table).deviations():
            up, down = (self._extended(self.at(cov=self.cov + sign * move)) for sign in (1, -1))
            slope = (up - down) / (2 * _STEP)
            total = total + np.outer(slope, slope)
        return total

    def _by_curve(self, first: AtLevels, theta: np.ndarray, spread: np.ndarray) -> tuple[str, ...]:
        """A remark if the curve decides by more than a standard error."""
        ends = [curve(self.levels, first.estimates, _BACK)[0] for curve in CURVES.values()]
        apart, moved = np.abs(ends[0] - ends[1]), np.abs(theta - first.estimates[0])
        with np.errstate(invalid="ignore"):
            differ = (apart > np.sqrt(np.diag(spread))) & (apart > 0.1 * moved)
        if not differ.any():
            return ()
        return (
            f"the quadratic and the rational curve differ by more than a standard error for "
            f"{self._named(differ)}, so that the correction depends on the curve: compare "
            "fit.curve(levels) with fit.estimates",
        )

    def _lost(self, spread: np.ndarray) -> tuple[str, ...]:
        """A remark if a variance is extended below zero."""
        lost = np.isnan(np.diag(spread))
        if not lost.any() or self.method.errors == "none":
            return ()
        return (
            f"the variance of {self._named(lost)} is extended below zero, so that there is no "
            "standard error: use errors='jackknife', or more draws",
        )

    def _named(self, which: np.ndarray) -> str:
        return listed([self.box.labels[k] for k in np.flatnonzero(which)])
