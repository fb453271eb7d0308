"""`fit`: regression on noisy features, judged on clean ones; `load_fit` reads it from a file."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

from noisy_jax.observed.fits.extrapolation import SimexFit
from noisy_jax.observed.fits.fourier import Fourier, OneOf
from noisy_jax.observed.fits.functions import FourierFit
from noisy_jax.observed.fits.linear import LinearFit
from noisy_jax.observed.fits.methods import Linear, Logistic, Poisson
from noisy_jax.observed.fits.model import Model
from noisy_jax.observed.fits.parts import TableMoments
from noisy_jax.observed.fits.result import Fit
from noisy_jax.observed.fits.saved import loaded
from noisy_jax.observed.fits.template import Method, checked_table
from noisy_jax.observed.observations import Observations
from noisy_jax.validation.messages import given
from noisy_jax.validation.objects import choice

_MODELS = {"linear": Linear, "logistic": Logistic, "poisson": Poisson}
_Found = TypeVar("_Found")


@overload
def fit(observations: Any, method: Method[_Found]) -> _Found: ...
@overload
def fit(
    observations: Any,
    method: None = None,
    *,
    weights: Any = None,
    clusters: Any = None,
    errors: str | None = None,
) -> LinearFit: ...
@overload
def fit(
    observations: Any,
    method: Sequence[Fourier] | str | None = None,
    *,
    model: str = "linear",
    weights: Any = None,
    clusters: Any = None,
    errors: str | None = None,
) -> Fit | FourierFit: ...


def fit(
    observations: Observations | Iterable[Observations] | Sequence[TableMoments],
    method: Any = None,
    *,
    model: str = "linear",
    weights: Any = None,
    clusters: Any = None,
    errors: str | None = None,
) -> Any:
    """Fits a regression of y on clean features x, computed from noisy features x̃.

    Least squares on features with measurement error shrinks coefficients towards zero and spreads
    them over correlated columns. `fit` subtracts the error's contribution, whose covariance the
    table states, or its replicates show. This is for interpretation of coefficients, and for
    prediction at CLEAN features. To predict from features that are as noisy as the rows of the
    table, use the fit that is not corrected, `fit.uncorrected`.

    **What it assumes**: the classical error model, x̃ = x + n, where n has mean zero and is
    independent of x. It is also independent of the noise in y, unless the table states their
    covariance (`cross_cov`). With Berkson errors, x = x̃ + n (a dose that was set to x̃, a group's
    mean that stands for its members), ordinary least squares is right for a linear model, and `fit`
    would overcorrect.

    **What it checks**: if noisy rows contradict this (noise in a column of two or few values, exact
    columns computed from noisy ones, replicates that differ more at some values than elsewhere),
    `fit` gives an `nj.fits.AssumptionWarning`, says so in `remarks` and in its table, and does not
    say that the correction helps. Of chunks only the first is checked, of each cluster one row.

    Args:
        observations: the noisy table, by `nj.table`, `nj.csv` or `nj.observations.from_arrays`.
            For a linear fit also chunks of a table that is larger than the memory, by
            `nj.observations.chunks` or as any iterable of tables that agree in their columns,
            copies and knowledge of the noise; or a table on several machines, by
            `nj.observations.partitions` or as a list of the parts' `nj.fits.moments`.
        method: one of `nj.methods`: `Linear(…)`, the default, `Logistic()` for y in {0, 1},
            `Poisson()` for counts, `Fourier(length_scale=…)` for a kernel curve or
            `Model(curve, start)` for a curve of your own. `RegressionCalibration(…)` and, for any
            estimator, `SIMEX(…)` are approximate: they keep a bias in large tables. A list of
            `Fourier` methods stands for the one of them with the least estimated error on clean
            data (`nj.methods.OneOf`).
        model: "linear" (the default), "logistic" or "poisson", short for a method without options;
            `method` takes these names too.
        weights: `[n]` weights of the rows, or the name of their column; by default the weights of
            the table. It is an option of `nj.methods.Linear`, `Logistic` and `Poisson`, which
            describe it. Other methods have their own:
            `nj.methods.Fourier(length_scale=…, weights=…)`.
        clusters: `[n]` labels of groups of rows that may depend on each other, or the name of their
            column; by default the clusters of the table. An option of the same methods.
        errors: "sandwich" or "jackknife", the kind of standard errors; an option of the same
            methods. By default the jackknife for chunks, else the sandwich.

    Returns:
        A `LinearFit`, `SimexFit` or `FourierFit` for these methods, else a `Fit`. Print it.
        `fit.coefficients`, `fit.std_error` and `fit.interval()` are its numbers, and
        `fit.summary()` has p values; a `FourierFit`, a curve, has a band instead. `fit.predict(x)`
        predicts at clean features (not for a `SimexFit`).

    Raises:
        ValueError: a column, or a combination of columns, is constant, or varies less than the
            noise in it by more than chance explains; weights or clusters are given in the table and
            here, and are not the same column; chunks do not agree; there are too few rows; the
            method cannot take the table's noise; or its equations have no solution even if only
            half of the noise is taken away.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(40_000, 2))
        >>> noisy = x + [0.8, 0.4] * rng.normal(size=x.shape)
        >>> table = nj.observations.from_arrays(noisy, 1 + x @ [2, -1], noise=[0.64, 0.16])
        >>> result = nj.fit(table)
        >>> print(result.coefficients.round(1), result.uncorrected.coefficients.round(1))
        [ 2. -1.] [ 1.2 -0.9]
    """
    observations = checked_table(observations)
    named = {"weights": weights, "clusters": clusters, "errors": errors}
    named |= {"model": None if isinstance(model, str) and model == "linear" else model}
    named = {name: value for name, value in named.items() if value is not None}
    return _method(method, named).fitted(observations)


def _method(method: Any, named: dict[str, Any]) -> Any:
    """The method that the arguments of `fit` describe."""
    if isinstance(method, str) and method in _MODELS:
        if "model" in named:
            raise ValueError(f"give the method {method!r} or model={named['model']!r}, not both")
        named["model"], method = method, None
    if method is None:
        kind = _MODELS[choice("model", named.pop("model", "linear"), _MODELS)]
        return kind(**named)
    elif isinstance(method, Iterable) and not isinstance(method, str):
        method = OneOf(tuple(method))
    if isinstance(method, type) and issubclass(method, Method):
        options = inspect.signature(method).parameters.values()
        needed = ", ".join(
            f"{option.name}=…" for option in options if option.default is option.empty
        )
        raise ValueError(f"method is a class: write nj.methods.{method.__name__}({needed})")
    if not isinstance(method, Method):
        raise ValueError(
            "method must be such as nj.methods.Logistic() or nj.methods.Fourier(length_scale=…), "
            f"or a list of the latter, or 'linear', 'logistic' or 'poisson', got {given(method)}"
        )
    if named:
        owner, first = type(method).__name__, next(iter(named))
        call = "candidates" if isinstance(method, OneOf) else "…"
        raise ValueError(
            f"leave out {', '.join(named)} with {owner}: a method owns its options, as in "
            f"nj.fit(table, nj.methods.{owner}({call}, {first}=…))"
        )
    return method


def load_fit(path: str | Path, method: Model | None = None) -> Fit | FourierFit:
    """Reads the fit that its method `save(path)` wrote to a file.

    Args:
        path: path of the file.
        method: `nj.methods.Model(curve, start)`, only for a fit of your own curve, because a file
            holds no functions. The curve must be the one that was fitted: only the names of its
            parameters are compared. Without it, the default, such a fit has no `predict`, and
            `params` is a dictionary of numbers by label.

    Returns:
        The fit, of the class that was saved: a `Fit`, `LinearFit`, `SimexFit` or `FourierFit`.

    Raises:
        ValueError: the file is damaged or edited, is of another format, or holds something else;
            or `method` is given for another kind of fit, or has other parameters.

    Example:
        >>> import os, tempfile, numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(500, 1))
        >>> noisy = x + 0.3 * rng.normal(size=x.shape)
        >>> fit = nj.fit(nj.observations.from_arrays(noisy, 2 * x[:, 0], noise=0.09))
        >>> path = os.path.join(tempfile.mkdtemp(), "fit.json")
        >>> fit.save(path)
        >>> print(nj.load_fit(path).coefficients == fit.coefficients)
        [ True]
    """
    fit = loaded(path, (Fit, LinearFit, SimexFit, FourierFit))
    if method is None:
        return fit
    if not (isinstance(fit, Fit) and fit.form == "curve" and isinstance(method, Model)):
        raise ValueError(
            f"method is nj.methods.Model(curve, start) for a fit of it, got {given(method)} for a "
            f"{type(fit).__name__}"
        )
    return method.restored(fit)
