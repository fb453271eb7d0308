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

_NOISES = {
    "gaussian": lambda cov: noise.Gaussian(cov),
    "laplace": lambda cov: noise.Laplace(np.sqrt(cov / 2)),
}


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Corrects a regression for measurement error in its features.

    Which coefficients would clean features give, how sure are they, and did the correction help?

    The table holds noisy measurements only. State what is known of their error: its variance, a
    covariance, or replicate columns. Writes coefficients.csv, predictions.csv, config.json and
    coefficients.png; with --kernel, candidates.csv instead of coefficients.csv.

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
    noise: str = option(
        "gaussian", "distribution of the error, for --kernel", choices=tuple(_NOISES)
    )
    kernel: tuple[float, ...] | None = option(
        None,
        "fit a function by Fourier features of a Gaussian kernel; length scales to choose from, in "
        "standard deviations of the columns",
        metavar="L",
    )


def run(settings: Settings) -> Iterator[Report]:
    """The fit, its tables and its picture."""
    table = _observations(settings)
    candidates = None
    if settings.kernel is not None:
        candidates = [
            fits.fourier(length_scale=float(positive("--kernel", v))) for v in settings.kernel
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
        yield Report(str(result), {"candidates": Table(rows, []), **tables}, {})
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
    known, replicates = None, None
    if settings.replicates is not None:
        pairs = [text.split(":") for text in settings.replicates]
        if any(len(pair) < 2 or not all(pair) for pair in pairs):
            raise ValueError("--replicates must be FEATURE:REPLICATE, such as x1:x1b")
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
    cov = table.cov
    if settings.noise != "gaussian" and np.any(cov != np.diag(np.diag(cov))):
        raise ValueError(f"--noise {settings.noise} needs independent errors: use --variance")
    diagonal = not np.any(cov != np.diag(np.diag(cov)))
    made = _NOISES[settings.noise](np.diag(cov) if diagonal else cov)
    return dataclasses.replace(table, noise=made)


def _variances(texts):
    """Numbers for all features, or a mapping from names."""
    named = ["=" in text for text in texts]
    try:
        if not any(named):
            values = [float(text) for text in texts]
            return values[0] if len(values) == 1 else values
        if all(named):
            pairs = (text.rsplit("=", 1) for text in texts)
            return {name: float(value) for name, value in pairs}
    except ValueError:
        pass
    raise ValueError(
        f"--variance must be numbers, or COLUMN=NUMBER for each, got {' '.join(texts)}"
    )
