"""Equations of a fit, their root that continues the uncorrected fit, and how far it goes.

The equations may have several roots under the covariance sC of the noise. The one that is found
begins at the uncorrected fit, s = 0, and is followed while s grows to 1, by steps along its tangent
and Newton's method. In a small table it may end before, at some s* where it meets another root. As
in Fuller's modification of the linear estimator, the equations are then solved with a smaller share
of the covariance,

    s = 1 if s* ≥ 1 + α/n, otherwise s* − α/n,   α = 4.

In large tables that the model describes, s = 1. The margin α/n keeps the root away from s*, where
it has no finite variance. Fuller recommends α = 1 for a small bias and α = 4 for a small squared
error. Roots near s* are skewed, and α = 4 has less of both here. If s is below ½, there is no
estimate.

Source: Fuller, Some Properties of a Modification of the Limited Information Estimator, Econometrica
45 (1977); Measurement Error Models (1987), Sec. 2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from noisy_jax.observed.fits.result import percent
from noisy_jax.observed.fits.sandwich import Block

_MARGIN = 4.0  # α
_LEAST_SHARE = 0.5  # of the noise, for which an estimate is given
_FAR = 0.5  # from a guess to a root, relative to the guess: a root of another branch
_DIFFERENCE = 1e-6
_SMALL = 1e-8  # last step of Newton's method, in units of the coefficients of standardized columns


class Patience(NamedTuple):
    """Limits of work, beyond them a root counts as not found."""

    steps: int = 50  # of Newton's method
    halvings: int = 30  # of one step
    least: float = 1e-3  # step of the share


PATIENT = Patience()
"""Limits for equations that are cheap."""


class Sums(NamedTuple):
    """Sums over all rows of the terms of the equations, at one θ."""

    score: np.ndarray  # [p], Σψ
    jacobian: np.ndarray  # [p, p], ∂Σψ/∂θ
    loss: float = np.nan  # Σℓ̂, if ψ are the negative gradients of losses ℓ̂


class Equations(Protocol):
    """Σψ(θ; s) = 0 of the rows of a table, with a share s of the noise taken away.

    θ `[p]` is in units that make its numbers about 1.
    """

    def at(self, theta: np.ndarray, share: float) -> Sums:
        """The sums over all rows."""
        ...

    def blocks(self, theta: np.ndarray, share: float) -> Iterator[Block]:
        """Returns the rows' terms of Σψ, in their order; rows of weight 0 may be among them."""
        ...

    def in_covariance(self, theta: np.ndarray, share: float) -> np.ndarray:
        """`[p, d, d]`, the derivative of Σψ in the covariance of the noise."""
        ...

    def some(self, which: np.ndarray) -> Equations:
        """The equations of the rows with these numbers."""
        ...


class Root(NamedTuple):
    """A root of equations."""

    equations: Any  # `Equations`
    theta: np.ndarray  # [p]
    share: float  # of the noise that is taken away
    remark: str = ""  # why it is not the whole noise


def root(
    equations: Equations, theta: np.ndarray, share: float, patience: Patience = PATIENT
) -> np.ndarray | None:
    """θ where the scores sum to zero, by damped Newton's method from `theta`; `None` if not found.

    Steps are halved until ‖Σψ‖ falls. All eigenvalues of −∂Σψ/∂θ have a positive real part at the
    uncorrected fit, and along the branch of roots that begins there; other roots are not accepted.

    Args:
        equations: which are solved.
        theta: `[p]`, where it begins.
        share: of the noise that is taken away.
        patience: how long it tries.
    """

    def at(theta):
        return equations.at(theta, share)

    def smaller(tried, _):
        return bool(np.linalg.norm(tried.score) < np.linalg.norm(sums.score))

    with np.errstate(over="ignore", invalid="ignore"):
        sums = at(theta)
        for _ in range(patience.steps):
            try:
                step = np.linalg.solve(-sums.jacobian, sums.score)
            except np.linalg.LinAlgError:
                return None
            if np.abs(step).max() <= _SMALL * max(1, np.abs(theta).max()):
                stable = np.linalg.eigvals(-sums.jacobian).real.min() > 0
                return theta + step if stable else None
            ahead = shortened(at, theta, step, smaller, patience.halvings)
            if ahead is None:
                return None
            theta, sums = ahead
    return None


def shortened(
    at: Callable[[np.ndarray], Any],
    theta: np.ndarray,
    step: np.ndarray,
    better: Callable[[Any, float], bool],
    halvings: int,
) -> tuple[np.ndarray, Any] | None:
    """The first of θ + step, θ + step/2, … that is better, and `at` of it; `None` if none is.

    `better` is called with `at` of one of them, and with its share of the step.
    """
    for size in 0.5 ** np.arange(halvings):
        ahead = theta + size * step
        if better(tried := at(ahead), size):
            return ahead, tried
    return None


def solved(
    equations: Equations, plain: np.ndarray, rows: int, why: str, patience: Patience
) -> Root:
    """The root that continues the uncorrected fit `plain`, and a remark if its share is below 1.

    Args:
        equations: which are solved.
        plain: `[p]`, their root at the share 0.
        rows: their number n.
        why: reasons for a share below 1, and advice, for the remark.
        patience: how long it tries.

    Raises:
        ValueError: the share is below ½.
    """
    theta, share = continued(equations, plain, rows, patience)
    if share < _LEAST_SHARE:
        raise ValueError(f"not even half of the stated error can be taken away: {why}")
    remark = ""
    if share < 1:
        remark = (
            "this table does not allow to take away all of the stated error: only "
            f"{percent(share)} of it is taken away (fit.share), estimates are still somewhat too "
            f"near to the uncorrected ones, and intervals are wide; {why}"
        )
    return Root(equations, theta, share, remark)


def continued(
    equations: Equations, plain: np.ndarray, rows: int, patience: Patience = PATIENT
) -> tuple[np.ndarray, float]:
    """The root that continues the uncorrected fit `plain`, and the share s of the noise in it."""
    margin = _MARGIN / rows
    theta, share = _followed(equations, plain, 0.0, 1.0, patience)
    if share == 1:
        share = _followed(equations, theta, 1.0, 1 + margin, patience)[1]
        if share == 1 + margin:
            return theta, 1.0
    return _followed(equations, plain, 0.0, max(share - margin, 0.0), patience)


def _followed(equations, theta, share, end, patience) -> tuple[np.ndarray, float]:
    """The root at the share `end`, or at the largest one found below, and that share."""
    step, tangent = end - share, None
    least = min(patience.least, step / 2)
    while share < end and step > least:
        if tangent is None:  # dθ/ds of the root
            here, moved = (equations.at(theta, s) for s in (share, share + _DIFFERENCE))
            tangent = np.linalg.solve(-here.jacobian, (moved.score - here.score) / _DIFFERENCE)
        ahead = min(share + step, end)
        guess = theta + (ahead - share) * tangent
        solution = root(equations, guess, ahead, patience)
        farthest = _FAR * (1 + np.linalg.norm(guess))
        if solution is None or np.linalg.norm(solution - guess) > farthest:
            step = (ahead - share) / 2
        else:
            theta, share, tangent, step = solution, ahead, None, 2 * step
    return theta, share
