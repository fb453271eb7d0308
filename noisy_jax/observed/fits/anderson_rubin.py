"""Confidence sets of a linear fit that hold however weakly the columns identify it.

At the true coefficients θ = (a, β) what group g of rows adds to the corrected normal equations,

    ψ_g(θ) = Σ_i w_i (r_i, (x̃_i − x̄) r_i + Σ_iβ − c_i),   r_i = ỹ_i − a − ⟨β, x̃_i⟩,

has the mean zero. No matrix has to be inverted for that. With the sum m of these vectors and their
covariance V about their mean, Hotelling's

    T²(θ) = m(θ)ᵀ V(θ)⁻¹ m(θ)

has at the true θ about the distribution k(G − 1)/(G − k) F_{k,G−k} for G groups and k equations.
In small tables of skewed rows V has fewer degrees of freedom ν, as have Wald's intervals: it is
multiplied by the squared ratio of Student's quantiles for ν and for G − 1.
The set of a coefficient is what its projection leaves: the values for which some θ has a T² below
the quantile. ψ is linear in θ, so that T² is a ratio of polynomials that has the same limit in
opposite directions: a set without bound in one direction has none in the other.

Source: Anderson and Rubin, Annals of Mathematical Statistics 20 (1949); for continuously updated
V, Stock and Wright, Econometrica 68 (2000). Projection: Dufour, Econometrica 65 (1997).
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy  # comes with JAX; scipy.special is imported when it is used

from noisy_jax.intervals import half_width
from noisy_jax.observed.fits.linear_moments import LinearMoments
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise

_ANGLES = 64
_HALVINGS = 40


@dataclasses.dataclass(frozen=True, eq=False)
class Equations:
    """What groups of rows add to the equations, as linear functions of (1, z).

    z is `[1 + d]`, the prediction at the mean and the slopes in standardized units, less their
    estimates.
    """

    total: np.ndarray  # [1 + d, 2 + d], the sum over groups
    groups: np.ndarray  # [G, 1 + d, 2 + d], the groups less their shares of the sum
    noise: np.ndarray  # [k, 1 + d, 2 + d], how standard errors of the noise move the sum
    freedoms: tuple[float, float]  # of the variances by groups and by the noise
    jacobian: np.ndarray  # [1 + d, 1 + d], of intercept and coefficients in z

    def sets(self, level: float) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest values of intercept and coefficients less their estimates, `[1 + d]`.

        They are −∞ and ∞ for a set without bounds.
        """
        count, size = self.groups.shape[:2]
        widths = half_width(1.0, np.minimum([*self.freedoms, count - 1], count - 1), level=level)
        wider = widths[:2] / widths[2]
        noise = np.reshape(self.noise, (-1, *self.total.shape))  # none is [0] in files
        spread = np.concatenate(
            [self.groups * wider[0] * (count / (count - 1)) ** 0.5, noise * wider[1]]
        )
        ends = []
        for index, row in enumerate(self.jacobian):
            skipped = 1 if index else 0  # slopes need no equation for the intercept
            kept = np.r_[0, 1 + skipped : 2 + size - 1]
            one = _Statistic(self.total[skipped:, kept], spread[:, skipped:, kept])
            k = size - skipped
            quantile = scipy.special.fdtri(k, count - k, level) * k * (count - 1) / (count - k)
            ends.append(one.ends(row[skipped:], quantile))
        return tuple(np.transpose(ends))


class _Statistic:
    """T² of b = (b_0, b_0 z), a function of the direction of b."""

    def __init__(self, total: np.ndarray, spread: np.ndarray):
        self.total, self.spread = total, spread

    def at(self, b: np.ndarray) -> tuple[float, np.ndarray]:
        """T² and its gradient in b."""
        moves = self.spread @ b
        cov = _squares(moves)
        cov += 1e-12 * np.trace(cov) * np.eye(len(cov))
        value = self.total @ b
        solved = np.linalg.solve(cov, value)
        own = moves @ solved
        gradient = self.total.T @ solved - np.tensordot(own, solved @ self.spread, 1)
        return float(value @ solved), 2 * gradient

    def least(
        self, basis: np.ndarray, start: np.ndarray, enough: float
    ) -> tuple[float, np.ndarray]:
        """The least T² of b = basis @ w, and its w; any that is below `enough` will do.

        The search begins at `start`, and at the minimum for a V that does not depend on b.
        """
        inverse = np.linalg.pinv(_squares(self.spread @ (basis @ start)), hermitian=True)
        design = self.total @ basis
        guess = np.linalg.eigh(design.T @ inverse @ design)[1][:, 0]
        found = [(self.at(basis @ w)[0], w) for w in (start, guess)]
        if basis.shape[1] == 1 or min(found[0][0], found[1][0]) <= enough:
            return min(found, key=lambda one: one[0])

        def objective(w):
            size = np.linalg.norm(w)
            value, gradient = self.at(basis @ (w / size))
            return value, basis.T @ gradient / size

        for _, w in tuple(found):
            best = scipy.optimize.minimize(objective, w, jac=True, method="BFGS")
            found.append((float(best.fun), best.x / np.linalg.norm(best.x)))
            if best.fun <= enough:
                break
        return min(found, key=lambda one: one[0])

    def ends(self, target: np.ndarray, quantile: float) -> tuple[float, float]:
        """The least and the largest ⟨target, z⟩ with T² ≤ quantile.

        z = Lu, with the covariance LLᵀ of the estimate by the delta method, and the component of u
        along Lᵀtarget is tan φ for angles φ from −π/2 to π/2, which is the same as −π/2.
        """
        plain = np.linalg.pinv(self.total[:, 1:])
        values, vectors = np.linalg.eigh(_squares(self.spread[:, :, 0] @ plain.T))
        root = vectors * np.sqrt(np.maximum(values, 1e-12 * values.max()))  # L
        axis = root.T @ target
        size, scale = len(axis), np.linalg.norm(axis)
        across = np.linalg.svd(axis[None])[2][1:]  # [size - 1, size]
        last = np.eye(size)[0]

        def holds(angle):
            nonlocal last
            basis = np.zeros((1 + size, size))
            basis[0, 0], basis[1:, 0] = np.cos(angle), root @ axis * np.sin(angle) / scale
            basis[1:, 1:] = root @ across.T
            value, last = self.least(basis, last, quantile)
            return value <= quantile

        angles = np.pi * np.arange(1 - _ANGLES // 2, _ANGLES // 2 + 1) / _ANGLES
        inside = np.zeros(_ANGLES, bool)
        for order in (range(_ANGLES), range(_ANGLES)[::-1]):  # continued both ways
            for k in order:
                inside[k] = inside[k] or holds(angles[k])
        if inside[-1]:
            return -np.inf, np.inf
        if not inside.any():
            return np.nan, np.nan
        found = []
        for k, step in ((np.flatnonzero(inside)[0], -1), (np.flatnonzero(inside)[-1], 1)):
            near, far = angles[k], angles[k] + step * np.pi / _ANGLES
            for _ in range(_HALVINGS):
                middle = (near + far) / 2
                near, far = (middle, far) if holds(middle) else (near, middle)
            found.append(float(scale * np.tan(near)))
        return found[0], found[1]


def _squares(moves: np.ndarray) -> np.ndarray:
    return moves.T @ moves


def equations(
    parts: Sequence[LinearMoments],
    whole: LinearMoments,
    beta: np.ndarray,
    noise: UncertainNoise,
    freedoms: tuple[float, float],
    jacobian: np.ndarray,
) -> Equations:
    """The equations of groups of rows, whose moments are `parts`, about the fit with slopes β."""
    y, x, dim = whole.y / whole.weight, whole.x / whole.weight, len(beta)

    def function(gram, cross, row, weight, value):
        made = np.zeros((1 + dim, 2 + dim))
        made[0] = np.concatenate([[value - row @ beta, -weight], -row])
        made[1:, 0], made[1:, 2:] = cross - gram @ beta, -gram
        return made

    added = []
    for part in parts:
        row, value = part.x - part.weight * x, part.y - part.weight * y
        added.append(function(*part.about(whole), row, part.weight, value))
    total = np.sum(added, axis=0)
    shares = np.array([part.weight for part in parts]) / whole.weight
    nothing = np.zeros(dim), np.zeros(dim), 0.0, 0.0
    moves = [function(-move * whole.weight, *nothing) for move in noise.deviations()]
    return Equations(
        total=total,
        groups=np.array(added) - shares[:, None, None] * total,
        noise=np.reshape(moves, (-1, 1 + dim, 2 + dim)),
        freedoms=freedoms,
        jacobian=jacobian,
    )
