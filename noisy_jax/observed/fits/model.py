"""Any model y ≈ f(x; θ) on noisy features: the method, and the data that it takes from the table.

The equations are in `model_equations`, and their roots in `model_roots`.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.losses import Loss, squared
from noisy_jax.losses.loss import check_smooth, takes_noisy_targets
from noisy_jax.noise import Gaussian
from noisy_jax.observed.fits.callables import check_callables
from noisy_jax.observed.fits.model_equations import Functions
from noisy_jax.observed.fits.model_roots import model_fit
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.solutions import ERRORS
from noisy_jax.observed.fits.template import Method, Sample
from noisy_jax.observed.fits.trials import order_of
from noisy_jax.observed.observations import Observations
from noisy_jax.unbiased import gaussian, replicates
from noisy_jax.unbiased.estimates import Estimate
from noisy_jax.unbiased.transformed import Points, Transformed
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.numbers import check_labels, number, whole
from noisy_jax.validation.objects import choice

_PLAIN = functools.partial(replicates, order=0)
_KNOWN = functools.partial(gaussian, draws=16)
_SQUARED = squared()
_ANY_LAW = "replicates, x [n, V, d], may have noise of any law"
_ALONE = "; or give the covariance alone, if the noise is nearly Gaussian"


@dataclasses.dataclass(frozen=True, eq=False)
class Model(Method[Fit]):
    """Least squares, or any other loss, for a curve y = f(x; θ) of your own.

    With the loss ℓ(θ; x, y) of a clean row, and ℓ̂ of its noisy copies by a transformation of
    `nj.unbiased`, such that E ℓ̂ = ℓ, it solves

        Σ_i ∇_θ ℓ̂(θ; x̃_i, y_i) = 0.

    The root that continues the uncorrected fit, as the share of the noise that is taken away grows
    from 0 to 1, is taken. In small tables it may end before: then a smaller share is taken away,
    with a warning (`Fit.share`). Random draws of ℓ̂ stay the same for all θ. Everything is in
    float64.

    The transformation follows from the table:

    - Gaussian noise, or a covariance alone (the noise is then assumed to be Gaussian):
      `nj.unbiased.gaussian` with 16 draws a row. The loss must be entire in x: `exp`, `sin`, `erf`
      and polynomials are, `abs`, `tanh`, `log` and quotients are not.
    - Copies of each row, with noise of unknown or of another law: `nj.unbiased.replicates` of
      order 2, for which two or three copies also count in pairs, ax̃_1 + (1 − a)x̃_2 with
      a = (1 + √3)/2, as one copy with twice the noise. The loss must be smooth. Intervals do not
      contain the bias that is left: of order σ⁶ under Gaussian noise, of σ⁴ under other noise, by
      its fourth cumulant, and of σ³ from two or three copies if the noise is skewed. Where
      replicates are incomplete, a row is corrected by the copies in which all columns with
      replicates were measured. Rows with one such copy are left out, with a warning.
    - Replicates of unknown noise in some columns and known variances in further ones: `gaussian`
      for the columns of known variance, inside `replicates` for the columns with replicates. Errors
      of the two kinds are taken as independent, and known ones as Gaussian if only their variances
      are stated. The loss must be entire.
    - Copies with Gaussian noise of unknown covariance: `estimate=nj.unbiased.pair` has no bias. The
      loss must be entire.

    Orthogonal distance regression (`odrpack`) estimates every x_i beside θ. It needs only the ratio
    of the errors in x and y, but all scatter of y must be measurement error of that size, and for a
    curve it is right only as the noise becomes small. This method needs the noise in x, and nothing
    of the scatter of y; it is right for any size of noise, as the number of rows grows.

    Args:
        curve: `(params, x[d]) -> []`, a function of one clean row, with one result. It is written
            with `jax.numpy`, and x is a vector in the order of the table's names.
        start: parameters from which the uncorrected fit begins: a pytree of numbers and arrays. A
            dictionary gives the coefficients their names.
        loss: `(prediction, y) -> []`, one of `nj.losses` or a function. Only the squared loss, and
            losses of counts, which are linear in y, allow errors in y that are independent of x.
        estimate: a transformation in place of the one above; `functools.partial` gives it options,
            such as `functools.partial(nj.unbiased.gaussian, draws=64)`.
        seed: of the draws.
        weights: `[n]` weights of the rows: factors of their losses, or the name of their column, as
            in `nj.methods.Linear`; 1 by default. Rows of weight 0 are left out.
        clusters: `[n]` labels of groups of rows that may depend on each other, at least 8, or the
            name of their column, which standard errors then take as one.
        errors: "sandwich", by the slopes of rows' losses and their leverages (HC3); or "jackknife",
            by fits without one of up to 32 groups of rows, or of clusters, at a time, as in
            `nj.methods.Linear`.

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
        whole("seed", self.seed, 0)
        choice("errors", self.errors, ERRORS)

    def _solved(self, sample: Sample) -> Fit:
        start, names = _parameters(self.start)
        sample = sample.of(sample.table.evened(known=True))
        functions, least = _functions(self, sample.table)
        sample = sample.with_copies(least)
        table = sample.table
        with jax.enable_x64(True):
            check_callables(self.curve, self.loss, start, table.x[0, 0], names, table.names)
            return model_fit(sample, functions, start, names, self.seed, self.errors)

    def restored(self, fit: Fit) -> Fit:
        """A fit of this model that was read from a file, with its curve."""
        start, names = _parameters(self.start)
        if names != fit.labels:
            raise ValueError(
                f"the fit has the parameters {listed(fit.labels)}, but start has {listed(names)}: "
                "give the model that was fitted"
            )
        known = {"function": self.curve, "start": start}
        uncorrected = dataclasses.replace(fit.uncorrected, **known)
        return dataclasses.replace(fit, uncorrected=uncorrected, **known)


def _parameters(start: Any) -> tuple[Any, tuple[str, ...]]:
    """`start` as arrays of float64, and the names of its numbers."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(start)
    arrays, names = [], []
    for path, leaf in leaves:
        place = re.sub(r"\['([^']*)'\]", r".\1", jax.tree_util.keystr(path)).lstrip(".")
        place = f"params{place}" if place[:1] in ("", "[") else place
        array = np.asarray(number(f"start ({place})", leaf, shape=None), np.float64)
        arrays.append(array)
        places = [", ".join(map(str, each)) for each in np.ndindex(array.shape)]
        names += [f"{place}[{each}]" if each else place for each in places]
    if not names:
        raise ValueError("start must have at least one number: it holds the parameters")
    return jax.tree.unflatten(structure, arrays), tuple(names)


def _functions(method: Model, table: Observations) -> tuple[tuple[Functions, Functions], int]:
    """The model at the means of the copies, its estimate at clean rows, and the copies it needs."""
    table.check_each_row("nj.methods.Model")
    if table.cross_cov is not None:
        raise ValueError(
            "nj.methods.Model needs errors in y that are independent of those in x: leave out "
            "cross_cov"
        )
    loss = method.loss
    allows = isinstance(loss, Loss) and takes_noisy_targets(loss) and loss.kind != "margin"
    if table.target_cov is not None and not allows:  # the error of a label is no variance
        raise ValueError(
            f"this loss is for {table.target!r} without error: leave out its noise, or take "
            "nj.losses.squared()"
        )
    if isinstance(loss, Loss) and loss.kind == "margin":
        check_labels(table.target, table.y)
    if table.copied and table.cov is not None and method.estimate:
        raise ValueError(
            "leave out estimate: with replicates of unknown noise in some columns and known noise "
            "in others, nj.methods.Model corrects each in its own way"
        )
    estimate = Estimate.of(method.estimate or _estimate(table))
    made = estimate.probed(method.curve, argnum=1)
    law, copies = table.not_gaussian(), table.x.shape[1]
    if estimate.reads_cov and table.cov is None:
        raise ValueError(
            "this estimate needs the covariance of the noise, but the table has replicates of "
            "unknown noise: nj.unbiased.pair takes Gaussian noise, nj.unbiased.replicates any"
        )
    if isinstance(made.noise, Gaussian):
        raise ValueError("leave out the noise of estimate: the table states it")
    if made.noise is not None and law:
        raise ValueError(f"this estimate is for Gaussian noise, got {law}: {_ANY_LAW}{_ALONE}")
    if method.seed and not made.draws:
        raise ValueError("leave out seed: this estimate draws nothing")
    if copies < made.copies:
        raise ValueError(
            f"this estimate needs {made.copies} copies of each row, but the table has {copies}"
        )
    shared = _hashable(method.curve), loss
    every = Functions(*shared, Estimate.of(_PLAIN)), Functions(*shared, estimate)
    return every, made.copies


def _hashable(curve: Callable[..., Any]) -> Callable[..., Any]:
    """The curve, or if it has no hash (a module with arrays) a function that calls it."""
    try:
        hash(curve)
    except TypeError:
        return functools.partial(curve)
    return curve


def _estimate(table: Observations) -> Callable[..., Any]:
    """The transformation that the table allows."""
    law, copies = table.not_gaussian(), table.x.shape[1]
    if table.copied and table.cov is not None:
        return _both
    if table.cov is not None:
        if not table.cov.any():
            return _PLAIN
        if law is None:
            return _KNOWN
    if copies == 1:
        raise ValueError(
            "from one copy of each row nj.methods.Model needs Gaussian noise, got "
            f"{law}: {_ANY_LAW}{_ALONE}"
        )
    return _any_law


def _any_law(f: Callable, argnum: int) -> Transformed:
    """`replicates` of the order that the number of copies allows."""

    def rule(copies, key):
        estimate: Any = replicates(f, order=order_of(len(copies)))
        estimate = estimate.next_order if len(copies) < 4 else estimate
        return estimate.points(copies, key)

    return Transformed(f, argnum, "replicates", 2, rule)


def _both(f: Callable, noise: Any, argnum: int) -> Transformed:
    """`_any_law` of `_KNOWN`: `noise` is zero in columns that differ between the copies."""

    def rule(copies, key):
        outer, inner = _any_law(f, 0).points(copies), _KNOWN(f, noise).points(copies[:1], key)
        each = [a.repeat(len(inner.weights), axis=0) for a in (outer.real, outer.weights)]
        number = len(outer.weights)
        imaginary = jnp.tile(inner.imaginary, (number, 1))  # pyright: ignore[reportArgumentType]
        return Points(each[0], each[1] * jnp.tile(inner.weights, number), imaginary)

    return Transformed(f, argnum, "gaussian", 2, rule, draws=True)
