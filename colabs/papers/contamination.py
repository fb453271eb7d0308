"""Errors of trimmed and other regressions on corrupted tables."""

import dataclasses
import functools
import itertools
import math
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np

import contamination_fits as fits
import contamination_noisy_inputs as noisy_inputs
from contamination_picture import draw_errors
from noisy_jax.command.runner import Report, over_seeds, picture, script
from noisy_jax.command.settings import INTERVALS, SeededSettings, at_least, option
from noisy_jax.reports.tables import Table
from noisy_jax.simulated import streams
from noisy_jax.validation.numbers import non_negative, positive

_SHARES = tuple(round(0.05 * i, 2) for i in range(10))
_TABLES: Mapping[str, Callable] = {
    "synthetic": lambda settings: fits.synthetic(settings.rows),
    "linear": lambda _: fits.linear(),
    "diabetes": lambda settings: fits.real(
        streams.dataset("diabetes"), settings.length_scale, settings.alpha
    ),
}
"""Kinds of tables by name, from the settings of the study."""


def _increasing(name, values) -> None:
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
      python colabs/papers/contamination.py
      python colabs/papers/contamination.py --data linear --shares 0 0.1 0.2 0.3 0.4
      python colabs/papers/contamination.py --data diabetes --length-scale 4 --alpha 0.5
    """

    data: tuple[str, ...] = option(
        ("synthetic", "diabetes"),
        "synthetic, linear (slow), diabetes",
        "NAME",
        choices=_TABLES,
        fast=("synthetic",),
    )
    shares: tuple[float, ...] = option(
        _SHARES,
        "ε, shares of corrupted rows in [0, 0.5), increasing",
        "E",
        _increasing,
        fast=(0.0, 0.3),
    )
    rows: int = option(500, "rows of the synthetic table", "N", at_least(10), fast=60)
    length_scale: float = option(
        10**0.5, "ℓ of diabetes' kernel exp(−r²/2ℓ²), features of unit variance", "L", positive
    )
    alpha: float = option(1.0, "weight of diabetes' ‖f‖², scikit-learn's alpha", "A", positive)
    noise_variance: float = option(
        0.02, "noise on synthetic instances, below 0.25; 0 leaves that part out", "V", non_negative
    )
    seeds: int = option(50, "tables drawn and corrupted", "N", INTERVALS, fast=2)


def run(settings: Settings) -> Iterator[Report]:
    """One report for each data set; their CSV file holds the rows of all so far."""
    limit = fits.SYNTHETIC_LENGTH_SCALE**2
    if settings.noise_variance >= limit:
        raise ValueError(
            f"--noise-variance must be below {limit}, got {settings.noise_variance}: noise as wide "
            "as the kernel leaves no surrogate"
        )
    rows: list[dict] = []
    for data in dict.fromkeys(settings.data):
        parts = [_on_clean_inputs(settings, data)]
        if data == "synthetic" and settings.noise_variance:
            parts.append(_on_noisy_inputs(settings))
        rows = [*rows, *itertools.chain(*parts)]
        shown = [_table(part) for part in parts]
        tables = {"contamination": dataclasses.replace(shown[0], rows=rows)}
        panels = {name: defaultdict(list) for name in fits.ADVERSARIES}
        for row in parts[0]:
            if row["adversary"] in panels:
                ends = max(row["low"], 1e-6), row["high"]
                panels[row["adversary"]][row["method"]].append((row["error"], *ends))
        draw = picture(draw_errors, settings.shares, panels)
        yield Report("\n\n".join(map(str, shown)), tables, {data: draw})


def _on_clean_inputs(settings, data) -> list[dict]:
    """All rows of one data set."""
    setting, adversaries = _TABLES[data](settings), (*fits.ADVERSARIES, "told")
    run_one = functools.partial(fits.by_adversary, setting)
    rows = _rows(settings, data, adversaries, run_one, fits.METHODS, ("subquantile",))
    if data == "linear":
        rows += _rows(settings, data, adversaries, functools.partial(_of_rivals, setting), rivals())
        rows.sort(key=lambda row: adversaries.index(row["adversary"]))
    return rows


def _on_noisy_inputs(settings) -> list[dict]:
    run_one = functools.partial(
        noisy_inputs.on_noisy_inputs,
        fits.synthetic(settings.rows),
        fits.SYNTHETIC_LENGTH_SCALE,
        settings.noise_variance,
    )
    trimming = "uncorrected", "surrogate", "second copy"
    names = noisy_inputs.ADVERSARIES
    return _rows(settings, "noisy inputs", names, run_one, noisy_inputs.METHODS, trimming)


def _rows(settings, data, adversaries, run_one, methods, trimming=()) -> list[dict]:
    """A row for each adversary, method and share, from a run `(shares, key)` to their `Scores`.

    Methods that trim have the share of honest rows among those kept, and of those kept among the
    honest ones.
    """
    key, rows = jax.random.key(settings.seed), []
    run_one = functools.partial(run_one, jnp.array(settings.shares))
    found = over_seeds(run_one, key, settings.seeds, data, batch_size=1)
    mean, half_width = found.mean, found.half_width
    for adversary in adversaries:
        score, halves = mean[adversary], half_width[adversary].error
        precision, recall = (  # of all methods, or only of the one that trims
            np.broadcast_to(kept.reshape(len(halves), -1), halves.shape)
            for kept in (score.precision, score.recall)
        )
        for (i, method), (e, told) in itertools.product(
            enumerate(methods), enumerate(settings.shares)
        ):
            error, half, trims = score.error[e, i], halves[e, i], method in trimming
            numbers = {
                "share": fits.TOLD if adversary == "told" else told,
                "told": told,
                "error": error,
                "low": error - half,
                "high": error + half,
                "precision": precision[e, i] if trims else math.nan,
                "recall": recall[e, i] if trims else math.nan,
            }
            names = {"data": data, "adversary": adversary, "method": method}
            rows.append(names | {name: float(number) for name, number in numbers.items()})
    return rows


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
    test_x, test_y, x, y = map(np.asarray, (test_x, test_y, x, y))

    def error(regressor, x, y):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what did not converge shows in its error
            misses = regressor.fit(x, y).predict(test_x) - test_y
        return np.sqrt(np.mean(misses**2))

    tables = zip(x, y, strict=True)
    errors = [[error(make(), *table) for make in rivals().values()] for table in tables]
    return np.array(errors, test_y.dtype)


def _of_rivals(setting, shares, key) -> dict[str, fits.Scores]:
    """`rival_errors` by adversary, called on the host from a compiled run; rivals trim nothing."""
    table, relabelled, moved = fits.contaminated(setting, shares, key)
    shape = jax.ShapeDtypeStruct((len(shares), len(rivals())), table.x.dtype)
    nothing = jnp.full(len(shares), jnp.nan)

    def score(made):
        arrays = table.test_x, table.test_y, made.x, made.y
        error = jax.pure_callback(rival_errors, shape, *arrays, vmap_method="sequential")
        return fits.Scores(error, nothing, nothing)

    return {name: score(made) for name, made in {**relabelled, **moved}.items()}


if __name__ == "__main__":
    sys.exit(script(Settings, run))
