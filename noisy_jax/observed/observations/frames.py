"""Tables from data frames, or from columns by their names; every column has a role."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from noisy_jax.observed.observations.columns import table_of
from noisy_jax.observed.observations.roles import Columns, Roles
from noisy_jax.observed.observations.tables import Observations
from noisy_jax.tabular.columns import check_same_rows, index_of
from noisy_jax.validation.messages import given
from noisy_jax.validation.values import collected


def table(
    frame: Any,
    *,
    target: str,
    noise: Any = None,
    replicates: Mapping[str, str | Sequence[str]] | str | Sequence[str] | None = None,
    subject: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    cross_cov: Any = None,
    products: Sequence[tuple[str, str]] = (),
    gaps: None = None,
    weights: str | None = None,
    clusters: str | None = None,
    exposure: str | None = None,
) -> Observations:
    """Makes a table from a data frame, with what is known of the measurement error of each column.

    A measured column holds x̃ = x + n in place of the clean x, with an error n of mean zero. The
    table is for `nj.fit`, `nj.select` and `nj.learn`.

    Args:
        frame: a pandas DataFrame; a mapping from names to arrays `[n]`; or another data frame, if
            narwhals is installed and knows it (polars, pyarrow, …).
        target: name of the column of y.
        noise: what is known of the errors. It may be `None`, the default, only if `replicates` are
            given. Usually a mapping from a column's name to the error in one measurement, in the
            units of the column; columns that are not named are exact:

            - a number, the error's variance;
            - `nj.sd(0.5)`, its standard deviation, with `gaussian=True` also for kernel fits
              (`nj.methods.Fourier`); or `nj.sd(column="z_err")`, the name of the column with its
              standard deviation in each row, which is then not a feature;
            - a distribution of one number, such as `nj.noise.Laplace(0.3)`, for kernel fits, which
              need more than variances; its mean is subtracted from the column. Where the table
              holds means of replicates, only the variance of their error is known, unless the
              distribution is Gaussian;
            - `nj.noise.CovarianceEstimate(0.2, 0.03)`, a variance as a validation study estimates
              it, and its standard error, which widens the intervals of a fit;
            - `nj.reliability(0.6)`, the share of the column's variance that is not error;
            - `nj.noise.Misclassified(matrix)`, for a column of categories, numbers or texts, that
              are recorded wrongly with known probabilities. The column becomes indicators of all
              categories but the first, which are averaged over its replicates, if it has any.

            Errors of different columns are then independent. The target may be named as well; its
            variances become `Observations.target_cov`. In place of a mapping, `noise` takes what it
            takes in `observations.from_arrays`, such as a covariance `[d, d]`, for the features in
            their order.
        replicates: a mapping from a feature to the columns with its replicates, independent noisy
            measurements of it; `None` by default. A column with the name of the feature is one of
            them (the first, if it is not listed). Features may have different numbers of
            replicates, and cells may be NaN, but not all of a row. If `noise` does not name the
            feature, its error is estimated from the replicates. If replicates have errors of
            different sizes, `noise` names each of these columns, as in
            `{"a1": nj.sd(0.2), "a2": nj.sd(column="a2_err")}`. The table then holds their mean with
            weights 1/σ²; this is also so where the rows of a subject differ in `nj.sd(column=…)`.
            Otherwise the error of a replicate has the same covariance in all rows, and errors of
            the k-th replicates of different features may depend on each other.
        subject: name of the column with the subject of each row, if each row is one measurement;
            `None`, if each row is a subject. The rows of a subject are then replicates for the
            columns in `replicates`, a list of names, and all other columns must agree within a
            subject. The table has a row for each subject, in their order of appearance. From a
            pandas DataFrame, `Observations.index` holds the subjects; a pandas Series of weights or
            clusters that is given to a fit must have the same index.
        features: names of the features; by default all columns that are not named as something
            else, in their order. A pandas Categorical, or a column of texts, becomes an indicator
            of each category but the first, as `sex[m]`; fits print the first as the reference.
            Where `noise` or `cross_cov` go by position, each indicator is a feature.
        drop: in place of `features`, names of columns that are left out.
        cross_cov: `[d]` or `[n, d]`, covariance of the errors in y and in the first measurement of
            each feature, in their order; a mapping by name counts others as 0. Errors in other
            replicates must be independent of the error in y. `None`, the default, if all are.
        products: pairs of features, such as `[("x1", "x2"), ("x1", "x1")]`, whose products linear
            fits take as further columns. Where a feature is of categories, name one of its
            indicators, as in `("dose", "sex[m]")`. `fit.predict` takes the features, and multiplies
            them itself. Second moments of the clean products are estimated without bias. For
            squares, an error that is stated by a variance or `nj.sd` is taken as Gaussian, and a
            distribution as symmetric. Where the error is known from replicates alone, each row
            needs two of them for the product of a noisy and an exact column, and four for the
            square of a noisy column or the product of two noisy columns.
        gaps: an option of version 0.3; leave it out. Rows must be complete, except for replicates.
        weights: name of the column with the weights of the rows (`nj.methods.Linear` says what they
            mean). This column is no feature, unless `features` names it too. The same holds for the
            columns of `clusters` and `exposure`.
        clusters: name of the column that says which rows may depend on each other: schools, or
            persons with several rows. Its cells may be numbers or texts.
        exposure: name of the column with positive times of observation or the like, for
            `nj.methods.Poisson`.

    Returns:
        `Observations` of n rows and d features. Its `x` is `[n, V, d]` if all features with noise
        have V replicates in every row, and the noise is stated for all of these features or for
        none. Otherwise `x` holds the means of each row's replicates, `[n, 1, d]`.

        Errors that are estimated from a reliability, from unequal numbers of replicates, or from
        replicates beside features of stated noise, are known on average over the table, and not for
        single rows (`Observations.each_row`). `nj.methods.Linear`, `RegressionCalibration` and
        `SIMEX` then take the table. Where there are replicates, `Model` does as well, and `Fourier`
        if no other feature has noise. All else raises ValueError.

    Raises:
        ValueError: neither `noise` nor `replicates` is given, a column is missing or not complete,
            or `features` is not given and a feature without noise seems to number or label the
            rows: its numbers are whole, and increase or decrease from row to row, or are all
            different, under a name such as "id" or in a range so narrow that chance would repeat
            some of them.

    Example:
        >>> import numpy as np, noisy_jax as nj
        >>> rng = np.random.default_rng(0)
        >>> sbp, age = rng.normal(size=(2, 5000))
        >>> frame = {f"sbp{k}": sbp + 0.8 * rng.normal(size=5000) for k in (1, 2, 3)}
        >>> frame["sbp3"][1000:] = np.nan  # a third measurement for few
        >>> frame |= {"age": age, "risk": sbp - 0.5 * age + 0.1 * rng.normal(size=5000)}
        >>> rows = nj.table(frame, target="risk", replicates={"sbp": ["sbp1", "sbp2", "sbp3"]})
        >>> fit = nj.fit(rows)
        >>> print(rows.names, fit.coefficients.round(1), fit.uncorrected.coefficients.round(1))
        ('sbp', 'age') [ 1.  -0.5] [ 0.8 -0.5]
    """
    said = Columns(
        target=target,
        noise=noise,
        replicates=replicates,
        cross_cov=cross_cov,
        subject=subject,
        features=features,
        drop=drop,
        products=products,
        weights=weights,
        clusters=clusters,
        exposure=exposure,
        gaps=gaps,
    )
    return of_frame(said, frame, "the frame")


def of_frame(said: Columns, frame: Any, where: str, roles: Roles | None = None) -> Observations:
    """Returns the table of a data frame; messages say `where` its columns are."""
    header, column, index = columns_of(frame)
    if said.noise is None and not said.replicates:
        if said.subject is not None:
            raise ValueError(
                "with subject, name the columns that are measured in each row of a subject, as "
                "replicates=['x1']"
            )
        raise ValueError(
            "nj.table and nj.csv need what is known of the errors: noise={'x1': 0.25}, variances "
            "by column (others are exact), or replicates={'x1': ['x1a', 'x1b']}"
        )
    table = table_of(said, roles or said.roles(header, where), column, where, index)
    if table.copied and not table.even:
        table.means()  # raises ValueError where no row shows the errors of a column
    return table


def columns_of(frame: Any) -> tuple[list[str], Callable[[str], Any], Any]:
    """Names of the columns, a function that gives the values of one, and labels of the rows."""
    frame = frame.to_native() if hasattr(frame, "to_native") else frame  # wrapped by narwhals
    index = index_of(frame)
    pandas = index is not None and hasattr(frame, "columns")
    if not isinstance(frame, Mapping) and not pandas:
        frame = _by_narwhals(frame)
    if isinstance(frame, Mapping):
        frame = {name: collected(values) for name, values in frame.items()}
    columns = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
    labels = {name: index_of(frame[name]) for name in columns} if index is None else {}
    for first in [name for name in columns if labels.get(name) is not None][:1]:
        index = labels[first]
        for name in columns:
            check_same_rows(f"frame[{name!r}]", frame[name], f"frame[{first!r}]", index)
    if not columns:
        raise ValueError("the frame has no columns")
    places = {str(column): column for column in columns}
    if len(places) < len(columns):
        name = Counter(map(str, columns)).most_common(1)[0][0]
        raise ValueError(f"the frame has more than one column named {given(name)}")

    return list(places), lambda name: frame[places[str(name)]], index


def _by_narwhals(frame: Any) -> Any:
    """A data frame of any library that narwhals knows, with names `columns`, and in memory."""
    wanted = "frame must be a pandas DataFrame or a mapping from names to arrays [n]"
    try:
        narwhals = importlib.import_module("narwhals")
        if type(frame).__name__ == "RecordBatch":  # of pyarrow, which narwhals does not know
            frame = importlib.import_module("pyarrow").Table.from_batches([frame])
    except ImportError:
        more = "other data frames need the package narwhals"
        raise ValueError(f"{wanted}, got {given(frame)}; {more}") from None
    try:
        made = narwhals.from_native(frame)
    except TypeError:
        raise ValueError(f"{wanted}, or another data frame, got {given(frame)}") from None
    return made.collect() if hasattr(made, "collect") else made
