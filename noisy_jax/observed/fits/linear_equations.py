"""The normal equations of a linear fit, from moments of groups of rows, and the terms of each row.

With the means x̄ of the columns, θ are the prediction at x̄ and the slopes β. A row of weight w, with
z = (1, x̃ − x̄), residual r and noise of covariance Σ, and of covariance c with y, adds the score

    ψ = w (r, (x̃ − x̄) r + κ(1 − w/W)(Σβ − c)),   W = Σ w,

where κ is the share of the noise that is taken away. −∂Σψ/∂θ is the block diagonal matrix of W and
of the corrected Gram matrix, and −∂ψ/∂θ = w zzᵀ − κw(1 − w/W)(0, Σ). Σψ is linear in θ, and follows
from moments without the rows.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from noisy_jax.observed.fits.groups import LEAST_GROUPS, grouped, if_counts, labels_of
from noisy_jax.observed.fits.identification import Identification, check_cross, identification
from noisy_jax.observed.fits.judged import Judged
from noisy_jax.observed.fits.linear_moments import ROWS, LinearMoments, moments_by_group
from noisy_jax.observed.fits.roots import Root, Sums
from noisy_jax.observed.fits.sandwich import Block, Outer
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import UndeterminedError, Units
from noisy_jax.observed.observations import Observations
from noisy_jax.observed.observations.rows import Rows


@dataclasses.dataclass(frozen=True, eq=False)
class LinearEquations:
    """The equations of a table in units, with their units and identification.

    Attributes:
        parts: the moments of each group of rows, with a leading axis.
        units: of the equations.
        table: names, and the uncertainty of the noise.
        num_rows: n.
        rows: all rows, by group, or `None` where only their moments are kept, as of chunks.
        clusters: `[n]`, in the order of these rows; or `None`.
        identification: strength of the identification, by `identification`.
    """

    parts: LinearMoments
    units: Units
    table: Observations
    num_rows: int
    rows: Rows | None = None
    clusters: np.ndarray | None = None
    identification: Identification = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        """Raises ValueError if the columns vary less than the noise in them."""
        names, whole = self.table.names, self.whole
        strength = identification(self.parts, whole, self.noise, names, self.units.scale)
        object.__setattr__(self, "identification", strength)
        check_cross(whole.cross / whole.weight, self.cov, self.variance, self.num_rows, names)

    @classmethod
    def of_sample(
        cls, sample: Sample, weights: np.ndarray | None, units: Units | None = None
    ) -> LinearEquations:
        """The equations of the rows of a table, with weights of their own."""
        table, clusters = sample.table, sample.clusters
        n, dim = len(table.y), table.x.shape[2]
        count = n if clusters is None else int(clusters.max()) + 1
        if count <= dim + 1:
            kind = "rows" if clusters is None else "clusters"
            few = f"fit needs more than d + 1 = {dim + 1} {kind}, got {count}"
            raise UndeterminedError(f"{few}{if_counts(weights)}")
        if n < LEAST_GROUPS and (hint := if_counts(weights)):
            raise UndeterminedError(f"{n} rows with weights are too few{hint}")
        rows = table.means(weights)
        units = Units.of(rows.x, rows.y, table) if units is None else units
        order, groups = grouped(labels_of(table.x, table.y, clusters))
        rows = units.standardized(rows, order)
        clusters = None if clusters is None else clusters[order]
        return cls(moments_by_group(rows, groups).with_rows(), units, table, n, rows, clusters)

    @functools.cached_property
    def whole(self) -> LinearMoments:
        """The moments of all groups."""
        return self.parts.total()

    @functools.cached_property
    def center(self) -> np.ndarray:
        """`[d]`, x̄."""
        return self.whole.x / self.whole.weight

    @property
    def cov(self) -> np.ndarray:
        """`[d, d]`, mean covariance of the noise."""
        return self.whole.cov / self.whole.weight

    @property
    def variance(self) -> float:
        """Returns the variance of y, in the units of the equations."""
        return self.whole.yy / self.whole.weight - (self.whole.y / self.whole.weight) ** 2

    @functools.cached_property
    def noise(self) -> UncertainNoise:
        """The uncertainty of the noise's covariance, in the units of the equations."""
        return UncertainNoise(self.table, self.units.products)

    def root(self, corrected: bool) -> Root:
        """θ, and the share of the noise that is taken away."""
        share = self.identification.share(self.whole) if corrected else 0.0
        return Root(self, self.solution(self.whole, share), share)

    def without_each(self, corrected: bool) -> np.ndarray:
        """`[G, 1 + d]`, θ without each group of rows."""
        moments = self.whole.plus(self.parts, -1.0)
        return self.solution(moments, self.identification.share(moments) if corrected else 0.0)

    def solution(self, moments: LinearMoments, share: Any) -> np.ndarray:
        """θ `[..., 1 + d]` that solves the equations with these moments, of all groups or some."""
        intercept, beta = moments.solution(share=share)
        return np.concatenate([(intercept + beta @ self.center)[..., None], beta], axis=-1)

    def recorded(self, corrected: bool) -> np.ndarray:
        """`[1 + d, 1 + d]`, from θ to θ of recorded categories, as uncorrected fits take them."""
        center = self.center
        moved = np.eye(1 + len(center))
        if not corrected and self.table.categories:
            matrix, offset = self.units.recorded(self.table)
            moved[0, 1:] = offset + matrix @ center - center
            moved[1:, 1:] = matrix.T
        return moved

    def lines(self, theta: np.ndarray) -> np.ndarray:
        """Intercept and slopes `[..., 1 + d]`, of θ."""
        lines = theta.copy()
        lines[..., 0] -= theta[..., 1:] @ self.center
        return lines

    def judged(self, lines: np.ndarray, beta: np.ndarray) -> Judged:
        """Estimated clean errors of each group of rows, by lines `[G, 1 + d]` from other groups.

        β `[d]` is of all rows: each error contains −βᵀΣβ.
        """
        parts, square = self.parts, self.units.y_scale**2
        sums = parts.clean_error(lines[:, 0], lines[:, 1:])
        return Judged(square * sums, parts.weight, -square * np.outer(beta, beta))

    def at(self, theta: np.ndarray, share: float) -> Sums:
        """Σψ and ∂Σψ/∂θ, from the moments."""
        (gram, cross), whole = self.whole.centred(share=share), self.whole
        jacobian = np.zeros(np.add(gram.shape, 1))
        jacobian[0, 0], jacobian[1:, 1:] = -whole.weight, -gram
        return Sums(np.append(whole.y, cross) + jacobian @ theta, jacobian)

    def in_covariance(self, theta: np.ndarray, share: float) -> np.ndarray:
        """`[1 + d, d, d]`, ∂Σψ/∂Σ: the Gram matrix is κWΣ smaller than with the noise."""
        dim = len(theta) - 1
        slopes = np.zeros((1 + dim, dim, dim))
        slopes[1:] = share * self.whole.weight * np.eye(dim)[:, :, None] * theta[1:]
        return slopes

    def blocks(self, theta: np.ndarray, share: float) -> Iterator[Block]:
        """ψ and −∂ψ/∂θ of blocks of rows, at the root θ."""
        all_rows: Any = self.rows
        beta, total, center = theta[1:], self.whole.weight, self.center[:, None]
        for start in range(0, len(all_rows.y), ROWS):
            rows = all_rows.some(slice(start, start + ROWS))
            weight = 1.0 if rows.weights is None else rows.weights
            z = np.ones((1 + rows.x.shape[1], len(rows.y)))  # long rows are fast
            np.subtract(rows.x.T, center, out=z[1:])
            scores = z * (weight * (rows.y - theta @ z))
            taken = share * (weight - weight**2 / total)
            noise = rows.cov @ beta - (0.0 if rows.cross is None else rows.cross)
            scores[1:] += noise.reshape(-1, len(beta)).T * taken
            yield Block(scores.T, Outer(z.T, weight, taken, rows.cov))
