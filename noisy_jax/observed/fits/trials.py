"""Candidates of a kernel fit: cross-fitted weights and risks, and the choice among them."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Sample
from noisy_jax.features import cosines_and_sines
from noisy_jax.moments.fourier import Frequencies, fourier
from noisy_jax.moments.unknown_noise import replicates
from noisy_jax.observed.fits.bands import calibrated, pairs_of_groups
from noisy_jax.observed.fits.hidden import JUDGE, hidden, largest_bias, places

GROUPS = 16
"""Groups of rows by which risks are cross-fitted; each row of a smaller table is one."""
_BLOCK = 4096
FACTORS = np.array([3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])
"""Regularizations that are tried, in units of the moments' standard deviation over groups."""
_WIENER = 4.0
"""ε of a fit's divisor φ + ε/(nφ̄), which keeps moments finite where φ is lost in the noise."""


def choices(risks: np.ndarray, added: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The order of K candidates, best first, and `[G]`, what each group judges.

    `risks` `[K, G]` are summed over the rows of each group. The least risk alone would favour
    features whose risk is uncertain: one standard error and `added` `[K]` are added to each, and an
    estimate below 0 counts as 0. A group judges what the other groups would choose, since the least
    of many risks is optimistic.
    """
    total, square, groups = risks.sum(axis=1), (risks**2).sum(axis=1), risks.shape[1]

    def pessimistic(total, square, groups):
        return np.maximum(total, 0) + np.sqrt(np.maximum(square - total**2 / groups, 0))

    order = np.argsort(pessimistic(total, square, groups) + added)
    others = pessimistic(total[:, None] - risks, square[:, None] - risks**2, groups - 1)
    return order, np.argmin(others + added[:, None] * (groups - 1) / groups, axis=0)


def judged(chosen: list[Any]) -> list[float]:
    """Errors of corrected and uncorrected fits and their difference, and the bounds on the bias.

    `chosen` holds the trial and the regularization that each group judges.
    """
    trial = chosen[0][0]
    corrected = np.array([one.risks[j, g] for g, (one, j) in enumerate(chosen)])
    plain = np.array([one.plain_risks[g] for g, (one, _) in enumerate(chosen)])
    folds = [np.stack([one.folds[g, j], one.plain_folds[g]]) for g, (one, j) in enumerate(chosen)]
    left = [one.hidden(weights) for (one, _), weights in zip(chosen, folds, strict=True)]
    left = np.average(left, axis=0, weights=trial.count)
    errors = [v for sums in (corrected, plain, corrected - plain) for v in trial.mean(sums)]
    return [*errors, *largest_bias(np.stack([*left, left[0] - left[1]]))]


def undersmoothed(factor: int) -> int:
    """Index in `FACTORS` of about a tenth of the regularization at index `factor`, or 0.

    The bias of such a fit is small against its random error.
    """
    return max(factor - 2, 0)


class WeightedRows(NamedTuple):
    """A standardized table."""

    x: np.ndarray  # [n, d], means of the copies
    y: np.ndarray  # [n]
    weights: np.ndarray  # [n], of mean 1
    groups: np.ndarray  # [n], numbers from 0 to G − 1, by which risks are cross-fitted

    @property
    def effective(self) -> float:
        """(Σ_i w_i)²/Σ_i w_i², how many rows of one weight say as much (Kish, 1965)."""
        return float(self.weights.sum() ** 2 / (self.weights @ self.weights))


class Trial:
    """Cross-fitted risks and weights of one choice of features.

    Args:
        frequencies: of the features, with φ of the noise in x, unless `copies` are given.
        rows: the table.
        copies: `[n, V, d]`, if moments are to come from the copies of each row, not from φ; NaN
            behind the last one of a row.
        without: gives the frequencies with φ from the rows without some groups, if φ is estimated.
            The fits without a group then contain the uncertainty of φ.

    Attributes:
        risks: `[F, G]`, estimated squared errors on clean data, summed over each group, for each
            regularization; NaN if the moments are not finite. Directions in which the estimated
            square of a function is negative count as zero.
        bias: `[F]`, bounds on the bias of the risks, per row.
        weights: `[F, D]`, of the fits to all groups.
        plain_risks: `[G]`, of the uncorrected fit, whose regularization is chosen on noisy data.
        plain_weights: `[D]`.
        folds: `[G, F, D]`, weights of the fits to all groups but one.
        plain_folds: `[G, D]`.
    """

    def __init__(
        self,
        frequencies: Frequencies,
        rows: WeightedRows,
        copies: np.ndarray | None = None,
        without: Any = None,
    ):
        single, difference, total = map(jnp.ones_like, frequencies[2:5])
        none = Frequencies(*frequencies[:2], single, difference, total)
        groups = [np.flatnonzero(rows.groups == g) for g in range(rows.groups.max() + 1)]
        parts = [(rows.x[own], rows.y[own], rows.weights[own]) for own in groups]
        sums = [sums_of(frequencies, *part) for part in parts]
        self.count = np.array([weights.sum() for *_, weights in parts])
        yy = np.array([float(weights @ (y.astype(float) ** 2)) for _, y, weights in parts])
        if copies is not None:
            pairs = zip(groups, parts, strict=True)
            judge = corrected = [_sums_of_copies(none, copies[own], *p[1:]) for own, p in pairs]
        else:
            share = self.count / rows.effective
            corrected, judge = (
                [_corrected(frequencies, one, size * s) for one, s in zip(sums, share, strict=True)]
                for size in (_WIENER, JUDGE)
            )
        self.frequencies, self.rows = frequencies, rows
        self.risks = np.full((len(FACTORS), len(groups)), np.nan)
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((corrected, judge))):
            return
        judge = without_negative(judge, self.count)
        whole: Any = jax.tree.map(lambda *leaves: sum(leaves), *sums)

        def rest(*left_out):
            own = less(whole, [sums[g] for g in left_out])
            return _corrected(without(*left_out), own, _WIENER * float(own.count) / rows.effective)

        clean = self._clean = _Solver(corrected, self.count, rest if without else None)
        noisy = _Solver([_corrected(none, s, 0.0) for s in sums], self.count)
        self.risks, self.weights, self.folds = clean.risks(judge, yy), clean.weights(), clean.folds
        factor = noisy.risks(noisy.parts, yy).sum(axis=1).argmin()
        self.plain_risks = noisy.risks(judge, yy)[factor]
        self.plain_weights, self.plain_folds = noisy.weights()[factor], noisy.folds[:, factor]
        self.bias = largest_bias(self.hidden(self.weights))

    def left_out(self, factor: int) -> np.ndarray:
        """`[G, D]`, weights without each group, for the calibrated jackknife of a band."""
        pairs = pairs_of_groups(len(self.folds))
        both = np.stack([self._clean.weights(*pair)[factor] for pair in pairs])
        omega = np.asarray(self.frequencies.omega, float)
        waves = cosines_and_sines(places(self.rows.x), omega / (2 * np.pi))
        folds = self.folds[:, factor]
        return calibrated(self.weights[factor], folds, both, np.asarray(waves, float))

    def hidden(self, weights) -> np.ndarray:
        """What the judge leaves out of functions with weights `[K, D]`, `[K, 2, m]`."""
        rows = self.rows
        square = rows.weights @ rows.y.astype(float) ** 2 / rows.weights.sum()
        return hidden(self.frequencies, weights, places(rows.x), square, rows.effective)

    def mean(self, sums) -> tuple[float, float]:
        """Mean over rows of sums over groups, and its standard error."""
        n, mean = self.count.sum(), sums.sum() / self.count.sum()
        square, groups = np.sum((sums - self.count * mean) ** 2), len(sums)
        return float(mean), float(np.sqrt(square * groups / (groups - 1)) / n)


def without_negative(parts, count) -> list[Any]:
    """The moments, with no negative eigenvalue of the sum, which the clean moments do not have.

    Training would find the functions whose estimated squares are negative.
    """
    values, vectors = np.linalg.eigh(sum(gram for gram, _ in parts))
    missing = (vectors * np.maximum(-values, 0)) @ vectors.T / count.sum()
    return [(gram + n * missing, cross) for (gram, cross), n in zip(parts, count, strict=True)]


class _Solver:
    """Regularized solutions from the moments of all groups, or without some of them.

    The latter are what `rest` gives for the numbers of these groups, or the sum less their parts.
    """

    def __init__(self, parts, count, rest=None):
        self.parts, self.count, self._rest = parts, count, rest
        self.gram, self.cross = (sum(part[k] for part in parts) for k in (0, 1))
        share = count / count.sum()
        apart = [gram - s * self.gram for (gram, _), s in zip(parts, share, strict=True)]
        square = sum(a @ a for a in apart) * len(parts) / (len(parts) - 1)
        self.spread = np.sqrt(max(np.linalg.eigvalsh(square)[-1], 0.0))
        self.folds = np.stack([self.weights(g) for g in range(len(parts))])

    def weights(self, *left_out) -> np.ndarray:
        """`[F, D]`, for each regularization, without some groups."""
        gram, cross, rows = self.gram, self.cross, self.count.sum()
        for g in left_out:
            own, rows = self.parts[g], rows - self.count[g]
            gram, cross = gram - own[0], cross - own[1]
        if left_out and self._rest:
            gram, cross = self._rest(*left_out)
        values, vectors = np.linalg.eigh(gram)
        penalty = FACTORS * self.spread * np.sqrt(rows / self.count.sum()) + 1e-6 * rows
        return (vectors.T @ cross / (np.maximum(values, 0) + penalty[:, None])) @ vectors.T

    def risks(self, judge, yy) -> np.ndarray:
        """`[F, G]`, squared errors summed over each group, of the fits to the other groups."""
        columns = []
        for (gram, cross), own, w in zip(judge, yy, self.folds, strict=True):
            columns.append(np.sum((w @ gram) * w, axis=1) - 2 * w @ cross + own)
        return np.stack(columns, axis=1)


@jax.jit
def _block(frequencies, x, y, kept):
    moments = fourier(frequencies)
    if x.ndim == 2:
        return moments.sums(Sample(x[:, None], y), kept)
    copies = x.shape[1]
    moments = replicates(moments.features, copies=copies, order=order_of(copies))
    return moments.sums(Sample(x, y), kept)


def order_of(copies: int) -> int:
    """To which the bias of moments from V ≥ 2 copies is removed; more would magnify noise."""
    return min(copies.bit_length() - 1, 2)


@jax.jit
def _read(frequencies, sums, wiener):
    return fourier(frequencies, wiener=wiener).corrected(sums)


def _corrected(frequencies, sums, wiener):
    """Corrected moments in float64."""
    return tuple(np.asarray(v, np.float64) for v in _read(frequencies, sums, np.float32(wiener)))


def _sums_of_copies(frequencies, copies, y, weights) -> Any:
    """Moments from copies `[n, V, d]`, summed over the rows of each number of copies."""
    counts = np.sum(~np.isnan(copies[:, :, 0]), axis=1)
    each = [(count, np.flatnonzero(counts == count)) for count in np.unique(counts)]
    sums = [sums_of(frequencies, copies[own, :v], y[own], weights[own])[:2] for v, own in each]
    return tuple(map(sum, zip(*sums, strict=True)))


def less(whole, parts) -> Any:
    """Sums without those of parts of the rows."""
    return jax.tree.map(lambda every, *some: every - sum(some), whole, *parts)


def sums_of(frequencies, x, y, weights) -> Any:
    """Weighted sums in float64, block by block, of rows x `[n, d]` or copies `[n, V, d]`."""
    total, size = None, min(_BLOCK, max(64, 1 << (len(y) - 1).bit_length()))
    for start in range(0, len(y), size):
        block = slice(start, start + size)
        filling = size - len(y[block])
        sums = _block(
            frequencies,
            np.pad(x[block], ((0, filling), *(x.ndim - 1) * [(0, 0)])),
            np.pad(y[block], (0, filling)),
            np.pad(weights[block].astype(np.float32), (0, filling)),
        )
        sums = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), sums)
        total = sums if total is None else jax.tree.map(np.add, total, sums)
    return total
