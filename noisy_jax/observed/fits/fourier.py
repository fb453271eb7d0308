"""Kernel regression on noisy features: random Fourier features with corrected second moments."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from noisy_jax.moments.fourier import gaussian_frequencies
from noisy_jax.observed.fits.characteristics import EXACT, by_each_row, frequencies_of
from noisy_jax.observed.fits.choices import Choice, Option
from noisy_jax.observed.fits.functions import Candidate, FourierFit, FourierPredictor
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters, labels_of
from noisy_jax.observed.fits.hidden import hidden_share, places
from noisy_jax.observed.fits.identification import check_identified
from noisy_jax.observed.fits.judged import compared
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.fits.trials import FACTORS, GROUPS, Trial, WeightedRows, tried
from noisy_jax.observed.fits.units import Rows, Units
from noisy_jax.observed.observations import Observations

if TYPE_CHECKING:
    from noisy_jax.observed.fits.kernel_methods import Fourier

_OF_BAND = (
    "fit.band takes the curve to be no rougher than the length scale that was given; "
    "length_scale='auto' tries shorter ones as well."
)
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
_LEAST_SHARE = 0.1  # of the variance of noisy rows that is not noise


def fourier_fit(sample: Sample, methods: Sequence["Fourier"]) -> FourierFit:
    """The best of several methods; see `nj.methods.Fourier`."""
    table = _Standardized.of(sample)
    candidates = [one for method in methods for one in table.candidates(method)]
    trials = [(one, table.tried(one)) for one in candidates]
    options = [Option(one, trial, k) for one, trial in trials if trial for k in range(len(FACTORS))]
    if not options:
        scales = ", ".join(f"{one.length_scale:g}" for one in candidates)
        raise ValueError(f"no finite kernel fit for the length scales {scales}: try larger ones")
    return table.fit(Choice.among(options))


class _Standardized(NamedTuple):
    """A table in units in which its columns and y have mean 0 and standard deviation 1.

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
    def of(cls, sample: Sample) -> "_Standardized":
        """The rows of a sample; ValueError if no kernel fit can take them."""
        table = sample.table
        each = _check(table)
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
        copies = ((table.x - units.center) / units.scale).astype(np.float32) if each else None
        groups = labels_of(table.x, y, sample.clusters, GROUPS)
        arrays = rows.x.astype(np.float32), rows.y.astype(np.float32)
        return cls(table, units, WeightedRows(*arrays, weights, groups, copies), rows.cov)

    def candidates(self, method: "Fourier") -> list["Fourier"]:
        """The method with each length scale that it tries."""
        if method.length_scale != "auto":
            return [method]
        scales = length_scales(self.rows.x, self.cov)
        return [dataclasses.replace(method, length_scale=scale) for scale in scales]

    def tried(self, method: "Fourier") -> Trial | None:
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
        made, without = frequencies_of(
            drawn.omega,
            drawn.amplitude,
            self.table,
            self.units.scale,
            weights=self.rows.weights,
            groups=self.rows.groups,
        )
        return tried(made, self.rows, without)

    def fit(self, choice: Choice) -> FourierFit:
        """The first of the options, in original units."""
        best, band, square = choice.ranked[0], choice.of_band, self.units.y_scale**2
        corrected, uncorrected = (one.scaled(square) for one in choice.judged)
        share = hidden_share(best.trial.frequencies, best.weights, self.rows.effective)
        scales = {one.method.length_scale for one in choice.ranked}
        return FourierFit(
            **vars(self._predictor(best.trial, best.weights)),
            uncorrected=self._predictor(best.trial, best.trial.plain_weights),
            undersmoothed=self._predictor(band.trial, band.weights),
            left_out=self._scaled(band.trial, band.trial.left_out(band.factor)),
            risk=compared(corrected, uncorrected, square, hidden_share=share),
            candidates=tuple(self._candidate(one) for one in choice.by_candidate),
            about=_OF_BAND if len(scales) == 1 else "",
            target=self.table.target,
            num_rows=len(self.table.y),
            num_copies=self.table.x.shape[1],
        )

    def _candidate(self, option: Option) -> Candidate:
        judged = option.judged.scaled(self.units.y_scale**2)
        return Candidate(
            length_scale=option.method.length_scale,
            num_features=option.method.num_features,
            seed=option.method.seed,
            factor=float(FACTORS[option.factor]),
            risk=float(judged.risk),
            std_error=float(judged.std_error()),
            bias=float(judged.bias),
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
    each = by_each_row(table)
    if table.cov is not None and table.cov.ndim == 3 and not each:
        raise ValueError(
            "a kernel fit needs one distribution of the noise for all rows, but in this table it "
            "differs from row to row: fit rows of similar errors alone, give replicates of each "
            "row, or take a curve of your own, nj.methods.Model(curve, start)"
        )
    return each


def length_scales(x: np.ndarray, cov: np.ndarray) -> list[float]:
    """Multiples from ¼ to 4 of the median distance between two clean rows, none below the noise.

    The median distance between two noisy rows x is multiplied by (1 − tr Σ/tr Cov x̃)^{1/2}, the
    ratio of the root mean squares of clean and of noisy distances, with the covariance Σ of their
    noise, 0 where it is unknown. Length scales below the noise's standard deviation
    (tr Σ/d)^{1/2} become this one: the noise hides whatever they could add.
    """
    some = places(np.asarray(x, np.float64))
    size = np.sum(some**2, axis=1)
    square = (size[:, None] + size[None] - 2 * some @ some.T)[np.triu_indices(len(some), 1)]
    share = max(_LEAST_SHARE, 1 - np.trace(cov) / x.var(axis=0).sum())
    typical = np.sqrt(np.median(square[square > 1e-9 * square.max()]) * share)
    least = np.sqrt(np.trace(cov) / len(cov))
    return np.unique(np.maximum(typical * np.array(_MULTIPLES), least)).tolist()
