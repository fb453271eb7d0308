"""The study `contamination`: errors of trimmed and other regression on corrupted tables."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from noisy_jax import plots, streams
from noisy_jax.evaluate import noisy_inputs, robustness
from noisy_jax.evaluate.montecarlo import monte_carlo
from noisy_jax.evaluate.regrets import NORMAL_95
from noisy_jax.evaluate.tables import Table
from noisy_jax.studies.runner import Report, progress_bar
from noisy_jax.studies.settings import INTERVALS, SeededSettings, at_least, option
from noisy_jax.validation import non_negative, positive


def _shares(name, values) -> None:
    shares = np.array(values)
    if not np.all((shares >= 0) & (shares < 0.5)) or np.any(np.diff(shares) <= 0):
        raise ValueError(f"{name} must increase within [0, 0.5), got {list(values)}")


@dataclasses.dataclass(frozen=True)
class Settings(SeededSettings):
    """Error of trimmed kernel regression where rows are corrupted.

    Which regression is still good on clean data if a share of the rows is corrupted?

    Fits ridge, Huber's loss, subquantile (trimmed) ridge and an oracle that knows the corrupted
    rows, all with one kernel, to tables that ten adversaries have corrupted, and on linear data
    also robust regressors of scikit-learn. Then it tells the trimmed fit a wrong share, and adds
    noise to the instances. Writes contamination.csv, config.json and a picture for each data set.

    Examples:
      python -m noisy_jax contamination
      python -m noisy_jax contamination --data linear --shares 0 0.1 0.2 0.3 0.4
      python -m noisy_jax contamination --data diabetes --length-scale 4 --alpha 0.5
    """

    data: tuple[str, ...] = option(
        ("synthetic", "diabetes"),
        "synthetic, linear, diabetes; linear takes longest",
        metavar="NAME",
        choices=("synthetic", "linear", "diabetes"),
    )
    shares: tuple[float, ...] = option(
        tuple(round(0.05 * i, 2) for i in range(10)),
        "ε, shares of corrupted rows in [0, 0.5), increasing",
        metavar="E",
        check=_shares,
    )
    rows: int = option(500, "rows of the synthetic table", metavar="N", check=at_least(10))
    length_scale: float = option(
        10**0.5,
        "ℓ of the kernel exp(−r²/2ℓ²) for diabetes, features of unit variance",
        metavar="L",
        check=positive,
    )
    alpha: float = option(
        1.0,
        "weight of ‖f‖² beside the sum of squared errors for diabetes, as scikit-learn's alpha",
        metavar="A",
        check=positive,
    )
    noise_variance: float = option(
        0.02,
        "noise on the synthetic instances, below 0.25; 0 leaves that part out",
        metavar="V",
        check=non_negative,
    )
    seeds: int = option(50, "tables drawn and corrupted", metavar="N", check=INTERVALS)


def run(settings: Settings) -> Iterator[Report]:
    """One report for each data set; their CSV file holds the rows of all so far."""
    limit = robustness.SYNTHETIC_LENGTH_SCALE**2
    if settings.noise_variance >= limit:
        raise ValueError(
            f"--noise-variance must be below {limit}, got {settings.noise_variance}: noise as wide "
            "as the kernel leaves no surrogate"
        )
    rows: list[dict] = []
    for data in dict.fromkeys(settings.data):
        clean = _on_clean_inputs(settings, data)
        parts = [clean]
        if data == "synthetic" and settings.noise_variance:
            parts.append(_on_noisy_inputs(settings))
        rows = rows + [row for part in parts for row in part]
        shown = [_table(part) for part in parts]
        whole = dataclasses.replace(shown[0], rows=rows)
        draw = functools.partial(_draw, settings.shares, clean)
        yield Report("\n\n".join(map(str, shown)), {"contamination": whole}, {data: draw})


def _on_clean_inputs(settings, data) -> list[dict]:
    """All rows of one data set, in the order of adversary, method, share."""
    match data:
        case "synthetic":
            setting = robustness.synthetic(settings.rows)
        case "linear":
            setting = robustness.linear()
        case _:
            table = streams.dataset(data)
            setting = robustness.real(table, settings.length_scale, settings.alpha)
    shares = jnp.array(settings.shares)
    methods = robustness.METHODS
    found = _over_seeds(settings, data, functools.partial(robustness.by_adversary, setting, shares))
    errors: dict[str, tuple[Any, ...]] = {
        name: (found.mean[name].error, found.std_error[name].error) for name in found.mean
    }
    if data == "linear":
        others = _over_seeds(
            settings, "scikit-learn", functools.partial(_of_rivals, setting, shares)
        )
        for name in others.mean:
            both = zip(errors[name], (others.mean[name], others.std_error[name]), strict=True)
            errors[name] = tuple(np.concatenate(pair, axis=-1) for pair in both)
        methods = (*methods, *rivals())
    rows = []
    for name in (*robustness.ADVERSARIES, "told"):
        score, (mean, error) = found.mean[name], errors[name]
        for i, method in enumerate(methods[: mean.shape[-1]]):
            kept = (score.precision, score.recall) if method == "subquantile" else None
            names = {"data": data, "adversary": name, "method": method}
            true = robustness.TOLD if name == "told" else None
            rows += _rows(names, settings.shares, true, mean[:, i], error[:, i], kept)
    return rows


def _on_noisy_inputs(settings) -> list[dict]:
    setting, shares = robustness.synthetic(settings.rows), jnp.array(settings.shares)
    scale = robustness.SYNTHETIC_LENGTH_SCALE
    run_one = functools.partial(
        noisy_inputs.on_noisy_inputs, setting, scale, settings.noise_variance, shares
    )
    found, rows = _over_seeds(settings, "noisy inputs", run_one), []
    for name, score in found.mean.items():
        for i, method in enumerate(noisy_inputs.METHODS):
            trims = method in ("blind", "surrogate", "second copy")
            kept = (score.precision[:, i], score.recall[:, i]) if trims else None
            names = {"data": "noisy inputs", "adversary": name, "method": method}
            error = found.std_error[name].error[:, i]
            rows += _rows(names, settings.shares, None, score.error[:, i], error, kept)
    return rows


def _over_seeds(settings, description, run_one) -> Any:
    key = jax.random.key(settings.seed)
    with progress_bar(description, "table") as progress:
        return monte_carlo(run_one, key, settings.seeds, batch_size=1, progress=progress)


def _rows(names, shares, true, means, errors, kept) -> Iterator[dict]:
    """A row for each share; `true` is the share of corrupted rows if it is another."""
    nothing = (math.nan,) * len(shares)
    precision, recall = (nothing, nothing) if kept is None else kept
    for told, mean, error, p, r in zip(shares, means, errors, precision, recall, strict=True):
        half = NORMAL_95 * error
        numbers = {"share": told if true is None else true, "told": told, "error": mean}
        numbers |= {"low": mean - half, "high": mean + half, "precision": p, "recall": r}
        yield names | {name: float(number) for name, number in numbers.items()}


def _table(rows) -> Table:
    """Errors, a line for each adversary and method, a column for each share."""
    shares = list(dict.fromkeys(row["told"] for row in rows))
    shown = []
    for start in range(0, len(rows), len(shares)):
        line = rows[start : start + len(shares)]
        shown.append({**line[0], "cells": [f"{row['error']:.3f}" for row in line]})
        if not math.isnan(line[0]["precision"]):
            kept = [f"{row['precision']:.0%}" for row in line]
            shown.append({"adversary": "", "method": "  honest, kept", "cells": kept})
    columns = [("adversary", "{adversary}"), ("method", "{method}")]
    columns += [(f"{share:g}", f"{{cells[{i}]}}") for i, share in enumerate(shares)]
    title = f"{rows[0]['data']}: error on clean data (RMSE), by ε"
    return Table(rows, columns, title, shown)


def _draw(shares, rows):
    panels: dict = {}
    for row in rows:
        if row["adversary"] != "told":
            curve = panels.setdefault(row["adversary"], {}).setdefault(row["method"], [])
            curve.append((row["error"], max(row["low"], 1e-6), row["high"]))
    return plots.contamination(shares, panels)[0].figure


def rivals() -> Mapping[str, Callable]:
    """Robust regressors of scikit-learn by name."""
    from sklearn import linear_model

    return {
        "HuberRegressor": linear_model.HuberRegressor,
        "RANSAC": functools.partial(linear_model.RANSACRegressor, random_state=0),
        "TheilSen": functools.partial(
            linear_model.TheilSenRegressor, max_subpopulation=300, random_state=0
        ),
    }


def rival_errors(test_x, test_y, x, y) -> np.ndarray:
    """Errors `[E, M]` of `rivals` on test rows, fitted to E tables x `[E, n, d]`, y `[E, n]`."""

    def error(regressor, x, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what did not converge shows in its error
            misses = regressor.fit(x, y).predict(test_x) - test_y
        return np.sqrt(np.mean(misses**2))

    tables = zip(np.asarray(x), np.asarray(y), strict=True)
    return np.array([[error(make(), *table) for make in rivals().values()] for table in tables])


def _of_rivals(setting, shares, key) -> dict[str, jax.Array]:
    """`rival_errors` by adversary, called on the host from a compiled run."""
    table, relabelled, moved = robustness.contaminated(setting, shares, key)
    shape = jax.ShapeDtypeStruct((len(shares), len(rivals())), table.x.dtype)

    def called(*arrays):
        return rival_errors(*map(np.asarray, arrays)).astype(shape.dtype)

    return {
        name: jax.pure_callback(
            called, shape, table.test_x, table.test_y, made.x, made.y, vmap_method="sequential"
        )
        for name, made in {**relabelled, **moved}.items()
    }
