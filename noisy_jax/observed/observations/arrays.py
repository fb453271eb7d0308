"""Tables from arrays and pandas objects, with the noise in the order of their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from noisy_jax.noise import Misclassified
from noisy_jax.observed.observations.categories import recoding
from noisy_jax.observed.observations.described import (
    TABLES_OUTSIDE_JIT,
    check_no_gaps,
    check_not_traced,
)
from noisy_jax.observed.observations.labels import by_name, of_each_row
from noisy_jax.observed.observations.measured import Measured, columns_of_copies, observations_of
from noisy_jax.observed.observations.roles import one_name
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.tabular.columns import ROUNDING, common_index, numeric
from noisy_jax.validation.arrays import shape_of
from noisy_jax.validation.messages import given, listed
from noisy_jax.validation.values import check_concrete, collected, collected_map
from noisy_jax.warning import warn


def from_arrays(
    x: Any,
    y: Any,
    *,
    noise: Any = None,
    names: Sequence[str] | None = None,
    target: str | None = None,
    cross_cov: Any = None,
    products: Sequence[tuple[str, str]] = (),
    gaps: None = None,
) -> Observations:
    """Makes a table of noisy rows from arrays or a pandas DataFrame, for `nj.fit` and `nj.learn`.

    Args:
        x: `[n, d]` noisy features x̃ = x + error, or `[n, V, d]`, V replicates (independent noisy
            copies) of them. A DataFrame keeps the names of its columns; a list of DataFrames with
            the same columns has one for each replicate. NaN and masked values raise ValueError,
            also in single replicates. All pandas arguments must have the same index.
        y: `[n]` targets, which may be noisy.
        noise: what is known of the error in one copy of a row, in the units of x:

            - a covariance `[]` (the same variance in each column), `[d]` (variances) or `[d, d]`;
              0 means that x has no error;
            - standard deviations `nj.sd(value)`, `[]`, `[d]` or, one for each row, `[n, d]`;
            - a distribution such as `nj.noise.Laplace(0.3)`, whose mean is subtracted from x;
            - `nj.noise.PerRound(jax.vmap(nj.noise.Gaussian)(covs))`, a covariance for each row;
            - an `nj.noise.CovarianceEstimate`, whose standard errors make intervals of `fit` wider;
            - a mapping from names of columns to errors of single columns, as `nj.table` lists them
              (variances, `nj.sd`, distributions, …); columns that are not named are exact;
            - `nj.noise.Misclassified(matrix)`, if all columns are misclassified with this matrix;
            - a pandas Series of variances by name, or a DataFrame, a covariance by name with the
              same names as its index; columns that it does not name are exact;
            - `None`, the default, if there are V ≥ 2 replicates, from which it is estimated.
        names: names of the d columns; `x1`, `x2`, …, or the names of a DataFrame by default.
        target: name of y; "y", or the name of a pandas Series by default.
        cross_cov: `[d]` or `[n, d]`, covariance of the errors in y and in the first copy of x
            (errors in other copies are independent of the error in y); `None`, the default, if they
            are independent.
        products: pairs of names, such as `[("x1", "x2")]`, whose products linear fits take as
            further columns (`nj.table` says under which conditions).
        gaps: an option of version 0.3; leave it out.

    Returns:
        `Observations` of n rows.

    Raises:
        ValueError: shapes or pandas indices do not match, a value is infinite, text, a category or
            missing, or the noise is neither given nor can be estimated.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> table = nj.observations.from_arrays(np.zeros((5, 2)), np.ones(5), noise=[0.1, 0.2])
        >>> print(table)
        Observations(5 rows, 2 features, 1 copy, noise: known covariance)
    """
    x, y, names, products = collected(x), collected(y), collected(names), collected(products)
    noise, cross_cov = collected_map(noise), collected_map(cross_cov)
    check_not_traced(noise, cross_cov)
    check_no_gaps(gaps)
    if isinstance(noise, Mapping):
        noise = {str(name): one for name, one in noise.items()}
    several = isinstance(x, list | tuple) and any(hasattr(one, "columns") for one in x)
    frames = list(x) if several else [x]
    columns = getattr(frames[0], "columns", None)
    if names is None and columns is not None:
        names = [str(column) for column in columns]
    for name, value in (("x", x), ("y", y)):
        check_concrete(name, value, TABLES_OUTSIDE_JIT)
    target = one_name("target", target) if target is not None else ""
    target = target or str(getattr(y, "name", None) or "y")
    index = common_index(frames, y, of_each_row(noise, cross_cov))
    hint = "drop such rows, as by frame.dropna(), or impute them"
    copies = [
        numeric("x", one, np.float64, hint=hint).astype(np.float64, copy=False) for one in frames
    ]
    x = np.stack(copies, axis=1) if several else copies[0]
    y = numeric("y", y, np.float64).astype(np.float64)
    if x.ndim not in (2, 3) or 0 in x.shape:
        hint = "; one feature is x[:, None]" if x.ndim == 1 else ""
        raise ValueError(
            f"x must be [n, d], or [n, V, d] with replicates, got {list(x.shape)}{hint}"
        )
    if y.shape != x.shape[:1]:
        swapped = y.shape == x.shape[1:2] and x.ndim == 3
        hint = "; replicates belong on the second axis: np.swapaxes(x, 0, 1)" if swapped else ""
        raise ValueError(f"x has {len(x)} rows, but y has shape {list(y.shape)}{hint}")
    x = x[:, None] if x.ndim == 2 else x
    if min(x.shape) > 1 and _means_differ(x) > 10 and _means_differ(np.swapaxes(x, 1, 2)) < 5:
        warn(f"replicates of one feature have different means{_SWAP}")
    _, places, dim = x.shape
    if isinstance(names, str) or not isinstance(names, Iterable | None):
        raise ValueError(f"names must be a list of {dim} names, got {given(names)}")
    names = tuple(map(str, names)) if names is not None else tuple(f"x{j + 1}" for j in range(dim))
    if len(names) != dim or len(set(names)) != dim:
        hint = _SWAP if len(names) == places > 1 else ""
        raise ValueError(f"names must be {dim} different names, got {listed(names)}{hint}")
    shape = shape_of("noise", noise) if isinstance(noise, (list, np.ndarray, jax.Array)) else ()
    if shape[:1] == (places,) and places not in (1, dim):
        raise ValueError(f"noise of shape {list(shape)} is for other columns{_SWAP}")
    if isinstance(noise, Misclassified):
        noise = dict.fromkeys(names, noise)
    noise, copied = by_name("noise", noise, names), np.full(dim, places > 1)
    wrong = {}
    if isinstance(noise, Mapping):
        noise = {**dict.fromkeys(names, 0.0), **noise}
        wrong = {n: noise.pop(n) for n in names if isinstance(noise[n], Misclassified)}
    if wrong:
        features = {n: x[:, :, j] if places > 1 else x[:, 0, j] for j, n in enumerate(names)}
        recoded = {name: recoding(name, features[name], one) for name, one in wrong.items()}
        measured = columns_of_copies(features | recoded)
    else:
        measured = Measured(np.array(x), names, copied, names, tuple(range(dim)))
    options = {"cross_cov": cross_cov, "products": products, "index": index}
    return observations_of(measured, y, noise, target=target, **options)


_SWAP = "; x must be [n, V, d], with V replicates before the d features: np.swapaxes(x, 1, 2)"


def _means_differ(x) -> float:
    """The largest difference of the means of a copy and the first one, in standard errors."""
    apart = x[:, 1:] - x[:, :1]
    error = apart.std(axis=0) / len(x) ** 0.5
    vary = error > ROUNDING * np.abs(x).max()
    return float((np.abs(apart.mean(axis=0)) / np.where(vary, error, np.inf)).max())
