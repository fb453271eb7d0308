"""Results of a study: a table to print, read and save, with how it was made."""

import dataclasses
import hashlib
import json
import math
import platform
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import chex
import jax
import jaxlib
import numpy as np
import optax

from noisy_jax.saving import replace_file
from noisy_jax.simulated.regrets import Growth
from noisy_jax.tables import Table, plus_minus
from noisy_jax.validation import writable_folder
from noisy_jax.version import __version__


class Row(NamedTuple):
    """One learner at one horizon.

    Attributes:
        learner: its name.
        horizon: T.
        num_seeds: S.
        regret: mean over seeds of the regret on clean data after T rounds; NaN if a seed diverged.
        std_error: standard error of that mean.
        low: lower end of the 95% interval, by Student's t with S − 1 degrees of freedom; NaN with
            one seed.
        high: upper end.
        bound: the guarantee's bound on the expected regret; NaN where there is no guarantee, and
            so are `bound_over_regret` and `learning_rate`.
        bound_over_regret: bound divided by regret; a value in (0, 1) means that the regret is
            larger than the bound.
        difference: mean of (regret − regret of the study's first learner), paired by seed.
        difference_std_error: standard error of that mean.
        learning_rate: the guarantee's η.
        diverged: fraction of seeds in which the learner overflowed.
        quantiles: of the regret over seeds, at the levels of `config["quantiles"]`; each is the
            regret of one seed.
    """

    learner: str
    horizon: int
    num_seeds: int
    regret: float
    std_error: float
    low: float
    high: float
    bound: float
    bound_over_regret: float
    difference: float
    difference_std_error: float
    learning_rate: float
    diverged: float
    quantiles: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class Study:
    """Results of `study`: print them, read the rows, or save them.

    Attributes:
        rows: one `Row` for each learner and horizon, sorted by learner, then by horizon.
        growth: exponent of the growth of regret for each learner, over the upper half of the
            horizons; its interval is a point where there is no noise.
        config: everything that made the results, as `config.json` holds it.
    """

    rows: tuple[Row, ...]
    growth: Mapping[str, Growth]
    config: Mapping[str, Any]

    @property
    def table(self) -> Table:
        """The rows, each with the exponent of its learner, as they are printed and saved."""
        rows = []
        names = [f"quantile_{level:g}" for level in self.config.get("quantiles", ())]
        for row in self.rows:
            columns = row._asdict() | dict(zip(names, row.quantiles, strict=True))
            del columns["quantiles"]
            exponent = self.growth[row.learner]._asdict().items()
            rows.append(columns | {f"growth_{name}": value for name, value in exponent})
        tails = [(f"q{name[9:]}", partial(_shown, name)) for name in names]
        return Table(rows, (*_COLUMNS[:4], *tails, *_COLUMNS[4:]))

    def __str__(self) -> str:
        """The table, and the exponents below it."""
        exponents = Table(
            [{"learner": name, "fit": fit} for name, fit in self.growth.items()], _FIT
        )
        heading = "regret grows like T^a over the upper half of horizons, a with 95% interval:"
        return f"{self.table}\n\n{heading}\n{exponents}"

    def save(self, folder: str | Path) -> Path:
        """Writes `results.csv` and `config.json` to a folder, made if it does not exist."""
        folder = writable_folder(folder)
        self.table.save(folder / "results.csv")
        save_config(self.config, folder)
        return folder


def _or_none(column: str, spec: str):
    return lambda row: "none" if math.isnan(row[column]) else format(row[column], spec)


def _shown(column: str, row) -> str:
    return f"{row[column]:.1f}"


def _interval(row) -> str:
    fit = row["fit"]
    return f"[{fit.low:.3f}, {fit.high:.3f}]" if fit.low < fit.high else "(no interval)"


def _verdict(row) -> str:
    low, high = row["fit"].low, row["fit"].high
    if high <= 0.6:
        return "like √T or slower"
    if low >= 0.8:
        return "nearly like T"
    return "between √T and T" if low >= 0.5 and high <= 1 else ""


_COLUMNS = (
    ("learner", "{learner}"),
    ("T", "{horizon:,}"),
    ("regret", "{regret:.1f}"),
    ("± 95%", plus_minus("std_error", ".1f")),
    ("bound", _or_none("bound", ".1f")),
    ("bound/regret", _or_none("bound_over_regret", ".2f")),
    ("vs first", "{difference:+.1f}"),
    ("± 95%", plus_minus("difference_std_error", ".1f")),
    ("", lambda row: f"diverged in {row['diverged']:.0%} of seeds" if row["diverged"] else ""),
)
_FIT = (("", "{learner}"), ("", "{fit.exponent:6.3f}"), ("", _interval), ("", _verdict))


def save_config(config: Mapping[str, Any], folder: Path) -> None:
    """Writes `config.json`."""
    content = json.dumps(config, indent=2, ensure_ascii=False)
    replace_file(folder / "config.json", f"{content}\n".encode())


def versions() -> dict[str, str]:
    """Versions of Python, of this library, and of the libraries that it uses."""
    libraries = {module.__name__: module.__version__ for module in (jax, jaxlib, optax, chex, np)}
    return {"python": platform.python_version(), "noisy_jax": __version__, **libraries}


def text(made_by) -> str:
    """The `repr` of a function or object without memory addresses, which differ between runs."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(made_by))


def description(tree) -> Any:
    """A stream or noise distribution for JSON: arrays above 100 numbers by shape and digest."""
    if tree is None:
        return None
    leaves = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.asarray(leaf)
        name = jax.tree_util.keystr(path).lstrip(".")
        if array.size <= 100:
            leaves[name] = array.tolist()
        else:
            digest = hashlib.sha256(array.tobytes()).hexdigest()
            leaves[name] = {"shape": array.shape, "dtype": str(array.dtype), "sha256": digest}
    kind = type(tree).__name__
    if kind == "PerRound":
        kind += f" {type(tree.distribution).__name__}"
    return {"kind": kind, **leaves}
