"""Fits from roots of equations: variances, also from an uncertain noise, and original units."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from noisy_jax.observed.fits.doubts import Doubt
from noisy_jax.observed.fits.estimates import Estimates, labels_of_line
from noisy_jax.observed.fits.groups import jackknifed, labels_of
from noisy_jax.observed.fits.result import Fit, percent
from noisy_jax.observed.fits.roots import Root, root
from noisy_jax.observed.fits.sandwich import Variance, variance
from noisy_jax.observed.fits.template import Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise, combined_freedom
from noisy_jax.observed.fits.units import Units
from noisy_jax.observed.observations import Observations

ERRORS = ("sandwich", "jackknife")
"""Ways to standard errors of one table."""


class OriginalUnits(NamedTuple):
    """The map from θ `[p]` of equations to estimates in original units, `offset + combined θ`."""

    noise: UncertainNoise  # in the units of the equations
    cov: np.ndarray  # [d, d], mean covariance of the noise
    combined: np.ndarray  # [p, p]
    offset: np.ndarray  # [p]
    known: dict[str, Any]  # what else `Estimates` have
    slopes: bool = True  # θ[1:] are the slopes of a line

    @classmethod
    def line(
        cls,
        table: Observations,
        units: Units,
        form: str,
        cov: np.ndarray,
        at: Any = 0.0,
        moved: np.ndarray | None = None,
        **more: Any,
    ) -> OriginalUnits:
        """Returns the fit of θ = (v, w): prediction at `at` `[d]` and slopes of columns in `units`.

        θ is first multiplied by `moved` `[p, p]`. `form` and `more` are attributes of
        `Estimates`.
        """
        combined = units.jacobian(at)
        combined = combined if moved is None else combined @ moved
        offset = np.append(units.y_center, np.zeros(len(table.names)))
        of_table = {"names": table.names, "references": table.references, "form": form}
        more = {"labels": labels_of_line(table.names), **of_table, **more}
        return cls(UncertainNoise(table, units.products), cov, combined, offset, more)


def fit_of(
    sample: Sample,
    plain: Root,
    corrected: Root,
    restored: OriginalUnits,
    errors: str = "sandwich",
    doubts: Callable[[Root, Variance], Sequence[Doubt]] | None = None,
    **more: Any,
) -> Fit:
    """The fit of equations that are solved.

    Args:
        sample: the rows.
        plain: the root without the correction.
        corrected: the root with it.
        restored: the map to original units.
        errors: one of `ERRORS`.
        doubts: tells more of the corrected root and its variance.
        **more: further attributes of the fit.
    """

    def estimates(solution):
        left_out = _left_out(sample, solution) if errors == "jackknife" else None
        return estimated(solution, restored, sample.clusters, left_out)

    uncorrected, _ = estimates(plain)
    if corrected.remark:
        sample.tell([Doubt(corrected.remark, spoils=False)])
    estimate, spread = estimates(corrected)
    if doubts is not None:
        sample.tell(doubts(corrected, spread))
    return Fit.of(estimate, uncorrected, sample.table, share=corrected.share, **more)


def estimated(
    root: Root,
    restored: OriginalUnits,
    clusters: np.ndarray | None,
    left_out: np.ndarray | None = None,
) -> tuple[Estimates, Variance]:
    """The estimates, and the variance of θ under a noise of known covariance.

    Args:
        root: the root.
        restored: the map to original units.
        clusters: `[n]`, in the order of the rows of the equations, for the sandwich; or `None`.
        left_out: `[G, p]`, the roots without each of G groups, for the jackknife; without them the
            variance is by the sandwich.
    """
    equations, theta, share = root.equations, root.theta, root.share
    jacobian = -equations.at(theta, share).jacobian
    if left_out is not None:
        spread = Variance(*jackknifed(left_out), 1.0)
    else:
        blocks = equations.blocks(theta, share)
        spread = variance(blocks, jacobian, clusters, restored.combined)
    covariance, freedom = spread.covariance, spread.freedom
    noise, combined = restored.noise, restored.combined
    if share and not noise.exact:  # delta method: dθ = −J⁻¹ (∂Σψ/∂C) dC
        moves = np.tensordot(np.linalg.inv(jacobian), equations.in_covariance(theta, share), axes=1)
        along = np.outer(theta[1:], theta[1:])[None] if restored.slopes else moves
        added = noise.covariance(moves)
        variances = [np.diag(combined @ part @ combined.T) for part in (covariance, added)]
        covariance = covariance + added
        freedom = combined_freedom(variances, (freedom, noise.freedom(restored.cov, along)))
    values, covariance = restored.offset + combined @ theta, combined @ covariance @ combined.T
    numbers = {"values": values, "covariance": covariance, "degrees_of_freedom": freedom}
    return Estimates(**numbers, **restored.known), spread


def _left_out(sample: Sample, whole: Root) -> np.ndarray:
    """`[G, p]`, the roots without each of up to 32 groups of rows, near the root of all rows."""
    if 0 < whole.share < 1:
        raise ValueError(
            "errors='jackknife' needs a fit with the whole error taken away, but of this table it "
            f"is {percent(whole.share)}: use errors='sandwich', or add rows"
        )
    labels = labels_of(sample.table.x, sample.table.y, sample.clusters)
    roots = []
    for group in np.unique(labels):
        equations = whole.equations.some(np.flatnonzero(labels != group))
        roots.append(root(equations, whole.theta, whole.share))
    if any(theta is None for theta in roots):
        raise ValueError(
            "errors='jackknife' leaves out one of 32 groups of rows at a time, and without one of "
            "them the fit has no stable solution: use errors='sandwich', or add rows"
        )
    return np.array(roots)
