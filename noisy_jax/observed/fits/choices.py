"""The choice among candidates of a kernel fit, and the errors that judge it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.fits.hidden import CAUTION
from noisy_jax.observed.fits.judged import Judged
from noisy_jax.observed.fits.trials import Trial


class Option(NamedTuple):
    """A candidate at one regularization.

    Attributes:
        method: `nj.methods.Fourier` with a number as its length scale.
        trial: its features, tried at all regularizations.
        factor: the place of one of them in `FACTORS`.
    """

    method: Any
    trial: Trial
    factor: int

    @property
    def weights(self) -> np.ndarray:
        """`[D]`, of the fit to all rows."""
        return self.trial.weights[self.factor]

    @property
    def judged(self) -> Judged:
        """Errors by group of rows, of the fits to the other groups."""
        trial, k = self.trial, self.factor
        return Judged(trial.risks[k], trial.count, hidden=trial.hidden(trial.weights[k][None])[0])


def chosen(options: Sequence[Option]) -> tuple[list[Option], list[Option]]:
    """Returns the options, best first, and of each group the best by the risks of other groups.

    The best has the lowest risk, with a tenth of the largest bias added.
    """
    count = options[0].trial.count
    risks = np.array([option.trial.risks[option.factor] for option in options])
    bias = np.array([option.trial.bias[option.factor] for option in options])
    order, best = choices(risks, CAUTION * count.sum() * bias)
    return [options[k] for k in order], [options[k] for k in best]


def by_candidate(ranked: Sequence[Option]) -> list[Option]:
    """The best option of each candidate, the best candidate first."""
    best: dict[int, Option] = {}
    for option in ranked:
        best.setdefault(id(option.trial), option)
    return list(best.values())


def judged_choices(options: Sequence[Option]) -> tuple[Judged, Judged]:
    """Errors of the corrected and the uncorrected fit, with the choice among options.

    Each group judges the option that the other groups choose.
    """
    count, numbered = options[0].trial.count, list(enumerate(options))
    corrected = np.array([option.trial.risks[option.factor, g] for g, option in numbered])
    plain = np.array([option.trial.plain_risks[g] for g, option in numbered])
    folds = [
        np.stack([option.trial.folds[g, option.factor], option.trial.plain_folds[g]])
        for g, option in numbered
    ]
    hidden = [option.trial.hidden(weights) for option, weights in zip(options, folds, strict=True)]
    left_out = np.average(hidden, axis=0, weights=count)
    return (
        Judged(corrected, count, hidden=left_out[0]),
        Judged(plain, count, hidden=left_out[1]),
    )


def of_band(ranked: Sequence[Option]) -> Option:
    """The option in the middle of a band, which has a smaller bias than the best one.

    It is the best option of the next length scale of at most half the first's. The choice
    takes a long length scale where the rows do not contradict it; its bias may still be as
    large as its random error. Where no length scale is so short it is the first option. The
    regularization is about a tenth.
    """
    scales = [option.method.length_scale for option in ranked]
    wanted = max((scale for scale in scales if scale <= scales[0] / 2), default=scales[0])
    middle = ranked[scales.index(wanted)]
    return middle._replace(factor=undersmoothed(middle.factor))


def choices(risks: np.ndarray, added: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the order of K candidates, best first, and the candidates `[G]` that groups judge.

    `risks` `[K, G]` are summed over the rows of each group. The least risk alone would favour
    features whose risk is uncertain: one standard error and `added` `[K]` are added to each, and an
    estimate below 0 counts as 0. A group judges the choice of the other groups, since the least
    of many risks is optimistic.
    """
    total, square, groups = risks.sum(axis=1), (risks**2).sum(axis=1), risks.shape[1]

    def pessimistic(total, square, groups):
        return np.maximum(total, 0) + np.sqrt(np.maximum(square - total**2 / groups, 0))

    order = np.argsort(pessimistic(total, square, groups) + added)
    others = pessimistic(total[:, None] - risks, square[:, None] - risks**2, groups - 1)
    return order, np.argmin(others + added[:, None] * (groups - 1) / groups, axis=0)


def undersmoothed(factor: int) -> int:
    """Index in `FACTORS` of about a tenth of the regularization at index `factor`, or 0.

    The bias of such a fit is small against its random error.
    """
    return max(factor - 2, 0)
