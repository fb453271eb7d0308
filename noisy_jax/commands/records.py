"""What commands leave in their folder: tables as CSV, and how they were made."""

import argparse
import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from noisy_jax.evaluate.provenance import versions
from noisy_jax.evaluate.results import save_config


def save_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Writes a table as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])


def save_command(options: argparse.Namespace, folder: Path, **parameters: Any) -> None:
    """Writes `config.json`: the options, what else the command went by, and versions."""
    save_config({"command": vars(options), **parameters, "versions": versions()}, folder)
