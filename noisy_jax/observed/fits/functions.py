"""Results of a kernel fit: a function of random Fourier features, and its estimated error."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import jax
import numpy as np

from noisy_jax.features import cosines_and_sines
from noisy_jax.observed.fits.bands import half_widths
from noisy_jax.observed.fits.features import features_of
from noisy_jax.observed.fits.judged import Comparison
from noisy_jax.observed.fits.result import Result, counted_features
from noisy_jax.reports.intervals import LEVEL, half_width, parsed_level
from noisy_jax.reports.tables import Table
from noisy_jax.validation.objects import switch
from noisy_jax.validation.values import check_concrete


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class FourierPredictor:
    """A function of clean features, Σ_j w_j z_j(x) plus a constant, in original units.

    Attributes:
        omega: `[P, d]` frequencies, per original unit.
        center: `[d]`, subtracted from x before the features are computed.
        weights: `[D]`, of the cosines and then of the sines.
        constant: value that is added.
        names: d names of the columns.
        references: categories that have no indicator, such as `sex[f]`.
    """

    omega: np.ndarray
    center: np.ndarray
    weights: np.ndarray
    constant: float
    names: tuple[str, ...]
    references: tuple[str, ...] = ()

    @jax.default_matmul_precision("highest")
    def predict(self, x: Any) -> Any:
        """Predictions `[...]` at features `[..., d]` in original units.

        Columns are taken by name, as in `Estimates.predict`. It works under `jit`, `vmap` and
        `grad`.
        """
        return self._waves(x) @ self.weights + self.constant

    def _waves(self, x: Any) -> Any:
        """Cosines and sines `[..., D]` at features `[..., d]`."""
        x = features_of(x, self.names, self.references)
        apart = x - np.broadcast_to(self.center, x.shape)
        return cosines_and_sines(apart, self.omega / (2 * np.pi))


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Estimated error on clean data of one choice of features.

    Attributes:
        length_scale: ℓ, as in `nj.methods.Fourier`; so are the next two.
        num_features: D.
        seed: of the frequencies.
        factor: regularization in units of the moments' standard deviation.
        risk: estimated mean squared error on clean data, of the best of several factors, hence
            slightly too low; `FourierFit.risk` is judged by rows that did not choose.
        std_error: its standard error over groups of rows.
        bias: largest bias of `risk` that frequencies lost in the noise can cause.
    """

    length_scale: float
    num_features: int
    seed: int
    factor: float
    risk: float
    std_error: float
    bias: float = 0.0


_COLUMNS = (
    ("length scale", "{length_scale:.3g}"),
    ("features", "{num_features}"),
    ("λ factor", "{factor:.2g}"),
    ("clean error", "{risk:.4g}"),
    ("± 95%", "{half:.2g}"),
)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class FourierFit(FourierPredictor, Result):
    """A corrected kernel regression, by `nj.methods.Fourier`; print it for the table of candidates.

    The curve is f(x) = constant + Σ_j w_j z_j(x), where z(x) are the D = 2P features
    cos⟨ω_j, x − center⟩ and then sin⟨ω_j, x − center⟩ with random frequencies ω_j, j = 1 to P.

    Attributes:
        omega: `[P, d]`, frequencies ω_j in radians per original unit of x.
        center: `[d]`, subtracted from x.
        weights: `[D]`, w, in units of y.
        constant: a number, added to the sum.
        names: names of the d columns.
        references: categories that have no indicator column, such as `sex[f]` beside `sex[m]`.
        uncorrected: the same features fitted to the noisy rows (with replicates, to their means);
            it has `predict`. Use it to predict from equally noisy features.
        risk: estimated mean squared errors on clean data, in units of y squared, on rows that were
            not used to fit or to choose: `risk.corrected`, `risk.uncorrected` and their
            `risk.difference`, with standard errors such as `risk.corrected_std_error`.
            `risk.hidden_share` is the share of the squared weights w at frequencies that the noise
            hides; `risk.corrected_bias` is the largest bias that these can cause.
        candidates: a `Candidate` for each method that was tried (`length_scale="auto"` stands for
            several), at its best regularization, with fields `length_scale`, `num_features`,
            `seed`, `factor` (of the regularization), `risk`, `std_error` and `bias`. The first is
            the one that was taken: the lowest risk plus one standard error and a tenth of the bias.
            Candidates that overflow are left out.
        undersmoothed: the less regularized fit that is in the middle of a band (`band`).
        left_out: `[G, D]`, weights of `undersmoothed` without each of G groups of rows, from which
            the width of a band follows. They are moved nearer to their mean where fits without two
            groups at a time show that the jackknife's variance is too large.
        target: name of y.
        num_rows: n, number of rows.
        num_copies: V, number of noisy copies of each row.
        remarks: texts: evidence in the rows against the assumptions of the correction, cautions,
            and notes on categories, which are no doubts.
        about: sentences about the band, which stand below the printed table.
        exposed: False.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(2000, 1))
        >>> noisy, error = x + 0.5 * rng.normal(size=x.shape), nj.noise.Gaussian(0.25)
        >>> table = nj.observations.from_arrays(noisy, np.sin(x[:, 0]), noise=error)
        >>> fit = nj.fit(table, nj.methods.Fourier(length_scale=1.0, num_features=64))
        >>> print(fit.predict([[1.0]]).round(1), fit.uncorrected.predict([[1.0]]).round(1))
        [0.8] [0.7]
    """

    kind: ClassVar[str] = "kernel"
    form: ClassVar[str] = "curve"

    uncorrected: FourierPredictor
    risk: Comparison = dataclasses.field()
    candidates: tuple[Candidate, ...]
    undersmoothed: FourierPredictor
    left_out: np.ndarray

    def predict(self, x: Any, *, interval: bool = False, level: float = LEVEL) -> Any:
        """Returns predictions `[...]` of y at clean features `[..., d]`, in original units.

        It works under `jit`, `vmap` and `grad`, but for the intervals.

        Args:
            x: an array, or a DataFrame, a row of it or a mapping, whose columns are taken by name.
            interval: whether to return the ends of `band` at each point as well, by default False.
            level: level of the band, between 0 and 1; only with `interval`.

        Returns:
            The predictions; with `interval` three arrays `[...]`, the predictions and both ends.
        """
        level, interval = parsed_level(level), switch("interval", interval)
        if not interval and level != LEVEL:
            raise ValueError("level is of intervals: write predict(x, interval=True, level=…)")
        value = super().predict(x)
        return (value, *self.band(x, level)) if interval else value

    def band(
        self, x: Any, level: float = LEVEL, *, simultaneous: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns lower and upper ends of a confidence band for the clean curve, at x.

        The middle of the band is not the fit: a band around a fit that is biased misses the curve.
        It is `undersmoothed`, a fit with about a tenth of the chosen regularization. If one of the
        length scales that were tried is at most half the chosen ℓ, `undersmoothed` has the longest
        of these. The width is from the jackknife, refits without one of up to 16 groups of rows at
        a time; rows, or clusters, are dealt to the groups at random. If the noise's characteristic
        function is estimated from replicates, it is estimated anew in each refit.

        So a band of 95% covers about 95% of the points of a curve. It covers fewer where the noise
        hides most of the fit (`risk.hidden_share`), where the features are too few, or where the
        curve is rougher than the length scale that was given. The rows cannot show that it is: a
        band that is valid for all curves must be as wide as the roughest of them needs (Low, 1997).
        A given length scale is hence an assumption, and the printed fit says so. Far outside the
        rows the band means nothing: fit and band return to about the mean of y there.

        Args:
            x: `[..., d]`, clean features in original units, or a DataFrame.
            level: level of the band, between 0 and 1; 0.95 by default.
            simultaneous: whether the band is to hold at all points of `x` together, rather than at
                each of them (the default). Give a grid over the rows that is dense enough for the
                curve; more points hardly widen the band.

        Returns:
            Two arrays `[...]`, in units of y.

        Example:
            >>> import numpy as np, noisy_jax as nj
            >>> rng = np.random.default_rng(0)
            >>> x = rng.normal(size=(2000, 1))
            >>> noisy = x + 0.5 * rng.normal(size=x.shape)
            >>> error = nj.noise.Gaussian(0.25)
            >>> table = nj.observations.from_arrays(noisy, np.sin(x[:, 0]), noise=error)
            >>> fit = nj.fit(table, nj.methods.Fourier(length_scale=1.0, num_features=64))
            >>> low, high = fit.band([[0.0], [1.0]])
            >>> print((low < np.sin([0.0, 1.0])) & (np.sin([0.0, 1.0]) < high))
            [ True  True]
        """
        for name, value in {"level": level, "x": x}.items():
            check_concrete(
                name, value, "bands are computed on the host, outside jit, vmap and grad"
            )
        level, simultaneous = parsed_level(level), switch("simultaneous", simultaneous)
        waves = self.undersmoothed._waves(x)
        middle = waves @ self.undersmoothed.weights + self.constant
        left_out = self.left_out @ waves.reshape(-1, waves.shape[-1]).T
        half = half_widths(left_out, level, simultaneous).reshape(middle.shape)
        return middle - half, middle + half

    def summary(self) -> Table:
        """Returns the printed table: candidates, and the comparison with the uncorrected fit."""
        freedom = self.risk.degrees_of_freedom
        # Of the estimated error of each candidate: half its interval, and its bias.
        allowances = [
            float(half_width(candidate.std_error, freedom)) + candidate.bias
            for candidate in self.candidates
        ]
        rows = [
            vars(candidate) | {"half": allowance}
            for candidate, allowance in zip(self.candidates, allowances, strict=True)
        ]
        printed = rows[:8]
        title = (
            f"{self.target} as a function of {counted_features(len(self.center))}, "
            f"{self.num_rows:,} noisy rows"
        )
        lines = []
        least = self.candidates[0].risk
        ties = sum(
            candidate.risk - least < allowance
            for candidate, allowance in zip(self.candidates[1:], allowances[1:], strict=True)
        )
        if ties:
            lines.append(f"{ties} more cannot be told apart from the first.")
        lines.append("Each error is that of its best λ factor, hence slightly too low.")
        if any(row["risk"] < 0 for row in printed):
            lines.append("An error is not below 0: where its estimate is, the noise hides it.")
        below = self._below(lines, "This curve is")
        return Table(rows, _COLUMNS, title, printed, below)
