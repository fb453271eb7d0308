"""Kernel regression on noisy features: random Fourier features with corrected second moments."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from noisy_jax.moments.fourier import gaussian_frequencies
from noisy_jax.observed.fits.characteristics import EXACT, by_each_row, frequencies_of
from noisy_jax.observed.fits.choices import Option, by_candidate, chosen, judged_choices, of_band
from noisy_jax.observed.fits.functions import Candidate, FourierFit, FourierPredictor
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters, labels_of
from noisy_jax.observed.fits.hidden import hidden_share, places
from noisy_jax.observed.fits.identification import check_identified
from noisy_jax.observed.fits.judged import compared
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.trials import FACTORS, GROUPS, Trial, WeightedRows, tried
from noisy_jax.observed.fits.units import Units
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.described import TABLES_OUTSIDE_JIT
from noisy_jax.observed.observations.rows import Rows
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import positive_float, whole
from noisy_jax.validation.values import check_concrete

_OF_BAND = (
    "fit.band takes the curve to be no rougher than the length scale that was given; "
    "length_scale='auto' tries shorter ones as well."
)
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
_LEAST_SHARE = 0.1  # of the variance of noisy rows that is not noise


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Fourier(Method[FourierFit]):
    """Kernel regression of y on clean features, with the Gaussian kernel exp(−r²/(2ℓ²)).

    The curve is a weighted sum of D random Fourier features, cosines and sines of x, which
    approximate the kernel at the distance r. It is a ridge regression whose second moments are
    corrected for the noise. The strength of the regularization is chosen by the estimated error on
    clean data. `nj.fit(table, nj.methods.Fourier(…))` returns a `FourierFit`: its table compares
    estimated errors, `fit.predict(x)` is the curve, and `fit.band(x)` a band for it.

    **Noise**: the correction divides by the characteristic function φ of the noise,
    φ(ω) = E e^{i⟨ω, n⟩}. So it needs one distribution of the noise in all rows, such as
    `noise.Laplace(0.3)`, or replicates, from which it estimates φ. This assumes that the noise is
    symmetric with φ > 0: Gaussian or Laplace noise, but not uniform noise. Gaussian noise whose
    standard deviation is near ℓ hides most of the function, because φ is tiny. Then intervals of
    the estimated errors are wide, as they contain the largest bias that the hidden part can cause.
    A larger ℓ, more rows or more copies of each row help.

    If replicates differ more at some values of y or x than elsewhere, have a covariance by row, or
    are incomplete, there is no one φ. Then moments come from the copies of each row
    (`nj.unbiased.replicates`, of order 1 from two or three copies, else 2). These need no
    distribution, but keep a bias where the noise is near ℓ. Rows with one copy are then left out,
    with a warning.

    Args:
        length_scale: ℓ > 0, in standard deviations of the noisy columns; or "auto", which tries ¼,
            ½, 1, 2 and 4 times the median distance between two clean rows (estimated), but none
            below the standard deviation of the noise, and takes the one with the least estimated
            error on clean data.
        num_features: D ≥ 2, even; 256 by default. More approximate the kernel better.
        seed: seed of the random frequencies, a whole number ≥ 0; 0 by default.
        weights: `[n]` weights of the rows, factors of their squared errors, also in the estimated
            error; or the name of their column, which is then no feature. By default the weights of
            the table, or 1 if it has none. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column; by default the clusters of the table. Without any, rows are
            independent. Rows of a cluster are judged, and left out for the band, together.

    Give it to `nj.fit`, which raises ValueError if the table states only a variance of the noise,
    or covariances that are known on average only.

    Source: deconvolution kernels (Stefanski and Carroll, 1990; Fan and Truong, 1993) in the random
    features of Rahimi and Recht (2007).

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, size=(4000, 1))
        >>> noisy = x + rng.laplace(scale=0.4, size=x.shape)
        >>> error = nj.noise.Laplace(0.4)
        >>> table = nj.observations.from_arrays(noisy, np.sin(2 * x[:, 0]), noise=error)
        >>> result = nj.fit(table, nj.methods.Fourier(length_scale=0.7, num_features=64))
        >>> print(result.predict([[0.8]]).round(1), result.uncorrected.predict([[0.8]]).round(1))
        [0.9] [0.6]
    """

    length_scale: float | str
    num_features: int = 256
    seed: int = 0
    weights: Any = None
    clusters: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.length_scale, str):
            check_concrete("length_scale", self.length_scale, TABLES_OUTSIDE_JIT)
            length_scale = positive_float("length_scale", self.length_scale)
            object.__setattr__(self, "length_scale", length_scale)
        elif self.length_scale != "auto":
            wrong = given(self.length_scale)
            raise ValueError(f"length_scale must be a positive number or 'auto', got {wrong}")
        object.__setattr__(self, "num_features", whole("num_features", self.num_features, 2))
        if self.num_features % 2:
            raise ValueError(f"num_features must be even, got {self.num_features}")
        object.__setattr__(self, "seed", whole("seed", self.seed, 0))

    def _solved(self, sample: Sample) -> FourierFit:
        return _fit(sample, [self])


@dataclasses.dataclass(frozen=True, eq=False)
class OneOf(Method[FourierFit]):
    """Tries several `Fourier` methods, and takes the one with the least error on clean data.

    The error is the mean squared error on clean data, estimated from noisy rows that a fit did not
    see (cross-fitting), plus one standard error and a tenth of its largest bias. `FourierFit.risk`
    is estimated on rows that took no part in the choice. `nj.fit(table, candidates)` with a list of
    methods does the same.

    Args:
        candidates: at least one `Fourier` method, each without weights and clusters of its own.
        weights: `[n]` weights of the rows, factors of their squared errors, or the name of their
            column; by default the weights of the table, or 1 if it has none.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column; by default the clusters of the table. Without any, rows are
            independent.

    Give it to `nj.fit`, which returns a `FourierFit`. Its `candidates` are records of the methods
    that were tried, the best first: length scale, number of features, seed and estimated error. Of
    a method with `length_scale="auto"` there is one record for each length scale that it tried.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, size=(4000, 1))
        >>> noisy, y = x + 0.3 * rng.normal(size=x.shape), np.sin(2 * x[:, 0])
        >>> table = nj.observations.from_arrays(noisy, y, noise=nj.noise.Gaussian(0.09))
        >>> scales = [nj.methods.Fourier(length_scale=s, num_features=64) for s in (0.7, 20.0)]
        >>> print(nj.fit(table, nj.methods.OneOf(scales)).candidates[0].length_scale)
        0.7
    """

    candidates: Sequence[Fourier]
    weights: Any = None
    clusters: Any = None

    def __post_init__(self) -> None:
        super().__post_init__()
        several = isinstance(self.candidates, Iterable) and not isinstance(
            self.candidates, jax.Array
        )
        object.__setattr__(self, "candidates", tuple(self.candidates) if several else ())
        if not self.candidates or not all(
            isinstance(method, Fourier) for method in self.candidates
        ):
            raise ValueError(
                "a list of methods must hold nj.methods.Fourier(length_scale=…), one or more"
            )
        if any(
            method.weights is not None or method.clusters is not None for method in self.candidates
        ):
            raise ValueError(
                "candidates have the same weights and clusters: give these once, as "
                "nj.methods.OneOf(candidates, weights=…, clusters=…)"
            )

    def _solved(self, sample: Sample) -> FourierFit:
        return _fit(sample, self.candidates)


def _fit(sample: Sample, methods: Sequence[Fourier]) -> FourierFit:
    """The best of several methods."""
    if isinstance(jnp.zeros(()), Tracer):
        raise ValueError("a kernel fit runs on the host: call nj.fit outside jit and scan")
    sample = sample.of(sample.table.evened())
    sample = sample.with_copies(min(2, sample.table.x.shape[1]))
    table = _Standardized.of(sample)
    candidates = [candidate for method in methods for candidate in table.candidates(method)]
    trials = [(candidate, table.tried(candidate)) for candidate in candidates]
    options = [
        Option(candidate, trial, k)
        for candidate, trial in trials
        if trial
        for k in range(len(FACTORS))
    ]
    if not options:
        scales = ", ".join(f"{candidate.length_scale:g}" for candidate in candidates)
        raise ValueError(f"no finite kernel fit for the length scales {scales}: try larger ones")
    return table.fit(*chosen(options))


class _Standardized(NamedTuple):
    """A table in units that give its columns and y mean 0 and standard deviation 1.

    Attributes:
        table: in original units.
        units: of the rows.
        rows: in these units.
        cov: `[d, d]`, of the noise in the means of copies, in these units; 0 where it is unknown.
    """

    table: Observations
    units: Units
    rows: WeightedRows
    cov: np.ndarray

    @classmethod
    def of(cls, sample: Sample) -> _Standardized:
        """The rows of a sample; ValueError if no kernel fit can take them."""
        table = sample.table
        by_row = _check(table)
        x, y = np.nanmean(table.x, axis=1), table.y
        if len(y) < LEAST_GROUPS:
            raise ValueError(f"kernel fits need at least {LEAST_GROUPS} rows, got {len(y)}")
        check_clusters(sample.clusters)
        weights = sample.weights
        weights = np.ones(len(y)) if weights is None else weights / weights.mean()
        units = Units.of(x, y, table, weights)
        cov = np.zeros(2 * x.shape[1:]) if table.cov is None else table.cov
        cov = np.average(cov, axis=0, weights=weights) if cov.ndim == 3 else cov
        rows = units.standardized(Rows(x, y, cov / table.x.shape[1]))
        if rows.cov.any():
            plain = np.atleast_2d(np.cov(rows.x, rowvar=False, aweights=weights))
            check_identified(plain - rows.cov, plain, table.names, units.scale)
        copies = ((table.x - units.center) / units.scale).astype(np.float32) if by_row else None
        groups = labels_of(table.x, y, sample.clusters, GROUPS)
        arrays = rows.x.astype(np.float32), rows.y.astype(np.float32)
        return cls(table, units, WeightedRows(*arrays, weights, groups, copies), rows.cov)

    def candidates(self, method: Fourier) -> list[Fourier]:
        """The method with each length scale that it tries."""
        if method.length_scale != "auto":
            return [method]
        scales = length_scales(self.rows.x, self.cov)
        return [dataclasses.replace(method, length_scale=scale) for scale in scales]

    def tried(self, method: Fourier) -> Trial | None:
        """The fits with the features of a candidate, if they are finite."""
        drawn = gaussian_frequencies(
            jax.random.key(method.seed),
            method.num_features,
            dim=len(self.table.names),
            length_scale=np.float64(method.length_scale),
            characteristic=EXACT,
        )._replace(noise=None)
        if self.rows.copies is not None:
            return tried(drawn, self.rows)
        frequencies, without = frequencies_of(
            drawn.omega,
            drawn.amplitude,
            self.table,
            self.units.scale,
            weights=self.rows.weights,
            groups=self.rows.groups,
        )
        return tried(frequencies, self.rows, without)

    def fit(self, ranked: list[Option], others: list[Option]) -> FourierFit:
        """Returns the first option as a fit in original units, judged by choices on other rows."""
        best, band, square = ranked[0], of_band(ranked), self.units.y_scale**2
        corrected, uncorrected = (option.scaled(square) for option in judged_choices(others))
        share = hidden_share(best.trial.frequencies, best.weights, self.rows.effective)
        scales = {option.method.length_scale for option in ranked}
        return FourierFit(
            **vars(self._predictor(best.trial, best.weights)),
            uncorrected=self._predictor(best.trial, best.trial.plain_weights),
            undersmoothed=self._predictor(band.trial, band.weights),
            left_out=self._scaled(band.trial, band.trial.left_out(band.factor)),
            risk=compared(corrected, uncorrected, square, hidden_share=share),
            candidates=tuple(self._candidate(option) for option in by_candidate(ranked)),
            about=_OF_BAND if len(scales) == 1 else "",
            target=self.table.target,
            num_rows=len(self.table.y),
            num_copies=self.table.x.shape[1],
        )

    def _candidate(self, option: Option) -> Candidate:
        errors = option.judged.scaled(self.units.y_scale**2)
        return Candidate(
            length_scale=option.method.length_scale,
            num_features=option.method.num_features,
            seed=option.method.seed,
            factor=float(FACTORS[option.factor]),
            risk=float(errors.risk),
            std_error=float(errors.std_error()),
            bias=float(errors.bias),
        )

    def _scaled(self, trial: Trial, weights: np.ndarray) -> np.ndarray:
        return weights * (self.units.y_scale * float(trial.frequencies.amplitude))

    def _predictor(self, trial: Trial, weights: np.ndarray) -> FourierPredictor:
        return FourierPredictor(
            omega=np.asarray(trial.frequencies.omega, np.float64) / self.units.scale,
            center=self.units.center,
            weights=self._scaled(trial, weights),
            constant=self.units.y_center,
            names=self.table.names,
            references=self.table.references,
        )


def _check(table: Observations) -> bool:
    """Returns whether moments come from each row's copies; ValueError if the noise does not fit."""
    if table.cross_cov is not None:
        raise ValueError(
            "a kernel fit needs errors in y that are independent of those in x: leave out cross_cov"
        )
    table.check_each_row("a kernel fit")
    by_row = by_each_row(table)
    if table.cov is not None and table.cov.ndim == 3 and not by_row:
        raise ValueError(
            "a kernel fit needs one distribution of the noise for all rows, but in this table it "
            "differs from row to row: fit rows of similar errors alone, give replicates of each "
            "row, or take a curve of your own, nj.methods.Model(curve, start)"
        )
    return by_row


def length_scales(x: np.ndarray, cov: np.ndarray) -> list[float]:
    """Multiples from ¼ to 4 of the median distance between two clean rows, none below the noise.

    The median distance between two noisy rows x is multiplied by (1 − tr Σ/tr Cov x̃)^{1/2}, the
    ratio of the root mean squares of clean and of noisy distances, with the covariance Σ of their
    noise, 0 where it is unknown. Length scales below the noise's standard deviation
    (tr Σ/d)^{1/2} become this one: the noise hides whatever they could add.
    """
    rows = places(np.asarray(x, np.float64))
    size = np.sum(rows**2, axis=1)
    square = (size[:, None] + size[None] - 2 * rows @ rows.T)[np.triu_indices(len(rows), 1)]
    share = max(_LEAST_SHARE, 1 - np.trace(cov) / x.var(axis=0).sum())
    typical = np.sqrt(np.median(square[square > 1e-9 * square.max()]) * share)
    least = np.sqrt(np.trace(cov) / len(cov))
    return np.unique(np.maximum(typical * np.array(_MULTIPLES), least)).tolist()
