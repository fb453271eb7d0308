"""Errors that are stated by `sd` and `reliability`, and checks of statements of errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from noisy_jax.noise import Misclassified
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


TABLES_OUTSIDE_JIT = "make tables, and fit them, outside jit, vmap and grad"


def sd(
    value: Any = None, *, column: str | None = None, gaussian: bool = False
) -> StandardDeviation:
    """States how large the error of a measured column is, by its standard deviation σ.

    A plain number in the argument `noise` of a table is a variance, σ²; `sd(σ)` is in the units of
    the column, as instruments state it.

    Args:
        value: σ ≥ 0 for an entry of a mapping `noise={"x1": sd(0.5)}`: a number, or one for each
            row, `[n]`. Where it stands for the whole `noise` of `observations.from_arrays`: a
            number for all columns, one for each column, `[d]`, or for each row and column,
            `[n, d]`.
        column: in place of `value`, for `table` and `csv`, the name of a column that holds σ for
            each row. That column is then not a feature.
        gaussian: whether the errors are known to be Gaussian, by default False. Kernel fits
            (`nj.methods.Fourier`) need a distribution, and with False they raise ValueError.

    Returns:
        An entry of the argument `noise` of `table`, `csv` and `observations.from_arrays`.

    Raises:
        ValueError: both of `value` and `column` are given or none, or σ is negative or not finite.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> frame = {"dose": [1.0, 2.0, 4.0], "error": [0.1, 0.1, 0.2], "y": [0.0, 1.0, 3.0]}
        >>> table = nj.table(frame, target="y", noise={"dose": nj.sd(column="error")})
        >>> print(table.cov.ravel().round(2))
        [0.01 0.01 0.04]
    """
    if (value is None) == (column is None):
        raise ValueError("sd takes a value, such as sd(0.5), or a column, as sd(column='z_err')")
    if column is not None and not isinstance(column, str):
        raise ValueError(f"column must be the name of a column, got {given(column)}")
    if value is not None:
        check_concrete("sd", value, TABLES_OUTSIDE_JIT)
        value = error_size("sd", value, shape=None)
    return StandardDeviation(value, column, switch("gaussian", gaussian))


def error_size(name: str, value: Any, **options: Any) -> Any:
    """A variance or a standard deviation."""
    if isinstance(value, str):
        raise ValueError(
            f"{name} must be numbers, got {given(value)}: in nj.table and nj.csv "
            f"nj.sd(column={given(value)}) takes a column of standard deviations"
        )
    return non_negative(name, value, **options)


def reliability(ratio: float) -> Reliability:
    """States the reliability r of a measured column: the share of its variance that is not error.

    The column is x̃ = x + n, with the error n of mean zero, independent of the clean x, and

        r = Var(x)/Var(x̃).

    So the variance of the error is (1 − r) Var(x̃), where Var(x̃) is the variance of the column in
    the table, with the weights of the fit. In a linear fit with one feature the slope is the
    least-squares slope divided by r. Its standard error takes r as known and Var(x̃) as estimated.

    The error is then known on average over the table, and not for single rows. So
    `nj.methods.Linear`, `RegressionCalibration` and `SIMEX` take it; all other methods, learners
    and chunks raise ValueError. So does a column with replicates, which show its error themselves.

    Args:
        ratio: r, above 0 and at most 1; 1 is a column without error. It must hold in the population
            that the rows are drawn from.

    Returns:
        An entry of a mapping from columns to errors, the argument `noise` of `table` and `csv`,
        such as `noise={"score": nj.reliability(0.8)}`.

    Raises:
        ValueError: r is not above 0 and at most 1.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> score = rng.normal(size=1000)
        >>> frame = {"score": score, "y": 0.3 * score + rng.normal(size=1000)}
        >>> fit = nj.fit(nj.table(frame, target="y", noise={"score": nj.reliability(0.6)}))
        >>> print((fit.uncorrected.coefficients / fit.coefficients).round(6))
        [0.6]
    """
    check_concrete("reliability", ratio, TABLES_OUTSIDE_JIT)
    positive("reliability", within("reliability", ratio, 0, 1), "an exact column has 1")
    return Reliability(float(ratio))


def check_no_recording(name: str, stated: Any, feature: str = "x1") -> None:
    """Raises ValueError for a matrix of misclassification of one of several recordings."""
    if isinstance(stated, Misclassified):
        raise ValueError(
            f"{name} is of one of several recordings: name the feature, whose replicates are "
            f"recorded alike, as noise={{{feature!r}: nj.noise.Misclassified(matrix)}}"
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
    stated = noise.values() if isinstance(noise, Mapping) else [noise]
    values = [error.value if isinstance(error, StandardDeviation) else error for error in stated]
    for name, sizes in (("noise", values), ("cross_cov", cross_cov)):
        for leaf in jax.tree.leaves(sizes):
            check_concrete(name, leaf, TABLES_OUTSIDE_JIT)
