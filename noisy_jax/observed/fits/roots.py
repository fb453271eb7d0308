"""The root of corrected equations that continues the uncorrected fit, and how far it goes.

The equations of `scores` may have several roots under the covariance sC of the noise. The one that
is found begins at the uncorrected fit, s = 0, and is followed while s grows to 1, by steps along
its tangent and Newton's method. In a small table it may end before, at some s* where it meets
another root. As in Fuller's modification of the linear estimator, the equations are then solved
with a smaller share of the covariance,

    s = 1 if s* ≥ 1 + α/n, otherwise s* − α/n,   α = 4.

In large tables that the model describes, s = 1. The margin α/n keeps the root away from s*, where
it has no finite variance. Fuller recommends α = 1 for a small bias and α = 4 for a small squared
error. Roots near s* are skewed, and α = 4 has less of both here.

Source: Fuller, Some Properties of a Modification of the Limited Information Estimator, Econometrica
45 (1977); Measurement Error Models (1987), Sec. 2.2.
"""

from typing import Any, NamedTuple

import numpy as np

_MARGIN = 4.0  # α
_FAR = 0.5  # from a guess to a root, relative to the guess: a root of another branch
_DIFFERENCE = 1e-6
_SMALL = 1e-8  # last step of Newton's method, in units of the coefficients of standardized columns


class Patience(NamedTuple):
    """After how much work a root counts as not found."""

    steps: int = 50  # of Newton's method
    halvings: int = 30  # of one step
    least: float = 0.1  # step of the share, in units of 1/n


_PATIENT = Patience()


def root(
    model: Any, theta: np.ndarray, rows: Any, patience: Patience = _PATIENT
) -> np.ndarray | None:
    """θ where the scores sum to zero, by damped Newton's method from `theta`; `None` if not found.

    Steps are halved until ‖Σψ‖ falls. All eigenvalues of −∂Σψ/∂θ have a positive real part at the
    uncorrected fit, and along the branch of roots that begins there; others are not accepted.

    Args:
        model: a `scores.Model`, or what else has `equations(theta, rows)` with score and jacobian.
        theta: where it begins.
        rows: what `equations` takes, with the fields `y` and `cov`.
        patience: how long it tries.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = model.equations(theta, rows)
        for _ in range(patience.steps):
            try:
                step = np.linalg.solve(-found.jacobian, found.score)
            except np.linalg.LinAlgError:
                return None
            if np.abs(step).max() <= _SMALL * max(1, np.abs(theta).max()):
                stable = np.linalg.eigvals(-found.jacobian).real.min() > 0
                return theta + step if stable else None
            for size in 0.5 ** np.arange(patience.halvings):
                tried = model.equations(theta + size * step, rows)
                if np.linalg.norm(tried.score) < np.linalg.norm(found.score):
                    theta, found = theta + size * step, tried
                    break
            else:
                return None
    return None


def continued(
    model: Any, plain: np.ndarray, rows: Any, patience: Patience = _PATIENT
) -> tuple[np.ndarray, float]:
    """The root that continues the uncorrected fit `plain`, and the share s of the noise in it."""
    margin = _MARGIN / len(rows.y)
    theta, share = _followed(model, plain, rows, 0.0, 1.0, patience)
    if share == 1:
        share = _followed(model, theta, rows, 1.0, 1 + margin, patience)[1]
        if share == 1 + margin:
            return theta, 1.0
    return _followed(model, plain, rows, 0.0, max(share - margin, 0.0), patience)


def _followed(model, theta, rows, share, end, patience) -> tuple[np.ndarray, float]:
    """The root at the share `end`, or at the largest one found below, and that share."""
    step, tangent = end - share, None
    least = min(patience.least / len(rows.y), step / 2)
    while share < end and step > least:
        if tangent is None:  # dθ/ds of the root
            shares = share, share + _DIFFERENCE
            here, moved = (model.equations(theta, rows.with_share(s)) for s in shares)
            tangent = np.linalg.solve(-here.jacobian, (moved.score - here.score) / _DIFFERENCE)
        ahead = min(share + step, end)
        guess = theta + (ahead - share) * tangent
        found = root(model, guess, rows.with_share(ahead), patience)
        if found is None or np.linalg.norm(found - guess) > _FAR * (1 + np.linalg.norm(guess)):
            step = (ahead - share) / 2
        else:
            theta, share, tangent, step = found, ahead, None, 2 * step
    return theta, share
