"""The study `fit`: corrected regression on a table of noisy measurements."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from noisy_jax import noise, plots
from noisy_jax.command.runner import Report, picture
from noisy_jax.command.settings import BaseSettings, option
from noisy_jax.command.stated import by_name, stated
from noisy_jax.observed import fits, observations
from noisy_jax.observed.observations.categories import recorded_means
from noisy_jax.reports.tables import Table
from noisy_jax.validation.numbers import positive

_LENGTH_SCALES = (0.5, 1.0, 2.0)
_SHOWN = 20  # features that are named in the report
_EXACT = 1e-12
"""Variance of the error of an exact column, in units of the column's: scales must be positive."""


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Corrects a regression for measurement error in its features.

    Which coefficients would clean features give, how sure are they, and did the correction help?

    The table holds noisy measurements only. State the error that is known, column by column:
    its variance or standard deviation, a column with its standard deviation in each row, replicate
    columns, a reliability, how often 0 and 1 are recorded wrongly; or the covariance of all. All
    columns without another role are features, and features without a stated error are exact: name
    the features, or the columns to leave out, such as numbers of the rows.

    Writes coefficients.csv, predictions.csv (whose first column is the subject, or the number of
    the row in the file, from 1 below the header), config.json and coefficients.png; with --kernel,
    candidates.csv instead of coefficients.csv, and function.png if there is one feature. --model
    logistic and poisson are for Gaussian error.

    The coefficients and predictions are for clean features. To predict from features that are as
    noisy as the table's, use the uncorrected ones, which are written as well.

    Examples:
      python -m noisy_jax fit --data noisy.csv --target y --variance x1=0.2 x2=0.1
      python -m noisy_jax fit --data noisy.csv --target y --covariance sigma.csv
      python -m noisy_jax fit --data noisy.csv --target y --replicates x1:x1b x2:x2b
      python -m noisy_jax fit --data noisy.csv --target y --variance 0.1 0.1 --kernel 0.5 1 2
      python -m noisy_jax fit --data noisy.csv --target sick --variance dose=0.2 --model logistic
      python -m noisy_jax fit --data noisy.csv --target y --std-error x1=x1_sd --drop id name
      python -m noisy_jax fit --data noisy.csv --target y --sd x1=0.4 --misclassified smoker=0.8,0.9
      python -m noisy_jax fit --data visits.csv --target y --subject patient --replicates sbp
      python -m noisy_jax fit --data noisy.csv --target y --sd x1=0.4 --products x1:x1 x1:x2
      python -m noisy_jax fit --data euro.csv --target y --variance 0.1 --sep ";" --decimal ,
      python -m noisy_jax fit --data noisy.csv --target y --variance x1=0.2 --missing -999
    """

    data: str | None = option(None, "CSV file of noisy measurements", metavar="FILE.csv")
    target: str | None = option(None, "name of the target's column", metavar="COLUMN")
    variance: tuple[str, ...] | None = option(
        None,
        "variance of the error that is in the data: COLUMN=V for columns with error (others are "
        "exact), or one number for each feature, in the order of --features or of the file",
        metavar="V",
    )
    covariance: str | None = option(
        None, "CSV file without header, the d × d covariance of the error", metavar="FILE.csv"
    )
    sd: tuple[str, ...] | None = option(
        None, "COLUMN=S, the standard deviation of the error", metavar="A=S"
    )
    reliability: tuple[str, ...] | None = option(
        None, "COLUMN=R, the share of the column's variance that is not error", metavar="A=R"
    )
    misclassified: tuple[str, ...] | None = option(
        None,
        "COLUMN=SENSITIVITY,SPECIFICITY, the probabilities that a 1 is recorded as 1, and a 0 as 0",
        metavar="A=S,T",
    )
    replicates: tuple[str, ...] | None = option(
        None,
        "FEATURE:REPLICATE[:REPLICATE…], columns that measure a feature again; with --subject "
        "names of features",
        metavar="A:B",
    )
    subject: str | None = option(
        None,
        "column that says of which subject a row is, if each row is one measurement",
        metavar="COLUMN",
    )
    std_error: tuple[str, ...] | None = option(
        None,
        "FEATURE=COLUMN, the column with the standard deviation of the feature's error in each row",
        metavar="A=B",
    )
    features: tuple[str, ...] | None = option(
        None, "columns that are features, in this order (all others by default)", metavar="COLUMN"
    )
    drop: tuple[str, ...] = option((), "columns to leave out", metavar="COLUMN")
    products: tuple[str, ...] = option(
        (), "A:B, the product of two features as a further column, or A:A its square", "A:B"
    )
    sep: str = option(",", "character between cells; \\t is a tab", metavar="CHARACTER")
    decimal: str = option(".", "decimal point of numbers", choices=(".", ","))
    missing: tuple[str, ...] | None = option(
        None,
        "cells that stand for missing values, such as -999, beside empty ones, NA, NaN and others "
        "that pandas knows: rows with one are left out (by default they are an error)",
        metavar="CELL",
        may_be_empty=True,
    )
    noise: str | None = option(
        None,
        "distribution of the error, for --kernel with --variance or --covariance (gaussian where "
        "it is not given)",
        choices=("gaussian", "laplace"),
    )
    model: str = option("linear", "of y", choices=("linear", "logistic", "poisson"))
    flips: tuple[float, ...] | None = option(
        None,
        "probabilities that labels 1 and 0 are recorded wrongly, or one number for both, for "
        "--model logistic",
        metavar="RATE",
    )
    kernel: tuple[float, ...] | None = option(
        None,
        "fit a function by Fourier features of a Gaussian kernel; length scales to choose from, in "
        "standard deviations of the columns (0.5 1 2 where none is given)",
        metavar="L",
        check=partial(positive, shape=None),
        may_be_empty=True,
    )


def run(settings: Settings) -> Iterator[Report]:
    """Yields the report of the fit: its tables and its picture."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = _observations(settings)
    read = _read(settings, table, [str(warning.message) for warning in caught])
    method: Any = None
    if settings.kernel is not None:
        method = [fits.methods.Fourier(length_scale=v) for v in settings.kernel or _LENGTH_SCALES]
    if settings.flips is not None:
        rate, *others = settings.flips
        method = fits.methods.Logistic(flips=settings.flips if others else rate)
    result = fits.fit(table, method, model="linear" if method is not None else settings.model)
    x = recorded_means(table)  # of a misclassified column, not its recodings
    first = settings.subject or "row"
    results = first, "corrected", "uncorrected"
    columns = {
        first: table.index if settings.subject else table.index + 1,
        f"{table.target} (observed)" if table.target in results else table.target: table.y,
        "corrected": result.predict(x),
        "uncorrected": result.uncorrected.predict(x),
    }
    tables, figures = {"predictions": _columns(columns)}, {}
    if isinstance(result, fits.FourierFit):
        tables["candidates"] = Table([dataclasses.asdict(c) for c in result.candidates], [])
        if x.shape[1] == 1:
            figures["function"] = picture(plots.function, result, table)
    else:
        tables["coefficients"] = result.summary()
        figures["coefficients"] = picture(plots.coefficients, result)
    yield Report(f"{read}\n\n{result}", tables, figures)


def _read(settings: Settings, table, notes: list[str]) -> str:
    """Returns lines that name the columns in use, and warn of doubtful settings."""
    said = stated(settings)[1]
    variances = np.zeros(len(table.names))
    if table.cov is not None and table.cov.ndim == 2:
        variances = np.diag(table.cov)
    features = []
    for j, (name, variance) in enumerate(zip(table.names, variances, strict=True)):
        error = f"variance of the error {variance:.4g}" if variance else "exact"
        error = said.get(name, said.get(name.partition("[")[0], error))
        features.append(f"{name} ({error})")
        values = table.x[:, 0, j]
        whole = error == "exact" and np.array_equal(values, np.round(values))
        if settings.features is None and whole and len(np.unique(values)) == len(values):
            notes.append(
                f"{name} has a different whole number in each row: if these are labels, leave it "
                "out by --drop"
            )
    if len(features) > _SHOWN:
        features[_SHOWN:] = [f"… ({len(table.names):,} in all)"]
    lines = [f"From {settings.data}, {len(table.y):,} rows", f"target: {table.target}"]
    lines += [f"features: {', '.join(features)}"]
    if table.products is not None:
        lines += [f"products: {', '.join(table.products.names(table.names))}"]
    lines += [f"left out: {', '.join(settings.drop)}"] if settings.drop else []
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])


def _columns(columns) -> Table:
    """Returns the table of arrays by the names of their columns."""
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return Table([dict(zip(columns, row, strict=True)) for row in rows], [])


def _observations(settings: Settings) -> observations.Observations:
    if settings.data is None or settings.target is None:
        raise ValueError("name the table and its target: --data FILE.csv --target COLUMN")
    if not Path(settings.data).is_file():
        raise ValueError(f"there is no file {settings.data}")
    if settings.kernel is not None and settings.model != "linear":
        raise ValueError("leave out --model with --kernel, which is for the squared loss")
    if settings.flips is not None and settings.model != "logistic":
        raise ValueError("--flips is for --model logistic: leave it out")
    if settings.flips is not None and len(settings.flips) > 2:
        raise ValueError("--flips must be one or two numbers")
    if settings.std_error is not None and settings.kernel is not None:
        raise ValueError("--kernel needs the same error in all rows: leave out --std-error")
    if settings.noise is not None and (settings.kernel is None or settings.replicates is not None):
        raise ValueError("--noise is for --kernel with --variance or --covariance: leave it out")
    noise_of_columns = stated(settings)[0]
    copies: Any = None
    if settings.replicates is not None and settings.subject is not None:
        copies = list(settings.replicates)
    elif settings.replicates is not None:
        pairs = [text.split(":") for text in settings.replicates]
        if any(len(pair) < 2 or not all(pair) for pair in pairs):
            raise ValueError("--replicates must be FEATURE:REPLICATE:…, such as x1:x1b:x1c")
        copies = by_name("--replicates", [(first, others) for first, *others in pairs])
    if noise_of_columns is None and copies is None:
        raise ValueError(
            "state the error in the features, by --variance, --sd, --std-error, --replicates, "
            "--reliability, --misclassified or --covariance"
        )
    pairs: Any = [tuple(text.split(":")) for text in settings.products]
    table = observations.csv(
        settings.data,
        target=settings.target,
        noise=noise_of_columns,
        replicates=copies,
        subject=settings.subject,
        features=settings.features,
        drop=settings.drop,
        products=pairs,
        missing=settings.missing,
        sep=settings.sep.replace("\\t", "\t"),  # as a shell hands on a tab
        decimal=settings.decimal,
    )
    if settings.kernel is None or table.cov is None or table.cov.ndim == 3:
        return table
    return table.with_law(_distribution(settings.noise, table))


def _distribution(name, table) -> noise.Noise:
    """Returns the distribution of the error with the table's covariance: Gaussian by default."""
    if name != "laplace":
        return noise.Gaussian(table.cov)
    variances = np.diag(table.cov)
    if np.any(table.cov != np.diag(variances)):
        raise ValueError(f"--noise {name} needs independent errors: use --variance")
    variances = np.maximum(variances, _EXACT * table.x.var(axis=(0, 1)))
    return noise.Laplace.from_variance(variances)
