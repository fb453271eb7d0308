"""Any model y ≈ f(x; θ) on noisy features: the method, and the course of its fit.

The equations are in `model_equations`, and the uncorrected fit, from which roots are followed, is
in `model_minimum`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from noisy_jax.losses import Loss, squared
from noisy_jax.losses.loss import check_smooth
from noisy_jax.observed.fits.callables import check_callables
from noisy_jax.observed.fits.doubts import BELOW, LEVEL, Doubt
from noisy_jax.observed.fits.groups import LEAST_GROUPS, check_clusters
from noisy_jax.observed.fits.model_equations import Functions, ModelEquations, functions_of
from noisy_jax.observed.fits.model_minimum import CONVERGED, minimized
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.roots import Patience, Root, solved
from noisy_jax.observed.fits.sandwich import Variance
from noisy_jax.observed.fits.solutions import ERRORS, OriginalUnits, fit_of
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.uncertain_noise import UncertainNoise
from noisy_jax.observed.observations.described import TABLES_OUTSIDE_JIT
from noisy_jax.reports.intervals import half_width
from noisy_jax.unbiased.estimates import Estimate
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.numbers import number, whole
from noisy_jax.validation.objects import choice
from noisy_jax.validation.values import check_concrete

_SQUARED = squared()
_PATIENCE = Patience(steps=12, halvings=6, least=0.01)
_WIDER = 2.0  # jackknife over sandwich, from which on a sample is too small to trust
_BY_CHANCE = 3.0  # F statistic below which a curve explains nothing
_INSTEAD = "add rows or replicates, take fewer parameters, or give another start"
_NO_ROOT = (
    "perhaps the rows are too few for so much noise, or the noise is smaller than stated, or start "
    f"has led to a wrong minimum of the loss: {_INSTEAD}"
)
_TOO_SMALL = (
    "this table is too small to trust the estimates: a few rows decide them, and standard errors "
    f"that allow for this are {{:.2g}} times as large as without (in large tables they agree); "
    f"{_INSTEAD}"
)


@dataclasses.dataclass(frozen=True, eq=False)
class Model(Method[Fit]):
    """Least squares, or any other loss, for a curve y = f(x; θ) of your own.

    With the loss ℓ(θ; x, y) of a clean row x, and its estimate ℓ̂ from the noisy copies x̃ of the
    row, with the mean E ℓ̂ = ℓ over the noise (`nj.unbiased`), it solves for the parameters θ

        Σ_i ∇_θ ℓ̂(θ; x̃_i, y_i) = 0.

    The solution that continues the uncorrected fit, as the share of the noise that is taken away
    grows from 0 to 1, is taken. In small tables it may end before. Then a smaller share is taken
    away, with a warning (`Fit.share`). Random draws of ℓ̂ stay the same for all θ. Everything is in
    float64. `nj.fit(table, nj.methods.Model(…))` returns a `Fit` with `params` and `predict(x)`.

    The estimate ℓ̂ follows from what the table knows of the noise:

    - Gaussian noise, or a covariance alone (the noise is then assumed to be Gaussian):
      `nj.unbiased.gaussian` with 16 draws a row, without bias. The loss must be entire in x,
      analytic in the whole complex plane: `exp`, `sin`, `erf` and polynomials are, `abs`, `tanh`,
      `log` and quotients are not (ValueError).
    - Replicates, with noise of unknown or of another distribution: `nj.unbiased.replicates` of
      order 2. The loss must be smooth. A bias is left, which intervals do not contain. With the
      noise's standard deviation σ it is of order σ⁶ under Gaussian noise, of σ⁴ under other noise,
      and of σ³ from two or three copies if the noise is skewed. If replicates are incomplete, a row
      is corrected by the copies in which all columns with replicates were measured. Rows with one
      such copy are left out, with a warning.
    - Replicates in some columns and known variances in further ones: both estimates, one inside the
      other. Errors of the two kinds are taken as independent, and known ones as Gaussian if only
      their variances are stated. The loss must be entire.
    - If replicates have Gaussian noise of unknown covariance, `estimate=nj.unbiased.pair` has no
      bias. The loss must be entire.

    Orthogonal distance regression (`odrpack`) estimates every x_i beside θ. It needs only the ratio
    of the errors in x and y, but all scatter of y must be measurement error of that size, and for a
    curve it is right only as the noise becomes small. This method needs the noise in x, and nothing
    of the scatter of y. Where ℓ̂ has no bias, it is consistent for any size of noise.

    Args:
        curve: `(params, x[d]) -> []`, a function of one clean row, with one result. It is written
            with `jax.numpy`, and x is a vector in the order of the table's names.
        start: parameters from which the uncorrected fit begins: a pytree of numbers and arrays. A
            dictionary gives the estimates their names.
        loss: `(prediction, y) -> []`, one of `nj.losses` or a function; squared by default. Noise
            in y that is independent of x does no harm with the squared loss and losses that are
            linear in y, such as `losses.poisson()`; stated errors in y are for these losses alone.
        estimate: a transformation of `nj.unbiased` in place of the one above; `functools.partial`
            gives it options, such as `functools.partial(nj.unbiased.gaussian, draws=64)`.
        seed: seed of the draws, a whole number; 0 by default.
        weights: `[n]` weights ≥ 0 of the rows, factors of their losses, or the name of their
            column, which is then no feature; by default the weights of the table, or 1 if it has
            none. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column; by default the clusters of the table. Without any, rows are
            independent. Standard errors allow for them.
        errors: the kind of standard errors. "sandwich", the default, is computed from the gradient
            of each row's (or cluster's) loss, as if the row were left out (HC3). "jackknife" refits
            without one of up to 32 groups of rows, or of clusters, at a time.

    Source: Novick and Stefanski, Corrected score estimation via complex variable simulation
    extrapolation (2002); smoothed quantiles: Wang, Stefanski and Zhu, Corrected-loss estimation for
    quantile regression with covariate measurement errors (2012).

    Example:
        >>> import jax, jax.numpy as jnp, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(6000, 1))
        >>> y = 0.5 + np.sin(1.5 * x[:, 0]) + 0.3 * rng.normal(size=6000)
        >>> table = nj.observations.from_arrays(x + 0.5 * rng.normal(size=x.shape), y, noise=0.25)
        >>> def wave(params, x):
        ...     return params["level"] + params["size"] * jnp.sin(params["rate"] * x[0])
        >>> fit = nj.fit(table, nj.methods.Model(wave, {"level": 0.0, "size": 1.0, "rate": 1.0}))
        >>> print(fit.labels, fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        ('level', 'rate', 'size') [0.5 1.5 1. ] [0.5 1.2 0.8]

        The line of a quantile, by the quantile loss smoothed over the width h, which must be well
        above the standard deviation of the noise times the slope:

        >>> def upper_quarter(prediction, y, h=0.5):
        ...     z = (y - prediction) / h
        ...     smooth = z * jax.scipy.special.erf(z / 2**0.5) / 2 + jax.scipy.stats.norm.pdf(z)
        ...     return h * (z * (0.75 - 0.5) + smooth)
        >>> y = 0.5 * x[:, 0] + 0.3 * rng.normal(size=6000)
        >>> table = nj.observations.from_arrays(x + 0.5 * rng.normal(size=x.shape), y, noise=0.25)
        >>> line = nj.methods.Model(lambda p, x: p[0] + p[1] * x[0], [0.0, 1.0], loss=upper_quarter)
        >>> fit = nj.fit(table, line)
        >>> print(fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        [0.4 0.5] [0.4 0.4]

        The level is the one of y with Gaussian noise of standard deviation h added to it.
    """

    curve: Callable[..., Any]
    start: Any
    _: dataclasses.KW_ONLY
    loss: Loss | Callable[..., Any] = _SQUARED
    estimate: Callable[..., Any] | None = None
    seed: int = 0
    weights: Any = None
    clusters: Any = None
    errors: str = "sandwich"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("curve", "loss"):
            if not callable(getattr(self, name)):
                raise ValueError(f"{name} must be a function, got {given(getattr(self, name))}")
        _parameters(self.start)
        Estimate.of(self.estimate)
        if isinstance(self.loss, Loss):
            check_smooth(self.loss)
        object.__setattr__(self, "seed", whole("seed", self.seed, 0))
        choice("errors", self.errors, ERRORS)

    def _solved(self, sample: Sample) -> Fit:
        start, names = _parameters(self.start)
        sample = sample.of(sample.table.evened(known=True))
        plain, clean, least = functions_of(self, sample.table)
        sample = sample.with_copies(least)
        with jax.enable_x64(True):
            x, columns = sample.table.x[0, 0], sample.table.names
            check_callables(self.curve, self.loss, start, x, names, columns)
            return self._root(sample, plain, clean, start, names)

    def _root(
        self, sample: Sample, plain: Functions, clean: Functions, start: Any, names: tuple[str, ...]
    ) -> Fit:
        """The fit with the functions of the means of copies, and of clean rows."""
        table, (n, size) = sample.table, (len(sample.table.y), len(names))
        check_clusters(sample.clusters, max(LEAST_GROUPS, size + 1))
        if n < size + 3:
            raise ValueError(
                f"a model of {size} parameters needs at least {size + 3} rows, got {n}"
            )
        zero, rows = np.zeros(size), (start, table, self.seed, sample.weights)
        uncorrected = minimized(ModelEquations.of(plain, *rows), names, table)
        useless = _explains_nothing(uncorrected, table.y, sample.weights)
        equations = ModelEquations.of(clean, *rows)
        equations = equations.around(uncorrected.center, uncorrected.scale)
        try:
            equations.at(zero, 0.0)
        except ValueError as error:  # not entire
            hint = "; they need two copies of each row or more" if table.x.shape[1] == 1 else ""
            raise ValueError(f"{error}{hint}") from None
        corrected = solved(equations, zero, n, useless or _NO_ROOT, _PATIENCE)
        if useless is not None:
            sample.tell([Doubt(useless, spoils=False)])
        original = OriginalUnits(
            noise=UncertainNoise(table),
            cov=table.means().mean_cov(),
            combined=np.diag(uncorrected.scale),
            offset=uncorrected.center,
            known={
                "labels": names,
                "names": table.names,
                "references": table.references,
                "form": "curve",
                "function": clean.curve,
                "start": start,
            },
            slopes=False,
        )
        return fit_of(
            sample,
            Root(uncorrected, zero, 0.0),
            corrected,
            original,
            self.errors,
            doubts=lambda root, spread: _doubts(root, spread, sample.clusters),
        )

    def restored(self, fit: Fit) -> Fit:
        """Returns a fit of this model that was read from a file, with its curve.

        `nj.load_fit(path, model)` calls it.
        """
        start, names = _parameters(self.start)
        if names != fit.labels:
            raise ValueError(
                f"the fit has the parameters {listed(fit.labels)}, but start has {listed(names)}: "
                "give the model that was fitted"
            )
        given_again = {"function": self.curve, "start": start}
        uncorrected = dataclasses.replace(fit.uncorrected, **given_again)
        return dataclasses.replace(fit, uncorrected=uncorrected, **given_again)


def _parameters(start: Any) -> tuple[Any, tuple[str, ...]]:
    """`start` as arrays of float64, and the names of its numbers."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(start)
    arrays, names = [], []
    for path, leaf in leaves:
        place = re.sub(r"\['([^']*)'\]", r".\1", jax.tree_util.keystr(path)).lstrip(".")
        place = f"params{place}" if place[:1] in ("", "[") else place
        check_concrete(f"start ({place})", leaf, TABLES_OUTSIDE_JIT)
        array = np.asarray(number(f"start ({place})", leaf, shape=None), np.float64)
        arrays.append(array)
        places = [", ".join(map(str, entry)) for entry in np.ndindex(array.shape)]
        names += [f"{place}[{entry}]" if entry else place for entry in places]
    if not names:
        raise ValueError("start must have at least one number: it holds the parameters")
    return jax.tree.unflatten(structure, arrays), tuple(names)


def _doubts(root: Root, spread: Variance, clusters: np.ndarray | None) -> list[Doubt]:
    """Doubts of a corrected fit: too few rows, and a squared loss that is below 0 on clean data."""
    equations, doubts = root.equations, []
    if spread.wider > _WIDER:
        doubts.append(Doubt(_TOO_SMALL.format(spread.wider), spoils=False))
    if root.share == 1 and equations.functions.loss == squared():
        sums = equations.at(root.theta, 1.0)
        losses = np.concatenate([block.losses for block in equations.by_row(root.theta, 1.0)])
        units = losses if clusters is None else np.bincount(clusters, losses)
        error = np.std(units, ddof=1) * len(units) ** 0.5
        fitted = np.trace(spread.covariance @ -sums.jacobian)  # the rows' own loss is too small
        half = half_width(error, len(units) - 1, level=1 - 2 * LEVEL)
        if sums.loss + fitted + half < 0:
            doubts.append(Doubt(BELOW))
    return doubts


def _explains_nothing(
    plain: ModelEquations, y: np.ndarray, weights: np.ndarray | None
) -> str | None:
    """A remark if least squares ended where the curve is no better than the mean of y."""
    if plain.functions.loss != squared():
        return None
    size = len(plain.center)
    loss = plain.at(np.zeros(size), 0.0).loss
    shares = np.ones(len(y)) if weights is None else weights
    total = shares @ (y - np.average(y, weights=shares)) ** 2
    less, chance = total - loss, _BY_CHANCE * size * loss / (len(y) - size)
    if less > chance or less < -CONVERGED * total:  # or the curve has no constant term
        return None
    return (
        f"the uncorrected fit explains {max(0.0, less / total):.1%} of the variance of y, no "
        "more than chance: start has led to a wrong minimum of the loss, or the columns say "
        "nothing of y; give values of start nearer to the curve"
    )
