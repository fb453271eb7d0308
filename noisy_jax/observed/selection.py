"""`select`: chooses among learners and fits afterwards, by their estimated risk on clean data."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from noisy_jax.base import Learner
from noisy_jax.observed.cross_fitting import Folds, function_judge, learner_judge
from noisy_jax.observed.fits.assumptions import AssumptionWarning, warned
from noisy_jax.observed.fits.hidden import CAUTION
from noisy_jax.observed.fits.judged import stacked
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.beside import with_roles
from noisy_jax.observed.observations.passes import MAKES
from noisy_jax.plots.risks import risks
from noisy_jax.reports.intervals import half_width
from noisy_jax.reports.tables import Summarized, Table
from noisy_jax.validation.keys import parsed_key
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import whole
from noisy_jax.validation.objects import instance, switch
from noisy_jax.validation.values import check_concrete, collected_map


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Selection(Summarized):
    """The result of `select`: candidates and their estimated mean squared errors on clean data.

    `print` shows it as a table. Arrays `[K]` are in the order of the candidates, in the units of y
    squared, and NaN for a candidate that diverged (its predictions overflow).

    Attributes:
        names: K names of the candidates.
        best: name of the candidate with the lowest sum of risk (0 if it is negative), standard
            error and a tenth of the bias. The lowest risk alone would prefer candidates whose risk
            is uncertain.
        risk: `[K]`, estimated mean squared error on clean rows plus the variance of the noise in y;
            each row is judged by a predictor that was trained on other rows (cross-fitting).
        std_error: `[K]`, standard error of `risk`.
        bias: `[K]`, the largest possible bias of `risk` over the distributions of the clean rows;
            half the width of an interval is t times the standard error plus this bias. It is 0
            except for kernel fits (`nj.methods.Fourier`) with weights at frequencies where noisy
            rows say nothing of the clean ones.
        difference: `[K]`, risk minus the risk of the best, paired by row.
        difference_std_error: `[K]`, standard error of `difference`. Because of the pairing it is
            usually much smaller than the standard errors of the two risks.
        difference_bias: `[K]`, the largest possible bias of `difference`.
        degrees_of_freedom: degrees of freedom of Student's t in the intervals.
        num_rows: n, number of rows.
        folds: number of folds.
        refit: `refit()` trains the best candidate on all rows, and returns the `Learned` of a
            learner, the result of a function, or the fitted estimator.

    Example:
        >>> import jax, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(2000, 1))
        >>> noisy = x + 0.6 * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=0.36)
        >>> candidates = {"corrected": nj.fit, "plain": lambda rows: nj.fit(rows).uncorrected}
        >>> found = nj.select(candidates, table, jax.random.key(0))
        >>> print(found.best, found.verdict())
        corrected corrected has the lowest risk (95%).
    """

    names: tuple[str, ...]
    best: str
    risk: np.ndarray
    std_error: np.ndarray
    bias: np.ndarray
    difference: np.ndarray
    difference_std_error: np.ndarray
    difference_bias: np.ndarray
    degrees_of_freedom: int
    num_rows: int
    folds: int
    refit: Callable[[], Any]

    @property
    def tied(self) -> tuple[str, ...]:
        """Names of the best, and of all whose 95% interval of `difference` reaches 0."""
        low, _ = self.difference_interval()
        return tuple(name for name, start in zip(self.names, low, strict=True) if start <= 0)

    def interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the 95% intervals of `risk`, `[K]` each."""
        return self._around(self.risk, self.std_error, self.bias)

    def difference_interval(self) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of the 95% intervals of `difference`, `[K]` each."""
        return self._around(self.difference, self.difference_std_error, self.difference_bias)

    def _around(self, middle, std_error, bias):
        half = half_width(std_error, self.degrees_of_freedom) + bias
        return middle - half, middle + half

    def __repr__(self) -> str:
        """The text that `print` shows."""
        return str(self)

    def summary(self) -> Table:
        """Returns the printed table: the candidates, the lowest risk first, and the verdict."""
        numbers = {
            "risk": self.risk,
            "std_error": self.std_error,
            "bias": self.bias,
            **_ends("", self.interval()),
            "difference": self.difference,
            "difference_std_error": self.difference_std_error,
            "difference_bias": self.difference_bias,
            **_ends("difference_", self.difference_interval()),
        }
        rows = [
            {
                "candidate": self.names[k],
                **{name: float(values[k]) for name, values in numbers.items()},
            }
            for k in np.argsort(self.risk)  # NaN last
        ]
        title = (
            "Mean squared error on clean data, estimated from "
            f"{self.num_rows:,} noisy rows in {self.folds} folds"
        )
        columns = [
            ("candidate", "{candidate}"),
            ("clean risk", "{risk:.4g}"),
            ("95% interval", "[{low:.4g}, {high:.4g}]"),
            ("above the best", self._unless_best("{difference:.2g}")),
            ("95% interval", self._unless_best("[{difference_low:.2g}, {difference_high:.2g}]")),
        ]
        return Table(rows, columns, title, below=f"\n{self.verdict()}")

    def plot(self, *, axes: Any = None) -> Any:
        """Draws the estimated errors (`nj.plots.risks`), and returns the matplotlib axes.

        It draws on `axes` if they are given, else on new ones.
        """
        return risks(self, axes=axes)

    def _unless_best(self, cell: str) -> Callable[[Mapping[str, Any]], str]:
        """A cell of the table that is empty in the row of the best candidate."""
        return lambda row: "" if row["candidate"] == self.best else cell.format_map(row)

    def verdict(self) -> str:
        """Says in one sentence which candidates the data can tell apart."""
        if len(self.names) == 1:
            return "Only one candidate was judged."
        if len(self.tied) == 1:
            return f"{self.best} has the lowest risk (95%)."
        return (
            f"These data cannot tell {', '.join(self.tied)} apart (95%): take the simplest, or "
            "collect more rows."
        )


def _ends(prefix: str, interval: tuple[np.ndarray, np.ndarray]) -> dict[str, np.ndarray]:
    """The columns of both ends of an interval."""
    low, high = interval
    return {f"{prefix}low": low, f"{prefix}high": high}


def select(
    candidates: Mapping[str, Learner | Callable[[Observations], Any] | Any],
    observations: Observations,
    key: jax.Array,
    *,
    folds: int = 5,
    clusters: Any = None,
    standardize: bool = True,
) -> Selection:
    """Chooses among learners and fits by their risk on clean data, estimated from noisy rows.

    The rows are dealt to folds, and each fold is judged by the predictor f that was trained on the
    others. The squared error at a held-out row, with clean x and noisy target ỹ = y + e, is
    estimated by q − 2ỹv + ỹ², where v and q are unbiased estimates of f(x) and of f(x)² from the
    noisy row. Its mean over the noise is

        E[q − 2ỹv + ỹ²] = (f(x) − y)² + Var e.

    The risk is the mean over all rows. It is for prediction at CLEAN features: to predict from
    features that are as noisy as the table's, use an uncorrected fit. The lowest of many risks is
    too low, since it was chosen for being low. Intervals are often too short, because predictors of
    different folds share most of their training rows, and comparisons are not corrected for their
    number.

    Estimates v and q are known for predictors that are affine in x, for kernel fits
    (`nj.methods.Fourier`) and for learners with `Learner.clean_estimates`. Other predictors, such
    as a forest, cannot be candidates.

    Args:
        candidates: a mapping from names to candidates: learners; functions `observations -> fit`,
            such as `nj.fit` or `lambda rows: nj.fit(rows).uncorrected`; or estimators with the
            methods `fit(x, y)` and `predict(x)` of scikit-learn, which are copied and fitted to the
            means of the noisy copies. Learners need room for all rows.
        observations: a table, by `nj.table`, `nj.csv` or `nj.observations.from_arrays`.
        key: a key of `jax.random.key`, for the randomness of learners.
        folds: number of folds, at least 2; rows, or clusters, are dealt to them at random.
        clusters: `[n]` labels of rows that may depend on each other, which stay together, or the
            name of their column, which is then no feature; by default the clusters of the table.
        standardize: whether learners see columns and y divided by standard deviations of their
            training rows, by default True. False is for learners alone: it keeps original units,
            which a learner that is built for one distribution of the noise needs.

    Returns:
        A `Selection`: print it; `best` and `tied` are names, and `refit()` trains the best on all
        rows.

    Raises:
        ValueError: a candidate cannot take the table or has no such estimates (the message names
            it), every candidate diverged, or `standardize=False` stands without a learner.

    Source: cross-validation with the corrected score of Nakamura (1990); Bates, Hastie
    and Tibshirani, Cross-validation: what does it estimate and how well does it do it? (2023).

    Example:
        >>> import jax, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(4000, 1))
        >>> y = 2 * x[:, 0] + 0.1 * rng.normal(size=4000)
        >>> table = nj.observations.from_arrays(x + 0.6 * rng.normal(size=x.shape), y, noise=0.36)
        >>> candidates = {
        ...     "corrected": nj.fit,
        ...     "uncorrected": lambda rows: nj.fit(rows).uncorrected,
        ...     "leader": nj.learners.corrected_ftrl(nj.moments.known_covariance()),
        ... }
        >>> found = nj.select(candidates, table, jax.random.key(0))
        >>> print(found.tied, found.refit().predict([[1.0]]).round(1))
        ('corrected', 'leader') [2.]
    """
    instance("observations", observations, Observations, MAKES)
    check_concrete("key", key, "call nj.select outside jit, vmap and grad")
    key = parsed_key(key)
    candidates = collected_map(candidates)
    if not isinstance(candidates, Mapping) or not candidates:
        what = "map at least one name to a learner, a function such as nj.fit, or an estimator"
        none = isinstance(candidates, Mapping | tuple) and not candidates
        raise ValueError(f"candidates must {what}, got {'{}' if none else given(candidates)}")
    learners = any(isinstance(candidate, Learner) for candidate in candidates.values())
    if not switch("standardize", standardize) and not learners:
        raise ValueError("standardize=False is for learners, and no candidate is one: leave it out")
    folds = whole("folds", folds, 2)
    of_table = observations.beside
    observations = with_roles(observations, {"clusters": clusters}, "nj.select")
    cluster_column = observations.beside.get("clusters")
    observations = dataclasses.replace(observations, beside=of_table)
    parts = Folds.of(observations, cluster_column and cluster_column.values, folds)
    warned(observations, cluster_column and parts.units)
    without = dataclasses.replace(observations, beside={})
    judged, refits = [], {}
    for name, candidate in candidates.items():
        try:
            if isinstance(candidate, Learner):
                judge, refits[name] = learner_judge(candidate, without, key, standardize)
            else:
                judge, refits[name] = function_judge(candidate, observations)
            with warnings.catch_warnings():  # of the same rows again, in parts
                warnings.simplefilter("ignore", AssumptionWarning)
                judged.append(parts.judge(judge, key))
        except (TypeError, ValueError) as error:
            raise ValueError(f"candidate {name!r}: {error}") from error
    of_all, noise = stacked(judged), UncertainNoise(observations)
    std_error, bias = of_all.std_error(noise), of_all.bias
    pessimistic = np.maximum(of_all.risk, 0) + std_error + CAUTION * bias
    if np.isnan(pessimistic).all():
        raise ValueError(
            "every candidate diverged: try the default learning rates, or smaller radii"
        )
    best = int(np.nanargmin(pessimistic))
    names, above = tuple(candidates), stacked([one.minus(judged[best]) for one in judged])
    return Selection(
        names=names,
        best=names[best],
        risk=of_all.risk,
        std_error=std_error,
        bias=bias,
        difference=above.risk,
        difference_std_error=above.std_error(noise),
        difference_bias=above.bias,
        degrees_of_freedom=of_all.degrees_of_freedom,
        num_rows=len(parts.units),
        folds=folds,
        refit=refits[names[best]],
    )
