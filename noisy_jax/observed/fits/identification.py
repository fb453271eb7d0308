"""Identification of a fit: noisy features must vary by more than the noise in them.

With the covariance M of the noisy columns and the mean covariance Σ of the noise, the combination
of columns with the largest noise is the vector u of

    (M − λΣ) u = 0,   uᵀΣu = 1,

for the smallest such λ. The fit divides by λ − 1, the clean variance of this combination in units
of its noise. The *strength* of the identification is (λ − 1)²/v, with the variance v that λ would
have if λ were 1: the sum of the squared relative standard errors of uᵀMu and uᵀΣu.

Source: Fuller, Measurement Error Models (1987), Sec. 2.2 and 2.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.fits.linear_moments import LinearMoments
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.fits.units import UndeterminedError

SINGULAR = 1e-10
"""Smallest eigenvalue of a correlation matrix that float64 sums can tell from 0."""
WEAK = 6.0
"""Strength below which the fit is modified, chosen by the coverage of intervals in simulations."""
_CHANCE = 3.0  # standard errors by which a table may contradict its noise


class Identification(NamedTuple):
    """Strength of the identification, and the share of the noise that it allows to take away."""

    strength: float  # (λ − 1)²/v, 0 where λ < 1; infinite without noise
    slack: float  # v/2, which is 1/n with Gaussian columns and known noise

    def share(self, moments: LinearMoments) -> Any:
        """The share `[...]` of the noise's moments that a fit to moments takes away, 0 to 1.

        It is 1 unless the identification is weak. Then it is Fuller's min(1, λ − s) − s, with the
        slack s in place of his 1/n, and with the smallest λ that makes the moments of (y, x), less
        λ times the moments of the noise, singular. The rest is positive definite.
        """
        if self.strength >= WEAK:
            return 1.0
        noisy, clean = (_with_y(moments, share) for share in (0.0, 1.0))
        noise = noisy - clean
        # The error in y has an unknown variance: the least that its covariance allows is taken.
        rest = np.linalg.pinv(noise[..., 1:, 1:], hermitian=True)
        cross = noise[..., 0, 1:]
        noise[..., 0, 0] = np.einsum("...i,...ij,...j->...", cross, rest, cross)
        # A column may vary only in the rows of the group that is left out.
        square, weight = np.diagonal(noisy, axis1=-2, axis2=-1), np.asarray(moments.weight)
        size = np.sqrt(np.where(square > SINGULAR * weight[..., None], square, weight[..., None]))
        units = size[..., :, None] * size[..., None, :]
        noisy = noisy / units + SINGULAR * np.eye(units.shape[-1])
        root, _ = smallest_root(noisy, noise / units)
        return np.clip(np.minimum(1.0, root - self.slack) - self.slack, 0.0, 1.0)


def identification(
    parts: LinearMoments, whole: LinearMoments, error: UncertainNoise, names, scale
) -> Identification:
    """Returns the identification of a fit to columns with these names and scales.

    Raises:
        ValueError: a combination of columns does not vary; or a column, or a combination, varies
            less than the noise in it, by more than three standard errors and, for a combination,
            by more than what its choice explains.
    """
    weight, dim, count = whole.weight, len(names), len(parts.weight)
    clean, noisy = covariances(whole)
    check_identified(noisy, noisy, names, scale)
    noise = noisy - clean
    root, u = smallest_root(noisy, noise)
    if root == np.inf:
        return Identification(np.inf, 0.0)
    grams = parts.about(whole, share=0.0)[0] / weight
    grams -= (parts.weight / weight)[:, None, None] * grams.sum(axis=0)

    def variance(u):
        """v of the ratio uᵀMu, where uᵀΣu = 1."""
        apart = np.einsum("i,gij,j->g", u, grams, u) / (u @ noisy @ u)
        square = apart @ apart * count / (count - 1)
        if not error.exact:
            square += error.covariance(np.outer(u, u)[None])[0, 0]
        return max(float(square), np.finfo(float).tiny)

    v = variance(u)
    # With Gaussian columns that are all noise the smallest root is about this.
    contradicts = root + _CHANCE * v**0.5 < max(0.0, 1 - (dim * v / 2) ** 0.5) ** 2
    for j in np.flatnonzero(np.diag(noise) > np.diag(noisy)):
        column = np.eye(dim)[j] / noise[j, j] ** 0.5
        contradicts |= noisy[j, j] / noise[j, j] + _CHANCE * variance(column) ** 0.5 < 1
    if contradicts:
        check_identified(clean, noisy, names, scale)
    return Identification(max(0.0, root - 1) ** 2 / v, v / 2)


def covariances(moments: LinearMoments) -> tuple[np.ndarray, np.ndarray]:
    """The corrected covariance of the columns, and the one with the noise."""
    clean, noisy = (moments.centred(share=share)[0] / moments.weight for share in (1.0, 0.0))
    return clean, noisy


def smallest_root(moments: np.ndarray, noise: np.ndarray) -> tuple[Any, np.ndarray]:
    """Returns the smallest λ `[...]` with a singular moments − λ noise, and u with uᵀ noise u = 1.

    λ is infinite without noise, and u then 0. `moments` `[..., d, d]` must be positive definite.
    """
    inverse = np.linalg.inv(np.linalg.cholesky(moments))
    turned = np.swapaxes(inverse, -1, -2)
    values, vectors = np.linalg.eigh(inverse @ noise @ turned)
    largest = np.where(values[..., -1] > SINGULAR, values[..., -1], 0.0)
    with np.errstate(divide="ignore"):
        root = 1 / largest
    u = (turned @ vectors[..., -1:])[..., 0]
    return root, u / np.where(largest > 0, largest, np.inf)[..., None] ** 0.5


def _with_y(moments: LinearMoments, share: float) -> np.ndarray:
    """Returns centred moments of (y, x), `[..., 1 + d, 1 + d]`, less a share of the noise's."""
    gram, cross = moments.centred(share=share)
    square = np.empty((*gram.shape[:-2], *np.add(gram.shape[-2:], 1)))
    square[..., 0, 0] = moments.yy - moments.y**2 / moments.weight
    square[..., 0, 1:] = square[..., 1:, 0] = cross
    square[..., 1:, 1:] = gram
    return square


def check_cross(cross, cov, y_variance: float, rows: int, names) -> None:
    """Raises ValueError if errors in x and y covary by more than |c_i| ≤ √(Σ_ii Var ỹ) allows.

    `cross` `[d]` is the mean covariance c, `cov` `[d, d]` the mean covariance Σ of the errors in x.
    The number of rows gives the size that chance explains.
    """
    largest = np.sqrt(np.maximum(np.diag(cov), 0) * y_variance) * (1 + 5 / rows**0.5)
    for j in np.flatnonzero(np.abs(cross) > largest):
        share = np.abs(cross[j]) / largest[j] if largest[j] > 0 else np.inf
        raise ValueError(
            f"cross_cov of {names[j]!r} is {share:.2g} times what is possible with this noise in "
            "it and this variance of y: check cross_cov, or the noise"
        )


def check_identified(gram, plain, names, scale, least: float = SINGULAR) -> None:
    """Raises ValueError that names the column, or the direction, that noise covers.

    `gram` and `plain` `[d, d]` are the covariances of the columns, corrected and with the noise,
    in units of `scale` `[d]`. `least` is the smallest eigenvalue that is allowed, and the smallest
    reliability, less `SINGULAR`.
    """
    reliability = np.diag(gram) / np.diag(plain)
    for j in np.flatnonzero(reliability <= least - SINGULAR):
        unit = scale[j] ** 2
        stated = (plain - gram)[j, j] * unit
        raise ValueError(
            f"column {names[j]!r} varies no more than its error: its values have the variance "
            f"{plain[j, j] * unit:.4g}, and their error {stated:.4g}. Is {stated:.4g} a standard "
            f"deviation? If it is right, {names[j]!r} is nothing but error: drop it, or measure it "
            "again"
        )
    size = np.sqrt(np.diag(plain))
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    if values[0] <= least:
        direction = vectors[:, 0] / size
        noisy = direction @ (plain - gram) @ direction > SINGULAR
        varies = "varies no more than the error in it" if noisy else "does not vary"
        direction = direction / scale
        direction /= np.abs(direction).max()
        largest = np.argsort(-np.abs(direction))[:3]
        largest = [j for j in largest if abs(direction[j]) > 0.01]
        words = " ".join(f"{direction[j]:+.2g}·{names[j]}" for j in largest)
        raise (ValueError if noisy else UndeterminedError)(
            f"the effects of these columns cannot be told apart, as {words} {varies}: drop one of "
            "them, measure them again, or check their errors"
        )
