"""Logistic and Poisson regression on noisy features, by estimating equations.

With Gaussian noise of covariance C in x̃, and w, a such that P(y = 1 | x) = σ(a + ⟨w, x⟩), the
distribution of y given the statistic c = x̃ + (y − ½)Cw, which is sufficient for x, does not depend
on x: P(y = 1 | x̃ + yCw) = σ(a + ⟨w, x̃ + yCw⟩ − ½wᵀCw), and the conditional score

    (y − σ(a + ⟨w, c⟩)) (1, c)

has the mean 0 at the true a and w, whatever the x are. For counts of mean exp(a + ⟨w, x⟩) the loss
exp(a + ⟨w, x̃⟩ − ½wᵀCw) − y(a + ⟨w, x̃⟩) has the mean of the loss at x, and the corrected score is
its gradient with the sign reversed: with m = exp(a + ⟨w, x̃⟩ − ½wᵀCw),

    y (1, x̃) − m (1, x̃ − Cw).

Both may have several roots. The one that is found continues the uncorrected fit: it is followed by
Newton's method while C grows from 0 to the whole covariance.
"""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy  # comes with JAX; scipy.special is imported when it is used

from noisy_jax.fits.coefficients import (
    Coefficients,
    compared,
    counted_features,
    lines_of,
    write,
)
from noisy_jax.fits.identification import check_identified
from noisy_jax.fits.linear import GROUPS, Table, Units, covariances, grouped, uncertainty
from noisy_jax.moments.batch import linear_moments
from noisy_jax.noise import Gaussian
from noisy_jax.observations import Observations
from noisy_jax.validation import instance

_BLOCK = 64  # consecutive rows that stay together, fewer in tables of less than 2,048 rows
_SHARES = np.linspace(0, 1, 5)  # of C, along which the root is followed
_NEWTON_STEPS = 50
_HALVINGS = 30
_SMALL = 1e-8  # last step of Newton's method, in units of the coefficients of standardized columns


class Equations(NamedTuple):
    """The sum of the scores at some θ = (a, w), and its derivatives.

    That in C_ij is `squared` w_i w_j + `linear` w_j e_(1+i).
    """

    score: np.ndarray  # [1 + d]
    jacobian: np.ndarray  # [1 + d, 1 + d]
    squared: np.ndarray  # [1 + d]
    linear: float


def conditional_score(theta: np.ndarray, rows: Table) -> Equations:
    """Σ (y − σ(a + ⟨w, c⟩)) (1, c) with c = x̃ + (y − ½)Cw, y in {0, 1}."""
    half, noise = rows.y - 0.5, rows.cov @ theta[1:]
    c = rows.x + half[:, None] * noise
    mean = scipy.special.expit(theta[0] + c @ theta[1:])
    residual, slope = rows.y - mean, mean * (1 - mean)
    design, moves = _with_one(c), _with_one(c + half[:, None] * noise)
    jacobian = -(design * slope[:, None]).T @ moves
    jacobian[1:, 1:] += _weighted(rows.cov, residual * half)
    squared = -design.T @ (slope * half)
    return Equations(design.T @ residual, jacobian, squared, float(residual @ half))


def corrected_score(theta: np.ndarray, rows: Table) -> Equations:
    """Σ y (1, x̃) − m (1, x̃ − Cw) with m = exp(a + ⟨w, x̃⟩ − ½wᵀCw)."""
    noise = rows.cov @ theta[1:]
    design = _with_one(rows.x - noise)
    mean = np.exp(theta[0] + (rows.x - noise / 2) @ theta[1:])
    score = _with_one(rows.x).T @ rows.y - design.T @ mean
    jacobian = -(design * mean[:, None]).T @ design
    jacobian[1:, 1:] += _weighted(rows.cov, mean)
    return Equations(score, jacobian, design.T @ mean / 2, float(mean.sum()))


class Model(NamedTuple):
    """What differs between the models."""

    equations: Callable[[np.ndarray, Table], Equations]
    mean: Callable[[Any], Any]  # of y, from a + ⟨w, x⟩
    link: Callable[[Any], Any]  # its inverse
    targets: str
    allowed: Callable[[np.ndarray], np.ndarray]
    words: str


MODELS = {
    "logistic": Model(
        conditional_score,
        lambda a: scipy.special.expit(a),
        lambda p: scipy.special.logit(p),
        "0 or 1",
        lambda y: (y == 0) | (y == 1),
        "Logistic regression by the conditional score: consistent under the logistic model",
    ),
    "poisson": Model(
        corrected_score,
        np.exp,
        np.log,
        "counts of at least 0",
        lambda y: y >= 0,
        "Poisson regression by the corrected score: consistent under the log-linear model",
    ),
}
"""The models of `nj.fit` by name, beside "linear"."""


@dataclasses.dataclass(frozen=True, eq=False)
class GeneralizedCoefficients(Coefficients):
    """A logistic or Poisson predictor with its uncertainty, in original units.

    Attributes:
        model: "logistic" or "poisson".
    """

    model: str

    def predict(self, x: Any) -> np.ndarray:
        """Probabilities of y = 1, or mean counts, `[...]` at features `[..., d]`.

        A DataFrame's columns are taken by their names.
        """
        return MODELS[self.model].mean(super().predict(x))


@dataclasses.dataclass(frozen=True, eq=False)
class GeneralizedFit(GeneralizedCoefficients):
    """A corrected logistic or Poisson regression; print it for the table.

    The attributes of `GeneralizedCoefficients` are the corrected ones.

    Attributes:
        uncorrected: maximum likelihood on the noisy rows, with replicates on their means.
        reliability: `[d]`, the share of each column's variance that is not noise.
        target: name of y.
        num_rows: n.
        num_copies: V, the noisy copies of each row whose mean is taken.
        remarks: what the rows show against the assumptions of the correction.
    """

    uncorrected: GeneralizedCoefficients
    reliability: np.ndarray
    target: str
    num_rows: int
    num_copies: int
    remarks: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The table: coefficients, intervals, uncorrected coefficients, reliability."""
        features = counted_features(len(self.names))
        noisy = "features" if self.num_copies == 1 else f"means of {self.num_copies} copies"
        return "\n".join(
            [
                f"{self.target} on {features}, {self.num_rows:,} noisy rows",
                "",
                *compared(self, self.uncorrected, self.reliability),
                "",
                MODELS[self.model].words,
                "and Gaussian noise; no regret bound. For interpretation and for clean features:",
                f"to predict from {noisy} that are as noisy as these, use fit.uncorrected.",
                *lines_of(self.remarks),
            ]
        )

    def save(self, path: str | Path) -> None:
        """Writes the fit as JSON; `nj.load_fit` reads it."""
        write(self, path)


def generalized_fit(observations: Observations, name: str) -> GeneralizedFit:
    """See `nj.fit`: `name` is a key of `MODELS`."""
    instance("observations", observations, Observations, "nj.observations.from_arrays makes one")
    model = MODELS[name]
    _check(observations, name)
    x, cov = observations.averaged()
    units = dataclasses.replace(Units.of(x, observations.y, observations), y_center=0, y_scale=1)
    table = units.table(x, observations.y, cov)
    n, dim = x.shape
    if n <= max(dim + 1, GROUPS):
        raise ValueError(f"fit needs more than {max(dim + 1, GROUPS)} rows, got {n}")
    pooled = observations.cov is None  # rows' own estimates: scores are not linear in them

    def of_rows(which) -> Table:
        rows = table.rows(which)
        return rows._replace(cov=rows.cov.mean(axis=0)) if pooled else rows

    whole = of_rows(np.arange(n))
    gram, plain = covariances(linear_moments(whole.x, whole.y, whole.cov))
    check_identified(gram, plain, observations.names, units.scale)
    order, groups = grouped(np.arange(n) // min(_BLOCK, n // GROUPS), GROUPS)
    rest = [of_rows(np.delete(order, group)) for group in groups]
    found = []
    for shares in (_SHARES, np.zeros(1)):
        theta = np.append(model.link(whole.y.mean()), np.zeros(dim))
        for share in shares:
            theta = root_near(model, theta, whole, share, "")
        without = [root_near(model, theta, rows, shares[-1], _WITHOUT) for rows in rest]
        apart = np.array(without) - np.mean(without, axis=0)
        spread = apart.T @ apart * (len(rest) - 1) / len(rest)
        if shares[-1] and observations.cov_std_error.any():
            spread += _of_noise(model.equations(theta, whole), theta, observations, units)
        made = units.restored(
            theta[0], theta[1:], spread, np.zeros(dim), len(rest) - 1, observations.names
        )
        found.append({field.name: getattr(made, field.name) for field in dataclasses.fields(made)})
    return GeneralizedFit(
        **found[0],
        model=name,
        uncorrected=GeneralizedCoefficients(**found[1], model=name),
        reliability=np.diag(gram) / np.diag(plain),
        target=observations.target,
        num_rows=n,
        num_copies=observations.x.shape[1],
    )


_WITHOUT = f" without one of the {GROUPS} groups of rows that the jackknife leaves out"


def _check(observations: Observations, name: str) -> None:
    """Raises ValueError if the model does not allow these targets or this noise."""
    # Scores are not linear in the covariance: a row's own estimate of it, even an unbiased one, is
    # not enough, and noise that gives no more raises ValueError.
    noise, y = observations.noise, observations.y
    if noise is not None and not isinstance(noise, Gaussian):
        raise ValueError(
            f"model={name!r} is for Gaussian noise, got {type(noise).__name__}; give its "
            "covariance to treat it as Gaussian"
        )
    if observations.cross_cov is not None:
        raise ValueError(f"model={name!r} needs errors in y that are independent of those in x")
    wrong = np.flatnonzero(~MODELS[name].allowed(y))
    if wrong.size:
        raise ValueError(
            f"{observations.target!r} must be {MODELS[name].targets} for model={name!r}, but is "
            f"{y[wrong[0]]:g} in row {wrong[0]} ({wrong.size} in all)"
        )


def root_near(model: Model, theta: np.ndarray, rows: Table, share: float, where: str) -> np.ndarray:
    """θ where the scores sum to zero under a share of C, by damped Newton's method from `theta`.

    Steps are halved until ‖Σψ‖ falls. All eigenvalues of −∂Σψ/∂θ have a positive real part at the
    uncorrected fit, and along the branch of roots that begins there; others are not accepted.
    """
    rows = rows._replace(cov=share * rows.cov)
    with np.errstate(over="ignore", invalid="ignore"):
        found = model.equations(theta, rows)
        for _ in range(_NEWTON_STEPS):
            try:
                step = np.linalg.solve(-found.jacobian, found.score)
            except np.linalg.LinAlgError:
                break
            if np.abs(step).max() <= _SMALL * max(1, np.abs(theta).max()):
                if np.linalg.eigvals(-found.jacobian).real.min() <= 0:
                    break
                return theta + step
            for size in 0.5 ** np.arange(_HALVINGS):
                tried = model.equations(theta + size * step, rows)
                if np.linalg.norm(tried.score) < np.linalg.norm(found.score):
                    theta, found = theta + size * step, tried
                    break
            else:
                break
    if share == 0:
        why = "the columns may predict y perfectly, or depend on each other; drop some, or add rows"
        raise ValueError(f"the uncorrected fit has no finite solution{where}: {why}")
    raise ValueError(
        f"the corrected equations have no solution that continues the uncorrected fit{where}: the "
        "noise is too large for so few rows; check the noise, or add rows or replicates"
    )


def _of_noise(found: Equations, theta, observations: Observations, units: Units) -> np.ndarray:
    """`[1 + d, 1 + d]`, what an uncertain covariance of the noise adds to that of θ.

    Delta method: dθ = −J⁻¹ (∂Σψ/∂C) dC with the Jacobian J.
    """
    w = theta[1:]
    moves = found.squared[:, None, None] * np.outer(w, w)
    moves[1:] += found.linear * np.eye(len(w))[:, :, None] * w
    return uncertainty(-np.tensordot(np.linalg.inv(found.jacobian), moves, 1), observations, units)


def _with_one(columns: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(columns)), columns])


def _weighted(cov: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Σ_i weight_i C_i, `[d, d]`."""
    return weights.sum() * cov if cov.ndim == 2 else np.tensordot(weights, cov, 1)
