"""Weights of rows whose errors of measurement differ, and the scatter that is none of them.

A row's share in the corrected normal equations of y = a + ⟨β, x⟩ + e, Var e = s², has under
Gaussian errors of covariance C_i in x and variance τ_i in y the covariance

    v_i (G + C_i) + C_i ββᵀ C_i,    v_i = s² + τ_i + βᵀC_iβ,

with the covariance G of the clean rows. Its information on β is G in all rows alike. So the weights

    w_i = 1 / (v_i (1 + tr(G⁻¹C_i)/d) + βᵀC_iG⁻¹C_iβ/d)

give the smallest variance on average over d directions. They may depend on C_i and τ_i, but not on
a row's x̃_i and ỹ_i: then the weighted equations are unbiased, too. β, s and G are from a first
fit, where rows count the less the noisier they are.

Source: two steps with estimated weights: Carroll and Ruppert, Transformation and Weighting in
Regression (1988), Sec. 2.3; variances of the scores: Fuller, Measurement Error Models (1987),
Sec. 3.1.
"""

from __future__ import annotations

import numpy as np

from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.fits.estimates import Estimates
from noisy_jax.observed.fits.linear_moments import clean_errors, linear_moments
from noisy_jax.observed.fits.sandwich import satterthwaite
from noisy_jax.observed.fits.units import Units
from noisy_jax.observed.observations import Observations

BY_VALUES = (
    "weights by the errors of rows change the coefficients by more than chance, as where stated "
    "errors follow the measured values, or are wrong (such as variances among standard deviations, "
    "or 0 for unknown), so that all rows have the same weight; the correction too assumes that "
    "errors are right, and do not depend on what was measured"
)
"""Why all weights are equal."""
_LEAST = 1e-3  # of the variance of y, for s²


def differ_by_row(observations: Observations) -> bool:
    """True if the errors of rows are known, and not the same in all of them."""
    cov, target = observations.cov, observations.target_cov
    if cov is None or not observations.each_row or observations.categories:
        return False  # they are estimated
    if observations.products is not None:
        return False
    if observations.noise is not None and by_round(observations.noise)[0].depends_on_x:
        return False
    errors_in_y = target is not None and np.ptp(target) > 0
    return errors_in_y or (cov.ndim == 3 and bool(np.ptp(cov, axis=0).any()))


def row_weights(observations: Observations) -> np.ndarray:
    """The weights `[n]` of a linear fit, at most 1."""
    rows = observations.means()
    units = Units.of(rows.x, rows.y, observations)
    x, y, cov, *_, cross = units.standardized(rows)
    cov = np.broadcast_to(cov, (len(y), *cov.shape[-2:]))
    tau = _errors_in_y(observations) / units.y_scale**2
    first = _by_noise(x, cov)
    moments = linear_moments(x, y, cov, first, cross)
    gram = moments.centred()[0] / moments.weight
    if np.linalg.eigvalsh(gram).min() <= 0:
        return first
    a, beta = moments.solution()
    errors = clean_errors(x, y, cov, cross, a, beta) - tau
    scatter = max((first @ errors) / first.sum(), _LEAST)
    noise, inverse, dim = cov @ beta, np.linalg.inv(gram), len(beta)
    share = np.einsum("ij,nij->n", inverse, cov) / dim
    spread = np.einsum("ni,ij,nj->n", noise, inverse, noise) / dim
    weights = 1 / ((scatter + tau + noise @ beta) * (1 + share) + spread)
    return weights / weights.max()


def intrinsic_scatter(
    observations: Observations, weights: np.ndarray | None, fit: Estimates, gram: np.ndarray
) -> np.ndarray:
    """`[3]`: s², which may be estimated below 0, its standard error, and degrees of freedom.

    s² is least at the fitted coefficients, so that their errors do not matter to first order. To
    second order they lower it by the variance of the predictions in the rows, which is added, with
    the clean centred moments `gram` `[d, d]` per row. Degrees of freedom are Satterthwaite's, as in
    `sandwich`.
    """
    rows = observations.means(weights)
    n, dim = rows.x.shape
    shares = np.ones(n) if weights is None else weights
    shares = shares / shares.sum()
    errors = clean_errors(rows.x, rows.y, rows.cov, rows.cross, fit.intercept, fit.coefficients)
    errors -= _errors_in_y(observations)
    variance, at = shares @ errors, np.append(1.0, shares @ rows.x)
    terms = (shares * (errors - variance)) ** 2
    square, fourth = terms.sum(), terms @ terms
    variance += at @ fit.covariance @ at + np.sum(fit.covariance[1:, 1:] * gram)
    effective = 1 / np.sum(shares**2)
    most = max(effective - 1 - dim, 1)
    error = np.sqrt(square * effective / most)
    return np.array([variance, error, satterthwaite(square, fourth, n, most)])


def _errors_in_y(observations: Observations) -> np.ndarray:
    variances = observations.target_cov
    return np.zeros(len(observations.y)) if variances is None else variances


def _by_noise(x: np.ndarray, cov: np.ndarray) -> np.ndarray:
    """1/(1 + t_i)², t_i the noise over the signal, which the less noisy half of the rows shows."""
    variances = np.diagonal(cov, axis1=1, axis2=2)
    signal = np.empty(x.shape[1])
    for j, of_column in enumerate(variances.T):
        half = np.argsort(of_column, kind="stable")[: max(len(x) // 2, x.shape[1] + 2)]
        whole = x[half, j].var()
        signal[j] = max(whole - of_column[half].mean(), 0.1 * x[:, j].var())
    return 1 / (1 + np.mean(variances / signal, axis=1)) ** 2
