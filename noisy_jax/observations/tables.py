"""Tables of measured features and targets, with what is known of the measurement error."""

import dataclasses
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax.matrices import check_covariance
from noisy_jax.noise import CovarianceEstimate, Noise, PerRound
from noisy_jax.noise.dependent import Dependent
from noisy_jax.noise.rounds import by_round, check_noise
from noisy_jax.streams.columns import ROUNDING, in_order, numeric
from noisy_jax.validation import check_concrete, check_dimension, check_shape, non_negative, number

Known = float | np.ndarray | Sequence | Noise | PerRound | CovarianceEstimate | None
"""What may be known of the noise: see `from_arrays`."""


@dataclasses.dataclass(frozen=True, eq=False)
class Observations:
    """n rows of noisy features with their targets, in float64 and original units.

    Attributes:
        x: `[n, V, d]`, V noisy copies of the features of each row (V = 1 without replicates), less
            the known mean of the noise.
        y: `[n]` targets, which may contain noise of mean zero.
        cov: covariance of the error of one copy: `[d, d]`, the same in all rows; `[n, d, d]`, one a
            row; `None` if it is unknown and must come from the replicates.
        cov_std_error: `[d, d]`, standard error of each entry of `cov`; zero where `cov` is exact.
        noise: distribution of the error, for fits that need more than its covariance, or `None`;
            a `noise.PerRound` of the n rows if it changes.
        names: d names of the columns.
        target: name of y.
        cov_deviations: `[m, d, d]`, how the errors of different entries of `cov` depend on each
            other, as in `noise.CovarianceEstimate`; `None` takes them as independent.
        cross_cov: `[d]` or `[n, d]`, covariance of the error in y with that of the first copy (the
            other copies are independent of it); `None` if it is zero.
    """

    x: np.ndarray
    y: np.ndarray
    cov: np.ndarray | None
    cov_std_error: np.ndarray
    noise: Any
    names: tuple[str, ...]
    target: str
    cov_deviations: np.ndarray | None = None
    cross_cov: np.ndarray | None = None

    def __repr__(self) -> str:
        """The shape, and what is known of the noise."""
        rows, copies, dim = self.x.shape
        known = "estimated from replicates" if self.cov is None else "known covariance"
        known = known if self.noise is None else type(by_round(self.noise)[0]).__name__
        copies = "1 copy" if copies == 1 else f"{copies} copies"
        return f"Observations({rows:,} rows, {dim} features, {copies}, noise: {known})"

    def averaged(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean of each row's copies, and the covariance of the error of that mean.

        With an unknown covariance, row i uses its own estimate from its V replicates,
        Σ_v (x̃_iv − x̄_i)(x̃_iv − x̄_i)ᵀ/(V(V − 1)). It is unbiased, so that sums over rows are too.

        Returns:
            `[n, d]` means, and `[d, d]` or `[n, d, d]` covariances.
        """
        copies = self.x.shape[1]
        mean = self.x[:, 0] if copies == 1 else self.x.mean(axis=1)
        if self.cov is not None:
            return mean, self.cov / copies
        residuals = self.x - mean[:, None]
        cov = np.einsum("nvi,nvj->nij", residuals, residuals) / (copies * (copies - 1))
        return mean, cov

    def averaged_cross(self) -> np.ndarray | None:
        """The covariance of the error in y with that in the mean of a row's copies."""
        return None if self.cross_cov is None else self.cross_cov / self.x.shape[1]

    def rows(self, which: np.ndarray) -> "Observations":
        """Some of the rows: `which` holds their numbers, or is a mask `[n]`."""

        def some(values, rank):
            return values if values is None or values.ndim == rank else values[which]

        cov, cross, noise = some(self.cov, 2), some(self.cross_cov, 1), self.noise
        if isinstance(noise, PerRound):
            noise = jax.tree.map(lambda leaf: leaf[which], noise)
        return dataclasses.replace(
            self, x=self.x[which], y=self.y[which], cov=cov, noise=noise, cross_cov=cross
        )


def from_arrays(
    x: Any,
    y: Any,
    *,
    noise: Known | Mapping[str, float] = None,
    names: Sequence[str] | None = None,
    target: str | None = None,
    cross_cov: Any = None,
) -> Observations:
    """Observations from arrays or a pandas DataFrame.

    Args:
        x: `[n, d]` noisy features, or `[n, V, d]`, V replicates (independent noisy copies) of them.
            A DataFrame keeps the names of its columns.
        y: `[n]` targets.
        noise: what is known of the error in one copy of a row, in the units of x:
            a distribution such as `noise.Laplace(0.3)`, whose mean is subtracted from x; a
            covariance `[]` (the same variance in each column), `[d]` (variances) or `[d, d]`;
            `noise.Missing(keep)` if NaN are missing values (and likewise `noise.Attributes`);
            `noise.PerRound(jax.vmap(noise.Gaussian)(covs))` for one covariance a row; a
            `noise.CovarianceEstimate`, whose standard errors make the intervals of `fit` wider; or
            `None`, if there are V ≥ 2 replicates to estimate it from. 0 means that x has no error.
            Variances by name are a mapping, with 0 for columns that are not named, or a pandas
            Series; a pandas DataFrame is a covariance by name.
        names: names of the d columns; `x1`, `x2`, … by default.
        target: name of y; "y" by default.
        cross_cov: `[d]` or `[n, d]`, covariance of the error in y with that in the first copy of x;
            by default they are independent.

    Returns:
        `Observations`.

    Raises:
        ValueError: if shapes do not match, a value is infinite, text or missing (unless the noise
            is of missing values), or the noise is neither given nor can be estimated.

    Example:
        >>> import numpy as np
        >>> print(from_arrays(np.zeros((5, 2)), np.ones(5), noise=[0.1, 0.2]))
        Observations(5 rows, 2 features, 1 copy, noise: known covariance)
    """
    columns = getattr(x, "columns", None)
    if names is None and columns is not None:
        names = [str(column) for column in columns]
    target = target or str(getattr(y, "name", None) or "y")
    for name, value in (("x", x), ("y", y)):
        check_concrete(name, value, "make tables, and fit them, outside jit, vmap and grad")
    missing = isinstance(noise, Dependent)
    x = numeric("x", x, np.float64, missing=missing).astype(np.float64)
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
        warnings.warn(f"replicates of one feature have different means{_SWAP}", stacklevel=2)
    dim = x.shape[2]
    names = tuple(names) if names is not None else tuple(f"x{j + 1}" for j in range(dim))
    if len(names) != dim or len(set(names)) != dim:
        hint = _SWAP if len(names) == x.shape[1] > 1 else ""
        raise ValueError(f"names must be {dim} different names, got {list(names)}{hint}")
    shape = np.shape(noise) if isinstance(noise, (list, np.ndarray, jax.Array)) else ()
    if shape[:1] == (x.shape[1],) and x.shape[1] not in (1, dim):
        raise ValueError(f"noise of shape {list(shape)} is for other columns{_SWAP}")
    noise = _by_name(noise, names)
    if isinstance(noise, Dependent):
        x, cov = noise.read_table(x, names)
        error, distribution = np.zeros((dim, dim)), noise
    else:
        cov, error, distribution = _known(noise, *x.shape)
    deviations = noise.deviations if isinstance(noise, CovarianceEstimate) else None
    if deviations is not None:
        deviations = np.asarray(number("deviations", deviations, shape=None), np.float64)
        check_shape("deviations", deviations[:1], (1, dim, dim), "one matrix an instance")
    x = x - _mean(noise, dim)
    if cross_cov is not None:
        cross_cov = np.asarray(number("cross_cov", cross_cov, shape=None), np.float64)
        if cross_cov.shape not in ((dim,), (len(y), dim)):
            wanted, found = f"[{dim}] or [{len(y)}, {dim}]", list(cross_cov.shape)
            raise ValueError(f"cross_cov must be {wanted}, got {found}")
    return Observations(x, y, cov, error, distribution, names, target, deviations, cross_cov)


def _means_differ(x) -> float:
    """How many standard errors the mean of another copy is from that of the first, at most."""
    apart = x[:, 1:] - x[:, :1]
    error = apart.std(axis=0) / len(x) ** 0.5
    known = error > ROUNDING * np.abs(x).max()
    return float((np.abs(apart.mean(axis=0)) / np.where(known, error, np.inf)).max())


_SWAP = "; x must be [n, V, d], with V replicates before the d features: np.swapaxes(x, 1, 2)"


def _by_name(noise, names: tuple[str, ...]):
    """The noise in the order of the columns, if it has labels."""
    if isinstance(noise, Mapping):
        for name in noise:
            if name not in names:
                raise ValueError(f"noise has {name!r}, but x has the columns {list(names)}")
        return [non_negative(f"noise[{name!r}]", noise.get(name, 0)) for name in names]
    if not hasattr(noise, "axes") or np.shape(noise) != len(noise.axes) * (len(names),):
        return noise
    orders = [in_order("noise", labels, names) for labels in noise.axes]
    return np.asarray(noise)[np.ix_(*orders)]


def _known(noise, rows, copies, dim):
    """The covariance of one copy's error, its standard error, and the distribution if known."""
    exact = np.zeros((dim, dim))
    if noise is None:
        if copies < 2:
            known = "its variance, as 0.1 or one number a column, or replicates as x [n, V >= 2, d]"
            raise ValueError(f"noise is unknown: give {known}")
        return None, exact, None
    if isinstance(noise, CovarianceEstimate):
        error = np.asarray(non_negative("std_error", noise.std_error, shape=None), np.float64)
        check_shape("std_error", error, (dim, dim), "one number for each entry of cov")
        return _full(noise.cov, dim), error, None
    if isinstance(noise, PerRound):
        check_noise(noise, None, rows)
        if noise.distribution.depends_on_x:
            raise ValueError("noise.PerRound must hold noise whose covariance does not depend on x")
        cov = jax.vmap(lambda one: one.covariance(dim))(noise.distribution)
        return _full(cov, dim, stacked=True), exact, noise
    if isinstance(noise, Noise):
        return _full(noise.cov, dim), exact, noise
    return _full(noise, dim), exact, None


def _mean(noise, dim) -> np.ndarray:
    """The noise's known mean, as it is subtracted from x: `[d]`, or `[n, 1, d]` for one a row."""
    if isinstance(noise, PerRound):
        means = jax.vmap(lambda one: jnp.broadcast_to(one.mean, (dim,)))(noise.distribution)
        return np.asarray(means, np.float64)[:, None]
    mean = np.asarray(noise.mean if isinstance(noise, Noise) else 0.0, np.float64)
    check_dimension("noise.mean", mean, (dim,))
    return np.broadcast_to(mean, (dim,))


def _full(cov, dim, *, stacked=False) -> np.ndarray:
    """`[d, d]` from a covariance in any of its forms; `[n, d, d]` from stacked ones."""
    check_covariance("noise", cov, stacked=stacked)
    cov = np.asarray(cov, np.float64)
    check_dimension("noise", cov[0] if stacked else cov, (dim,))
    rank = cov.ndim - stacked
    return cov if rank == 2 else cov.reshape(cov.shape + (1,) * (2 - rank)) * np.eye(dim)
