"""Runs a study from the command line: prints its results, then saves them."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.util
import inspect
import io
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from noisy_jax import plots
from noisy_jax.command.compiled import prepare
from noisy_jax.command.settings import BaseSettings
from noisy_jax.reports.saving import replace_file, writable_folder
from noisy_jax.reports.tables import Table
from noisy_jax.simulated.configuration import save_config, versions
from noisy_jax.simulated.estimates import Estimate
from noisy_jax.simulated.montecarlo import monte_carlo
from noisy_jax.simulated.results import Study


class Report(NamedTuple):
    """One part of a study: results to print and to save.

    Attributes:
        text: the text to print; `None` to print the tables.
        tables: by name, saved as `NAME.csv`.
        figures: by name, functions that draw a matplotlib figure, saved as `NAME.png`.
        config: entries of `config.json`, beside the settings and versions.
        folder: where to save, below the study's folder.
    """

    text: str | None
    tables: Mapping[str, Table]
    figures: Mapping[str, Callable[[], Any]]
    config: Mapping[str, Any] = {}
    folder: str = "."

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.tables.values())) if self.text is None else self.text

    def save(self, folder: Path) -> None:
        """Writes tables, configuration and figures."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in self.tables.items():
            table.save(folder / f"{name}.csv")
        save_config(self.config, folder)
        for name, draw in self.figures.items():
            image = io.BytesIO()
            draw().savefig(image, format="png", dpi=150)
            replace_file(folder / f"{name}.png", image.getvalue())


def picture(
    plot: Callable[..., Any], *arguments: Any, title: str = "", **options: Any
) -> Callable[[], Any]:
    """Returns a function that draws one of `plots` and returns the figure, for `Report.figures`."""

    def draw():
        figure = np.ravel(plot(*arguments, **options))[0].figure
        if title:
            figure.suptitle(title)
        return figure

    return draw


def report_of(study: Study, heading: str, folder: str = ".") -> Report:
    """Returns the report of a study of regret."""
    figures = {"regret": picture(plots.regret, study)}
    return Report(f"{heading}\n\n{study}", {"results": study.table}, figures, study.config, folder)


def _import_ahead(*modules: str) -> threading.Thread:
    """Imports modules in a thread while JAX works; raises ImportError if their package is missing.

    Without it, a run would begin or end with half a second of imports.
    """
    package = modules[0].split(".")[0]
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"No module named {package!r}")

    def work():
        with contextlib.suppress(ImportError):  # it comes again where the module is used
            for module in modules:
                importlib.import_module(module)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


Work = Callable[[Any], Iterable[Report]]
"""A function of the settings of a study, which gives a report of each of its parts."""


def run(name: str, work: Work, settings: BaseSettings, out: str) -> int:
    """Runs a study, prints each of its reports, and saves it in the folder `out`.

    Returns:
        The exit status: 0, or 1 if a report could not be saved.
    """
    whole, status = writable_folder(out), 0
    print(f"Study {name}; results go to {whole}/", flush=True)  # before what takes long to import
    ahead = _import_ahead("matplotlib.figure", "matplotlib.backends.backend_agg")
    command = {"name": name, **dataclasses.asdict(settings), "out": str(whole)}
    for report in work(settings):
        config = {"command": command, **report.config, "versions": versions()}
        folder = whole / report.folder
        print(f"\n{report}\n", flush=True)
        ahead.join()
        try:
            report._replace(config=config).save(folder)
        except OSError as error:
            print(f"error: cannot save the results in {folder}: {error}", file=sys.stderr)
            status = 1
        else:
            print(f"Saved in {folder}/")
    return status


def add_options(parser: argparse.ArgumentParser, settings: type[BaseSettings]) -> None:
    """Gives a parser the options of a study, its description, and `--out`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = inspect.getdoc(settings)
    settings.add_options(parser)
    parser.add_argument(
        "--out",
        default="noisy_jax_results",
        metavar="FOLDER",
        help="folder for the results (default: noisy_jax_results)",
    )


def main(name: str, work: Work, settings: type[BaseSettings], options: argparse.Namespace) -> int:
    """Runs the study with the parsed options; returns the exit status, 2 for bad input."""
    try:
        return run(name, work, settings.parsed(options), options.out)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
    except ImportError as error:
        print(f"error: {error}; studies need: pip install 'noisy_jax[demo]'", file=sys.stderr)
    return 2


def script(settings: type[BaseSettings], work: Work, arguments: Sequence[str] | None = None) -> int:
    """Runs the study of a script, such as colabs/papers/drift.py, and returns its exit status.

    By default the arguments are those that Python was called with; then JAX is prepared for a
    command as well (`compiled.prepare`).
    """
    path = Path(inspect.getfile(work))
    parser = argparse.ArgumentParser(prog=f"python colabs/papers/{path.name}")
    add_options(parser, settings)
    options = parser.parse_args(arguments)
    if arguments is None:
        prepare(fast=getattr(options, "fast", False))
    return main(path.stem, work, settings, options)


@contextlib.contextmanager
def progress_bar(description: str, unit: str = "round") -> Iterator[Callable[[int, int], None]]:
    """Returns a progress bar for `study` and `monte_carlo`: a function of (done, total)."""
    from tqdm import tqdm

    with tqdm(total=1, unit=unit, unit_scale=True, desc=description) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress


def over_seeds(
    run: Callable[[jax.Array], Any],
    key: jax.Array,
    num_seeds: int,
    description: str,
    batch_size: int = 128,
) -> Estimate:
    """Calls `monte_carlo` with a progress bar, for `batch_size` seeds at once on each device."""
    with progress_bar(description, "seed") as progress:
        size = min(batch_size * jax.local_device_count(), num_seeds)
        return monte_carlo(run, num_seeds, key, batch_size=size, mesh="all", progress=progress)
