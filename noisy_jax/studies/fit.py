"""The study `fit`: corrected regression on a table of noisy measurements."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from noisy_jax import fits, noise, observations
from noisy_jax.evaluate.tables import Table
from noisy_jax.studies.runner import Report
from noisy_jax.studies.settings import BaseSettings, option
from noisy_jax.validation import positive

_LENGTH_SCALES = (0.5, 1.0, 2.0)
_NOISES = ("gaussian", "laplace")
_EXACT = 1e-12
"""Variance of the error of an exact column, in units of the column's: scales must be positive."""


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Corrects a regression for measurement error in its features.

    Which coefficients would clean features give, how sure are they, and did the correction help?

    The table holds noisy measurements only. State what is known of their error: its variance, a
    covariance, or replicate columns. Writes coefficients.csv, predictions.csv, config.json and
    coefficients.png; with --kernel, candidates.csv instead of coefficients.csv, and function.png
    if there is one feature.

    The coefficients and predictions are for clean features. To predict from features that are as
    noisy as the table's, use the uncorrected ones, which are written as well.

    Examples:
      python -m noisy_jax fit --data noisy.csv --target y --variance x1=0.2 x2=0.1
      python -m noisy_jax fit --data noisy.csv --target y --covariance sigma.csv
      python -m noisy_jax fit --data noisy.csv --target y --replicates x1:x1b x2:x2b
      python -m noisy_jax fit --data noisy.csv --target y --variance 0.1 0.1 --kernel 0.5 1 2
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
        None,
        "FEATURE:REPLICATE[:REPLICATE…], columns that measure the same feature again",
        metavar="A:B",
    )
    noise: str | None = option(
        None,
        "distribution of the error, for --kernel with --variance or --covariance (gaussian where "
        "it is not given)",
        choices=_NOISES,
    )
    kernel: tuple[float, ...] | None = option(
        None,
        "fit a function by Fourier features of a Gaussian kernel; length scales to choose from, in "
        "standard deviations of the columns (0.5 1 2 where none is given)",
        metavar="L",
        may_be_empty=True,
    )


def run(settings: Settings) -> Iterator[Report]:
    """The fit, its tables and its picture."""
    table = _observations(settings)
    candidates = None
    if settings.kernel is not None:
        candidates = [
            fits.fourier(length_scale=float(positive("--kernel", v)))
            for v in settings.kernel or _LENGTH_SCALES
        ]
    result = fits.fit(table, candidates)
    x = table.x.mean(axis=1)
    predictions = [
        {table.target: float(y), "corrected": float(c), "uncorrected": float(u)}
        for y, c, u in zip(table.y, result.predict(x), result.uncorrected.predict(x), strict=True)
    ]
    tables = {"predictions": Table(predictions, [])}
    if isinstance(result, fits.FourierFit):
        rows = [{**c.features._asdict(), **c._asdict()} for c in result.candidates]
        for row in rows:
            del row["features"]
        pictures = {"function": lambda: _curves(result, table)} if x.shape[1] == 1 else {}
        yield Report(str(result), {"candidates": Table(rows, []), **tables}, pictures)
        return
    low, high = result.interval()
    names = ("name", "estimate", "std_error", "low", "high", "uncorrected", "reliability")
    columns = (
        ("intercept", *result.names),
        np.append(result.intercept, result.coefficients),
        result.std_error,
        low,
        high,
        np.append(result.uncorrected.intercept, result.uncorrected.coefficients),
        np.append(np.nan, result.reliability),
    )
    rows = [dict[str, Any](zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    yield Report(
        str(result),
        {"coefficients": Table(rows, []), **tables},
        {"coefficients": lambda: _picture(result)},
    )


def _picture(result):
    from noisy_jax import plots

    return plots.coefficients(result).figure


def _curves(result, table):
    """Both functions of one feature, over the noisy rows."""
    from noisy_jax.plots.style import label, look, panels

    (axes,) = panels(None, 1, width=7.0, height=4.5)
    x = table.x.mean(axis=1)[:, 0]
    shown = np.linspace(0, len(x) - 1, min(len(x), 2000)).astype(int)
    axes.plot(x[shown], table.y[shown], ".", color="0.8", markersize=2, label="noisy rows")
    low, high = np.quantile(x, [0.01, 0.99])
    places = np.linspace(low, high, 200)
    for index, (name, one) in enumerate(
        (("corrected", result), ("uncorrected", result.uncorrected))
    ):
        style = look(index) | {"marker": ""}
        axes.plot(places, one.predict(places[:, None]), label=name, **style)
    label(axes, table.names[0], table.target)
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
        _check_once("--replicates", [name for pair in pairs for name in pair])
        replicates = {first: others for first, *others in pairs}
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
    return dataclasses.replace(table, noise=_distribution(settings.noise or "gaussian", table))


def _distribution(name, table) -> noise.Noise:
    """The distribution of the error with the table's covariance."""
    variances = np.diag(table.cov)
    if name == "gaussian":
        return noise.Gaussian(table.cov)
    if np.any(table.cov != np.diag(variances)):
        raise ValueError(f"--noise {name} needs independent errors: use --variance")
    variances = np.maximum(variances, _EXACT * table.x.var(axis=(0, 1)))
    return noise.Laplace(np.sqrt(variances / 2))


def _check_once(option_name, names) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option_name} names {name!r} twice: name each column once")


def _variances(texts):
    """Numbers for all features, or a mapping from names."""
    named = ["=" in text for text in texts]
    pairs = [text.rpartition("=")[::2] for text in texts]
    try:
        values = [float(value) for _, value in pairs]
    except ValueError:
        values = None
    if values is None or any(named) != all(named):
        raise ValueError(
            f"--variance must be numbers, or COLUMN=NUMBER for each, got {' '.join(texts)}"
        )
    if not any(named):
        return values[0] if len(values) == 1 else values
    names = [name for name, _ in pairs]
    _check_once("--variance", names)
    return dict(zip(names, values, strict=True))
