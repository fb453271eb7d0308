"""The uncertainty of a fit that an uncertain covariance of the noise brings in.

The fit's variance gets a second part, by the delta method. An estimate Σ̂ from few replicates has
errors that are skewed and in proportion to the unknown Σ, so that Σ̂ and its standard error are both
too small in the same tables. With the relative standard error

    s = std(βᵀΣ̂β) / βᵀΣ̂β

of the noise in the prediction, this part has 1/(3s) degrees of freedom, at least 1. For parameters
of curves s is the relative standard error of Σ_ij M_ij Σ̂_ij, with the derivatives M of a parameter
in Σ̂. The rule is chosen by simulation.
"""

from __future__ import annotations

import numpy as np

from noisy_jax.observed.observations import Observations

_FACTOR = 3.0


class UncertainNoise:
    """The errors of the estimate Σ̂ of the covariance of the noise in a mean of copies.

    `products` are the units of Σ̂ (`Units.products`).
    """

    def __init__(self, observations: Observations, products: np.ndarray | float = 1.0):
        error, deviations = observations.uncertainty()
        self.exact = not error.any()
        self._error = np.triu(error) / products
        self._deviations = None if deviations is None else deviations / products

    def covariance(self, directions: np.ndarray) -> np.ndarray:
        """`[k, k]`, covariance of Σ_ij M_ij Σ̂_ij for k matrices M, `[k, d, d]`."""
        if self._deviations is not None:
            moves = np.tensordot(directions, self._deviations, axes=([1, 2], [1, 2]))
        else:  # the error of Σ̂_ij moves both M_ij and M_ji
            i, j = np.nonzero(self._error)
            moves = directions[:, i, j] + (i != j) * directions[:, j, i]
            moves = moves * self._error[i, j]
        return moves @ moves.T

    def deviations(self) -> np.ndarray:
        """`[k, d, d]`, symmetric D_k such that the errors of Σ̂ have the covariance Σ_k D_k ⊗ D_k.

        k is 0 if Σ is exact, and at most d².
        """
        dim = len(self._error)
        if self._deviations is None:
            i, j = np.nonzero(self._error)
            moves, number = np.zeros((len(i), dim, dim)), np.arange(len(i))
            moves[number, i, j] = moves[number, j, i] = self._error[i, j]
            return moves
        if len(self._deviations) <= dim**2:
            return self._deviations
        return np.linalg.qr(self._deviations.reshape(-1, dim**2))[1].reshape(-1, dim, dim)

    def freedom(self, cov: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """Degrees of freedom `[k]` of the variances that the errors of Σ̂ add to Σ_ij M_ij Σ̂_ij.

        Args:
            cov: `[d, d]`, Σ̂.
            directions: `[k, d, d]`, k matrices M: of lines ββᵀ of the slopes β, of curves the
                derivatives of the estimates in Σ̂.
        """
        error = np.sqrt(np.diag(self.covariance(directions)))
        size = np.abs(np.tensordot(directions, cov, 2))
        uncertain = error > 0
        freedom = np.maximum(1.0, size / (_FACTOR * np.where(uncertain, error, 1.0)))
        return np.where(uncertain, freedom, np.inf)


def combined_freedom(variances, freedoms) -> np.ndarray:
    """Satterthwaite's degrees of freedom of a sum of independent estimates of variance, over 1."""
    total = sum(variances)
    spread = sum(
        variance**2 / freedom for variance, freedom in zip(variances, freedoms, strict=True)
    )
    uncertain = spread > 0
    return np.maximum(
        np.where(uncertain, total**2 / np.where(uncertain, spread, 1.0), freedoms[0]), 1.0
    )
