"""What the benchmarks share: timing, the machine they ran on, and the table they print."""

import datetime
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np


class Row(NamedTuple):
    """One line of a benchmark's table.

    Attributes:
        what: what was measured.
        measured: the number.
        unit: its unit, or "ratio".
        required: the requirement in words, empty for a line that only informs.
        met: whether the requirement holds, `None` for a line that only informs.
    """

    what: str
    measured: float
    unit: str
    required: str = ""
    met: bool | None = None


def median_times(*functions: Callable, repeats: int = 7) -> list[float]:
    """Median seconds of a call to each function, after one call that compiles and warms up.

    They are called in turns, so that whatever else the machine does slows all of them alike.

    Args:
        *functions: called without arguments; arrays that they return are waited for.
        repeats: calls of each that are timed.
    """
    for function in functions:
        jax.block_until_ready(function())
    seconds = [[] for _ in functions]
    for _ in range(repeats):
        for function, own in zip(functions, seconds, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(function())
            own.append(time.perf_counter() - start)
    return [statistics.median(own) for own in seconds]


def median_time(function: Callable, repeats: int = 7) -> float:
    """Median seconds of a call to one function, as `median_times`."""
    return median_times(function, repeats=repeats)[0]


def machine() -> str:
    """One line: processor, cores, versions of Python, jax and numpy, jax's device, date."""
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    return (
        f"{processor}, {os.cpu_count()} cores; Python {platform.python_version()}, "
        f"jax {jax.__version__}, numpy {np.__version__}; "
        f"jax runs on {jax.devices()[0].device_kind}; {datetime.date.today()}"
    )


def print_table(rows: Sequence[Row]) -> None:
    """Prints the rows in aligned columns, then which requirements are met and which are not."""
    verdicts = {True: " (met)", False: " (NOT MET)", None: ""}
    lines = [("what", "measured", "unit", "required")]
    lines += [
        (row.what, f"{row.measured:,.4g}", row.unit, row.required + verdicts[row.met])
        for row in rows
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for what, measured, unit, required in lines:
        cells = what.ljust(widths[0]), measured.rjust(widths[1]), unit.ljust(widths[2]), required
        print("  ".join(cells).rstrip())
    for met, title in ((True, "Met"), (False, "Not met")):
        names = [row.what for row in rows if row.met is met]
        print(f"\n{title} ({len(names)}):", *(names or ["none"]), sep="\n  ")
