"""Candidates of a kernel fit: cross-fitted weights and risks."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.base import Sample
from noisy_jax.features import cosines_and_sines
from noisy_jax.moments.fourier import Frequencies, fourier
from noisy_jax.moments.unknown_noise import unbiased
from noisy_jax.observed.fits.bands import calibrated, pairs_of_groups
from noisy_jax.observed.fits.hidden import JUDGE, hidden, places
from noisy_jax.observed.fits.judged import largest_bias
from noisy_jax.unbiased import replicates

GROUPS = 16
"""Groups of rows by which risks are cross-fitted; each row of a smaller table is one."""
_BLOCK = 4096
FACTORS = np.array([3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])
"""Regularizations that are tried, in units of the moments' standard deviation over groups."""
_PHI = "single", "difference", "total"
_WIENER = 4.0
"""ε of a fit's divisor φ + ε/(nφ̄), which keeps moments finite where φ is lost in the noise."""


class WeightedRows(NamedTuple):
    """A standardized table."""

    x: np.ndarray  # [n, d], means of the copies
    y: np.ndarray  # [n]
    weights: np.ndarray  # [n], of mean 1
    groups: np.ndarray  # [n], numbers from 0 to G − 1, by which risks are cross-fitted
    copies: np.ndarray | None = None  # [n, V, d], if moments are to come from them, not from φ

    @property
    def effective(self) -> float:
        """(Σ_i w_i)²/Σ_i w_i², how many rows of one weight say as much (Kish, 1965)."""
        return float(self.weights.sum() ** 2 / (self.weights @ self.weights))


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """Cross-fitted risks and weights of one choice of features, at F regularizations.

    Attributes:
        frequencies: of the features, with φ of the noise in x.
        rows: the table.
        count: `[G]`, sums of the weights of the rows of each group.
        solver: of the corrected moments.
        risks: `[F, G]`, estimated squared errors on clean data, summed over each group, of the fits
            to the other groups. Directions where the estimated square of a function is negative
            count as zero.
        weights: `[F, D]`, of the fits to all groups.
        plain_risks: `[G]`, of the uncorrected fit, whose regularization is chosen on noisy data.
        plain_weights: `[D]`.
        plain_folds: `[G, D]`, weights of the uncorrected fits to all groups but one.
    """

    frequencies: Frequencies
    rows: WeightedRows
    count: np.ndarray
    solver: _Solver
    risks: np.ndarray
    weights: np.ndarray
    plain_risks: np.ndarray
    plain_weights: np.ndarray
    plain_folds: np.ndarray

    @property
    def folds(self) -> np.ndarray:
        """`[G, F, D]`, weights of the fits to all groups but one."""
        return self.solver.folds

    @functools.cached_property
    def bias(self) -> np.ndarray:
        """`[F]`, bounds on the bias of the risks, per row."""
        return largest_bias(self.hidden(self.weights))

    def left_out(self, factor: int) -> np.ndarray:
        """`[G, D]`, weights without each group, for the calibrated jackknife of a band."""
        pairs = pairs_of_groups(len(self.folds))
        both = np.stack([self.solver.weights(*pair)[factor] for pair in pairs])
        omega = np.asarray(self.frequencies.omega, float)
        waves = cosines_and_sines(places(self.rows.x), omega / (2 * np.pi))
        folds = self.folds[:, factor]
        return calibrated(self.weights[factor], folds, both, np.asarray(waves, float))

    def hidden(self, weights) -> np.ndarray:
        """The parts `[K, 2, m]` of functions with weights `[K, D]` that the judge leaves out."""
        rows = self.rows
        square = rows.weights @ rows.y.astype(float) ** 2 / rows.weights.sum()
        return hidden(self.frequencies, weights, places(rows.x), square, rows.effective)


def tried(
    frequencies: Frequencies,
    rows: WeightedRows,
    without: Callable[..., Frequencies] | None = None,
) -> Trial | None:
    """The fits with some features; `None` if their moments are not finite.

    Args:
        frequencies: of the features, with φ of the noise in x, unless `rows` have copies.
        rows: the table.
        without: gives the frequencies with φ from the rows without some groups, if φ is estimated.
            The fits without a group then contain the uncertainty of φ.
    """
    none = frequencies._replace(
        **{name: jnp.ones_like(getattr(frequencies, name)) for name in _PHI}
    )
    groups = [np.flatnonzero(rows.groups == g) for g in range(rows.groups.max() + 1)]
    parts = [(rows.x[of_group], rows.y[of_group], rows.weights[of_group]) for of_group in groups]
    sums = [sums_of(frequencies, *part) for part in parts]
    count = np.array([weights.sum() for *_, weights in parts])
    yy = np.array([float(weights @ (y.astype(float) ** 2)) for _, y, weights in parts])
    if rows.copies is not None:
        pairs = zip(groups, parts, strict=True)
        judge = corrected = [
            _sums_of_copies(none, rows.copies[of_group], *p[1:]) for of_group, p in pairs
        ]
    else:
        share = count / rows.effective
        corrected, judge = (
            [
                _corrected(frequencies, sums_of_group, size * s)
                for sums_of_group, s in zip(sums, share, strict=True)
            ]
            for size in (_WIENER, JUDGE)
        )
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((corrected, judge))):
        return None
    judge = without_negative(judge, count)
    rest = None if without is None else functools.partial(_without, without, sums, rows.effective)
    clean = _Solver(corrected, count, rest)
    noisy = _Solver([_corrected(none, sums_of_group, 0.0) for sums_of_group in sums], count)
    risks, factor = clean.risks(judge, yy), noisy.risks(noisy.parts, yy).sum(axis=1).argmin()
    if not np.isfinite(risks).all():
        return None
    return Trial(
        frequencies=frequencies,
        rows=rows,
        count=count,
        solver=clean,
        risks=risks,
        weights=clean.weights(),
        plain_risks=noisy.risks(judge, yy)[factor],
        plain_weights=noisy.weights()[factor],
        plain_folds=noisy.folds[:, factor],
    )


def _without(without: Callable[..., Frequencies], sums, rows: float, *groups: int) -> Any:
    """The corrected moments without some groups, and with φ from the rows of the other groups."""
    whole: Any = jax.tree.map(lambda *leaves: sum(leaves), *sums)
    rest = less(whole, [sums[g] for g in groups])
    return _corrected(without(*groups), rest, _WIENER * float(rest.count) / rows)


def without_negative(parts, counts) -> list[Any]:
    """The moments, with no negative eigenvalue of the sum, which the clean moments do not have.

    Training would find the functions whose estimated squares are negative.
    """
    values, vectors = np.linalg.eigh(sum(gram for gram, _ in parts))
    missing = (vectors * np.maximum(-values, 0)) @ vectors.T / counts.sum()
    return [(gram + n * missing, cross) for (gram, cross), n in zip(parts, counts, strict=True)]


class _Solver:
    """Regularized solutions from the moments of all groups, or without some of them.

    Without groups they are from `rest`, a function of the numbers of these groups, if it is given,
    or from the sum less their parts.
    """

    def __init__(self, parts, counts, rest=None):
        self.parts, self.counts, self._rest = parts, counts, rest
        self.gram, self.cross = (sum(part[k] for part in parts) for k in (0, 1))
        share = counts / counts.sum()
        apart = [gram - s * self.gram for (gram, _), s in zip(parts, share, strict=True)]
        square = sum(a @ a for a in apart) * len(parts) / (len(parts) - 1)
        self.spread = np.sqrt(max(np.linalg.eigvalsh(square)[-1], 0.0))
        self.folds = np.stack([self.weights(g) for g in range(len(parts))])

    def weights(self, *left_out) -> np.ndarray:
        """`[F, D]`, for each regularization, without some groups."""
        gram, cross, rows = self.gram, self.cross, self.counts.sum()
        for g in left_out:
            part, rows = self.parts[g], rows - self.counts[g]
            gram, cross = gram - part[0], cross - part[1]
        if left_out and self._rest:
            gram, cross = self._rest(*left_out)
        values, vectors = np.linalg.eigh(gram)
        penalty = FACTORS * self.spread * np.sqrt(rows / self.counts.sum()) + 1e-6 * rows
        return (vectors.T @ cross / (np.maximum(values, 0) + penalty[:, None])) @ vectors.T

    def risks(self, judge, yy) -> np.ndarray:
        """`[F, G]`, squared errors summed over each group, of the fits to the other groups."""
        columns = []
        for (gram, cross), square, w in zip(judge, yy, self.folds, strict=True):
            columns.append(np.sum((w @ gram) * w, axis=1) - 2 * w @ cross + square)
        return np.stack(columns, axis=1)


@jax.jit
def _block(frequencies, x, y, kept):
    moments = fourier(frequencies)
    if x.ndim == 2:
        return moments.sums(Sample(x[:, None], y), kept)
    copies = x.shape[1]
    estimate = functools.partial(replicates, copies=copies, order=order_of(copies))
    moments = unbiased(moments.features, estimate)
    return moments.sums(Sample(x, y), kept)


def order_of(copies: int) -> int:
    """Returns the order of bias removed from moments of V ≥ 2 copies; more magnifies noise."""
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
    by_count = [(count, np.flatnonzero(counts == count)) for count in np.unique(counts)]
    sums = [
        sums_of(frequencies, copies[places, :v], y[places], weights[places])[:2]
        for v, places in by_count
    ]
    return tuple(map(sum, zip(*sums, strict=True)))


def less(whole, parts) -> Any:
    """Subtracts the sums of parts of the rows."""
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
