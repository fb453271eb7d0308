"""Length scales that a kernel fit tries where it is to choose one by itself."""

import numpy as np

from noisy_jax.observed.fits.hidden import places

_MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)
_LEAST_SHARE = 0.1  # of the variance of noisy rows that is not noise


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
