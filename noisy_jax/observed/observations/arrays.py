"""Tables from arrays and pandas objects, with the noise in the order of their columns."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.columns import ROUNDING, common_index, in_order, index_of, numeric
from noisy_jax.matrices import check_covariance
from noisy_jax.noise import CovarianceEstimate, Gaussian, Misclassified, Noise, PerRound, Product
from noisy_jax.noise.dependent import Dependent
from noisy_jax.noise.rounds import check_noise
from noisy_jax.observed.observations.categories import with_categories, without_categories
from noisy_jax.observed.observations.described import (
    NoiseOfRows,
    Reliability,
    StandardDeviation,
    check_complete,
    check_no_gaps,
    labelled_deviations,
    noise_of_columns,
)
from noisy_jax.observed.observations.products import with_products
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.validation import (
    check_concrete,
    check_dimension,
    check_shape,
    collected,
    collected_map,
    listed,
    non_negative,
    number,
)
from noisy_jax.warning import warn

Known = (
    float
    | np.ndarray
    | Sequence[Any]
    | Mapping[str, Any]
    | Noise
    | PerRound
    | CovarianceEstimate
    | StandardDeviation
    | None
)
"""What may be known of the noise: see `observations.from_arrays`."""


def from_arrays(
    x: Any,
    y: Any,
    *,
    noise: Known = None,
    names: Sequence[str] | None = None,
    target: str | None = None,
    cross_cov: Any = None,
    products: Sequence[tuple[str, str]] = (),
    gaps: None = None,
) -> Observations:
    """Observations from arrays or a pandas DataFrame.

    Args:
        x: `[n, d]` noisy features, or `[n, V, d]`, V replicates (independent noisy copies) of them.
            A DataFrame keeps the names of its columns; a list of DataFrames with the same columns
            has one for each replicate. What a masked array masks is NaN. All pandas arguments must
            have the same index.
        y: `[n]` targets.
        noise: what is known of the error in one copy of a row, in the units of x:
            a distribution such as `noise.Laplace(0.3)`, whose mean is subtracted from x; a
            covariance `[]` (the same variance in each column), `[d]` (variances) or `[d, d]`;
            `noise.PerRound(jax.vmap(noise.Gaussian)(covs))` for one covariance a row; a
            `noise.CovarianceEstimate`, whose standard errors make the intervals of `fit` wider; or
            `None`, if there are V ≥ 2 replicates to estimate it from. 0 means that x has no error.
            Standard deviations are `nj.sd(value)`, `[]`, `[d]` or, one for each row, `[n, d]`. A
            mapping from names to what is known of the columns is as in `nj.table`, where columns
            that are not named are exact; `noise.Misclassified(matrix)` is for tables whose columns
            are all misclassified with this matrix. A pandas Series holds variances by name, and a
            DataFrame a covariance by name, with the same names as its index; columns that it does
            not name are exact. The parts of a `noise.CovarianceEstimate` may be such as well.
        names: names of the d columns; `x1`, `x2`, … by default.
        target: name of y; "y" by default.
        cross_cov: `[d]` or `[n, d]`, covariance of the errors in y and in the first copy of x; by
            default they are independent.
        products: as in `nj.table`.
        gaps: as in `nj.table`.

    Returns:
        `Observations`.

    Raises:
        ValueError: if shapes or pandas indices do not match, a value is infinite, text, a category
            or missing, or the noise is neither given nor can be estimated.

    Example:
        >>> import numpy as np
        >>> print(from_arrays(np.zeros((5, 2)), np.ones(5), noise=[0.1, 0.2]))
        Observations(5 rows, 2 features, 1 copy, noise: known covariance)
    """
    x, y, names, products = collected(x), collected(y), collected(names), collected(products)
    noise, cross_cov = collected_map(noise), collected_map(cross_cov)
    several = isinstance(x, list | tuple) and any(hasattr(one, "columns") for one in x)
    frames = list(x) if several else [x]
    columns = getattr(frames[0], "columns", None)
    if names is None and columns is not None:
        names = [str(column) for column in columns]
    target = target or str(getattr(y, "name", None) or "y")
    for name, value in (("x", x), ("y", y)):
        check_concrete(name, value, "make tables, and fit them, outside jit, vmap and grad")
    beside = [("noise", v) for v in jax.tree.leaves(noise)] if isinstance(noise, PerRound) else []
    if hasattr(cross_cov, "columns"):  # a Series has the names of the columns
        beside.append(("cross_cov", cross_cov))
    if isinstance(noise, StandardDeviation):
        if noise.value is None:
            raise ValueError("noise names a column: nj.table takes such noise, by a mapping")
        if hasattr(noise.value, "columns"):
            beside.append(("noise", noise.value))
    if isinstance(noise, Mapping):
        beside += labelled_deviations(noise)
    index = common_index(frames, y, beside)
    check_no_gaps(gaps)
    check_complete("noise", noise)
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
    dim = x.shape[2]
    names = tuple(names) if names is not None else tuple(f"x{j + 1}" for j in range(dim))
    if len(names) != dim or len(set(names)) != dim:
        hint = _SWAP if len(names) == x.shape[1] > 1 else ""
        raise ValueError(f"names must be {dim} different names, got {listed(names)}{hint}")
    shape = np.shape(noise) if isinstance(noise, (list, np.ndarray, jax.Array)) else ()
    if shape[:1] == (x.shape[1],) and x.shape[1] not in (1, dim):
        raise ValueError(f"noise of shape {list(shape)} is for other columns{_SWAP}")
    noise, recoded = by_name("noise", noise, names), {}
    if isinstance(noise, Misclassified):
        noise = dict.fromkeys(names, noise)
    if isinstance(noise, Product) and noise.depends_on_x:
        check_dimension("Product.columns", noise.columns, (dim,))
        noise = dict(zip(names, noise.columns, strict=True))
    if isinstance(noise, Mapping):
        x, noise, recoded = without_categories(x, noise, names)
    if isinstance(noise, Dependent):
        x, cov = noise.read_table(x, names)
        known = NoiseOfRows(cov, np.zeros((dim, dim)), noise)
    else:
        known = known_noise(noise, x, names)
    if cross_cov is not None:
        cross_cov = by_row("cross_cov", cross_cov, names)
        cross_cov = np.asarray(number("cross_cov", cross_cov, shape=None), np.float64)
        if cross_cov.shape not in ((dim,), (len(y), dim)):
            wanted, found = f"[{dim}] or [{len(y)}, {dim}]", list(cross_cov.shape)
            raise ValueError(f"cross_cov must be {wanted}, got {found}")
    found = Observations(
        x - known.mean,
        y,
        known.cov,
        known.cov_std_error,
        known.noise,
        names,
        target,
        cov_deviations=known.cov_deviations,
        cross_cov=cross_cov,
        index=index,
        only_sums=known.only_sums,
        unreliability=known.unreliability,
        law=known.law,
    )
    if found.unreliability is not None:
        found = dataclasses.replace(found, cov=found.estimated())
    return with_products(with_categories(found, recoded), products, noise)


def _means_differ(x) -> float:
    """The largest difference of the means of a copy and the first one, in standard errors."""
    apart = x[:, 1:] - x[:, :1]
    error = apart.std(axis=0) / len(x) ** 0.5
    known = error > ROUNDING * np.abs(x).max()
    return float((np.abs(apart.mean(axis=0)) / np.where(known, error, np.inf)).max())


_SWAP = "; x must be [n, V, d], with V replicates before the d features: np.swapaxes(x, 1, 2)"


def by_name(name: str, values: Any, names: tuple[str, ...]) -> Any:
    """The noise, or its covariance with y, in the order of the columns, if it has labels."""
    if isinstance(values, Mapping):
        if name == "noise":
            return values
        for one in values:
            if one not in names:
                raise ValueError(f"{name} has {one!r}, but x has the columns {listed(names)}")
        return [values.get(one, 0) for one in names]
    if isinstance(values, StandardDeviation):
        return dataclasses.replace(values, value=by_row("noise", values.value, names))
    if isinstance(values, PerRound):
        return jax.tree.map(lambda v: v if index_of(v) is None else np.asarray(v), values)
    if isinstance(values, CovarianceEstimate):
        parts = values.cov, values.std_error
        cov, std_error = (by_name(name, part, names) for part in parts)
        return values._replace(cov=cov, std_error=std_error)
    if not hasattr(values, "axes"):
        return values
    if name == "noise" and np.ndim(values) == 2:  # a covariance of some of the columns
        labels, rows = ([str(one) for one in axis] for axis in (values.columns, values.index))
        same = sorted(rows) == sorted(labels) and len({*labels}) == len(labels)
        if same and {*labels} & {*names}:  # by name; without one they are positions
            unknown = [one for one in labels if one not in names]
            if unknown:
                raise ValueError(
                    f"noise has {listed(unknown)}, but x has the columns {listed(names)}"
                )
            places = [names.index(one) for one in rows], [names.index(one) for one in labels]
            full = np.zeros((len(names), len(names)))
            full[np.ix_(*places)] = np.asarray(values, np.float64)
            return full
    if np.shape(values) != len(values.axes) * (len(names),):
        return values
    orders = [in_order(name, labels, names) for labels in values.axes]
    return np.asarray(values)[np.ix_(*orders)]


def by_row(name: str, values: Any, names: tuple[str, ...]) -> Any:
    """As `by_name`, where a pandas DataFrame has a row for each row of the table."""
    if hasattr(values, "columns"):
        return np.asarray(values)[:, in_order(name, values.columns, names)]
    return by_name(name, values, names)


def known_noise(noise, x: np.ndarray, names: tuple[str, ...]) -> NoiseOfRows:
    """What `noise`, an argument of `from_arrays` in the order of the columns, says of the error.

    x `[n, V, d]` are the noisy rows, and `names` those of their columns.
    """
    rows, copies, dim = x.shape
    if isinstance(noise, Reliability):
        call = f"noise={{{names[0]!r}: nj.reliability(0.6)}}"
        raise ValueError(f"a reliability is of one column, as {call}")
    exact = np.zeros((dim, dim))
    if isinstance(noise, Mapping):
        return noise_of_columns(noise, x, names)
    if isinstance(noise, StandardDeviation):
        variances = np.asarray(noise.value, np.float64) ** 2
        if variances.shape in ((), (dim,)):
            law = Gaussian(variances) if noise.gaussian else None
            return NoiseOfRows(_full(variances, dim), exact, law)
        reason = "one standard deviation for each row and column"
        check_shape("sd", variances, (rows, dim), reason)
        law = PerRound(jax.vmap(Gaussian)(variances)) if noise.gaussian else None
        return NoiseOfRows(variances[:, :, None] * np.eye(dim), exact, law)
    if noise is None:
        if copies < 2:
            known = "its variance, as 0.1 or one number a column, or replicates as x [n, V >= 2, d]"
            raise ValueError(f"noise is unknown: give {known}")
        return NoiseOfRows(None, exact)
    if isinstance(noise, CovarianceEstimate):
        error = np.asarray(non_negative("std_error", noise.std_error, shape=None), np.float64)
        check_shape("std_error", error, (dim, dim), "one number for each entry of cov")
        moves = noise.deviations
        if moves is not None:
            moves = np.asarray(number("deviations", moves, shape=None), np.float64)
            check_shape("deviations", moves[:1], (1, dim, dim), "one matrix an instance")
        return NoiseOfRows(_full(noise.cov, dim), error, cov_deviations=moves)
    if isinstance(noise, PerRound):
        check_noise(noise, None, rows)
        if noise.distribution.depends_on_x:
            raise ValueError("noise.PerRound must hold noise whose covariance does not depend on x")
        cov = jax.vmap(lambda one: one.covariance(dim))(noise.distribution)
        means = jax.vmap(lambda one: jnp.broadcast_to(one.mean, (dim,)))(noise.distribution)
        mean = np.asarray(means, np.float64)[:, None]
        return NoiseOfRows(_full(cov, dim, stacked=True), exact, noise, mean=mean)
    if isinstance(noise, Noise):
        cov, mean = _full(noise.cov, dim), np.asarray(noise.mean, np.float64)
        check_dimension("noise.mean", mean, (dim,))
        return NoiseOfRows(cov, exact, noise, mean=np.broadcast_to(mean, (dim,)))
    return NoiseOfRows(_full(noise, dim), exact)


def _full(cov, dim, *, stacked=False) -> np.ndarray:
    """`[d, d]` from a covariance in any of its forms; `[n, d, d]` from stacked ones."""
    check_covariance("noise", cov, stacked=stacked)
    cov = np.asarray(cov, np.float64)
    check_dimension("noise", cov[0] if stacked else cov, (dim,))
    rank = cov.ndim - stacked
    return cov if rank == 2 else cov.reshape(cov.shape + (1,) * (2 - rank)) * np.eye(dim)
