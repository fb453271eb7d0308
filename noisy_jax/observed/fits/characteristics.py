"""The characteristic function φ of the noise of a table, at the frequencies of a kernel fit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.moments.fourier import Frequencies, characteristics, estimated_characteristic
from noisy_jax.noise import Gaussian, Noise
from noisy_jax.noise.characteristic import check_characteristic
from noisy_jax.observed.fits.replicates import noise_follows_values
from noisy_jax.observed.fits.trials import less, sums_of
from noisy_jax.observed.observations import Observations

EXACT = Gaussian(0.0)


def by_each_row(observations: Observations) -> bool:
    """Returns whether moments must come from the replicates of each row.

    They must if the noise has no common law.

    The covariance of the noise is then either given row by row, or replicates show that the noise
    depends on the clean row; or the replicates of some rows are incomplete. `unbiased.replicates`
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

    And a function of the numbers of some of the `groups` `[n]`, which gives them with φ from the
    rows without these groups; `None` if φ is not estimated.
    """
    omega, rows = jnp.asarray(omega, float), observations.y
    law, copies = _known(observations), observations.x.shape[1]
    weights = np.ones(len(rows)) if weights is None else weights
    phi = characteristics(EXACT if law is None else law, omega, scale, copies)
    frequencies = Frequencies(omega, jnp.asarray(amplitude), *phi)
    if law is not None:
        return frequencies, None
    groups = np.zeros(len(rows), int) if groups is None else groups
    places = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
    sums = [
        _differences(frequencies, observations.x[of_group] / scale, weights[of_group])
        for of_group in places
    ]
    total = jax.tree.map(lambda *leaves: sum(leaves), *sums)
    lost = (0.1 / len(rows)) ** (1 / (2 * copies))  # below it, judges see that φ is lost
    options = {"copies": copies, "floor": min(0.05, lost)}

    def without(*left_out):
        rest = less(total, [sums[g] for g in left_out])
        return estimated_characteristic(frequencies, rest, **options)

    return without(), without


def _known(observations: Observations) -> Noise | None:
    """The distribution of the noise of each copy; `None` if φ must be estimated."""
    noise: Any = observations.noise
    if noise is None and observations.cov is not None and not observations.cov.any():
        noise = EXACT
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
    sums = [sums_of(frequencies, difference, ones, weights) for difference in apart]
    return jax.tree.map(lambda *leaves: sum(leaves), *sums)
