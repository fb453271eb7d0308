"""Results of a study: a table to print, read and save."""

import csv
import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from noisy_jax.evaluate.regrets import NORMAL_95, Growth
from noisy_jax.validation import writable_folder


class Row(NamedTuple):
    """One learner at one horizon.

    Attributes:
        learner: its name.
        horizon: T.
        regret: mean over seeds of the regret on clean data after T rounds.
        std_error: of the mean.
        low: lower end of its 95% interval, 1.96 standard errors wide on each side; with fewer than
            about 30 seeds it covers less often (86% with 4).
        high: upper end.
        bound: the guarantee's bound on the expected regret; NaN, as what comes of it and the
            learning rate, where there is no guarantee.
        bound_over_regret: how loose it is; between 0 and 1 the bound fails.
        difference: mean of (regret − regret of the study's first learner), paired by seed.
        difference_std_error: of that mean.
        learning_rate: the guarantee's η.
        diverged: fraction of seeds in which the learner overflowed.
    """

    learner: str
    horizon: int
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


@dataclasses.dataclass(frozen=True)
class Study:
    """Results of `study`: print it, read its rows, or save it.

    Attributes:
        rows: one `Row` for each learner and horizon, horizons inside learners.
        growth: exponent of the growth of regret for each learner, over the upper half of horizons;
            its interval is a point where there is no noise.
        config: all that made the results, as JSON holds it.
    """

    rows: tuple[Row, ...]
    growth: Mapping[str, Growth]
    config: Mapping[str, Any]

    def __str__(self) -> str:
        """The table, and the exponents below it."""
        width = max(len(name) for name in ("learner", *self.growth))
        lines = [
            f"{'learner':<{width}} {'T':>9} {'regret':>9} {'± 95%':>7} {'bound':>9} "
            f"{'bound/regret':>12} {'vs first':>9} {'± 95%':>7}"
        ]
        lines += [
            f"{row.learner:<{width}} {row.horizon:>9,} {row.regret:>9.1f} "
            f"{NORMAL_95 * row.std_error:>7.1f} {_or_none(row.bound, '.1f'):>9} "
            f"{_or_none(row.bound_over_regret, '.2f'):>12} {row.difference:>+9.1f} "
            f"{NORMAL_95 * row.difference_std_error:>7.1f}"
            + (f"  diverged in {row.diverged:.0%} of seeds" if row.diverged else "")
            for row in self.rows
        ]
        lines += ["", "regret grows like T^a over the upper half of horizons, a with 95% interval:"]
        lines += [
            f"{name:<{width}} {fit.exponent:6.3f}  "
            + (f"[{fit.low:.3f}, {fit.high:.3f}]" if fit.low < fit.high else "(no interval)")
            for name, fit in self.growth.items()
        ]
        return "\n".join(lines)

    def save(self, folder: str | Path) -> Path:
        """Writes `results.csv`, `config.json` and `regret.png` (needs matplotlib).

        Args:
            folder: where to; made if it does not exist.

        Returns:
            The folder's path.

        Raises:
            ValueError: the folder cannot be written.
        """
        from noisy_jax import plots

        folder = writable_folder(folder)
        with open(folder / "results.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow([*Row._fields, *(f"growth_{name}" for name in Growth._fields)])
            table.writerows([*row, *self.growth[row.learner]] for row in self.rows)
        save_config(self.config, folder)
        plots.regret(self).figure.savefig(folder / "regret.png", dpi=150)
        return folder


def _or_none(value: float, form: str) -> str:
    return "none" if math.isnan(value) else format(value, form)


def save_config(config: Mapping[str, Any], folder: Path) -> None:
    """Writes `config.json`."""
    text = json.dumps(config, indent=2, ensure_ascii=False)
    (folder / "config.json").write_text(text + "\n", encoding="utf-8")
