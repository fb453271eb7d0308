"""Kernel regression on noisy features: random Fourier features with corrected second moments."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.moments.fourier import (
    Frequencies,
    characteristics,
    estimated_characteristic,
    gaussian_frequencies,
)
from noisy_jax.noise import Gaussian, Noise
from noisy_jax.noise.base import check_characteristic
from noisy_jax.observed.fits.comparison import Comparison
from noisy_jax.observed.fits.functions import Candidate, FourierFit, FourierPredictor
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters, labels_of
from noisy_jax.observed.fits.hidden import CAUTION, hidden_share, places
from noisy_jax.observed.fits.identification import check_identified
from noisy_jax.observed.fits.replicates import noise_follows_values
from noisy_jax.observed.fits.trials import (
    FACTORS,
    GROUPS,
    Trial,
    WeightedRows,
    choices,
    judged,
    less,
    sums_of,
    undersmoothed,
)
from noisy_jax.observed.fits.units import Rows, Units
from noisy_jax.observed.observations import Observations

_EXACT = Gaussian(0.0)
_OF_BAND = (
    "fit.band takes the curve to be no rougher than the length scale that was given; "
    "length_scale='auto' tries shorter ones as well."
)
_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
_LEAST_SHARE = 0.1  # of the variance of noisy rows that is not noise


def fourier_fit(
    observations: Observations,
    candidates: Sequence[Any],
    weights: np.ndarray | None = None,
    clusters: np.ndarray | None = None,
) -> FourierFit:
    """See `nj.methods.Fourier`: the best of the candidates."""
    if observations.cross_cov is not None:
        raise ValueError("a kernel fit needs errors in y that are independent of those in x")
    observations.check_each_row("a kernel fit")
    each = by_each_row(observations)
    if observations.cov is not None and observations.cov.ndim == 3 and not each:
        raise ValueError(
            "a kernel fit needs one distribution of the noise for all rows, but in this table it "
            "differs from row to row: fit rows of similar errors alone, give replicates of each "
            "row, or take a curve of your own, nj.methods.Model(curve, start)"
        )
    x, y = np.nanmean(observations.x, axis=1), observations.y
    if len(y) < LEAST_GROUPS:
        raise ValueError(f"kernel fits need at least {LEAST_GROUPS} rows, got {len(y)}")
    own = np.ones(len(y)) if weights is None else weights / weights.mean()
    check_clusters(clusters)
    units = Units.of(x, y, observations, own)
    cov = np.zeros(2 * x.shape[1:]) if observations.cov is None else observations.cov
    cov = np.average(cov, axis=0, weights=own) if cov.ndim == 3 else cov
    rows = units.standardized(Rows(x, y, cov / observations.x.shape[1]))
    standard, target = rows.x.astype(np.float32), rows.y.astype(np.float32)
    groups = labels_of(observations.x, y, clusters, GROUPS)
    weighted = WeightedRows(standard, target, own, groups)
    if rows.cov.any():
        plain = np.atleast_2d(np.cov(rows.x, rowvar=False, aweights=own))
        check_identified(plain - rows.cov, plain, observations.names, units.scale)
    copies = ((observations.x - units.center) / units.scale).astype(np.float32) if each else None
    tried, trials = [], []
    for one in candidates:
        auto = one.length_scale == "auto"
        scales = length_scales(standard, rows.cov) if auto else [one.length_scale]
        tried += [dataclasses.replace(one, length_scale=scale) for scale in scales]
    for one in tried:
        key, options = jax.random.key(one.seed), {"dim": x.shape[1], "characteristic": _EXACT}
        drawn = gaussian_frequencies(
            key, one.num_features, length_scale=one.length_scale, **options
        )._replace(noise=None)
        if each:
            trial = Trial(drawn, weighted, copies)
        else:
            options = {"weights": own, "groups": weighted.groups}
            drawn = drawn.omega, drawn.amplitude
            made, without = frequencies_of(*drawn, observations, units.scale, **options)
            trial = Trial(made, weighted, without=without)
        if np.isfinite(trial.risks).all():
            trials.append((one, trial))
    if not trials:
        scales = ", ".join(f"{one.length_scale:g}" for one in tried)
        raise ValueError(f"no finite kernel fit for the length scales {scales}: try larger ones")
    risks = np.concatenate([trial.risks for _, trial in trials])
    bias = np.concatenate([trial.bias for _, trial in trials])
    pairs = [(trial, factor) for _, trial in trials for factor in range(len(FACTORS))]
    order, chosen = choices(risks, CAUTION * len(y) * bias)
    trial, factor = pairs[order[0]]
    variance = units.y_scale**2
    numbers = [v * variance for v in judged([pairs[k] for k in chosen])]
    shown: dict[int, Candidate] = {}
    for k in order:
        number, place = divmod(int(k), len(FACTORS))
        mean, error = (v * variance for v in trial.mean(risks[k]))
        one = trials[number][0]
        options = {"factor": float(FACTORS[place]), "bias": float(bias[k]) * variance}
        made = Candidate(
            one.length_scale, one.num_features, one.seed, **options, risk=mean, std_error=error
        )
        shown.setdefault(number, made)
    rough, least = pairs[_rougher(order, [one.length_scale for one, _ in trials])]
    least = undersmoothed(least)

    def scaled(trial, weights):
        return weights * (units.y_scale * float(trial.frequencies.amplitude))

    def predictor(trial, weights):
        omega = np.asarray(trial.frequencies.omega, np.float64) / units.scale
        return FourierPredictor(
            omega=omega,
            center=units.center,
            weights=scaled(trial, weights),
            constant=units.y_center,
            names=observations.names,
            references=observations.references,
        )

    return FourierFit(
        **vars(predictor(trial, trial.weights[factor])),
        uncorrected=predictor(trial, trial.plain_weights),
        undersmoothed=predictor(rough, rough.weights[least]),
        left_out=scaled(rough, rough.left_out(least)),
        risk=Comparison(
            *numbers[:6],
            variance=variance,
            degrees_of_freedom=len(trial.count) - 1,
            corrected_bias=numbers[6],
            uncorrected_bias=numbers[7],
            difference_bias=numbers[8],
            hidden_share=hidden_share(trial.frequencies, trial.weights[factor], weighted.effective),
        ),
        candidates=tuple(shown.values()),
        about=_OF_BAND if len({one.length_scale for one, _ in trials}) == 1 else "",
        target=observations.target,
        num_rows=len(y),
        num_copies=observations.x.shape[1],
    )


def length_scales(x: np.ndarray, cov: np.ndarray) -> list[float]:
    """Multiples from ¼ to 4 of the median distance between two clean rows, none below the noise.

    The median distance between two noisy rows x is multiplied by (1 − tr Σ/tr Cov x̃)^{1/2}, the
    ratio of the root mean squares of clean and of noisy distances, with the covariance Σ of their
    noise, 0 where it is unknown. Length scales below the noise's standard deviation
    (tr Σ/d)^{1/2} become this one: what they could add is hidden.
    """
    some = places(np.asarray(x, np.float64))
    size = np.sum(some**2, axis=1)
    square = (size[:, None] + size[None] - 2 * some @ some.T)[np.triu_indices(len(some), 1)]
    share = max(_LEAST_SHARE, 1 - np.trace(cov) / x.var(axis=0).sum())
    typical = np.sqrt(np.median(square[square > 1e-9 * square.max()]) * share)
    least = np.sqrt(np.trace(cov) / len(cov))
    return np.unique(np.maximum(typical * np.array(_MULTIPLES), least)).tolist()


def _rougher(order: np.ndarray, length_scales: list[float]) -> int:
    """The candidate of a band: the best one of the next length scale of at most half the first's.

    The choice takes a long length scale where the rows do not contradict it; its bias may still
    be as large as its random error. Where none is so short it is the first candidate.
    """
    scales = np.repeat(length_scales, len(FACTORS))[order]
    shorter = scales[scales <= scales[0] / 2]
    return order[np.argmax(scales == (shorter.max() if len(shorter) else scales[0]))]


def by_each_row(observations: Observations) -> bool:
    """Whether moments must come from the replicates of each row, as the noise has no common law.

    The covariance of the noise is then either given row by row, or replicates show that the noise
    depends on the clean row; or the replicates of some rows are incomplete. `moments.replicates`
    needs no law, but leaves a bias. Where the noise is independent of the clean rows, φ from
    complete replicates of all rows is more precise, also if rows have noise of different variances.
    """
    if observations.x.shape[1] == 1:
        return False
    by_row = observations.cov is not None and observations.cov.ndim == 3
    if by_row or np.isnan(observations.x).any():
        return True
    return observations.noise is None and noise_follows_values(observations)


def frequencies_of(
    omega: Any,
    amplitude: Any,
    observations: Observations,
    scale: Any,
    weights: Any = None,
    groups: Any = None,
) -> tuple[Frequencies, Callable[..., Frequencies] | None]:
    """Frequencies ω `[P, d]` with φ of the error in the mean of the copies over `scale`.

    And what gives them with φ from the rows without some of `groups` `[n]`, by their numbers;
    `None` if φ is not estimated.
    """
    omega, rows = jnp.asarray(omega, float), observations.y
    known, copies = _known(observations), observations.x.shape[1]
    weights = np.ones(len(rows)) if weights is None else weights
    phi = characteristics(_EXACT if known is None else known, omega, scale, copies)
    made = Frequencies(omega, jnp.asarray(amplitude), *phi)
    if known is not None:
        return made, None
    groups = np.zeros(len(rows), int) if groups is None else groups
    each = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
    sums = [_differences(made, observations.x[own] / scale, weights[own]) for own in each]
    total = jax.tree.map(lambda *leaves: sum(leaves), *sums)
    lost = (0.1 / len(rows)) ** (1 / (2 * copies))  # below it, judges see that φ is lost
    options = {"copies": copies, "floor": min(0.05, lost)}

    def without(*left_out):
        rest = less(total, [sums[g] for g in left_out])
        return estimated_characteristic(made, rest, **options)

    return without(), without


def _known(observations: Observations) -> Noise | None:
    """The distribution of the noise of each copy; `None` if φ must be estimated."""
    noise: Any = observations.noise
    if noise is None and observations.cov is not None and not observations.cov.any():
        noise = _EXACT
    if noise is None and observations.x.shape[1] == 1:
        raise ValueError(
            "a kernel fit needs the distribution of the noise, not its covariance alone: "
            "if it is Gaussian, nj.sd(0.4, gaussian=True) or nj.noise.Gaussian(cov); or replicates"
        )
    if noise is not None:
        check_characteristic(noise, observations.x.shape[2])
    return noise


def _differences(frequencies: Frequencies, x: np.ndarray, weights: np.ndarray) -> Any:
    """Sums of waves at the differences of all pairs of copies, over V."""
    copies, ones = x.shape[1], np.ones(len(x), np.float32)
    pairs = itertools.combinations(range(copies), 2)
    apart = [((x[:, v] - x[:, u]) / copies).astype(np.float32) for v, u in pairs]
    sums = [sums_of(frequencies, one, ones, weights) for one in apart]
    return jax.tree.map(lambda *leaves: sum(leaves), *sums)
