"""The study `fit`: corrected regression on a table of noisy measurements."""

import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from noisy_jax import fits, noise, observations, plots
from noisy_jax.evaluate.tables import Table
from noisy_jax.plots.style import COLOURS, label, panels, plain
from noisy_jax.studies.runner import Report, picture
from noisy_jax.studies.settings import BaseSettings, option
from noisy_jax.validation import positive

_LENGTH_SCALES = (0.5, 1.0, 2.0)
_EXACT = 1e-12
"""Variance of the error of an exact column, in units of the column's: scales must be positive."""


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Corrects a regression for measurement error in its features.

    Which coefficients would clean features give, how sure are they, and did the correction help?

    The table holds noisy measurements only. State what is known of their error: its variance, a
    covariance, or replicate columns. Writes coefficients.csv, predictions.csv, config.json and
    coefficients.png; with --kernel, candidates.csv instead of coefficients.csv, and function.png
    if there is one feature; with --model logistic or poisson, which are for Gaussian error, no
    picture.

    The coefficients and predictions are for clean features. To predict from features that are as
    noisy as the table's, use the uncorrected ones, which are written as well.

    Examples:
      python -m noisy_jax fit --data noisy.csv --target y --variance x1=0.2 x2=0.1
      python -m noisy_jax fit --data noisy.csv --target y --covariance sigma.csv
      python -m noisy_jax fit --data noisy.csv --target y --replicates x1:x1b x2:x2b
      python -m noisy_jax fit --data noisy.csv --target y --variance 0.1 0.1 --kernel 0.5 1 2
      python -m noisy_jax fit --data noisy.csv --target sick --variance dose=0.2 --model logistic
    """

    data: str | None = option(None, "CSV file of noisy measurements", metavar="FILE.csv")
    target: str | None = option(None, "name of the target's column", metavar="COLUMN")
    variance: tuple[str, ...] | None = option(
        None,
        "variance of the error that is in the data: COLUMN=V for columns with error (others are "
        "exact), or one number for each feature in the order of the file",
        metavar="V",
    )
    covariance: str | None = option(
        None, "CSV file without header, the d × d covariance of the error", metavar="FILE.csv"
    )
    replicates: tuple[str, ...] | None = option(
        None, "FEATURE:REPLICATE[:REPLICATE…], columns that measure a feature again", metavar="A:B"
    )
    noise: str | None = option(
        None,
        "distribution of the error, for --kernel with --variance or --covariance (gaussian where "
        "it is not given)",
        choices=("gaussian", "laplace"),
    )
    model: str = option("linear", "of y", choices=("linear", "logistic", "poisson"))
    kernel: tuple[float, ...] | None = option(
        None,
        "fit a function by Fourier features of a Gaussian kernel; length scales to choose from, in "
        "standard deviations of the columns (0.5 1 2 where none is given)",
        metavar="L",
        check=partial(positive, shape=None),
        may_be_empty=True,
    )


def run(settings: Settings) -> Iterator[Report]:
    """The fit, its tables and its picture."""
    table = _observations(settings)
    candidates = None
    if settings.kernel is not None:
        candidates = [fits.fourier(length_scale=v) for v in settings.kernel or _LENGTH_SCALES]
    result = fits.fit(table, candidates, model=settings.model)
    x = table.x.mean(axis=1)
    columns = {
        table.target: table.y,
        "corrected": result.predict(x),
        "uncorrected": result.uncorrected.predict(x),
    }
    tables, figures = {"predictions": _columns(columns)}, {}
    if isinstance(result, fits.FourierFit):
        rows = [{**c.features._asdict(), **c._asdict()} for c in result.candidates]
        for row in rows:
            del row["features"]
        tables["candidates"] = Table(rows, [])
        if x.shape[1] == 1:
            figures["function"] = lambda: _curves(result, table)
    else:
        low, high = result.interval()
        columns = {
            "name": np.array(["intercept", *result.names]),
            "estimate": np.append(result.intercept, result.coefficients),
            "std_error": result.std_error,
            "low": low,
            "high": high,
            "uncorrected": np.append(result.uncorrected.intercept, result.uncorrected.coefficients),
            "reliability": np.append(np.nan, result.reliability),
        }
        tables["coefficients"] = _columns(columns)
        if isinstance(result, fits.LinearFit):
            figures["coefficients"] = picture(plots.coefficients, result)
    yield Report(str(result), tables, figures)


def _columns(columns) -> Table:
    """The table of arrays by the names of their columns."""
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    return Table([dict(zip(columns, row, strict=True)) for row in rows], [])


def _curves(result, table):
    """Both functions of one feature, over the noisy rows."""
    (axes,) = panels(None, 1, width=7.0, height=4.5)
    x = table.x.mean(axis=1)[:, 0]
    shown = np.linspace(0, len(x) - 1, min(len(x), 2000)).astype(int)
    axes.plot(x[shown], table.y[shown], ".", color="0.8", markersize=2, label="noisy rows")
    low, high = np.quantile(x, [0.01, 0.99])
    places = np.linspace(low, high, 200)
    for index, one in enumerate((result, result.uncorrected)):
        name = ("corrected", "uncorrected")[index]
        axes.plot(places, one.predict(places[:, None]), label=name, color=COLOURS[index])
    label(axes, plain(table.names[0]), plain(table.target))
    axes.legend(frameon=False)
    return axes.figure


def _observations(settings: Settings) -> observations.Observations:
    if settings.data is None or settings.target is None:
        raise ValueError("name the table and its target: --data FILE.csv --target COLUMN")
    if not Path(settings.data).is_file():
        raise ValueError(f"there is no file {settings.data}")
    given = [settings.variance, settings.covariance, settings.replicates]
    if sum(value is not None for value in given) != 1:
        raise ValueError(
            "state the error in the features by one of --variance, --covariance and --replicates"
        )
    if settings.noise is not None and (settings.kernel is None or settings.replicates is not None):
        raise ValueError("--noise is for --kernel with --variance or --covariance: leave it out")
    known, replicates = None, None
    if settings.replicates is not None:
        pairs = [text.split(":") for text in settings.replicates]
        if any(len(pair) < 2 or not all(pair) for pair in pairs):
            raise ValueError("--replicates must be FEATURE:REPLICATE, such as x1:x1b")
        replicates = _by_name("--replicates", [(first, others) for first, *others in pairs])
    elif settings.covariance is not None:
        try:
            known = np.loadtxt(settings.covariance, delimiter=",", ndmin=2)
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot read --covariance: {error}") from None
    else:
        known = _variances(settings.variance)
    table = observations.csv(
        settings.data, target=settings.target, noise=known, replicates=replicates
    )
    if settings.kernel is None or table.cov is None:
        return table
    return dataclasses.replace(table, noise=_distribution(settings.noise, table))


def _distribution(name, table) -> noise.Noise:
    """The distribution of the error with the table's covariance: Gaussian by default."""
    if name != "laplace":
        return noise.Gaussian(table.cov)
    variances = np.diag(table.cov)
    if np.any(table.cov != np.diag(variances)):
        raise ValueError(f"--noise {name} needs independent errors: use --variance")
    variances = np.maximum(variances, _EXACT * table.x.var(axis=(0, 1)))
    return noise.Laplace(np.sqrt(variances / 2))


def _by_name(option_name, pairs) -> dict:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option_name} names {name!r} twice: name each column once")
    return dict(pairs)


def _variances(texts):
    """Numbers for all features, or a mapping from names."""
    pairs = [text.rpartition("=") for text in texts]
    try:
        values = [float(value) for *_, value in pairs]
    except ValueError:
        values = []
    named = {bool(equals) for _, equals, _ in pairs}
    if not values or len(named) > 1:
        raise ValueError(
            f"--variance must be numbers, or COLUMN=NUMBER for each, got {' '.join(texts)}"
        )
    if named == {True}:
        return _by_name("--variance", [(n, v) for (n, *_), v in zip(pairs, values, strict=True)])
    return values[0] if len(values) == 1 else values
