"""Kernel regression on noisy features: random Fourier features with corrected second moments."""

import itertools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Sample
from noisy_jax.fits.coefficients import Comparison
from noisy_jax.fits.functions import Candidate, FourierFeatures, FourierFit, FourierPredictor
from noisy_jax.fits.identification import check_identified
from noisy_jax.fits.linear import Units
from noisy_jax.moments.fourier import (
    Frequencies,
    estimated_characteristic,
    fourier,
    gaussian_frequencies,
)
from noisy_jax.noise import Gaussian
from noisy_jax.noise.base import check_characteristic
from noisy_jax.observations import Observations

_GROUPS = 16
_CONSECUTIVE = 64
"""Rows in a row that belong to one group, since neighbouring rows may depend on each other."""
_BLOCK = 4096
_FACTORS = np.array([0.1, 0.15, 0.3, 0.6, 1.2, 2.5, 5.0])
"""Regularizations that are tried, in units of the moments' standard deviation; at least a tenth."""
WIENER = 4.0
"""ε of the divisor φ + ε/(nφ̄), which keeps moments finite where φ is lost in the noise."""


def fourier_fit(
    observations: Observations, candidates: FourierFeatures | Sequence[FourierFeatures]
) -> FourierFit:
    """See `nj.fit`."""
    listed = [candidates] if isinstance(candidates, FourierFeatures) else candidates
    listed = list(listed) if isinstance(listed, Sequence) else []
    if not listed or not all(isinstance(c, FourierFeatures) for c in listed):
        raise ValueError("features must be nj.fourier(length_scale=…), or a list of such")
    if observations.cross_cov is not None:
        raise ValueError("a kernel fit needs errors in y that are independent of those in x")
    if observations.cov is not None and observations.cov.ndim == 3:
        raise ValueError(
            "Fourier features need noise of one distribution, but it changes from row to row; "
            "a linear fit takes such noise"
        )
    x, y = observations.x.mean(axis=1), observations.y
    if len(y) < 4 * _GROUPS:
        raise ValueError(f"kernel fits need at least {4 * _GROUPS} rows, got {len(y)}")
    units = Units.of(x, y, observations)
    standard = ((x - units.center) / units.scale).astype(np.float32)
    target = ((y - units.y_center) / units.y_scale).astype(np.float32)
    _check_noise(standard, observations, units)
    draw = _drawing(observations, units.scale)
    trials = [_Trial(one, draw(one), standard, target) for one in listed]
    tried = [trial for trial in trials if np.isfinite(trial.risks).all()]
    if not tried:
        scales = ", ".join(f"{one.length_scale:g}" for one in listed)
        raise ValueError(f"no finite kernel fit for the length scales {scales}: try larger ones")
    risks = np.concatenate([trial.risks for trial in tried])
    plain = np.concatenate([[trial.plain_risks] * len(_FACTORS) for trial in tried])
    pairs = list(itertools.product(tried, range(len(_FACTORS))))
    total, square = risks.sum(axis=1), (risks**2).sum(axis=1)
    order = np.argsort(_pessimistic(total, square, _GROUPS))
    trial, factor = pairs[order[0]]
    # Each group judges what the other groups would choose: the least of many risks is optimistic.
    others = total[:, None] - risks, square[:, None] - risks**2, _GROUPS - 1
    chosen = np.argmin(_pessimistic(*others), axis=0), np.arange(_GROUPS)
    judged = risks[chosen], plain[chosen], risks[chosen] - plain[chosen]
    variance, amplitude = units.y_scale**2, float(trial.frequencies.amplitude)
    numbers = [v * variance for sums in judged for v in trial.mean(sums)]
    shown = {}
    for k in order:
        one, j = pairs[k]
        mean, error = one.mean(risks[k])
        made = Candidate(one.features, float(_FACTORS[j]), mean * variance, error * variance)
        shown.setdefault(one.features, made)
    scale = units.y_scale * amplitude
    make = {
        "omega": np.asarray(trial.frequencies.omega, np.float64) / units.scale,
        "center": units.center,
        "constant": units.y_center,
        "names": observations.names,
    }
    return FourierFit(
        **make,
        weights=trial.weights[factor] * scale,
        uncorrected=FourierPredictor(**make, weights=trial.plain_weights * scale),
        risk=Comparison(*numbers, variance=variance, degrees_of_freedom=_GROUPS - 1),
        candidates=tuple(shown.values()),
        target=observations.target,
        num_rows=len(y),
    )


def _pessimistic(total, square, groups):
    """A risk summed over groups plus its standard error, from the sums and sums of squares.

    The least risk alone would favour features whose risk is uncertain. An estimate below 0 counts
    as 0.
    """
    return np.maximum(total, 0) + np.sqrt(np.maximum(square - total**2 / groups, 0))


class _Trial:
    """Cross-fitted risks and weights of one choice of features.

    Attributes:
        risks: `[F, G]`, estimated squared errors on clean data, summed over each group, for each
            regularization; NaN if the moments are not finite.
        weights: `[F, D]`, of the fits to all groups.
        plain_risks: `[G]`, of the uncorrected fit, whose regularization is chosen on noisy data.
        plain_weights: `[D]`.
    """

    def __init__(self, features: FourierFeatures, frequencies: Frequencies, x, y):
        self.features, self.frequencies = features, frequencies
        single, difference, total = map(jnp.ones_like, frequencies[2:5])
        none = Frequencies(*frequencies[:2], single, difference, total)
        groups = np.arange(len(y)) // min(_CONSECUTIVE, len(y) // _GROUPS) % _GROUPS
        rows = [groups == g for g in range(_GROUPS)]
        sums = [_sums(frequencies, x[own], y[own]) for own in rows]
        self.count = np.array([own.sum() for own in rows])
        yy = np.array([float(y[own] @ y[own]) for own in rows])
        corrected = [_corrected(frequencies, s, WIENER / _GROUPS) for s in sums]
        self.risks = np.full((len(_FACTORS), _GROUPS), np.nan)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(corrected)):
            return
        clean = _Solver(corrected, self.count)
        noisy = _Solver([_corrected(none, s, 0.0) for s in sums], self.count)
        self.risks, self.weights = clean.risks(corrected, yy), clean.weights()
        factor = noisy.risks(noisy.parts, yy).sum(axis=1).argmin()
        self.plain_risks = noisy.risks(corrected, yy)[factor]
        self.plain_weights = noisy.weights()[factor]

    def mean(self, sums) -> tuple[float, float]:
        """Mean over rows of sums over groups, and its standard error."""
        n, mean = self.count.sum(), sums.sum() / self.count.sum()
        square = np.sum((sums - self.count * mean) ** 2)
        return float(mean), float(np.sqrt(square * _GROUPS / (_GROUPS - 1)) / n)


class _Solver:
    """Regularized solutions from the moments of all groups, or of all but one."""

    def __init__(self, parts, count):
        self.parts, self.count = parts, count
        self.gram, self.cross = (sum(part[k] for part in parts) for k in (0, 1))
        share = count / count.sum()
        apart = [gram - s * self.gram for (gram, _), s in zip(parts, share, strict=True)]
        square = sum(a @ a for a in apart) * _GROUPS / (_GROUPS - 1)
        self.spread = np.sqrt(max(np.linalg.eigvalsh(square)[-1], 0.0))

    def weights(self, without=None) -> np.ndarray:
        """`[F, D]`, for each regularization."""
        gram, cross, rows = self.gram, self.cross, self.count.sum()
        if without is not None:
            own = self.parts[without]
            gram, cross, rows = gram - own[0], cross - own[1], rows - self.count[without]
        values, vectors = np.linalg.eigh(gram)
        penalty = _FACTORS * self.spread * np.sqrt(rows / self.count.sum()) + 1e-6 * rows
        return (vectors.T @ cross / (np.maximum(values, 0) + penalty[:, None])) @ vectors.T

    def risks(self, judge, yy) -> np.ndarray:
        """`[F, G]`, squared errors summed over each group, of the fits to the other groups."""
        columns = []
        for g, ((gram, cross), own) in enumerate(zip(judge, yy, strict=True)):
            w = self.weights(without=g)
            columns.append(np.sum((w @ gram) * w, axis=1) - 2 * w @ cross + own)
        return np.stack(columns, axis=1)


@jax.jit
def _block(frequencies, x, y, kept):
    return fourier(frequencies).sums(Sample(x[:, None], y), kept)


@jax.jit
def _read(frequencies, sums, wiener):
    return fourier(frequencies, wiener=wiener).corrected(sums)


def _corrected(frequencies, sums, wiener):
    """Corrected moments in float64."""
    return tuple(np.asarray(v, np.float64) for v in _read(frequencies, sums, wiener))


def _sums(frequencies, x, y):
    """Sums over rows in float64, block by block."""
    total = None
    for start in range(0, len(y), _BLOCK):
        block = slice(start, start + _BLOCK)
        rows, filling = len(y[block]), _BLOCK - len(y[block])
        sums = _block(
            frequencies,
            np.pad(x[block], ((0, filling), (0, 0))),
            np.pad(y[block], (0, filling)),
            np.pad(np.ones(rows, np.float32), (0, filling)),
        )
        sums = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), sums)
        total = sums if total is None else jax.tree.map(np.add, total, sums)
    return total


def _check_noise(standard, observations: Observations, units: Units) -> None:
    """Raises ValueError if a column varies no more than the known noise in it."""
    if observations.cov is None or not observations.cov.any():
        return
    noise = observations.cov / observations.x.shape[1] / np.outer(units.scale, units.scale)
    plain = np.atleast_2d(np.cov(standard, rowvar=False, dtype=np.float64))
    check_identified(plain - noise, plain, observations.names, units.scale)


def _drawing(
    observations: Observations, scale: np.ndarray
) -> Callable[[FourierFeatures], Frequencies]:
    """Draws frequencies with φ of the error in the standardized mean of the copies."""
    phi = _characteristic(observations, scale)

    def draw(features: FourierFeatures) -> Frequencies:
        frequencies = gaussian_frequencies(
            jax.random.key(features.seed),
            features.num_features,
            dim=len(scale),
            length_scale=features.length_scale,
            characteristic=phi or _ones,
        )
        return frequencies if phi else _estimated(frequencies, observations, scale)

    return draw


def frequencies_of(predictor: FourierPredictor, observations: Observations) -> Frequencies:
    """The frequencies of a fit, with φ of the error in the mean of the copies, in original units.

    Their amplitude is 1: the weights of a fit contain it.
    """
    scale, omega = np.ones(len(predictor.center)), jnp.asarray(predictor.omega, float)
    known = _characteristic(observations, scale)
    phi = known or _ones
    difference, total = omega[:, None] - omega[None], omega[:, None] + omega[None]
    made = Frequencies(omega, jnp.ones(()), phi(omega), phi(difference), phi(total))
    return made if known else _estimated(made, observations, scale)


def _ones(omega):
    return jnp.ones(omega.shape[:-1], jnp.complex64)


def _characteristic(observations: Observations, scale: np.ndarray):
    """φ of the error in the mean of the copies over `scale`; `None` if it must be estimated."""
    copies, dim = observations.x.shape[1:]
    noise = observations.noise
    if noise is None and observations.cov is not None and not observations.cov.any():
        noise = Gaussian(0.0)
    if noise is None and copies == 1:
        raise ValueError(
            "a kernel fit needs the distribution of the noise, not its covariance alone: "
            "noise=nj.noise.Gaussian(cov) if it is Gaussian, or replicates"
        )
    if noise is None:
        return None
    check_characteristic(noise, dim)

    def phi(omega):
        ratio = jnp.broadcast_to(1 / (scale * copies), omega.shape)
        return jnp.exp(copies * noise.log_characteristic(omega * ratio))

    return phi


def _estimated(frequencies: Frequencies, observations: Observations, scale) -> Frequencies:
    """The frequencies with φ from the replicates."""
    copies, sums = observations.x.shape[1], []
    for v, u in itertools.combinations(range(copies), 2):
        apart = (observations.x[:, v] - observations.x[:, u]) / scale / copies
        ones = np.ones(len(apart), np.float32)
        sums.append(_sums(frequencies, apart.astype(np.float32), ones))
    total = jax.tree.map(lambda *leaves: sum(leaves), *sums)
    return estimated_characteristic(frequencies, total, copies=copies)
