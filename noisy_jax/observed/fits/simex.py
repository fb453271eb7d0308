"""SIMEX: estimates under more and more noise, extended to none."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from noisy_jax.observed.fits.added_noise import AddedNoise, AtLevels
from noisy_jax.observed.fits.approximate import NoisyTable, spread_by_noise
from noisy_jax.observed.fits.assumptions import remarked, warned
from noisy_jax.observed.fits.black_boxes import BlackBox, check_estimator
from noisy_jax.observed.fits.checked import one_table, read_once
from noisy_jax.observed.fits.estimates import INTERCEPT, Estimates
from noisy_jax.observed.fits.extrapolation import CURVES, SimexFit, quadratic
from noisy_jax.observed.fits.groups import groups_of, jackknifed
from noisy_jax.observed.fits.units import Rows
from noisy_jax.observed.observations import Observations
from noisy_jax.validation import choice, listed, positive, whole

_BACK = np.array([-1.0])


@dataclasses.dataclass(frozen=True, kw_only=True)
class SIMEX:
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
        estimator: what is corrected:
            an estimator of scikit-learn, which is cloned, with `coef_` and `intercept_`, or such
            as a pipeline with predictions that are affine in x;
            or a function of x `[n, d]` and y `[n]` in NumPy, whose result is a vector, a dictionary
            of named numbers, either of them in a tuple with its covariance, or a result of
            statsmodels, such as `lambda x, y: sm.Logit(y, sm.add_constant(x)).fit(disp=0)`.
        levels: λ > 0, at least two.
        draws: at each level, at least two.
        extrapolation: "quadratic", or "rational" for a + b/(c + λ), which is exact for the slope on
            one noisy column, and less stable.
        errors: "extrapolated", "jackknife", or "none" for standard errors that are NaN.
        seed: of the draws.
        progress: called with (done, total), numbers of estimates.

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

    def __post_init__(self) -> None:
        read_once(self)
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

    def fitted(self, observations: Observations) -> SimexFit:
        """The fit to one table."""
        found = warned(one_table(self, observations))
        return remarked(_Simex(observations, self).fit(), found)


class _Simex:
    """A table, and the estimates from it with added noise."""

    def __init__(self, observations: Observations, method: SIMEX):
        self.observations, self.method = observations, method
        self.table = NoisyTable.of(observations, None)
        self.levels = np.array([0.0, *np.unique(np.asarray(method.levels, float))])
        self.box = BlackBox(method.estimator, observations.names)
        self.errors = method.errors
        if self.table.estimated:
            if self.errors == "extrapolated":
                raise ValueError(
                    "errors='extrapolated' takes the covariance of the noise as known, but it is "
                    "estimated from the rows: use errors='jackknife'"
                )
            self.errors = self.errors or "jackknife"
        self.groups = groups_of(observations)
        self.done, self.passes = 0, 1
        options = self.table, method.draws, method.seed, self.groups
        self.added = AddedNoise(*options, self.box.refit, self._advance)

    def _advance(self, count: int) -> None:
        self.done += count
        if self.method.progress is not None:
            total = 1 + (len(self.levels) - 1) * self.method.draws
            self.method.progress(self.done, max(self.done, self.passes * total))

    def _extended(self, found: AtLevels) -> np.ndarray:
        """`[p]`, at the level −1."""
        return CURVES[self.method.extrapolation](self.levels, found.estimates, _BACK)[0]

    def fit(self) -> SimexFit:
        """The fit in original units."""
        first = self.added.at(self.levels)
        if self.errors is None:
            self.errors = "jackknife" if first.covariances is None else "extrapolated"
        estimates, theta = first.estimates, self._extended(first)
        spread, plain, freedom = self._spreads(first, theta)
        if self.errors != "none":
            spread = spread + spread_by_noise(
                lambda cov: self._extended(self.added.at(self.levels, cov=cov)),
                self.table,
                self.observations,
            )
        observations, names = self.observations, self.box.names
        by_column, remarks = names == observations.names, self._remarks(first, theta, spread)
        known: dict[str, Any] = {
            "labels": (INTERCEPT, *names) if self.box.intercept else names,
            "form": "coefficients" if self.box.intercept else "numbers",
            "degrees_of_freedom": freedom,
            "names": observations.names,
            "references": observations.references,
        }
        title, levels = self.box.title, ", ".join(f"{level:g}" for level in self.levels[1:])
        return SimexFit.of(
            Estimates(values=theta, covariance=spread, **known),
            Estimates(values=estimates[0], covariance=plain, **known),
            observations,
            reliability=self.table.reliability if by_column else None,
            scale=Rows.of(observations).x.std(axis=0) if by_column else None,
            about=f"SIMEX of {title}: noise of {levels} times the covariance is added, "
            f"{self.method.draws} draws each, and the {self.method.extrapolation} curve is "
            "extended to −1. Approximate.",
            estimator=title,
            levels=self.levels,
            estimates=estimates,
            extrapolation=self.method.extrapolation,
            draws=self.method.draws,
            errors=self.errors,
            remarks=remarks,
        )

    def _spreads(self, first: AtLevels, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Covariances `[p, p]` of corrected and uncorrected estimates, and degrees of freedom."""
        if self.errors == "none":
            nothing = np.full(2 * theta.shape, np.nan)
            return nothing, nothing, np.inf
        if self.errors == "jackknife":
            self.passes += len(self.groups)
            groups = range(len(self.groups))
            left = [self.added.at(self.levels, without=group) for group in groups]
            spread, freedom = jackknifed(np.array([self._extended(one) for one in left]))
            plain, _ = jackknifed(np.array([one.estimates[0] for one in left]))
            return spread, plain, freedom
        if first.covariances is None:
            raise ValueError(
                "errors='extrapolated' needs covariances, which this estimator does not give: use "
                "errors='jackknife', or a function that returns (numbers, covariance)"
            )
        covariances = first.covariances
        count, size = covariances.shape[:2]
        found = quadratic(self.levels, covariances.reshape(count, -1), _BACK)
        freedom = len(self.observations.y) - size
        spread = found.reshape(size, size)
        lost = np.diag(spread) <= 0
        spread[lost] = spread[:, lost] = np.nan
        return spread, covariances[0], float(freedom)

    def _remarks(self, first: AtLevels, theta: np.ndarray, spread: np.ndarray) -> tuple[str, ...]:
        """Where the curve decides, or a variance is extended below zero."""
        variances, names = np.diag(spread), self.box.names
        names = ("intercept", *names) if self.box.intercept else names
        ends = [curve(self.levels, first.estimates, _BACK)[0] for curve in CURVES.values()]
        apart, moved = np.abs(ends[0] - ends[1]), np.abs(theta - first.estimates[0])
        with np.errstate(invalid="ignore"):
            differ = (apart > np.sqrt(variances)) & (apart > 0.1 * moved)
        found = []
        if differ.any():
            some = listed([names[k] for k in np.flatnonzero(differ)])
            found.append(
                f"the quadratic and the rational curve differ by more than a standard error for "
                f"{some}, so that the correction depends on the curve: compare fit.curve(levels) "
                "with fit.estimates"
            )
        if np.isnan(variances).any() and self.errors != "none":
            some = listed([names[k] for k in np.flatnonzero(np.isnan(variances))])
            found.append(
                f"the variance of {some} is extended below zero, so that there is no standard "
                "error: use errors='jackknife', or more draws"
            )
        return tuple(found)
