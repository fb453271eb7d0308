"""Known errors of single columns, and the errors of a table that follow from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from noisy_jax.noise import (
    Attributes,
    CovarianceEstimate,
    Gaussian,
    Misclassified,
    Missing,
    Noise,
    PerRound,
)
from noisy_jax.noise.dependent import Dependent
from noisy_jax.noise.rounds import by_round
from noisy_jax.observed.observations.dependent import covariances
from noisy_jax.validation.arrays import shape_of
from noisy_jax.validation.messages import given
from noisy_jax.validation.numbers import non_negative, positive, within
from noisy_jax.validation.objects import switch
from noisy_jax.validation.values import check_concrete


@dataclasses.dataclass(frozen=True, eq=False)
class StandardDeviation:
    """Standard deviations of errors, or the name of a column of them; see `sd`."""

    value: Any = None
    column: str | None = None
    gaussian: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Reliability:
    """The share of a measured column's variance that is not error; see `reliability`."""

    ratio: float


OUTSIDE = "make tables, and fit them, outside jit, vmap and grad"


def sd(
    value: Any = None, *, column: str | None = None, gaussian: bool = False
) -> StandardDeviation:
    """States the standard deviation of a column's error, as instruments state it.

    Args:
        value: a number; or one for each row, `[n]`; in `observations.from_arrays`, whose noise is
            of all columns, one for each column, `[d]`, or for each row and column, `[n, d]`.
        column: in place of `value`, for `table` and `csv`, the name of a column that holds one for
            each row. That column is then not a feature.
        gaussian: whether errors are known to be Gaussian. Kernel fits need a distribution.

    Returns:
        An entry of the argument `noise` of `table`, `csv` and `observations.from_arrays`.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> frame = {"dose": [1.0, 2.0, 4.0], "error": [0.1, 0.1, 0.2], "y": [0.0, 1.0, 3.0]}
        >>> table = nj.table(frame, target="y", noise={"dose": sd(column="error")})
        >>> print(table.cov.ravel().round(2))
        [0.01 0.01 0.04]
    """
    if (value is None) == (column is None):
        raise ValueError("sd takes a value, such as sd(0.5), or a column, as sd(column='z_err')")
    if column is not None and not isinstance(column, str):
        raise ValueError(f"column must be the name of a column, got {given(column)}")
    if value is not None:
        check_concrete("sd", value, OUTSIDE)
        value = _size("sd", value, shape=None)
    return StandardDeviation(value, column, switch("gaussian", gaussian))


def _size(name: str, value: Any, **options: Any) -> Any:
    """A variance or a standard deviation."""
    if isinstance(value, str):
        raise ValueError(
            f"{name} must be numbers, got {given(value)}: in nj.table and nj.csv "
            f"nj.sd(column={given(value)}) takes a column of standard deviations"
        )
    return non_negative(name, value, **options)


def reliability(ratio: float) -> Reliability:
    """States the reliability r of a measured column, such as a test: Var(x)/Var(x̃) for x̃ = x + n.

    The variance of the error is then (1 − r) Var(x̃), where Var(x̃) is the variance of the column in
    the table, with the weights of the fit. In a linear fit with one feature the slope is the
    least-squares slope divided by r. Its standard error takes r as known and Var(x̃) as estimated.
    A column with replicates takes no reliability (ValueError): they show its error themselves.

    Args:
        ratio: r, above 0 and at most 1. It must hold in the population of the rows.

    Returns:
        An entry of the argument `noise` of `table` and `csv`.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> score = rng.normal(size=1000)
        >>> frame = {"score": score, "y": 0.3 * score + rng.normal(size=1000)}
        >>> fit = nj.fit(nj.table(frame, target="y", noise={"score": reliability(0.6)}))
        >>> print((fit.uncorrected.coefficients / fit.coefficients).round(6))
        [0.6]
    """
    check_concrete("reliability", ratio, OUTSIDE)
    positive("reliability", within("reliability", ratio, 0, 1), "an exact column has 1")
    return Reliability(float(ratio))


class ErrorOfColumn(NamedTuple):
    """The error in one copy of a column."""

    variance: np.ndarray  # [], or [n] for one a row
    mean: float = 0.0  # it is subtracted from the column
    law: Noise | None = None  # its distribution; `None` if only the variance is known
    in_sums: bool = False  # whether variances by row are right in sums over rows only
    std_error: float = 0.0  # of the variance, if it is an estimate
    unreliability: float = 0.0  # `variance` over the column's variance, if that is known


def error_of(name: str, known: Any, x: np.ndarray) -> ErrorOfColumn:
    """The error in the column of this name, with copies x `[n, V]`.

    It is stated by a variance, `sd(value)`, `reliability(ratio)` or a scalar distribution.
    """
    name = f"noise[{name!r}]"
    if isinstance(known, StandardDeviation):
        if known.value is None:
            raise ValueError(f"{name} names a column: nj.table and nj.csv take these")
        value = np.asarray(_size(name, known.value, shape=None), np.float64)
        if value.shape not in ((), (len(x),)):
            wanted = f"one standard deviation, or {len(x)}, one a row"
            raise ValueError(f"{name} must be {wanted}, got shape {list(value.shape)}")
        law: Any = jax.vmap(Gaussian) if value.ndim else Gaussian
        return ErrorOfColumn(value**2, law=law(value**2) if known.gaussian else None)
    if isinstance(known, CovarianceEstimate):
        if np.size(known.cov) != 1 or np.size(known.std_error) != 1:
            raise ValueError(
                f"{name} must be the estimate of one variance, with its standard error"
            )
        variance, error = (
            np.asarray(_size(part, value, shape=None), np.float64).reshape(())
            for part, value in ((name, known.cov), (f"{name}.std_error", known.std_error))
        )
        return ErrorOfColumn(variance, std_error=float(error))
    by_row = isinstance(known, Reliability | Dependent)
    if by_row and x.shape[1] > 1:
        raise ValueError(
            f"{name} is for one copy of each row, but there are replicates: leave it out, and it "
            "is estimated from them"
        )
    if isinstance(known, Reliability):
        share = 1 - known.ratio
        return ErrorOfColumn(share * x.var(), in_sums=share > 0, unreliability=share)
    if not isinstance(known, Noise):
        if shape_of(name, known) or isinstance(known, PerRound):
            raise ValueError(
                f"{name} must be a variance, nj.sd(…), nj.reliability(…) or a distribution, got "
                f"{given(known)}; one standard deviation a row is nj.sd(array)"
            )
        return ErrorOfColumn(np.asarray(_size(name, known), np.float64))
    check_no_recording(name, known)
    check_complete(name, known)
    if any(map(np.ndim, jax.tree.leaves(known))):
        raise ValueError(
            f"{name} must be a distribution of one number, such as nj.noise.Laplace(0.3), got "
            f"{type(known).__name__} of several: name each column, or give noise of all features, "
            f"in their order, as noise=nj.noise.{type(known).__name__}(…)"
        )
    if isinstance(known, Dependent):
        variance = covariances(known, x[:, :, None], (name,))
        return ErrorOfColumn(variance[:, 0, 0], law=known, in_sums=True)
    return ErrorOfColumn(np.asarray(known.cov, np.float64), float(known.mean), known)


def check_no_recording(name: str, known: Any, feature: str = "x1") -> None:
    """Raises ValueError for a matrix of misclassification of one of several recordings."""
    if isinstance(known, Misclassified):
        raise ValueError(
            f"{name} is of one of several recordings: name the feature, whose replicates are "
            f"recorded alike, as noise={{{feature!r}: nj.noise.Misclassified(matrix)}}"
        )


def check_complete(name: str, known: Any) -> None:
    """Raises ValueError if noise, an argument of this name, hides values of rows."""
    if isinstance(by_round(known)[0], Missing | Attributes):
        raise ValueError(
            f"{name} hides values, which is for streams, but tables take complete rows: leave it "
            "out, and drop rows with a missing value, as by frame.dropna()"
        )


def check_no_gaps(gaps: Any) -> None:
    """Raises ValueError if `gaps`, an option of version 0.3, is given."""
    if gaps is not None:
        raise ValueError(
            "the option gaps left in version 0.4.0, since tables take complete rows: drop rows "
            "with a missing value, as by frame.dropna(), or impute it"
        )


def check_not_traced(noise: Any, cross_cov: Any) -> None:
    """Raises ValueError if a known size of errors is traced, as under `jit`."""
    every = noise.values() if isinstance(noise, Mapping) else [noise]
    values = [one.value if isinstance(one, StandardDeviation) else one for one in every]
    for name, known in (("noise", values), ("cross_cov", cross_cov)):
        for leaf in jax.tree.leaves(known):
            check_concrete(name, leaf, OUTSIDE)
