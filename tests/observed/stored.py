"""Tables of all kinds, their fits, and the numbers that were stored of them.

`python -m tests.observed.stored` writes the numbers again, or only those of the cases that it is
given by name, after a change of a method that is meant to move them.
"""

import functools
import io
import json
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas
from scipy.special import expit
from sklearn.linear_model import LinearRegression, Ridge

import noisy_jax as nj
from noisy_jax import sklearn as estimators
from noisy_jax.observed.observations import from_arrays

FILE = Path(__file__).with_suffix(".json")
EXACT, ITERATED, SINGLE = 1e-8, 1e-6, 1e-5
"""Tolerances of closed forms, of roots that are iterated to, and of single precision."""


class Case(NamedTuple):
    """A fit of a table, and how far its numbers may be from those that were stored."""

    make: Callable[[np.random.Generator], Any]
    tolerance: float


CASES: dict[str, Case] = {}
MATRIX = np.array([[0.9, 0.1], [0.2, 0.8]])
THREE = np.array([[0.8, 0.1, 0.1], [0.1, 0.85, 0.05], [0.05, 0.15, 0.8]])


def case(make=None, *, tolerance=EXACT):
    """Enters a function of a random generator, which gives a fit, under its name."""
    if make is None:
        return functools.partial(case, tolerance=tolerance)
    CASES[make.__name__.strip("_")] = Case(make, tolerance)
    return make


# --- numbers of a result ---------------------------------------------------------------------


def _estimates(fit: Any) -> dict[str, list[float]]:
    """Estimate, standard error and ends of the interval of each label."""
    rows = fit.summary().rows
    keys = "estimate", "std_error", "low", "high"
    return {row["name"]: [row[key] for key in keys] for row in rows}


def _of_risk(risk: Any) -> list[float]:
    names = ("corrected", "uncorrected", "difference")
    return [
        *(getattr(risk, name) for name in names),
        *(getattr(risk, f"{name}_std_error") for name in names),
        *risk.interval(),
        risk.variance,
    ]


def numbers(found: Any) -> dict[str, Any]:
    """All that a user reads from a result; the one place that knows the names of attributes."""
    if isinstance(found, dict):
        return found
    if isinstance(found, nj.Selection):
        ends = *found.interval(), *found.difference_interval()
        own = found.risk, found.difference, *ends
        return {"best": found.best, "tied": len(found.tied), "risks": np.concatenate(own)}
    made: dict[str, Any] = {}
    if isinstance(found, nj.Learned):
        made["line"] = [found.intercept, *found.coefficients]
        made["risk"] = [found.risk, found.risk_std_error, found.variance]
        dim = len(found.names)
    else:
        made["remarks"] = len(found.remarks)
        kernel = hasattr(found, "candidates")
        dim = len(found.names)
        if not kernel:
            made |= _estimates(found)
            plain = _estimates(found.uncorrected)
            made |= {f"uncorrected {name}": own for name, own in plain.items()}
            made["share"] = getattr(found, "share", 1.0)
        if getattr(found, "reliability", None) is not None:
            own = np.asarray(found.reliability)
            made |= {"reliability": own[np.isfinite(own)]}
        if getattr(found, "strength", None) is not None:
            made["strength"] = found.strength
        if kernel:
            made["candidates"] = [[one.risk, one.std_error, one.bias] for one in found.candidates]
            made["length scale"] = found.candidates[0].length_scale
            places = np.array([[0.0], [0.5], [1.5]])
            made["bands"] = np.concatenate(
                [*found.band(places), *found.band(places, simultaneous=True)]
            )
            made["uncorrected at points"] = np.asarray(found.uncorrected.predict(places))
        if getattr(found, "risk", None) is not None:
            made["risk"] = _of_risk(found.risk)
            made["verdict"] = found.risk.verdict()
    if not hasattr(found, "levels"):  # SIMEX has no predictions
        made["at points"] = np.asarray(found.predict(np.array([dim * [0.0], dim * [1.0]])))
    return made


def run(name: str) -> dict[str, Any]:
    """The numbers of a case, and how many warnings of each kind it gave."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = numbers(CASES[name].make(rng))
    kinds = [one.category.__name__ for one in caught if issubclass(one.category, UserWarning)]
    made["warnings"] = " ".join(sorted(kinds))
    return {key: _plain(value) for key, value in made.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, str | int):
        return value
    return [float(f"{one:.11g}") for one in np.ravel(np.asarray(value, float))]


def apart(found: dict[str, Any], stored: dict[str, Any], tolerance: float) -> list[str]:
    """What differs, in words; numbers are compared with the largest of those beside them."""
    wrong = [f"{key} is in one only" for key in sorted(found.keys() ^ stored.keys())]
    for key in found.keys() & stored.keys():
        own, other = found[key], stored[key]
        if isinstance(other, str | int) or isinstance(own, str | int):
            if own != other:
                wrong.append(f"{key}: {own!r}, stored {other!r}")
            continue
        own, other = np.asarray(own), np.asarray(other)
        if own.shape != other.shape:
            wrong.append(f"{key}: {own.shape} numbers, stored {other.shape}")
            continue
        size = np.max(np.abs(other[np.isfinite(other)]), initial=0.0)
        if not np.allclose(own, other, rtol=0, atol=tolerance * size, equal_nan=True):
            wrong.append(f"{key}: {own.tolist()}, stored {other.tolist()}")
    return wrong


def main() -> None:
    """Writes the numbers of the named cases, of all by default."""
    names = sys.argv[1:] or list(CASES)
    stored = json.loads(FILE.read_text("utf-8")) if sys.argv[1:] else {}
    stored |= {name: run(name) for name in names}
    lines = [f"{json.dumps(name)}: {json.dumps(stored[name])}" for name in CASES]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


# --- tables ----------------------------------------------------------------------------------


def _line(rng, n=150, scatter=0.5):
    """Three clean columns, the second of which follows the first, and y."""
    x = rng.normal(size=(n, 3)) @ [[1.0, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    return x, 1 + x @ [2.0, -1.0, 0.5] + scatter * rng.normal(size=n)


def _noisy(rng, x, size=0.5, copies=None):
    if copies is None:
        return x + size * rng.normal(size=x.shape)
    return x[:, None] + size * rng.normal(size=(len(x), copies, x.shape[1]))


def _frame(rng, n=150):
    """A frame with a noisy column, one with three replicates, an exact one and y."""
    x, y = _line(rng, n)
    frame = {"a": x[:, 0] + 0.5 * rng.normal(size=n), "z": x[:, 2], "y": y}
    frame |= {f"b{k}": x[:, 1] + 0.6 * rng.normal(size=n) for k in (1, 2, 3)}
    return pandas.DataFrame(frame)


_KNOWN = {"noise": {"a": nj.sd(0.5)}, "replicates": {"b": ["b1", "b2", "b3"]}}


@case
def linear_of_arrays(rng):
    x, y = _line(rng)
    return nj.fit(from_arrays(_noisy(rng, x), y, noise=[0.25, 0.25, 0.25]))


@case
def linear_with_a_covariance(rng):
    x, y = _line(rng)
    cov = np.array([[0.3, 0.1, 0.0], [0.1, 0.2, 0.0], [0.0, 0.0, 0.0]])
    noisy = x + rng.multivariate_normal(np.zeros(3), cov, size=len(x))
    return nj.fit(from_arrays(noisy, y, noise=cov))


@case
def linear_of_a_frame(rng):
    return nj.fit(nj.table(_frame(rng), target="y", **_KNOWN))


@case
def linear_of_a_file(rng):
    text = _frame(rng).round(3).to_csv(index=False)
    return nj.fit(nj.csv(io.StringIO(text), target="y", **_KNOWN))


@case
def linear_under_uneven_scatter(rng):
    x, y = _line(rng)
    y = y + x[:, 0] ** 2 * rng.normal(size=len(y))
    return nj.fit(from_arrays(_noisy(rng, x), y, noise=0.25))


@case
def errors_by_row_in_x_and_y(rng):
    x, y = _line(rng)
    sizes = rng.uniform(0.1, 0.9, size=(2, len(y)))
    frame = {"a": x[:, 0] + sizes[0] * rng.normal(size=len(y)), "b": x[:, 1], "sd": sizes[0]}
    frame |= {"y": y + sizes[1] * rng.normal(size=len(y)), "y_sd": sizes[1]}
    known = {"a": nj.sd(column="sd"), "y": nj.sd(column="y_sd")}
    return nj.fit(nj.table(frame, target="y", noise=known))


@case
def errors_by_row_in_x(rng):
    x, y = _line(rng)
    sizes = rng.uniform(0.1, 0.9, size=x.shape)
    return nj.fit(from_arrays(x + sizes * rng.normal(size=x.shape), y, noise=nj.sd(sizes)))


@case
def equal_replicates(rng):
    x, y = _line(rng)
    return nj.fit(from_arrays(_noisy(rng, x, copies=2), y))


@case
def equal_replicates_of_known_noise(rng):
    x, y = _line(rng)
    return nj.fit(from_arrays(_noisy(rng, x, copies=3), y, noise=0.25))


@case
def unequal_replicates(rng):
    frame = _frame(rng)
    frame.loc[::3, "b3"] = frame.loc[::7, "b2"] = np.nan
    frame["a2"] = frame["a"] + 0.3 * rng.normal(size=len(frame))
    copies = {"b": ["b1", "b2", "b3"], "a": ["a", "a2"]}
    return nj.fit(nj.table(frame, target="y", replicates=copies))


@case
def replicates_with_errors_of_their_own(rng):
    frame = _frame(rng)
    frame["b_sd"] = rng.uniform(0.4, 0.8, size=len(frame))
    known = {"b1": nj.sd(0.6), "b2": nj.sd(0.6), "b3": nj.sd(column="b_sd")}
    return nj.fit(nj.table(frame, target="y", noise=known, replicates=_KNOWN["replicates"]))


def _long(rng, subjects=120):
    """One measurement a row, two to four rows a subject."""
    x, y = _line(rng, subjects)
    of = np.repeat(np.arange(subjects), rng.integers(2, 5, size=subjects))
    noisy = x[of] + 0.5 * rng.normal(size=(len(of), 3))
    return {"id": of, "a": noisy[:, 0], "b": noisy[:, 1], "z": x[of, 2], "y": y[of]}


@case
def measurements_of_subjects(rng):
    table = nj.table(_long(rng), target="y", subject="id", replicates=["a", "b"])
    return nj.fit(table)


@case
def measurements_of_subjects_with_deviations(rng):
    frame = _long(rng)
    frame["a_sd"] = rng.uniform(0.3, 0.7, size=len(frame["a"]))
    known = {"a": nj.sd(column="a_sd")}
    return nj.fit(nj.table(frame, target="y", subject="id", replicates=["a", "b"], noise=known))


@case
def a_reliability(rng):
    frame = _frame(rng).drop(columns=["b2", "b3"])
    return nj.fit(nj.table(frame, target="y", noise={"a": nj.reliability(0.8), "b1": 0.36}))


@case
def a_covariance_with_standard_errors(rng):
    x, y = _line(rng)
    known = nj.noise.CovarianceEstimate(0.25 * np.eye(3), 0.04 * np.eye(3))
    return nj.fit(from_arrays(_noisy(rng, x), y, noise=known))


def _of_pairs(rng, dim, size=0.5, count=50):
    """The covariance that pairs of measurements show: `nj.noise.estimate_covariance` in float64."""
    apart = size * rng.normal(size=(count, 2, dim))
    half = (apart[:, 0] - apart[:, 1]) / 2**0.5
    covs = half[:, :, None] * half[:, None]
    deviations = (covs - covs.mean(axis=0)) / (count * (count - 1)) ** 0.5
    error = np.sqrt(np.sum(deviations**2, axis=0))
    return nj.noise.CovarianceEstimate(covs.mean(axis=0), error, deviations)


@case
def a_covariance_of_fifty_pairs(rng):
    x, y = _line(rng)
    return nj.fit(from_arrays(_noisy(rng, x), y, noise=_of_pairs(rng, 3)))


@case
def a_variance_with_its_standard_error(rng):
    frame = _frame(rng)
    known = {"a": nj.noise.CovarianceEstimate(0.25, 0.03)}
    return nj.fit(nj.table(frame, target="y", noise=known, drop=["b2", "b3"]))


def _recorded(rng, true, matrix, copies=1):
    rows = [rng.choice(len(matrix), size=copies, p=matrix[k]) for k in true]
    return np.array(rows).T


def _categories(rng, matrix, n=300):
    """A column of true categories, another noisy one, and y."""
    true, x = rng.integers(len(matrix), size=n), rng.normal(size=n)
    y = 1 + 1.5 * true + x + 0.5 * rng.normal(size=n)
    return true, {"x": x + 0.5 * rng.normal(size=n), "y": y}


@case
def misclassified_in_two_categories(rng):
    true, frame = _categories(rng, MATRIX)
    frame["smoker"] = _recorded(rng, true, MATRIX)[0]
    known = {"smoker": nj.noise.Misclassified(MATRIX), "x": 0.25}
    return nj.fit(nj.table(frame, target="y", noise=known))


@case
def misclassified_in_three_categories_with_replicates(rng):
    true, frame = _categories(rng, THREE)
    first, second = _recorded(rng, true, THREE, copies=2)
    texts = np.array(["low", "middle", "high"], object)
    frame |= {"dose1": texts[first], "dose2": texts[second]}
    known = {"dose": nj.noise.Misclassified(THREE, categories=("low", "middle", "high")), "x": 0.25}
    copies = {"dose": ["dose1", "dose2"]}
    return nj.fit(nj.table(frame, target="y", noise=known, replicates=copies))


@case
def misclassified_beside_replicates(rng):
    true, frame = _categories(rng, MATRIX)
    frame["smoker"] = _recorded(rng, true, MATRIX)[0]
    frame["x2"] = frame["x"] + 0.4 * rng.normal(size=len(true))
    known = {"smoker": nj.noise.Misclassified(MATRIX)}
    copies = {"x": ["x", "x2"]}
    return nj.fit(nj.table(frame, target="y", noise=known, replicates=copies))


def _curved(rng, n=250, copies=1, size=0.4):
    x = rng.normal(size=(n, 2))
    y = 1 + x @ [1.0, -1.0] + 0.5 * x[:, 0] ** 2 + 0.7 * x[:, 0] * x[:, 1]
    y = y + 0.3 * rng.normal(size=n)
    return _noisy(rng, x, size, copies), y


@case
def products_of_known_noise(rng):
    x, y = _curved(rng, size=0.3)
    pairs = [("x1", "x1"), ("x1", "x2")]
    return nj.fit(from_arrays(x[:, 0], y, noise=0.09, products=pairs))


@case
def products_of_four_replicates(rng):
    x, y = _curved(rng, copies=4)
    return nj.fit(from_arrays(x, y, products=[("x1", "x1"), ("x1", "x2")]))


@case
def products_with_an_indicator(rng):
    x, y = _curved(rng)
    sex = np.array(["f", "m"], object)[rng.integers(2, size=len(y))]
    frame = {"dose": x[:, 0, 0], "sex": sex, "y": y + (sex == "m") * x[:, 0, 0]}
    known = {"noise": {"dose": 0.16}, "products": [("dose", "sex[m]")]}
    return nj.fit(nj.table(frame, target="y", **known))


@case
def categories_as_indicators(rng):
    frame = _frame(rng)
    frame["place"] = np.array(["in", "out", "sea"], object)[rng.integers(3, size=len(frame))]
    return nj.fit(nj.table(frame, target="y", **_KNOWN))


@case
def errors_of_y_that_follow_those_of_x(rng):
    x, y = _line(rng)
    error = 0.5 * rng.normal(size=x.shape)
    y = y + 0.6 * error[:, 0]
    return nj.fit(from_arrays(x + error, y, noise=0.25, cross_cov=[0.15, 0.0, 0.0]))


@case
def errors_of_y_that_follow_those_of_x_by_row(rng):
    x, y = _line(rng)
    sizes = rng.uniform(0.2, 0.8, size=x.shape)
    error = sizes * rng.normal(size=x.shape)
    cross = 0.6 * sizes**2 * [1.0, 0.0, 0.0]
    table = from_arrays(x + error, y + 0.6 * error[:, 0], noise=nj.sd(sizes), cross_cov=cross)
    return nj.fit(table)


@case
def weights_of_rows(rng):
    frame = _frame(rng)
    frame["w"] = rng.uniform(0, 2, size=len(frame)) * (rng.random(len(frame)) < 0.9)
    return nj.fit(nj.table(frame, target="y", weights="w", **_KNOWN))


@case
def clusters_of_rows(rng):
    frame = _frame(rng)
    frame["school"] = rng.integers(20, size=len(frame))
    frame["y"] += rng.normal(size=20)[frame["school"]]
    return nj.fit(nj.table(frame, target="y", clusters="school", **_KNOWN))


@case
def a_jackknife(rng):
    return nj.fit(nj.table(_frame(rng), target="y", **_KNOWN), errors="jackknife")


@case
def a_jackknife_of_clusters(rng):
    x, y = _line(rng)
    table = from_arrays(_noisy(rng, x, copies=2), y)
    schools, weights = rng.integers(20, size=len(y)), rng.uniform(0.5, 2, size=len(y))
    return nj.fit(table, clusters=schools, weights=weights, errors="jackknife")


def _parts(rng):
    x, y = _line(rng, 300)
    x = _noisy(rng, x)
    return [from_arrays(x[k : k + 100], y[k : k + 100], noise=0.25) for k in (0, 100, 200)]


@case
def chunks_of_a_table(rng):
    return nj.fit(iter(_parts(rng)))


@case
def chunks_of_frames(rng):
    frame = _frame(rng, 300)
    parts = [frame.iloc[k : k + 100] for k in (0, 100, 200)]
    return nj.fit(nj.observations.chunks(parts, target="y", **_KNOWN))


@case
def moments_of_parts(rng):
    return nj.fit([nj.fits.moments(one) for one in _parts(rng)])


@case
def weak_identification(rng):
    x, y = _line(rng, 60)
    x = np.column_stack([x[:, 0], x[:, 0] + 0.4 * x[:, 1], x[:, 2]])
    return nj.fit(from_arrays(_noisy(rng, x, size=0.6), y, noise=0.36))


@case
def a_column_of_two_values(rng):
    x, y = _line(rng)
    x = _noisy(rng, x)
    x[:, 1] = x[:, 1] > 0
    return nj.fit(from_arrays(x, y, noise=0.1))


@case
def an_exact_column_computed_from_a_noisy_one(rng):
    frame = _frame(rng)
    frame["square"] = frame["a"] ** 2
    return nj.fit(nj.table(frame, target="y", noise={"a": 0.2}, drop=["b1", "b2", "b3"]))


@case
def replicates_that_differ_more_at_large_values(rng):
    x = np.exp(rng.normal(size=200))
    copies = x[:, None, None] * np.exp(0.3 * rng.normal(size=(200, 2, 1)))
    return nj.fit(from_arrays(copies, x + rng.normal(size=200)))


@case
def rows_that_are_there_several_times(rng):
    x, y = _line(rng, 60)
    x = _noisy(rng, x)
    return nj.fit(from_arrays(np.tile(x, (3, 1)), np.tile(y, 3), noise=0.25))


# --- labels, counts, curves ------------------------------------------------------------------


def _labels(rng, n=400, copies=None, size=0.6):
    x = rng.normal(size=(n, 2))
    y = (rng.random(n) < expit(0.3 + x @ [1.0, -0.5])) * 1.0
    return _noisy(rng, x, size, copies), y


def _counts(rng, n=400, copies=None, size=0.5):
    x = rng.normal(size=(n, 2))
    return _noisy(rng, x, size, copies), rng.poisson(np.exp(0.3 + x @ [0.5, -0.3])) * 1.0


@case(tolerance=ITERATED)
def logistic(rng):
    x, y = _labels(rng)
    return nj.fit(from_arrays(x, y, noise=0.36), "logistic")


@case(tolerance=ITERATED)
def logistic_of_flipped_labels(rng):
    x, y = _labels(rng, 800)
    y = np.where(rng.random(len(y)) < 0.1, 1 - y, y)
    return nj.fit(from_arrays(x, y, noise=0.36), nj.methods.Logistic(flips=0.1))


@case(tolerance=ITERATED)
def logistic_of_misclassified_columns(rng):
    x, y = _labels(rng)
    true = x[:, 1] > 0
    frame = {"x": x[:, 0], "smoker": _recorded(rng, true * 1, MATRIX)[0], "y": y}
    known = {"smoker": nj.noise.Misclassified(MATRIX), "x": 0.36}
    return nj.fit(nj.table(frame, target="y", noise=known), "logistic")


@case(tolerance=ITERATED)
def logistic_of_replicates(rng):
    x, y = _labels(rng, copies=2)
    return nj.fit(from_arrays(x, y), "logistic")


@case(tolerance=ITERATED)
def logistic_with_weights(rng):
    x, y = _labels(rng)
    weights = rng.uniform(0, 2, size=len(y)) * (rng.random(len(y)) < 0.9)
    return nj.fit(from_arrays(x, y, noise=0.36), nj.methods.Logistic(weights=weights))


@case(tolerance=ITERATED)
def logistic_with_clusters(rng):
    x, y = _labels(rng)
    clusters = rng.integers(25, size=len(y))
    return nj.fit(from_arrays(x, y, noise=0.36), nj.methods.Logistic(clusters=clusters))


@case(tolerance=ITERATED)
def logistic_of_too_much_noise(rng):
    x, y = _labels(rng, 40, size=1.5)
    return nj.fit(from_arrays(x, y, noise=1.6), "logistic")


@case(tolerance=ITERATED)
def logistic_of_a_covariance_with_standard_errors(rng):
    x, y = _labels(rng)
    known = nj.noise.CovarianceEstimate(0.36 * np.eye(2), 0.05 * np.eye(2))
    return nj.fit(from_arrays(x, y, noise=known), "logistic")


@case(tolerance=ITERATED)
def poisson_with_exposure(rng):
    x, y = _counts(rng)
    times = rng.uniform(0.5, 2, size=len(y))
    frame = {"a": x[:, 0], "b": x[:, 1], "y": rng.poisson(times * (0.5 + y)), "time": times}
    table = nj.table(frame, target="y", noise={"a": 0.25, "b": 0.25}, exposure="time")
    return nj.fit(table, nj.methods.Poisson())


@case(tolerance=ITERATED)
def poisson_of_a_covariance_of_fifty_pairs(rng):
    x, y = _counts(rng)
    return nj.fit(from_arrays(x, y, noise=_of_pairs(rng, 2)), "poisson")


@case(tolerance=ITERATED)
def poisson_of_replicates(rng):
    x, y = _counts(rng, copies=2)
    return nj.fit(from_arrays(x, y), nj.methods.Poisson(weights=rng.uniform(1, 2, size=len(y))))


def _growth(params, x):
    return params["level"] + params["size"] * jnp.exp(0.5 * x[0])


_CURVE = nj.methods.Model(_growth, {"level": 0.0, "size": 1.0})


def _grown(rng, n=150, copies=None):
    x = rng.normal(size=(n, 1))
    y = 0.5 + np.exp(0.5 * x[:, 0]) + 0.3 * rng.normal(size=n)
    return _noisy(rng, x, 0.4, copies), y


@case(tolerance=ITERATED)
def model_of_known_noise(rng):
    x, y = _grown(rng)
    return nj.fit(from_arrays(x, y, noise=0.16), _CURVE)


@case(tolerance=ITERATED)
def model_of_replicates(rng):
    x, y = _grown(rng, copies=2)
    weights, clusters = rng.uniform(0.5, 2, size=len(y)), rng.integers(20, size=len(y))
    method = nj.methods.Model(_growth, _CURVE.start, weights=weights, clusters=clusters)
    return nj.fit(from_arrays(x, y), method)


@case(tolerance=ITERATED)
def model_of_unequal_replicates(rng):
    x, y = _grown(rng, copies=3)
    frame = {"y": y} | {f"x{k}": x[:, k, 0].copy() for k in range(3)}
    frame["x2"][::3] = frame["x1"][::9] = np.nan
    table = nj.table(frame, target="y", replicates={"x": ["x0", "x1", "x2"]})
    return nj.fit(table, _CURVE)


@case(tolerance=ITERATED)
def model_of_replicates_beside_known_noise(rng):
    x, y = _grown(rng, copies=2)
    z = rng.normal(size=len(y))
    frame = {"x1": x[:, 0, 0], "x2": x[:, 1, 0], "z": z + 0.3 * rng.normal(size=len(y))}
    frame["y"] = y + 0.5 * z

    def curve(params, x):
        return params["size"] * jnp.exp(0.5 * x[0]) + params["slope"] * x[1]

    copies, start = {"x": ["x1", "x2"]}, {"size": 1.0, "slope": 0.0}
    table = nj.table(frame, target="y", replicates=copies, noise={"z": 0.09})
    return nj.fit(table, nj.methods.Model(curve, start))


@case(tolerance=ITERATED)
def model_of_labels(rng):
    x, y = _labels(rng, 200, copies=2, size=0.4)
    method = nj.methods.Model(
        lambda params, x: params[0] + params[1] * x[0] + params[2] * x[1],
        jnp.zeros(3),
        loss=nj.losses.logistic(),
    )
    return nj.fit(from_arrays(x, 2 * y - 1), method)


@case(tolerance=ITERATED)
def model_of_an_estimated_covariance(rng):
    x, y = _grown(rng)
    known = nj.noise.CovarianceEstimate(np.array([[0.16]]), np.array([[0.02]]))
    return nj.fit(from_arrays(x, y, noise=known), _CURVE)


# --- approximate methods, kernels, selection --------------------------------------------------


def _slopes(x, y):
    """Least squares by names, and its covariance."""
    design = np.column_stack([np.ones(len(y)), x])
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ (design.T @ y)
    variance = np.sum((y - design @ beta) ** 2) / (len(y) - len(beta))
    return dict(zip(("level", "a", "b", "c"), beta, strict=True)), variance * inverse


@case(tolerance=ITERATED)
def simex_of_a_function_extrapolated(rng):
    x, y = _line(rng)
    table = from_arrays(_noisy(rng, x), y, noise=0.25)
    return nj.fit(table, nj.methods.SIMEX(_slopes, draws=6))


@case(tolerance=ITERATED)
def simex_of_a_function_by_the_jackknife(rng):
    x, y = _line(rng, 100)
    table = from_arrays(_noisy(rng, x, copies=2), y)
    method = nj.methods.SIMEX(lambda x, y: _slopes(x, y)[0], draws=4, extrapolation="rational")
    return nj.fit(table, method)


@case(tolerance=ITERATED)
def simex_of_an_estimator(rng):
    x, y = _line(rng, 100)
    known = nj.noise.CovarianceEstimate(0.25 * np.eye(3), 0.04 * np.eye(3))
    table = from_arrays(_noisy(rng, x), y, noise=known)
    return nj.fit(table, nj.methods.SIMEX(Ridge(alpha=0.1), draws=2, errors="jackknife"))


@case(tolerance=ITERATED)
def calibration_of_a_line(rng):
    x, y = _line(rng)
    sizes = rng.uniform(0.1, 0.9, size=x.shape)
    table = from_arrays(x + sizes * rng.normal(size=x.shape), y, noise=nj.sd(sizes))
    return nj.fit(table, nj.methods.RegressionCalibration())


@case(tolerance=ITERATED)
def calibration_of_labels(rng):
    x, y = _labels(rng)
    known = nj.noise.CovarianceEstimate(0.36 * np.eye(2), 0.05 * np.eye(2))
    table = from_arrays(x, y, noise=known)
    return nj.fit(table, nj.methods.RegressionCalibration("logistic"))


@case(tolerance=ITERATED)
def calibration_of_counts(rng):
    x, y = _counts(rng, copies=3)
    frame = {"y": y} | {f"a{k}": x[:, k, 0] for k in range(3)} | {"b": x[:, 0, 1]}
    frame["a2"][::3] = np.nan
    table = nj.table(frame, target="y", replicates={"a": ["a0", "a1", "a2"]}, noise={"b": 0.25})
    return nj.fit(table, nj.methods.RegressionCalibration("poisson"))


def _wave(rng, n=300, copies=None):
    x = rng.uniform(-2, 2, size=(n, 1))
    return x, np.sin(2 * x[:, 0]) + 0.2 * rng.normal(size=n)


@case(tolerance=SINGLE)
def kernel_of_a_law(rng):
    x, y = _wave(rng)
    noisy = x + rng.laplace(scale=0.3, size=x.shape)
    table = from_arrays(noisy, y, noise=nj.noise.Laplace(0.3))
    return nj.fit(table, nj.methods.Fourier(length_scale=0.7, num_features=32))


@case(tolerance=SINGLE)
def kernel_of_replicates_chosen(rng):
    x, y = _wave(rng)
    table = from_arrays(_noisy(rng, x, 0.4, copies=2), y)
    clusters = rng.integers(30, size=len(y))
    method = nj.methods.Fourier(length_scale="auto", num_features=32, clusters=clusters)
    return nj.fit(table, method)


@case(tolerance=SINGLE)
def kernel_of_unequal_replicates(rng):
    x, y = _wave(rng)
    copies = _noisy(rng, x, 0.4, copies=3)[:, :, 0]
    frame = {"y": y} | {f"x{k}": copies[:, k].copy() for k in range(3)}
    frame["x2"][::2] = np.nan
    table = nj.table(frame, target="y", replicates={"x": ["x0", "x1", "x2"]})
    weights = rng.uniform(0.5, 2, size=len(y))
    return nj.fit(table, nj.methods.Fourier(length_scale=0.7, num_features=32, weights=weights))


@case(tolerance=SINGLE)
def selection_of_fits_and_learners(rng):
    x, y = _line(rng, 300)
    table = from_arrays(_noisy(rng, x), y, noise=0.25)
    candidates = {
        "corrected": nj.fit,
        "naive": lambda rows: nj.fit(rows).uncorrected,
        "ridge": Ridge(),
        "online": nj.learners.known_covariance(radius=3.0),
    }
    return nj.select(candidates, table, jax.random.key(0))


@case(tolerance=SINGLE)
def learned_online(rng):
    x, y = _line(rng, 300)
    table = from_arrays(_noisy(rng, x), y, noise=0.25)
    return nj.learn(nj.learners.known_covariance(radius=3.0), table, jax.random.key(0))


@case(tolerance=ITERATED)
def estimators_of_scikit_learn(rng):
    x, y = _line(rng)
    (labelled, labels), (counted, counts), noisy = _labels(rng), _counts(rng), _noisy(rng, x)
    line = estimators.NoisyLinearRegression(noise=0.25).fit(noisy, y)
    classes = estimators.NoisyLogisticRegression(noise=0.36).fit(labelled, labels)
    rates = estimators.NoisyPoissonRegressor(noise=0.25).fit(counted, counts)
    simex = estimators.SIMEX(LinearRegression(), noise=0.25, draws=5).fit(noisy, y)
    return {
        "line": [*line.coef_, line.intercept_, line.clean_score_, *line.predict(noisy[:2])],
        "classes": [*classes.coef_[0], *classes.intercept_],
        "probabilities": classes.predict_proba(labelled[:2]),
        "rates": [*rates.coef_, rates.intercept_, *rates.predict(counted[:2])],
        "simex": [*simex.coef_, simex.intercept_, *simex.predict(noisy[:2])],
    }


if __name__ == "__main__":
    main()
