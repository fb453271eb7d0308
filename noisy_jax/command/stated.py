"""Errors in columns, as options of the study `fit` state them."""

from __future__ import annotations

from typing import Any

import numpy as np

from noisy_jax import noise
from noisy_jax.observed import observations
from noisy_jax.validation.messages import given


def stated(settings: Any) -> tuple[Any, dict[str, str]]:
    """Returns the argument `noise` of `nj.csv`, or `None`, and a text on the error of each column.

    Args:
        settings: the settings of the study, `command.fit.Settings`.
    """
    errors: dict[str, Any] = {}
    said: dict[str, str] = {}
    by_position: Any = None
    if settings.variance is not None:
        by_position = _variances(settings.variance)
    if isinstance(by_position, dict):
        errors, by_position = by_position, None
    makes = {
        "sd": ("A=S", lambda text: observations.sd(float(text)), "standard deviation"),
        "std_error": ("FEATURE=COLUMN", _column, "standard deviation"),
        "reliability": ("A=R", lambda text: observations.reliability(float(text)), "reliability"),
        "misclassified": ("A=SENSITIVITY,SPECIFICITY", _misclassified, "misclassified"),
    }
    for field, (form, make, words) in makes.items():
        name = "--" + field.replace("_", "-")
        for column, text in _pairs(name, getattr(settings, field), form):
            if column in errors:
                raise ValueError(f"the error of {column!r} is stated twice, also by {name}")
            try:
                errors[column] = make(text)
            except ValueError as error:
                raise ValueError(f"{name} must be {form}, got {column}={text}: {error}") from None
            of_error = " of the error" if words == "standard deviation" else ""
            said[column] = f"{words}{of_error} {text}"
    for text in settings.replicates or ():
        column, _, others = text.partition(":")
        error = f"variance of the error {errors[column]}" if column in errors else None
        error = said.get(column, error)
        said[column] = f"replicates {others.replace(':', ', ') or 'in rows of a subject'}"
        said[column] += f", {error}" if error else ""
    if settings.covariance is not None:
        if errors or by_position is not None or settings.replicates is not None:
            raise ValueError("--covariance is of all features: leave out what is stated of one")
        try:
            return np.loadtxt(settings.covariance, delimiter=",", ndmin=2), said
        except (OSError, ValueError) as error:
            raise ValueError(f"cannot read --covariance: {error}") from None
    if by_position is not None and errors:
        raise ValueError("beside other columns --variance must be COLUMN=NUMBER")
    return (by_position if by_position is not None else errors or None), said


def _column(name: str) -> Any:
    return observations.sd(column=name)


def _misclassified(text: str) -> noise.Misclassified:
    """Makes the noise of a column of 0 and 1 from its sensitivity and specificity."""
    sensitivity, specificity = map(float, text.split(","))
    matrix = [[specificity, 1 - specificity], [1 - sensitivity, sensitivity]]
    return noise.Misclassified(matrix, categories=[0, 1])


def _pairs(option_name: str, texts: tuple[str, ...] | None, form: str) -> list[tuple[str, str]]:
    """Splits each `COLUMN=TEXT` into its two parts."""
    pairs = [(name, value) for name, _, value in (text.rpartition("=") for text in texts or ())]
    if not all(name and value for name, value in pairs):
        raise ValueError(f"{option_name} must be {form}, got {given(' '.join(texts or ()))}")
    return list(by_name(option_name, pairs).items())


def by_name(option_name: str, pairs: Any) -> dict[str, Any]:
    """Returns a mapping from pairs; raises ValueError if a name is twice among them."""
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{option_name} names {name!r} twice: name each column once")
    return dict(pairs)


def _variances(texts):
    """Returns numbers for all features, or a mapping from names."""
    pairs = [text.rpartition("=") for text in texts]
    try:
        values = [float(value) for *_, value in pairs]
    except ValueError:
        values = []
    named = {bool(equals) for _, equals, _ in pairs}
    if not values or len(named) > 1:
        raise ValueError(
            f"--variance must be numbers, or COLUMN=NUMBER for each, got {given(' '.join(texts))}"
        )
    if named == {True}:
        return by_name("--variance", [(n, v) for (n, *_), v in zip(pairs, values, strict=True)])
    return values[0] if len(values) == 1 else values
