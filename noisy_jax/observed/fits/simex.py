"""SIMEX: estimates under more and more noise, extended to none."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from noisy_jax.observed.fits.added_noise import AddedNoise, AtLevels
from noisy_jax.observed.fits.black_boxes import BlackBox, check_estimator
from noisy_jax.observed.fits.calibration import check_approximate
from noisy_jax.observed.fits.estimates import Estimates
from noisy_jax.observed.fits.extrapolation import CURVES, SimexFit, quadratic
from noisy_jax.observed.fits.groups import jackknifed, labels_of
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.validation import choice, listed, positive, whole

_BACK = np.array([-1.0])
_STEP = 0.5  # of differences, in standard errors of the covariance of the noise


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class SIMEX(Method[SimexFit]):
    """Simulation and extrapolation: any estimator, under more and more noise, extended to none.

    With the covariance C_i of the error in row i, noise of covariance λC_i is added to the rows,
    `draws` times at each level λ, and the estimator is called again. A curve through the mean
    estimates at 0 and at the levels is extended to λ = −1, where no noise is left. The added noise
    is Gaussian; of noise of another distribution only the covariance is used. Exact columns stay as
    they are. Where only the mean of the C_i is known, as from replicates, all rows get noise of
    this covariance.

    **It is approximate**: the curve is an assumption. The bias is small if the noise is a small
    share of the variance of the columns, and does not vanish in large tables. Where the
    quadratic and the rational curve disagree, the fit says so. `nj.methods.Linear`, `Logistic` and
    `Poisson` are consistent and faster. SIMEX is for everything else.

    **Intervals do not contain the bias of the curve.** Around the mean of the estimates, those of
    95% cover about 95%. The truth they cover less often the larger the table and the noise are: of
    a least squares slope with a noise of 0.18 times the variance of its column, extended by the
    quadratic curve, about 95% (200 or 500 rows); with 0.4 times, 86% (200 rows) and 73% (500 rows).
    The rational curve covers about 95% in these cases, and its estimates scatter more.

    Standard errors:

    - "extrapolated": the mean estimated covariance at λ, less the covariance of the estimates over
      draws, is extended to −1 by a quadratic curve, with the same assumptions as the covariances,
      which a function returns.
    - "jackknife": SIMEX again, with the same draws, without one of 32 groups at a time, to which
      rows are dealt at random. It takes 33 times as long.

    The default is "extrapolated" where there are covariances, and "jackknife" where there are none,
    or where the covariance of the noise is estimated from the table's replicates, which only the
    jackknife counts. Standard errors of a stated covariance (`noise.CovarianceEstimate`) are added,
    by calls under other covariances.

    Args:
        estimator: the estimator to correct:
            an estimator of scikit-learn, which is cloned, with `coef_` and `intercept_`, or such
            as a pipeline with predictions that are affine in x;
            or a function of x `[n, d]`, y `[n]` and, if there are weights, weights `[n]` in NumPy,
            whose result is a vector, a dictionary
            of named numbers, either of them in a tuple with its covariance, or a result of
            statsmodels, such as `lambda x, y: sm.Logit(y, sm.add_constant(x)).fit(disp=0)`.
        levels: λ > 0, at least two.
        draws: at each level, at least two.
        extrapolation: "quadratic", or "rational" for a + b/(c + λ), which is exact for the slope on
            one noisy column, and less stable.
        errors: "extrapolated", "jackknife", or "none" for standard errors that are NaN.
        seed: of the draws.
        progress: called with (done, total), numbers of estimates.
        weights: `[n]` weights of the rows, with which the estimator is called, or the name of their
            column, as in `nj.methods.Linear`; 1 by default. An estimator of scikit-learn takes them
            as `sample_weight` of its `fit`; a function as its third argument, or as `weights` or
            `sample_weight`. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column. The jackknife leaves out clusters, and is the default then.

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
        levels = np.asarray(positive("levels", self.levels, shape=None), float)
        if levels.ndim != 1 or len(np.unique(levels)) < 2:
            shown = listed(levels.ravel().tolist())
            raise ValueError(f"levels must be two or more different numbers, got {shown}")
        whole("draws", self.draws, 2)
        choice("extrapolation", self.extrapolation, CURVES)
        if self.errors is not None:
            choice("errors", self.errors, ("extrapolated", "jackknife", "none"))
        whole("seed", self.seed, 0)
        if self.errors == "none" and self.clusters is not None:
            raise ValueError("leave out clusters with errors='none': they are of standard errors")

    def _solved(self, sample: Sample) -> SimexFit:
        return _Simex(sample, self).fit()


class _Simex:
    """The rows of a table, and the estimates from them with added noise."""

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
        drawn = method.draws, method.seed
        self.added = AddedNoise(self.rows, self.estimated, *drawn, self.box.refit, self._advance)

    def _advance(self, count: int) -> None:
        self.done += count
        if self.method.progress is not None:
            total = 1 + (len(self.levels) - 1) * self.method.draws
            self.method.progress(self.done, max(self.done, self.passes * total))

    def fit(self) -> SimexFit:
        """The fit in original units."""
        jackknife = self._needs_jackknife()
        first = self.added.at(self.levels)
        errors = self.method.errors
        if errors is None:
            errors = "jackknife" if jackknife or first.covariances is None else "extrapolated"
        theta, size = self._extended(first), len(self.box.labels)
        if errors == "jackknife":
            spread, plain, freedom = self._left_out()
        elif errors == "extrapolated":
            spread, plain, freedom = self._extrapolated(first)
        else:
            spread, plain, freedom = *np.full((2, size, size), np.nan), np.inf
        if errors != "none":
            spread = spread + self._by_noise()
        remarks = self._by_curve(first, theta, spread) + self._lost(spread)
        return self._result(first, theta, spread, plain, freedom, errors, remarks)

    def _needs_jackknife(self) -> bool:
        """Returns whether only the jackknife counts all errors; ValueError if it must not run."""
        why = ""
        if self.estimated:
            why = "takes the covariance of the noise as known, but it is estimated from the rows"
        elif self.sample.clusters is not None:
            why = "takes the covariances that the estimator returns, which know of no clusters"
        if why and self.method.errors == "extrapolated":
            raise ValueError(f"errors='extrapolated' {why}: use errors='jackknife'")
        return bool(why)

    def _extended(self, found: AtLevels) -> np.ndarray:
        """The curve `[p]` at the level −1."""
        return CURVES[self.method.extrapolation](self.levels, found.estimates, _BACK)[0]

    def _left_out(self) -> tuple[np.ndarray, np.ndarray, float]:
        """The jackknife: covariances `[p, p]` with and without correction, degrees of freedom."""
        table = self.sample.table
        groups = labels_of(table.x, table.y, self.sample.clusters)
        numbers = np.unique(groups)
        self.passes += len(numbers)
        left = [self.added.at(self.levels, kept=np.flatnonzero(groups != g)) for g in numbers]
        spread, freedom = jackknifed(np.array([self._extended(one) for one in left]))
        plain, _ = jackknifed(np.array([one.estimates[0] for one in left]))
        return spread, plain, freedom

    def _extrapolated(self, first: AtLevels) -> tuple[np.ndarray, np.ndarray, float]:
        """The same by the covariances that the estimator returns; NaN if one extends below 0."""
        if first.covariances is None:
            raise ValueError(
                "errors='extrapolated' needs covariances, which this estimator does not give: use "
                "errors='jackknife', or a function that returns (numbers, covariance)"
            )
        count, size = first.estimates.shape
        found = quadratic(self.levels, first.covariances.reshape(count, -1), _BACK)
        spread = found.reshape(size, size)
        lost = np.diag(spread) <= 0
        spread[lost] = spread[:, lost] = np.nan
        return spread, first.covariances[0], float(len(self.rows.y) - size)

    def _by_noise(self) -> np.ndarray | float:
        """The covariance `[p, p]` that a stated standard error of the noise brings in.

        By the delta method, with differences of half a standard error.
        """
        total = 0.0
        for move in _STEP * UncertainNoise(self.sample.table).deviations():
            up, down = (
                self._extended(self.added.at(self.levels, cov=self.added.cov + sign * move))
                for sign in (1, -1)
            )
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

    def _result(self, first, theta, spread, plain, freedom, errors, remarks) -> SimexFit:
        table, box, method = self.sample.table, self.box, self.method
        known: dict[str, Any] = {
            "labels": box.labels,
            "form": "coefficients" if box.line else "numbers",
            "degrees_of_freedom": freedom,
            "names": table.names,
            "references": table.references,
        }
        levels = ", ".join(f"{level:g}" for level in self.levels[1:])
        return SimexFit.of(
            Estimates(values=theta, covariance=spread, **known),
            Estimates(values=first.estimates[0], covariance=plain, **known),
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
            remarks=remarks,
        )
